// A ZIP archive of files by name, without clock or machine in it.

import { crc32, deflateRawSync } from "node:zlib";

const MIDNIGHT_1980 = 0x0021; // the first day that a ZIP archive can name

/** `files`: text or bytes by name, in the order they are stored. */
export function zip(files) {
  const members = [];
  const directory = [];
  let offset = 0;
  for (const [name, content] of Object.entries(files)) {
    const data = Buffer.from(content);
    const packed = deflateRawSync(data, { level: 9 });
    const path = Buffer.from(name);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0); // version that can unpack it
    common.writeUInt16LE(8, 4); // deflate
    common.writeUInt16LE(MIDNIGHT_1980, 8);
    common.writeUInt32LE(crc32(data), 10);
    common.writeUInt32LE(packed.length, 14);
    common.writeUInt32LE(data.length, 18);
    common.writeUInt16LE(path.length, 22);
    members.push(Buffer.from("PK\x03\x04", "latin1"), common, path, packed);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(offset, 10);
    directory.push(Buffer.from("PK\x01\x02\x14\x00", "latin1"), common, tail, path);
    offset += 30 + path.length + packed.length;
  }
  const central = Buffer.concat(directory);
  const count = Object.keys(files).length;
  const end = Buffer.alloc(22);
  end.write("PK\x05\x06", "latin1");
  end.writeUInt16LE(count, 8);
  end.writeUInt16LE(count, 10);
  end.writeUInt32LE(central.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...members, central, end]);
}
