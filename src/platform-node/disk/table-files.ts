// Reads LevelDB's tables as they lie on disk, block by block, against their checksums. LevelDB itself looks at
// those only when it merges tables: a flipped bit in a packed block is mostly found by unpacking it, and
// sometimes comes out as another text that nobody wrote.

import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { crc32c } from '../../../cluster/log/crc32c.ts';
import { unmaskedCrc } from './masked-crc.ts';
import { readVarint, unpackSnappy } from './snappy.ts';

/** Two handles, padding, a number by which tables are known. */
const FOOTER_BYTES = 48;
const MAGIC = Buffer.from('57fb808b247547db', 'hex');
/** Behind each block: how it is packed (1 byte), then the checksum of both (4). */
const PLAIN = 0;
const SNAPPY = 1;

export interface TableDamage {
  readonly file: string;
  readonly offsetBytes: number;
}

interface BlockHandle {
  readonly offset: number;
  readonly size: number;
}

/** The first damage of each of these tables that has one. A table that is not there any more has none. */
export function damagedTables(location: string, files: readonly string[]): readonly TableDamage[] {
  const damaged: TableDamage[] = [];
  // Of the largest table so far: to get memory for each of them anew takes a good part of the whole time.
  let room: Buffer = Buffer.alloc(0);
  for (const file of files) {
    const bytes = readIfThere(join(location, file), room);
    if (bytes === undefined) continue;
    if (bytes.length > room.length) room = bytes;
    const offsetBytes = damageIn(bytes);
    if (offsetBytes !== undefined) damaged.push({ file, offsetBytes });
  }
  return damaged;
}

/** In `room` where it fits. Opening a database, or a merge, may have removed it. */
function readIfThere(path: string, room: Buffer): Buffer | undefined {
  const descriptor = openIfThere(path);
  if (descriptor === undefined) return undefined;
  try {
    const { size } = fstatSync(descriptor);
    const bytes = size <= room.length ? room.subarray(0, size) : Buffer.allocUnsafeSlow(size);
    let filled = 0;
    while (filled < size) {
      const count = readSync(descriptor, bytes, filled, size - filled, filled);
      if (count === 0) break;
      filled += count;
    }
    return bytes.subarray(0, filled);
  } finally {
    closeSync(descriptor);
  }
}

function openIfThere(path: string): number | undefined {
  try {
    return openSync(path, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Where the first block of a table stands that is not as it was written. */
function damageIn(bytes: Buffer): number | undefined {
  const footerAt = bytes.length - FOOTER_BYTES;
  if (footerAt < 0) return 0;
  const footer = bytes.subarray(footerAt);
  const meta = handleAt(footer, 0);
  const index = meta === undefined ? undefined : handleAt(footer, meta.next);
  const isTable = footer.subarray(-MAGIC.length).equals(MAGIC);
  if (!isTable || meta === undefined || index === undefined) return footerAt;
  for (const block of [index, meta]) {
    const named = isIntact(bytes, block) ? blocksIn(bytes, block) : undefined;
    if (named === undefined) return block.offset;
    const damaged = named.find((each) => !isIntact(bytes, each));
    if (damaged !== undefined) return damaged.offset;
  }
  return undefined;
}

function isIntact(bytes: Buffer, { offset, size }: BlockHandle): boolean {
  const end = offset + size + 1;
  if (end + 4 > bytes.length) return false;
  return crc32c(bytes, offset, end) === unmaskedCrc(bytes.readUInt32LE(end));
}

/**
 * The blocks that an index names, or the meta block: filters, by which a key is taken for one that is not there.
 * Undefined when it cannot be read, although its checksum fits.
 */
function blocksIn(bytes: Buffer, index: BlockHandle): readonly BlockHandle[] | undefined {
  const content = contentOf(bytes, index);
  if (content === undefined || content.length < 4) return undefined;
  const view = Buffer.from(content.buffer, content.byteOffset, content.byteLength);
  const restarts = view.readUInt32LE(view.length - 4);
  const end = view.length - 4 * (restarts + 1);
  const blocks: BlockHandle[] = [];
  for (let at = 0; at < end; ) {
    const shared = readVarint(view, at);
    const own = shared && readVarint(view, shared.next);
    const valueSize = own && readVarint(view, own.next);
    if (own === undefined || valueSize === undefined) return undefined;
    const valueAt = valueSize.next + own.value;
    const handle = handleAt(view, valueAt);
    if (handle === undefined) return undefined;
    blocks.push(handle);
    at = valueAt + valueSize.value;
  }
  return blocks;
}

function contentOf(bytes: Buffer, { offset, size }: BlockHandle): Uint8Array | undefined {
  const content = bytes.subarray(offset, offset + size);
  const packing = bytes[offset + size];
  if (packing === PLAIN) return content;
  return packing === SNAPPY ? unpackSnappy(content) : undefined;
}

function handleAt(
  bytes: Buffer,
  at: number,
): (BlockHandle & { readonly next: number }) | undefined {
  const offset = readVarint(bytes, at);
  const size = offset && readVarint(bytes, offset.next);
  if (offset === undefined || size === undefined) return undefined;
  return { offset: offset.value, size: size.value, next: size.next };
}
