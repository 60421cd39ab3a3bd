// The tail of the log that is not yet known to be on disk, and a snapshot on its way there.
// It stands in front of storage: where it has an entry, storage may still hold an older one.

import { assert } from '../../base/assert.ts';
import type { Observe } from '../events.ts';
import type { Entry, EntryId } from './entry.ts';
import type { Snapshot } from './snapshot.ts';

/** Entries and snapshot between being taken into the log and being known durable. */
export class Unstable {
  readonly #observe: Observe;
  #entries: Entry[] = [];
  #snapshot: Snapshot | undefined;
  /** The snapshot, until it is handed out to be written. */
  #nextSnapshot: Snapshot | undefined;
  /** Index of the first entry here. May be below storage's end: then that end is to be replaced. */
  #fromIndex: number;
  /** Entries before this index are already handed out to be written. At least #fromIndex. */
  #inProgressBefore: number;

  constructor(fromIndex: number, observe: Observe) {
    this.#fromIndex = fromIndex;
    this.#inProgressBefore = fromIndex;
    this.#observe = observe;
  }

  get fromIndex(): number {
    return this.#fromIndex;
  }

  get inProgressBefore(): number {
    return this.#inProgressBefore;
  }

  get count(): number {
    return this.#entries.length;
  }

  get snapshot(): Snapshot | undefined {
    return this.#snapshot;
  }

  /** The last index, if this part of the log decides it. */
  lastIndex(): number | undefined {
    if (this.#entries.length > 0) return this.#fromIndex + this.#entries.length - 1;
    return this.#snapshot?.index;
  }

  /** The term at `index`, if this part of the log decides it. */
  term(index: number): number | undefined {
    if (index < this.#fromIndex) {
      return this.#snapshot?.index === index ? this.#snapshot.term : undefined;
    }
    return this.#entries[index - this.#fromIndex]?.term;
  }

  /** Entries that still have to be handed out for writing. */
  nextEntries(): readonly Entry[] {
    return this.#entries.slice(this.#inProgressBefore - this.#fromIndex);
  }

  get hasNextEntries(): boolean {
    return this.#entries.length > this.#inProgressBefore - this.#fromIndex;
  }

  /** The snapshot, while it still has to be handed out for writing. */
  nextSnapshot(): Snapshot | undefined {
    return this.#nextSnapshot;
  }

  /** Everything that is here now has been handed out for writing. */
  acceptInProgress(): void {
    this.#inProgressBefore = this.#fromIndex + this.#entries.length;
    this.#nextSnapshot = undefined;
  }

  /**
   * Entries up to `id` are on disk and no write under way can replace them; forgets them.
   * An id that is not here any more says nothing about what is here now and is ignored.
   */
  stableTo(id: EntryId): void {
    const term = this.term(id.index);
    if (term === undefined) {
      this.#observe({ kind: 'stable-entry-missing', index: id.index });
      return;
    }
    if (id.index < this.#fromIndex) {
      this.#observe({ kind: 'stable-entry-in-snapshot', index: id.index });
      return;
    }
    if (term !== id.term) {
      this.#observe({ kind: 'stable-entry-differs', stable: id, unstableTerm: term });
      return;
    }
    this.#entries = this.#entries.slice(id.index + 1 - this.#fromIndex);
    this.#fromIndex = id.index + 1;
    this.#inProgressBefore = Math.max(this.#inProgressBefore, this.#fromIndex);
  }

  /** The snapshot at `index` is on disk; a newer one that came since stays. */
  stableSnapshotTo(index: number): void {
    if (this.#snapshot?.index !== index) return;
    this.#snapshot = undefined;
    this.#nextSnapshot = undefined;
  }

  /** Replaces everything by a snapshot. */
  restore(snapshot: Snapshot): void {
    this.#fromIndex = snapshot.index + 1;
    this.#inProgressBefore = this.#fromIndex;
    this.#entries = [];
    this.#snapshot = snapshot;
    this.#nextSnapshot = snapshot;
  }

  /** Takes `entries` (at least one), dropping whatever was at and after the first one's index. */
  truncateAndAppend(entries: readonly Entry[]): void {
    const first = entries[0];
    assert(first !== undefined, 'nothing to append');
    if (first.index === this.#fromIndex + this.#entries.length) {
      for (const entry of entries) this.#entries.push(entry);
      return;
    }
    if (first.index <= this.#fromIndex) {
      this.#observe({ kind: 'unstable-replaced', fromIndex: first.index });
      this.#entries = [...entries];
      this.#fromIndex = first.index;
      this.#inProgressBefore = first.index;
      return;
    }
    this.#observe({ kind: 'unstable-truncated', fromIndex: first.index });
    this.#entries = [...this.slice(this.#fromIndex, first.index), ...entries];
    // What is already being written before the cut stays so; the rest must be handed out again.
    this.#inProgressBefore = Math.min(this.#inProgressBefore, first.index);
  }

  /** Entries from `fromIndex` on, before `beforeIndex`; all of them must be here. */
  slice(fromIndex: number, beforeIndex: number): readonly Entry[] {
    const end = this.#fromIndex + this.#entries.length;
    assert(
      this.#fromIndex <= fromIndex && fromIndex <= beforeIndex && beforeIndex <= end,
      'entries wanted that are not in the unstable log',
      { fromIndex, beforeIndex, start: this.#fromIndex, end },
    );
    return this.#entries.slice(fromIndex - this.#fromIndex, beforeIndex - this.#fromIndex);
  }
}
