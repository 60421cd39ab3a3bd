// A node's disk in memory, for tests: what was written is there at once and stays there.

import { assert } from '../../../cluster/base/assert.ts';
import type { HardState } from '../../../cluster/raft/hard-state.ts';
import { type Entry, limitSize } from '../../../cluster/raft/log/entry.ts';
import type { Snapshot } from '../../../cluster/raft/log/snapshot.ts';
import type { LogRefusal, RaftStorage } from '../../../cluster/raft/log/storage.ts';
import { type Membership, NO_MEMBERS } from '../../../cluster/raft/membership/membership.ts';
import { NO_NODE } from '../../../cluster/raft/node-id.ts';

/** A log on a disk that never fails. Snapshots come from whoever keeps the state machine. */
export class MemoryStorage implements RaftStorage {
  hardState: HardState = { term: 0, vote: NO_NODE, commitIndex: 0 };
  /** The membership of the applied state; kept by whoever keeps the state machine. */
  membership: Membership = NO_MEMBERS;
  snapshotSource: () => Snapshot | undefined = () => undefined;
  #compacted = { term: 0, index: 0 };
  #entries: Entry[] = [];

  initialState(): { hardState: HardState; membership: Membership } {
    return { hardState: this.hardState, membership: this.membership };
  }

  firstIndex(): number {
    return this.#compacted.index + 1;
  }

  lastIndex(): number {
    return this.#compacted.index + this.#entries.length;
  }

  term(index: number): number | LogRefusal {
    if (index < this.#compacted.index) return 'compacted';
    if (index === this.#compacted.index) return this.#compacted.term;
    return this.#entries[index - this.firstIndex()]?.term ?? 'unavailable';
  }

  entries(fromIndex: number, beforeIndex: number, maxBytes: number): readonly Entry[] | LogRefusal {
    if (fromIndex < this.firstIndex()) return 'compacted';
    if (beforeIndex > this.lastIndex() + 1) return 'unavailable';
    const first = this.firstIndex();
    return limitSize(this.#entries.slice(fromIndex - first, beforeIndex - first), maxBytes);
  }

  snapshot(): Snapshot | undefined {
    return this.snapshotSource();
  }

  /** Replaces the log by a snapshot; false, and nothing done, for one that is not newer. */
  applySnapshot(snapshot: Snapshot): boolean {
    if (this.#compacted.index !== 0 && snapshot.index <= this.#compacted.index) return false;
    this.#compacted = { term: snapshot.term, index: snapshot.index };
    this.#entries = [];
    return true;
  }

  /** Forgets everything through `throughIndex`. */
  compact(throughIndex: number): void {
    const term = this.term(throughIndex);
    assert(typeof term === 'number', 'compaction outside of the log', { throughIndex });
    this.#entries = this.#entries.slice(throughIndex + 1 - this.firstIndex());
    this.#compacted = { term, index: throughIndex };
  }

  /** Writes entries, replacing whatever was at and after the first one's index. */
  append(entries: readonly Entry[]): void {
    const news = entries.filter((entry) => entry.index >= this.firstIndex());
    const first = news[0];
    if (first === undefined) return;
    assert(first.index <= this.lastIndex() + 1, 'a gap in the log', { index: first.index });
    this.#entries = [...this.#entries.slice(0, first.index - this.firstIndex()), ...news];
  }
}
