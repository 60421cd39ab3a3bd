// What raft must be able to read of its own durable log, at once and without failing.
// Writes go the other way, through Ready; who implements this keeps the recent log in memory.

import type { HardState } from '../hard-state.ts';
import type { Membership } from '../membership/membership.ts';
import type { Entry } from './entry.ts';
import type { Snapshot } from './snapshot.ts';

/** Why the log has no answer: the entry is compacted away, or it is not there yet. */
export type LogRefusal = 'compacted' | 'unavailable';

/**
 * The durable part of a node's log and promises. A read that fails must end the process. Entries may be
 * compacted away up to the applied index that the node itself tells (Status), never beyond.
 */
export interface RaftStorage {
  /** The promises, and the membership as of the applied index, at the moment of starting. A log that
   * starts with a snapshot of some term starts with a hard state of at least that term. */
  initialState(): { readonly hardState: HardState; readonly membership: Membership };
  /** The first entry that is still held; one more than the last one compacted. */
  firstIndex(): number;
  /** The last entry held; firstIndex() - 1 when there is none. */
  lastIndex(): number;
  /** The term of an entry; still known for the last compacted one, firstIndex() - 1. */
  term(index: number): number | LogRefusal;
  /** Entries from `fromIndex` on, before `beforeIndex`, within `maxBytes` but at least one. */
  entries(fromIndex: number, beforeIndex: number, maxBytes: number): readonly Entry[] | LogRefusal;
  /** The newest snapshot, or undefined while one must be made first; raft will ask again. */
  snapshot(): Snapshot | undefined;
}
