// The whole log of a node: the durable part in storage with the unstable tail in front of it, and
// the marks committed >= applying >= applied. Asserts that nothing committed is ever replaced.

import { assert } from '../../base/assert.ts';
import type { LogPositions, Observe } from '../events.ts';
import { type Entry, type EntryId, entriesSizeBytes, limitSize } from './entry.ts';
import type { Snapshot } from './snapshot.ts';
import type { LogRefusal, RaftStorage } from './storage.ts';
import { Unstable } from './unstable.ts';

/** What a log is opened with. `maxApplyingBytes` may be Infinity. */
export interface RaftLogOptions {
  readonly storage: RaftStorage;
  readonly maxApplyingBytes: number;
  readonly observe: Observe;
}

/** Which committed entries may be applied: any, or only those known to be on the own disk. */
export interface ApplyRule {
  readonly allowUnstable: boolean;
}

/** A log whose reads come from memory or storage and whose writes wait in `unstable`. */
export class RaftLog {
  readonly #storage: RaftStorage;
  readonly #observe: Observe;
  readonly #maxApplyingBytes: number;
  readonly unstable: Unstable;
  #commitIndex: number;
  /** Handed out to be applied. At least #appliedIndex, at most #commitIndex. */
  #applyingIndex: number;
  #appliedIndex: number;
  /** Size of what is handed out and not yet applied. */
  #applyingBytes = 0;
  /** Nothing more is handed out until some of it has been applied. */
  #applyingPaused: boolean;

  constructor({ storage, maxApplyingBytes, observe }: RaftLogOptions) {
    this.#storage = storage;
    this.#observe = observe;
    this.#maxApplyingBytes = maxApplyingBytes;
    this.unstable = new Unstable(storage.lastIndex() + 1, observe);
    // Whatever was compacted away must have been committed and applied.
    const compactedIndex = storage.firstIndex() - 1;
    this.#commitIndex = compactedIndex;
    this.#applyingIndex = compactedIndex;
    this.#appliedIndex = compactedIndex;
    this.#applyingPaused = false;
  }

  get commitIndex(): number {
    return this.#commitIndex;
  }

  get appliedIndex(): number {
    return this.#appliedIndex;
  }

  get firstIndex(): number {
    const snapshot = this.unstable.snapshot;
    return snapshot === undefined ? this.#storage.firstIndex() : snapshot.index + 1;
  }

  get lastIndex(): number {
    return this.unstable.lastIndex() ?? this.#storage.lastIndex();
  }

  get lastId(): EntryId {
    const index = this.lastIndex;
    const term = this.term(index);
    assert(typeof term === 'number', 'the last entry has no term', { index, term });
    return { term, index };
  }

  /** The last entry that is known to be committed; NO_ENTRY before the first. */
  get committedId(): EntryId {
    const index = this.#commitIndex;
    return { term: this.termOrZero(index), index };
  }

  get positions(): LogPositions {
    return {
      commitIndex: this.#commitIndex,
      appliedIndex: this.#appliedIndex,
      applyingIndex: this.#applyingIndex,
      unstableFrom: this.unstable.fromIndex,
      unstableInProgressBefore: this.unstable.inProgressBefore,
      unstableCount: this.unstable.count,
    };
  }

  /** The term at `index`; known for every entry held and for the last one compacted. */
  term(index: number): number | LogRefusal {
    const unstableTerm = this.unstable.term(index);
    if (unstableTerm !== undefined) return unstableTerm;
    if (index < this.firstIndex - 1) return 'compacted';
    if (index > this.lastIndex) return 'unavailable';
    return this.#storage.term(index);
  }

  /** The term at `index`, or 0 (which no entry has) where the log does not know it. */
  termOrZero(index: number): number {
    const term = this.term(index);
    return typeof term === 'number' ? term : 0;
  }

  matches(id: EntryId): boolean {
    return this.term(id.index) === id.term;
  }

  /** Whether a log that ends in `other` has everything that this one could have committed. */
  isUpToDate(other: EntryId): boolean {
    const own = this.lastId;
    return other.term > own.term || (other.term === own.term && other.index >= own.index);
  }

  /** Entries from `fromIndex` to the end, within `maxBytes` but at least one if there is any. */
  entriesFrom(fromIndex: number, maxBytes: number): readonly Entry[] | 'compacted' {
    const beforeIndex = this.lastIndex + 1;
    return fromIndex >= beforeIndex ? [] : this.slice(fromIndex, beforeIndex, maxBytes);
  }

