// A snapshot that leaves this datacenter's chain before its last entry. What was made here behind that place
// and what was made there can have one name and one CreateIndex, and be two things all the same.

import { isStrictOnForks } from '../commands/feature-levels.ts';
import type { Getter } from '../rows/store/getter.ts';
import { epochAt, forkOf } from './chain.ts';
import { decodeEntry } from './global-entry.ts';
import { entryKey } from './global-log-writer.ts';
import type { EpochStart, Replication } from './replication.ts';

export interface ForkQuestion extends Getter {
  readonly replication: Replication | undefined;
  /** The feature level in use. */
  readonly level: number;
}

/**
 * The least CreateIndex of a global object that may have been made beyond the fork; 0 where nothing is kept that
 * says so. Undefined where the chain of these epochs has all entries of this one.
 */
export function forkIndexOf(own: ForkQuestion, theirs: readonly EpochStart[]): number | undefined {
  const { replication, level } = own;
  if (replication === undefined || !isStrictOnForks(level)) return undefined;
  const { epochs, cursor } = replication;
  const first = (forkOf(replication, theirs)?.seq ?? 0) + 1;
  if (first > cursor.seq) return undefined;
  const entry = own.get(entryKey(epochAt(epochs, first), first));
  return entry === undefined ? 0 : decodeEntry(entry).index;
}
