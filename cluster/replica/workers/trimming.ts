// What of the log nobody needs any more. What is applied may be trimmed, but for the newest entries, and
// for those that living followers still lack, both within bounds of number and size. Whoever lacks more gets a
// snapshot, and then the entries behind it. What all of them have need not stay in memory either.

import type { ProgressView } from '../../raft/leading/progress.ts';
import type { NodeId } from '../../raft/node-id.ts';
import type { Status } from '../../raft/raw-node.ts';
import type { GroupLimits } from '../group-limits.ts';

/** The last entries that may go; below the start of the log when none may. */
export interface Spare {
  readonly onDiskThrough: number;
  readonly inMemoryThrough: number;
}

export interface SpareFacts {
  readonly status: Pick<Status, 'appliedIndex' | 'lastIndex' | 'id'>;
  readonly progress: readonly (readonly [
    NodeId,
    Pick<ProgressView, 'matchIndex' | 'pendingSnapshotIndex'>,
  ])[];
  readonly isAlive: (node: number) => boolean;
  /** Up to there entries of the log must go, so that what is left has at most so many bytes. */
  readonly lastBeyond: (bytes: number) => number;
  readonly limits: Pick<
    GroupLimits,
    'keptCount' | 'keptBytesMax' | 'heldCountMax' | 'heldBytesMax'
  >;
}

/** Entries go in portions of this part of what is kept: each portion costs the reading of its last one. */
const PORTIONS = 32;

export function spareOf({ status, progress, isAlive, lastBeyond, limits }: SpareFacts): Spare {
  const { appliedIndex, lastIndex, id } = status;
  let knownIndex = Number.POSITIVE_INFINITY;
  for (const [node, { matchIndex, pendingSnapshotIndex }] of progress) {
    if (node === id || !isAlive(node)) continue;
    knownIndex = Math.min(knownIndex, Math.max(matchIndex, pendingSnapshotIndex));
  }
  const { keptCount, heldCountMax, heldBytesMax } = limits;
  const heldFrom = Math.max(knownIndex, lastIndex - heldCountMax, lastBeyond(heldBytesMax));
  const index = Math.min(appliedIndex - keptCount, heldFrom);
  const portion = Math.ceil((keptCount + 1) / PORTIONS);
  const tooLarge = Math.min(appliedIndex, heldFrom, tooLargeThrough(lastBeyond, limits));
  return {
    onDiskThrough: Math.max(index - (index % portion), tooLarge),
    inMemoryThrough: Math.min(appliedIndex, knownIndex),
  };
}

function tooLargeThrough(
  lastBeyond: SpareFacts['lastBeyond'],
  { keptBytesMax }: SpareFacts['limits'],
): number {
  const isTooMuch = lastBeyond(keptBytesMax) > lastBeyond(Number.POSITIVE_INFINITY);
  return isTooMuch ? lastBeyond(keptBytesMax * (1 - 1 / PORTIONS)) : 0;
}
