// Reads LevelDB's tables as they lie on disk, block by block, against their checksums. LevelDB itself looks at
// those only when it merges tables: a flipped bit in a packed block is mostly found by unpacking it, and
// sometimes comes out as another text that nobody wrote.

import { readdirSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32c } from '../../cluster/log/crc32c.ts';
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

/** Tables by name, with what tells one from another that has taken its name. */
export type TableMarks = ReadonlyMap<string, string>;

interface BlockHandle {
  readonly offset: number;
  readonly size: number;
}

export function tableMarksOf(location: string): TableMarks {
  const files = readdirSync(location).filter((file) => /\.(?:ldb|sst)$/.test(file));
  return new Map(files.flatMap((file) => markOf(location, file)));
}

/**
 * The first damage in tables that were there before the database opened and belong to it: opening removes what
 * a process that was killed has left half written, and what is written since is not looked at.
 */
export async function findTableDamage(
  location: string,
  before: TableMarks,
): Promise<TableDamage | undefined> {
  for (const [file, mark] of tableMarksOf(location)) {
    if (before.get(file) !== mark) continue;
    const bytes = await readIfThere(join(location, file));
    const offsetBytes = bytes === undefined ? undefined : damageIn(bytes);
    if (offsetBytes !== undefined) return { file, offsetBytes };
  }
  return undefined;
}

function markOf(location: string, file: string): readonly [string, string][] {
  try {
    const { ino, size, mtimeMs } = statSync(join(location, file));
    return [[file, `${ino} ${size} ${mtimeMs}`]];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

/** A merge may have removed it. */
async function readIfThere(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path);
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
  const blocks = isIntact(bytes, index) ? blocksIn(bytes, index) : undefined;
  if (blocks === undefined) return index.offset;
  return [...blocks, meta].find((block) => !isIntact(bytes, block))?.offset;
}

function isIntact(bytes: Buffer, { offset, size }: BlockHandle): boolean {
  const end = offset + size + 1;
  if (end + 4 > bytes.length) return false;
  return crc32c(bytes.subarray(offset, end)) === unmaskedCrc(bytes.readUInt32LE(end));
}

/** The blocks that an index block names. Undefined when it cannot be read, although its checksum fits. */
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