  /** Entries from `fromIndex` on, before `beforeIndex`, within `maxBytes` but at least one. */
  slice(fromIndex: number, beforeIndex: number, maxBytes: number): readonly Entry[] | 'compacted' {
    assert(fromIndex <= beforeIndex && beforeIndex <= this.lastIndex + 1, 'no such log entries', {
      fromIndex,
      beforeIndex,
      lastIndex: this.lastIndex,
    });
    if (fromIndex < this.firstIndex) return 'compacted';
    if (fromIndex === beforeIndex) return [];
    const { unstable } = this;
    if (fromIndex >= unstable.fromIndex) {
      return limitSize(unstable.slice(fromIndex, beforeIndex), maxBytes);
    }
    const cut = Math.min(beforeIndex, unstable.fromIndex);
    const stable = this.#storage.entries(fromIndex, cut, maxBytes);
    assert(stable !== 'unavailable', 'storage lacks entries it should hold', { fromIndex, cut });
    if (stable === 'compacted' || cut === beforeIndex || stable.length < cut - fromIndex) {
      return stable;
    }
    const roomBytes = maxBytes - entriesSizeBytes(stable);
    const rest = limitSize(unstable.slice(cut, beforeIndex), roomBytes);
    // The one entry that limitSize never refuses may be too much after those from storage.
    return entriesSizeBytes(rest) > roomBytes ? stable : [...stable, ...rest];
  }

