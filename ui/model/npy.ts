// One column: an `.npy` member read without trust in its header, as a typed array. 64-bit integers become doubles; those
// beyond 2^53 (no honest time or size) lose their last digits.

import { ProfileFileError } from "./errors";

export type Column = Uint8Array | Int16Array | Int32Array | Uint32Array | Float64Array;

const HEADER =
  /^\{\s*'descr':\s*'([^']{1,64})',\s*'fortran_order':\s*(?:True|False),\s*'shape':\s*\((\d{1,15}),\s*\),?\s*\}\s*$/;
const ITEM_BYTES: Record<string, number> = { "|u1": 1, "<i2": 2, "<i4": 4, "<u4": 4, "<i8": 8, "<u8": 8, "<f8": 8 };

/** The column of type `dtype` in an unpacked member; raises ProfileFileError naming the part. */
export function readColumn(part: string, data: Uint8Array, dtype: string): Column {
  const wrong = (what: string) => new ProfileFileError(`The file cannot be read: its part ${part} ${what}.`);
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const magic = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59];
  if (data.length < 12 || magic.some((byte, i) => data[i] !== byte) || data[6] < 1 || data[6] > 3)
    throw wrong("is not a NumPy array of a known version");
  const wide = data[6] > 1;
  const start = wide ? 12 : 10;
  const headerBytes = wide ? view.getUint32(8, true) : view.getUint16(8, true);
  if (headerBytes > 4096 || start + headerBytes > data.length) throw wrong("has a header that does not fit");
  const text = String.fromCharCode(...data.subarray(start, start + headerBytes));
  const header = HEADER.exec(text);
  if (!header) throw wrong("is not a one-dimensional NumPy array of plain numbers");
  if (header[1] !== dtype) throw wrong(`holds values of another type than ${dtype}`);
  const length = Number(header[2]);
  const at = start + headerBytes;
  if (length * ITEM_BYTES[dtype] !== data.length - at)
    throw wrong(`declares ${length} values but has ${data.length - at} bytes of them`);
  return typed(data, at, length, dtype);
}

export function emptyColumn(dtype: string): Column {
  return typed(new Uint8Array(0), 0, 0, dtype);
}

function typed(data: Uint8Array, at: number, length: number, dtype: string): Column {
  const bytes = length * ITEM_BYTES[dtype];
  const offset = data.byteOffset + at;
  const aligned = offset % 8 === 0 || dtype === "|u1";
  const buffer = aligned ? data.buffer : data.slice(at, at + bytes).buffer;
  const from = aligned ? offset : 0;
  if (dtype === "|u1") return new Uint8Array(buffer, from, length);
  if (dtype === "<i2") return new Int16Array(buffer, from, length);
  if (dtype === "<i4") return new Int32Array(buffer, from, length);
  if (dtype === "<u4") return new Uint32Array(buffer, from, length);
  if (dtype === "<f8") return new Float64Array(buffer, from, length);
  const low = new Uint32Array(buffer, from, 2 * length);
  const high = dtype === "<i8" ? new Int32Array(buffer, from, 2 * length) : low;
  const made = new Float64Array(length);
  for (let i = 0; i < length; i++) made[i] = high[2 * i + 1] * 4294967296 + low[2 * i];
  return made;
}
