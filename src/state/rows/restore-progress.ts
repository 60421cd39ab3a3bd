// How far the restore under way is: one row beside the rows that it collects, so that every server finds
// the same mistakes at the same place, and a server that takes a snapshot goes on where the others are.

import { CHAIN_ORIGIN } from '../snapshot/snapshot-format.ts';
import { Digest } from './digest.ts';
import { pack, requireFormat, unpack } from './layout/packing.ts';
import { NO_BYTES, rowKey } from './tables.ts';

export interface RestoreProgress {
  readonly id: string;
  /** When its last command was made. */
  readonly timeMs: number;
  readonly chunkCount: number;
  readonly rowCount: number;
  /** Over the rows of all chunks. */
  readonly chain: Uint8Array;
  /** Of the objects among the rows. */
  readonly digest: Uint8Array;
  readonly lastKey: Uint8Array;
}

export const RESTORE_KEY = rowKey('restore');

/** A restore that nobody goes on with for so long is dropped. */
export const RESTORE_IDLE_MS = 10 * 60 * 1000;

const FORMAT = 1;

export function newRestore(id: string, timeMs: number): RestoreProgress {
  return {
    id,
    timeMs,
    chunkCount: 0,
    rowCount: 0,
    chain: CHAIN_ORIGIN,
    digest: new Digest().bytes(),
    lastKey: NO_BYTES,
  };
}

export function encodeRestore(progress: RestoreProgress): Uint8Array {
  const { id, timeMs, chunkCount, rowCount, chain, digest, lastKey } = progress;
  return pack([FORMAT, id, timeMs, chunkCount, rowCount, chain, digest, lastKey]);
}

export function decodeRestore(value: Uint8Array): RestoreProgress {
  const [format, id, timeMs, chunkCount, rowCount, chain, digest, lastKey] = unpack(value);
  requireFormat('restore row', format, FORMAT);
  return { id, timeMs, chunkCount, rowCount, chain, digest, lastKey } as unknown as RestoreProgress;
}