  /** Appends what the leader made. Must not reach back into what is committed. */
  append(entries: readonly Entry[]): void {
    const first = entries[0];
    if (first === undefined) return;
    assert(first.index > this.#commitIndex, 'a committed entry would be replaced', {
      index: first.index,
      commitIndex: this.#commitIndex,
    });
    this.unstable.truncateAndAppend(entries);
  }

  /**
   * Takes a leader's entries after `prev`, if the log has `prev`; drops only entries that differ,
   * so that a late message cannot take back newer ones. Returns the last index now known to equal
   * the leader's, or undefined where the log does not fit.
   */
  maybeAppend(
    prev: EntryId,
    entries: readonly Entry[],
    leaderCommitIndex: number,
  ): number | undefined {
    if (!this.matches(prev)) return undefined;
    const lastNewIndex = prev.index + entries.length;
    const firstNew = this.#firstDiffering(entries);
    if (firstNew !== undefined) {
      assert(firstNew > this.#commitIndex, 'the leader contradicts a committed entry', {
        index: firstNew,
        commitIndex: this.#commitIndex,
      });
      this.append(entries.slice(firstNew - (prev.index + 1)));
    }
    this.commitTo(Math.min(leaderCommitIndex, lastNewIndex));
    return lastNewIndex;
  }

  /**
   * The best guess where this log and another one still agree, when all that is known of the other
   * is one entry of it: the highest index up to `index` whose term does not exceed `term`.
   * A term of 0 in the answer means that the log does not know the term there. Terms never fall along a log, so
   * that few entries are looked at, however long it is: each look may be one at the disk.
   */
  lastAgreement(index: number, term: number): EntryId {
    const knownFrom = this.firstIndex - 1;
    if (index < knownFrom || index > this.lastIndex) return { index, term: 0 };
    // What is below what is known may agree.
    if (this.termOrZero(knownFrom) > term) return { index: knownFrom - 1, term: 0 };
    let [agreeing, above] = [knownFrom, index + 1];
    while (above - agreeing > 1) {
      const middle = Math.floor((agreeing + above) / 2);
      if (this.termOrZero(middle) <= term) agreeing = middle;
      else above = middle;
    }
    return { index: agreeing, term: this.termOrZero(agreeing) };
  }

  /** Moves the commit mark forward, never back. What is committed must be here. */
  commitTo(index: number): void {
    if (index <= this.#commitIndex) return;
    assert(
      index <= this.lastIndex,
      'committed entries are missing: was the log damaged or lost, or does another server run from a copy of it?',
      { index, lastIndex: this.lastIndex },
    );
    this.#commitIndex = index;
  }

  /**
   * Commits up to `id` if that entry is of the term given: only an entry of the leader's own term
   * may be committed by counting, since an older one can still be replaced (Raft paper, figure 8).
   */
  maybeCommit(id: EntryId): boolean {
    if (id.term === 0 || id.index <= this.#commitIndex || !this.matches(id)) return false;
    this.commitTo(id.index);
    return true;
  }

  /**
   * Commits what another node knows to be committed, if that very entry is here: two logs with one entry in
   * common are the same up to it. Returns whether that was news.
   */
  commitKnown({ term, index }: EntryId): boolean {
    if (term === 0 || index <= this.#commitIndex || !this.matches({ term, index })) return false;
    this.commitTo(index);
    return true;
  }

  /** Entries that are committed and may be handed out for applying, within the limit. */
  nextCommitted(rule: ApplyRule): readonly Entry[] {
    if (!this.hasNextCommitted(rule)) return [];
    const roomBytes = this.#maxApplyingBytes - this.#applyingBytes;
    const beforeIndex = this.#maxAppliableIndex(rule) + 1;
    const entries = this.slice(this.#applyingIndex + 1, beforeIndex, roomBytes);
    assert(entries !== 'compacted', 'entries were compacted before they were applied', {
      applyingIndex: this.#applyingIndex,
      firstIndex: this.firstIndex,
    });
    return entries;
  }

  hasNextCommitted(rule: ApplyRule): boolean {
    // A snapshot must be in place before anything that comes after it is applied.
    if (this.#applyingPaused || this.unstable.snapshot !== undefined) return false;
    return this.#applyingIndex < this.#maxAppliableIndex(rule);
  }

  /** Notes that `entries` from nextCommitted have been handed out. */
  acceptApplying(entries: readonly Entry[], rule: ApplyRule): void {
    const last = entries.at(-1);
    if (last === undefined) return;
    assert(last.index <= this.#commitIndex, 'uncommitted entries handed out', { last: last.index });
    this.#applyingIndex = last.index;
    this.#applyingBytes += entriesSizeBytes(entries);
    this.#applyingPaused =
      this.#applyingBytes >= this.#maxApplyingBytes || last.index < this.#maxAppliableIndex(rule);
  }

  /** Notes that everything through `index` is applied, `bytes` of it handed out before. */
  appliedTo(index: number, bytes: number): void {
    assert(this.#appliedIndex <= index && index <= this.#commitIndex, 'applied out of order', {
      index,
      appliedIndex: this.#appliedIndex,
      commitIndex: this.#commitIndex,
    });
    this.#appliedIndex = index;
    this.#applyingIndex = Math.max(this.#applyingIndex, index);
    this.#applyingBytes = Math.max(0, this.#applyingBytes - bytes);
    this.#applyingPaused = this.#applyingBytes >= this.#maxApplyingBytes;
  }

  /** The newest snapshot, or undefined while storage has none ready. */
  snapshot(): Snapshot | undefined {
    return this.unstable.snapshot ?? this.#storage.snapshot();
  }

  /** Replaces the whole log by a snapshot. */
  restore(snapshot: Snapshot): void {
    this.#observe({ kind: 'snapshot-restoring', snapshot, log: this.positions });
    this.#commitIndex = snapshot.index;
    this.unstable.restore(snapshot);
  }

  /** Whether a committed membership change waits to be applied. */
  hasUnappliedMembershipChange(): boolean {
    return this.unappliedChanges(this.#commitIndex + 1).next().done !== true;
  }

  /** The membership entries before `beforeIndex` that wait to be applied. Reads in pages of the apply limit. */
  *unappliedChanges(beforeIndex: number): Generator<Entry, void> {
    let fromIndex = this.#appliedIndex + 1;
    while (fromIndex < beforeIndex) {
      const page = this.slice(fromIndex, beforeIndex, this.#maxApplyingBytes);
      assert(page !== 'compacted' && page.length > 0, 'unapplied entries are gone', { fromIndex });
      yield* page.filter(({ type }) => type === 'membership');
      fromIndex += page.length;
    }
  }

  #maxAppliableIndex({ allowUnstable }: ApplyRule): number {
    if (allowUnstable) return this.#commitIndex;
    return Math.min(this.#commitIndex, this.unstable.fromIndex - 1);
  }

  #firstDiffering(entries: readonly Entry[]): number | undefined {
    const differing = entries.find((entry) => !this.matches(entry));
    if (differing !== undefined && differing.index <= this.lastIndex) {
      this.#observe({
        kind: 'log-conflict',
        index: differing.index,
        ownTerm: this.termOrZero(differing.index),
        otherTerm: differing.term,
      });
    }
    return differing?.index;
  }
}
