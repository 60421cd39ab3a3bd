// The durable log as raft reads it: at once, and mostly from memory. The newest entries stay here, up
// to a bound, and while somebody is to get them; others are read from disk. It shows only what is on disk: an entry
// appears when its write is done, and disappears before its trimming begins. Snapshots are made by somebody else.

import { assert } from '../../base/assert.ts';
import { type DurableLog, TRIM_BATCH_MAX } from '../../log/durable-log.ts';
import { type LogEntry, type LogWitness, nextEntry } from '../../log/log-entry.ts';
import type { HardState } from '../../raft/hard-state.ts';
import { ENTRY_OVERHEAD_BYTES, type Entry } from '../../raft/log/entry.ts';
import type { Snapshot } from '../../raft/log/snapshot.ts';
import type { LogRefusal, RaftStorage } from '../../raft/log/storage.ts';
import type { Membership } from '../../raft/membership/membership.ts';
import type { GroupLimits } from '../group-limits.ts';

/** One slot as both sides of the house know it; `data` and `payload` are the same bytes. */
export interface StoredEntry extends Entry, LogEntry {}

export interface StoredLogOptions {
  readonly log: DurableLog;
  /** As of the last applied entry. */
  readonly membership: Membership;
  readonly appliedIndex: number;
  /** A snapshot that can be sent now, if there is one. */
  readonly snapshot: () => Snapshot | undefined;
  readonly limits: Pick<GroupLimits, 'tailCountMax' | 'tailBytesMax'>;
}

/** So many of the newest stay in memory, needed or not; more than that go in portions of it. */
const TAIL_SPARE = 256;

export class StoredLog implements RaftStorage {
  readonly #log: DurableLog;
  readonly #membership: Membership;
  readonly #makeSnapshot: StoredLogOptions['snapshot'];
  readonly #limits: StoredLogOptions['limits'];
  /** The entry before the first one that raft may see. */
  #start: LogWitness;
  #lastIndex: number;
  /** The last entries of the log, without a gap; may be empty. */
  #tail: StoredEntry[] = [];
  #tailBytes = 0;

  constructor({ log, membership, appliedIndex, snapshot, limits }: StoredLogOptions) {
    this.#log = log;
    this.#membership = membership;
    this.#makeSnapshot = snapshot;
    this.#limits = limits;
    this.#start = log.start;
    this.#lastIndex = log.lastIndex;
    assert(appliedIndex >= this.#start.index, 'the log reaches back to what is applied', {
      appliedIndex,
      startIndex: this.#start.index,
    });
  }

  initialState(): { readonly hardState: HardState; readonly membership: Membership } {
    const { term, vote, commit } = this.#log.hardState;
    return { hardState: { term, vote, commitIndex: commit }, membership: this.#membership };
  }

  firstIndex(): number {
    return this.#start.index + 1;
  }

  lastIndex(): number {
    return this.#lastIndex;
  }

  term(index: number): number | LogRefusal {
    if (index === this.#start.index) return this.#start.term;
    if (index < this.#start.index) return 'compacted';
    return index > this.#lastIndex ? 'unavailable' : this.entry(index).term;
  }

  entries(fromIndex: number, beforeIndex: number, maxBytes: number): readonly Entry[] | LogRefusal {
    if (fromIndex <= this.#start.index) return 'compacted';
    if (beforeIndex > this.#lastIndex + 1) return 'unavailable';
    const found: Entry[] = [];
    let bytes = 0;
    for (let index = fromIndex; index < beforeIndex; index += 1) {
      const entry = this.entry(index);
      bytes += ENTRY_OVERHEAD_BYTES + entry.data.length;
      if (found.length > 0 && bytes > maxBytes) break;
      found.push(entry);
    }
    return found;
  }

  snapshot(): Snapshot | undefined {
    return this.#makeSnapshot();
  }

  /** An entry that raft may see. */
  entry(index: number): StoredEntry {
    assert(index > this.#start.index && index <= this.#lastIndex, 'the entry is on disk', {
      index,
      startIndex: this.#start.index,
      lastIndex: this.#lastIndex,
    });
    const place = index - this.#tailFrom;
    return place >= 0 ? this.#tail[place]! : storedOf(this.#log.entry(index));
  }

  /** Gives each entry its hash. The first one goes to `lastIndex() + 1` or below. */
  chained(entries: readonly Entry[]): readonly StoredEntry[] {
    const [first] = entries;
    if (first === undefined) return [];
    let previous: Pick<LogEntry, 'index' | 'hash'> = this.#before(first.index);
    return entries.map(({ index, term, type, data }) => {
      assert(index === previous.index + 1, 'entries follow', { index, after: previous.index });
      const entry = storedOf(nextEntry(previous, term, data, type));
      previous = entry;
      return entry;
    });
  }

  /** The entries are on disk now, and what was at their places or behind them is not. */
  written(entries: readonly StoredEntry[]): void {
    const [first] = entries;
    if (first === undefined) return;
    this.#cutTail(first.index);
    for (const entry of entries) {
      this.#tail.push(entry);
      this.#tailBytes += entry.data.length;
    }
    this.#lastIndex = entries.at(-1)!.index;
    this.#boundTail();
  }

  /** Nobody is known to lack entries up to this one: they need not stay in memory. */
  forgetThrough(throughIndex: number): void {
    const beforeIndex = Math.min(throughIndex + 1, this.#lastIndex - TAIL_SPARE);
    const count = beforeIndex - this.#tailFrom;
    if (count >= TAIL_SPARE) this.#dropTail(count);
  }

  /** The log on disk begins anew behind a snapshot. */
  wasReset(): void {
    this.#start = this.#log.start;
    this.#lastIndex = this.#log.lastIndex;
    this.#tail = [];
    this.#tailBytes = 0;
  }

  /** How much of `throughIndex` the next batch of the log can trim; at most TRIM_BATCH_MAX entries. */
  trimmable(throughIndex: number): number {
    if (this.#log.leftoverCount > 0) return this.#log.firstIndex - 1;
    return Math.min(throughIndex, this.#log.firstIndex - 1 + TRIM_BATCH_MAX, this.#lastIndex);
  }

  /** Takes entries out of raft's sight, before they are trimmed on disk. */
  hideThrough(throughIndex: number): void {
    if (throughIndex <= this.#start.index) return;
    const { index, term, hash } = this.entry(throughIndex);
    this.#start = { index, term, hash };
  }

  get #tailFrom(): number {
    return this.#lastIndex - this.#tail.length + 1;
  }

  #before(index: number): Pick<LogEntry, 'index' | 'hash'> {
    if (index === this.#start.index + 1) return this.#start;
    return index === this.#log.lastIndex + 1 ? this.#log.last : this.entry(index - 1);
  }

  #cutTail(beforeIndex: number): void {
    const kept = Math.max(0, beforeIndex - this.#tailFrom);
    for (const { data } of this.#tail.splice(kept)) this.#tailBytes -= data.length;
  }

  #boundTail(): void {
    const { tailCountMax, tailBytesMax } = this.#limits;
    if (this.#tail.length <= tailCountMax && this.#tailBytes <= tailBytesMax) return;
    // Half of it at once, so that not every write moves the whole array.
    this.#dropTail(Math.ceil(this.#tail.length / 2));
  }

  #dropTail(count: number): void {
    for (const { data } of this.#tail.splice(0, count)) this.#tailBytes -= data.length;
  }
}

function storedOf({ index, term, type, payload, hash }: LogEntry): StoredEntry {
  return { index, term, type, data: payload, payload, hash };
}
