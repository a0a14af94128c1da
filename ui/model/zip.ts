// The outside of a profile: a ZIP archive whose members are looked at before a byte of them is unpacked.
// Promises for a file from anyone: unpacking takes at most `LIMITS.total` bytes and never more than a fixed multiple of the
// file's own size; every way in which the archive can be wrong is one ProfileFileError. The rules are those of
// python/leadline/profiles/archive.py.

import { printable, ProfileFileError } from "./errors";

export const LIMITS = { total: 2 ** 32, expansion: 300, floor: 64 * 2 ** 20, members: 256, meta: 16 * 2 ** 20 };

interface Member {
  name: string;
  method: number;
  crc: number;
  packed: number;
  size: number;
  offset: number;
}

const NAME = /^(meta\.json|[a-z_]+\.[a-z_]+\.npy)$/;
const DEFLATE_MAX = 1032; // no deflate stream expands further
const END_BYTES = 22;
const GZIP_HEAD = Uint8Array.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255);
const MOST_COMMENT = 65535;

export class Archive {
  private readonly members = new Map<string, Member>();

  constructor(private readonly bytes: Uint8Array) {
    for (const member of directory(bytes)) {
      if (!NAME.test(member.name))
        throw refuse(`it has a part named '${printable(member.name)}', which no Leadline profile has`);
      if (this.members.has(member.name)) throw refuse(`it has two parts named ${member.name}`);
      this.members.set(member.name, member);
    }
    checkSizes([...this.members.values()], bytes.length);
  }

  has(name: string): boolean {
    return this.members.has(name);
  }

  /** The unpacked bytes of a member, its checksum compared; raises ProfileFileError. */
  async read(name: string): Promise<Uint8Array> {
    const member = this.members.get(name);
    if (!member) throw refuse(`it has no part ${name}`);
    const packed = packedBytes(this.bytes, member);
    if (member.method !== 0) return inflated(packed, member);
    if (packed.length !== member.size || crc32(packed) !== member.crc) throw damaged(name);
    return packed;
  }
}

function refuse(why: string): ProfileFileError {
  return new ProfileFileError(`The file cannot be read: ${why}.`);
}

function damaged(name: string): ProfileFileError {
  return new ProfileFileError(`The file cannot be read: its part ${name} is damaged; the file was cut off or changed.`);
}

function directory(bytes: Uint8Array): Member[] {
  if (!bytes.length)
    throw new ProfileFileError("The file is empty; it should be one that 'leadline run' has finished.");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = findEnd(view);
  if (end < 0)
    throw new ProfileFileError(
      "The file is not a Leadline profile or is cut off; it should be one that 'leadline run' has finished.",
    );
  const count = view.getUint16(end + 10, true);
  const size = view.getUint32(end + 12, true);
  const start = view.getUint32(end + 16, true);
  if (count > LIMITS.members) throw refuse(`it has ${count} parts where a profile has fewer than ${LIMITS.members}`);
  if (start + size > end) throw refuse("it is cut off");
  const members: Member[] = [];
  let at = start;
  for (let i = 0; i < count; i++) {
    if (at + 46 > end || view.getUint32(at, true) !== 0x02014b50) throw refuse("its table of contents is damaged");
    const nameLength = view.getUint16(at + 28, true);
    const next = at + 46 + nameLength + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
    if (next > end) throw refuse("its table of contents is damaged");
    const name = new TextDecoder().decode(bytes.subarray(at + 46, at + 46 + nameLength));
    if (view.getUint16(at + 8, true) & 1) throw refuse(`its part ${printable(name)} is encrypted`);
    members.push({
      name,
      method: view.getUint16(at + 10, true),
      crc: view.getUint32(at + 16, true),
      packed: view.getUint32(at + 20, true),
      size: view.getUint32(at + 24, true),
      offset: view.getUint32(at + 42, true),
    });
    at = next;
  }
  return members;
}

