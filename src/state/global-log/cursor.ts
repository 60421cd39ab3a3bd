// A place in the global log, with the hash that names all of the log up to there.

import { sha256 } from '../../../cluster/platform/sha256.ts';
import { pack } from '../rows/layout/packing.ts';

export interface GlobalCursor {
  /** Of the last entry. */
  readonly epoch: number;
  /** Of the last entry; seqs go on over the epochs. */
  readonly seq: number;
  /** Of the last entry: 32 bytes. */
  readonly hash: Uint8Array;
}

/** A place in the global log, without the proof that two logs are the same up to there. */
export interface Position {
  readonly epoch: number;
  readonly seq: number;
}

/** The hash before the first entry of a log, of a state that had these global objects before it. */
export function originHash({ epoch, seq }: Position, globalDigest: Uint8Array): Uint8Array {
  return sha256(pack(['conclave global log', epoch, seq, globalDigest]));
}

export function isSameCursor(left: GlobalCursor, right: GlobalCursor): boolean {
  return (
    left.epoch === right.epoch &&
    left.seq === right.seq &&
    Buffer.compare(left.hash, right.hash) === 0
  );
}

/** Negative when `left` is behind: the epoch decides, then the seq. */
export function comparePlaces(left: Position, right: Position): number {
  return left.epoch === right.epoch ? left.seq - right.seq : left.epoch - right.epoch;
}
