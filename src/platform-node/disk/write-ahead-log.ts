// Looks into LevelDB's write-ahead logs before LevelDB does. A record that cannot be read is dropped by
// it without a word, together with what follows in the same block; behind the block it goes on, and
// acknowledged batches are missing from the middle. A bad end is another matter: it is the batch that
// was being written when the machine stopped, which nobody was told of.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32c } from '../../../cluster/log/crc32c.ts';
import { unmaskedCrc } from './masked-crc.ts';

/** Records never cross a block; what does not fit is cut into fragments. */
const BLOCK_BYTES = 32 * 1024;
/** Checksum (4), length (2), type (1). */
const HEADER_BYTES = 7;
/** A whole record, or the first fragment of one. */
const BEGINNING_TYPES: ReadonlySet<number> = new Set([1, 2]);

export interface WalHole {
  readonly file: string;
  /** Where the first record stands that cannot be read. */
  readonly offsetBytes: number;
}

/** The first place in a database's write-ahead logs that is lost although later batches are there. */
export function findWalHole(location: string): WalHole | undefined {
  let hole: WalHole | undefined;
  for (const file of walFiles(location)) {
    for (const record of recordsOf(readIfThere(join(location, file)))) {
      if (!record.isIntact) hole ??= { file, offsetBytes: record.offsetBytes };
      // One batch is written at a time, so whoever begins another one has synced those before.
      else if (hole !== undefined && BEGINNING_TYPES.has(record.type)) return hole;
    }
  }
  return undefined;
}

/** In the order in which they were written. */
function walFiles(location: string): readonly string[] {
  return readdirSync(location)
    .filter((file) => /^\d+\.log$/.test(file))
    .sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10));
}

/** Another process that has the database open may have removed the file: opening will say so. */
function readIfThere(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0);
    throw error;
  }
}

interface WalRecord {
  readonly offsetBytes: number;
  readonly type: number;
  /** False: nothing else of its block can be found. */
  readonly isIntact: boolean;
}

function* recordsOf(bytes: Buffer): Iterable<WalRecord> {
  for (let block = 0; block < bytes.length; block += BLOCK_BYTES) {
    const blockEnd = Math.min(block + BLOCK_BYTES, bytes.length);
    // A shorter rest than a header is padding.
    for (let at = block; blockEnd - at >= HEADER_BYTES; ) {
      const end = at + HEADER_BYTES + bytes.readUInt16LE(at + 4);
      const type = bytes[at + 6]!;
      const isIntact =
        end <= blockEnd && unmaskedCrc(bytes.readUInt32LE(at)) === crcOf(bytes, at, end);
      yield { offsetBytes: at, type, isIntact };
      if (!isIntact) break;
      at = end;
    }
  }
}

/** The checksum is over type and content. */
function crcOf(bytes: Buffer, at: number, end: number): number {
  return crc32c(bytes, at + 6, end);
}