function findEnd(view: DataView): number {
  const first = Math.max(0, view.byteLength - END_BYTES - MOST_COMMENT);
  for (let at = view.byteLength - END_BYTES; at >= first; at--) if (view.getUint32(at, true) === 0x06054b50) return at;
  return -1;
}

function checkSizes(members: Member[], fileBytes: number): void {
  for (const { name, method, packed, size } of members) {
    if (method !== 0 && method !== 8) throw refuse(`its part ${name} is packed by a method that profiles do not use`);
    if (method === 0 ? size !== packed : size > DEFLATE_MAX * packed + 1024)
      throw refuse(`its part ${name} claims a size that it cannot have`);
  }
  const total = members.reduce((sum, member) => sum + member.size, 0);
  const allowed = Math.min(LIMITS.total, Math.max(LIMITS.floor, LIMITS.expansion * fileBytes));
  if (total > allowed)
    throw refuse(`it would unpack to ${total} bytes and at most ${allowed} are accepted for a file of its size`);
  let end = 0;
  for (const member of [...members].sort((a, b) => a.offset - b.offset)) {
    if (member.offset < end) throw refuse(`its part ${member.name} overlaps another one`);
    end = member.offset + 30 + member.packed;
  }
  if (end > fileBytes) throw refuse("it is cut off");
}

function packedBytes(bytes: Uint8Array, member: Member): Uint8Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (view.getUint32(member.offset, true) !== 0x04034b50) throw damaged(member.name);
  const start =
    member.offset + 30 + view.getUint16(member.offset + 26, true) + view.getUint16(member.offset + 28, true);
  if (start + member.packed > bytes.length) throw damaged(member.name);
  return bytes.subarray(start, start + member.packed);
}

/** Unpacked as gzip, whose end says checksum and size, so that the browser compares them: that is many times faster than here. */
async function inflated(packed: Uint8Array, member: Member): Promise<Uint8Array> {
  const stream = new DecompressionStream("gzip");
  const writer = stream.writable.getWriter();
  const end = new DataView(new ArrayBuffer(8));
  end.setUint32(0, member.crc, true);
  end.setUint32(4, member.size, true);
  const parts = [GZIP_HEAD, packed, new Uint8Array(end.buffer)] as Uint8Array<ArrayBuffer>[];
  const fed = Promise.all(parts.map((part) => writer.write(part))).then(() => writer.close());
  fed.catch(() => undefined); // what is wrong with the data shows on the reading side
  const reader = stream.readable.getReader();
  const made = new Uint8Array(member.size);
  let at = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done || !value) break;
      if (at + value.length > made.length) throw damaged(member.name);
      made.set(value, at);
      at += value.length;
    }
    await fed;
  } catch {
    throw damaged(member.name);
  }
  if (at !== member.size) throw damaged(member.name);
  return made;
}

// Tables for four bytes at a time.
const CRC = (() => {
  const tables = [0, 1, 2, 3].map(() => new Int32Array(256));
  for (let i = 0; i < 256; i++) {
    let c = i;
    for (let bit = 0; bit < 8; bit++) c = c & 1 ? (c >>> 1) ^ 0xedb88320 : c >>> 1;
    tables[0][i] = c;
  }
  for (let t = 1; t < 4; t++)
    for (let i = 0; i < 256; i++) tables[t][i] = (tables[t - 1][i] >>> 8) ^ tables[0][tables[t - 1][i] & 255];
  return tables;
})();

export function crc32(data: Uint8Array): number {
  const [t0, t1, t2, t3] = CRC;
  let crc = -1;
  let i = 0;
  for (const whole = data.length - 3; i < whole; i += 4) {
    crc ^= data[i] | (data[i + 1] << 8) | (data[i + 2] << 16) | (data[i + 3] << 24);
    crc = t3[crc & 255] ^ t2[(crc >>> 8) & 255] ^ t1[(crc >>> 16) & 255] ^ t0[crc >>> 24];
  }
  for (; i < data.length; i++) crc = (crc >>> 8) ^ t0[(crc ^ data[i]) & 255];
  return (crc ^ -1) >>> 0;
}
