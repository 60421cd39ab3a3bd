// The durable log on a key-value store. One call is one synced batch: entries, a cut of the suffix,
// hard state and a piece of trimming all land together or not at all; and so does the switch to a
// snapshot. Opening reads the whole kept tail and trusts nothing: a hole, a changed byte or a lost end
// is refused with LogDamage.

import { assert } from '../base/assert.ts';
import type { Kv, KvReader, KvWrite } from '../platform/kv.ts';
import { LogDamage } from './log-damage.ts';
import {
  decodeEntry,
  decodeGeneration,
  decodeHardState,
  decodeWitness,
  ENTRY_KEYS_END,
  encodeEntry,
  encodeGeneration,
  encodeHardState,
  encodeWitness,
  entryKey,
  GENERATION_KEY,
  HARD_STATE_KEY,
  type HardState,
  indexOfKey,
  LOG_ORIGIN,
  type LogEntry,
  type LogWitness,
  START_KEY,
} from './log-entry.ts';
import { LogSizes } from './log-sizes.ts';

/** So many trimmed rows ride in one batch at most: they must not make the entries beside them wait. */
export const TRIM_BATCH_MAX = 1024;

export interface LogBatch {
  /** In order, the first one at `lastIndex + 1` or below it: then what was there is cut off. */
  readonly entries: readonly LogEntry[];
  readonly hardState?: HardState;
  /** Forget entries up to this index, at most TRIM_BATCH_MAX of them now. */
  readonly trimThroughIndex?: number;
}

/** What a log becomes when a snapshot takes the place of all that is in it. */
export interface LogReset {
  /** The last entry that the snapshot contains. */
  readonly start: LogWitness;
  readonly hardState: HardState;
  /** The database in which the snapshot's state is. */
  readonly generation: number;
}

/** Which state belongs to this log; to be read before that state is opened. 0 is the first one. */
export function readGeneration(kv: KvReader): number {
  const value = kv.get(GENERATION_KEY);
  return value === undefined ? 0 : decodeGeneration(value);
}

const NO_HARD_STATE: HardState = { term: 0, vote: 0, commit: 0 };

export class DurableLog {
  readonly #kv: Kv;
  /** The entry before the first one that is kept. */
  #start: LogWitness;
  #last: LogWitness;
  #hardState: HardState;
  #leftovers: Leftovers;
  #sizes: LogSizes;

  private constructor(kv: Kv, opened: OpenedLog) {
    this.#kv = kv;
    this.#start = opened.start;
    this.#last = opened.last;
    this.#hardState = opened.hardState;
    this.#leftovers = opened.leftovers;
    this.#sizes = opened.sizes;
  }

  /**
   * Reads and checks everything that is kept. `witness` is what another store remembers of this log
   * (the last entry that was applied there). Rejects with LogDamage.
   */
  static async open(kv: Kv, witness: LogWitness | undefined): Promise<DurableLog> {
    const startValue = kv.get(START_KEY);
    const start = startValue === undefined ? LOG_ORIGIN : decodeWitness(startValue);
    const sizes = new LogSizes(start.index);
    const last = await checkEntries(kv, { start, witness, sizes });
    const hardStateValue = kv.get(HARD_STATE_KEY);
    if (hardStateValue === undefined && last.index > 0) {
      throw new LogDamage(undefined, `it has entries up to ${last.index} but no hard state`);
    }
    const hardState =
      hardStateValue === undefined ? NO_HARD_STATE : decodeHardState(hardStateValue);
    requireNothingLost(start, last, hardState, witness);
    const leftovers = await findLeftovers(kv, start);
    return new DurableLog(kv, { start, last, hardState, leftovers, sizes });
  }

  /** Index of the first entry that is kept; `lastIndex + 1` when there is none. */
  get firstIndex(): number {
    return this.#start.index + 1;
  }

  get lastIndex(): number {
    return this.#last.index;
  }

  /** What stands before the first entry that is kept. */
  get start(): LogWitness {
    return this.#start;
  }

  /** Rows that a snapshot left behind; each write takes some of them away. */
  get leftoverCount(): number {
    return this.#leftovers.throughIndex - this.#leftovers.fromIndex + 1;
  }

  /** The last entry, or what stands for it in an empty log. */
  get last(): LogWitness {
    return this.#last;
  }

  get hardState(): HardState {
    return this.#hardState;
  }

  /** Payload bytes behind an entry that is kept, or behind the start. */
  bytesBehind(index: number): number {
    return this.#sizes.behind(index);
  }

  /** Up to there entries must go, so that what is left has at most so many payload bytes. */
  lastBeyond(bytes: number): number {
    return this.#sizes.lastBeyond(bytes);
  }

  /** The entry at an index that is kept. */
  entry(index: number): LogEntry {
    assert(index >= this.firstIndex && index <= this.lastIndex, 'the log has this entry', {
      index,
      firstIndex: this.firstIndex,
      lastIndex: this.lastIndex,
    });
    const value = this.#kv.get(entryKey(index));
    if (value === undefined) throw new LogDamage(index, `entry ${index} is missing`);
    return decodeEntry(value, index).entry;
  }

  /** Writes one synced batch. The caller waits for one before the next. */
  async write(batch: LogBatch): Promise<void> {
    const writes: KvWrite[] = [];
    const last = this.#addEntries(batch.entries, writes);
    const start = this.#addTrim(batch.trimThroughIndex ?? 0, last, writes);
    const leftovers = this.#addLeftovers(writes);
    const hardState = batch.hardState ?? this.#hardState;
    if (batch.hardState !== undefined) {
      writes.push({ type: 'put', key: HARD_STATE_KEY, value: encodeHardState(hardState) });
    }
    assert(hardState.commit <= last.index, 'only what is in the log is committed', {
      commit: hardState.commit,
      lastIndex: last.index,
    });
    await this.#kv.write(writes);
    this.#start = start;
    this.#last = last;
    this.#hardState = hardState;
    this.#leftovers = leftovers;
    this.#noteSizes(batch.entries);
  }

  /**
   * Forgets every entry: the log goes on behind `start`, and the state of `generation` is the valid one.
   * This batch is the switch. The caller waits for other writes before it, and for it before others.
   */
  async reset({ start, hardState, generation }: LogReset): Promise<void> {
    assert(start.index > this.#hardState.commit, 'a snapshot takes nothing back', {
      startIndex: start.index,
      commit: this.#hardState.commit,
    });
    assert(hardState.commit === start.index, 'a snapshot is what is committed', {
      commit: hardState.commit,
      startIndex: start.index,
    });
    assert(hardState.term >= start.term && hardState.term >= this.#hardState.term, 'terms grow', {
      term: hardState.term,
      startTerm: start.term,
      before: this.#hardState.term,
    });
    const writes: KvWrite[] = [
      { type: 'put', key: START_KEY, value: encodeWitness(start) },
      { type: 'put', key: HARD_STATE_KEY, value: encodeHardState(hardState) },
      { type: 'put', key: GENERATION_KEY, value: encodeGeneration(generation) },
    ];
    // What stands behind the start would follow it. What stands before it is out of sight, and may be
    // more than fits a batch.
    for (let index = start.index + 1; index <= this.#last.index; index += 1) {
      writes.push({ type: 'del', key: entryKey(index) });
    }
    await this.#kv.write(writes);
    this.#leftovers = {
      fromIndex: this.leftoverCount > 0 ? this.#leftovers.fromIndex : this.firstIndex,
      throughIndex: Math.min(this.#last.index, start.index),
    };
    this.#start = start;
    this.#last = start;
    this.#hardState = hardState;
    this.#sizes = new LogSizes(start.index);
  }

  #noteSizes(entries: readonly LogEntry[]): void {
    const [first] = entries;
    if (first !== undefined) this.#sizes.cut(first.index);
    for (const { payload } of entries) this.#sizes.add(payload.length);
    this.#sizes.trim(this.#start.index);
  }

  #addEntries(entries: readonly LogEntry[], writes: KvWrite[]): LogWitness {
    const first = entries[0];
    if (first === undefined) return this.#last;
    let previous = this.#before(first.index);
    for (const entry of entries) {
      assert(entry.index === previous.index + 1 && entry.term >= previous.term, 'entries follow', {
        index: entry.index,
        term: entry.term,
        after: previous.index,
        afterTerm: previous.term,
      });
      const value = encodeEntry(entry, previous.hash);
      writes.push({ type: 'put', key: entryKey(entry.index), value });
      previous = entry;
    }
    for (let index = previous.index + 1; index <= this.#last.index; index += 1) {
      writes.push({ type: 'del', key: entryKey(index) });
    }
    return { index: previous.index, term: previous.term, hash: previous.hash };
  }

  #before(index: number): LogWitness {
    if (index === this.#last.index + 1) return this.#last;
    assert(index > this.#hardState.commit, 'what is committed stays', {
      index,
      commit: this.#hardState.commit,
    });
    return index === this.firstIndex ? this.#start : this.entry(index - 1);
  }

  #addTrim(wantedIndex: number, last: LogWitness, writes: KvWrite[]): LogWitness {
    const throughIndex = Math.min(
      wantedIndex,
      this.#start.index + TRIM_BATCH_MAX,
      this.#last.index,
      last.index,
    );
    if (throughIndex <= this.#start.index || this.leftoverCount > 0) return this.#start;
    const { index, term, hash } = this.entry(throughIndex);
    for (let each = this.firstIndex; each <= throughIndex; each += 1) {
      writes.push({ type: 'del', key: entryKey(each) });
    }
    const start = { index, term, hash };
    writes.push({ type: 'put', key: START_KEY, value: encodeWitness(start) });
    return start;
  }

  #addLeftovers(writes: KvWrite[]): Leftovers {
    const { fromIndex, throughIndex } = this.#leftovers;
    const beforeIndex = Math.min(fromIndex + TRIM_BATCH_MAX, throughIndex + 1);
    for (let index = fromIndex; index < beforeIndex; index += 1) {
      writes.push({ type: 'del', key: entryKey(index) });
    }
    return { fromIndex: beforeIndex, throughIndex };
  }
}

/** Rows before the start that a snapshot left behind. They count for nothing. */
interface Leftovers {
  readonly fromIndex: number;
  /** Below `fromIndex` when there are none. */
  readonly throughIndex: number;
}

interface OpenedLog {
  readonly start: LogWitness;
  readonly last: LogWitness;
  readonly hardState: HardState;
  readonly leftovers: Leftovers;
  readonly sizes: LogSizes;
}

async function findLeftovers(kv: Kv, start: LogWitness): Promise<Leftovers> {
  const none: Leftovers = { fromIndex: 1, throughIndex: 0 };
  // Trimming leaves none: it takes rows away with the batch that moves the start.
  if (readGeneration(kv) === 0) return none;
  const range = { from: entryKey(0), to: entryKey(start.index + 1), limit: 1 };
  const fromIndex = await firstIndexOf(kv.rows(range));
  const throughIndex = await firstIndexOf(kv.rows({ ...range, reverse: true }));
  return fromIndex === undefined || throughIndex === undefined ? none : { fromIndex, throughIndex };
}

async function firstIndexOf(
  slices: AsyncIterable<readonly { readonly key: Uint8Array }[]>,
): Promise<number | undefined> {
  for await (const [first] of slices) {
    if (first !== undefined) return indexOfKey(first.key);
  }
  return undefined;
}

interface Checked {
  readonly start: LogWitness;
  readonly witness: LogWitness | undefined;
  /** To be told of each entry. */
  readonly sizes: LogSizes;
}

/** Goes through all that is kept, each entry against the one before; gives the last one. */
async function checkEntries(kv: Kv, { start, witness, sizes }: Checked): Promise<LogWitness> {
  let previous: LogWitness = start;
  if (witness?.index === start.index) requireWitness(start, witness);
  for await (const rows of kv.rows({ from: entryKey(start.index + 1), to: ENTRY_KEYS_END })) {
    for (const { key, value } of rows) {
      const index = indexOfKey(key);
      const expected = previous.index + 1;
      if (index !== expected) {
        throw new LogDamage(expected, `entry ${expected} is missing, the next one is ${index}`);
      }
      const { entry, previousHash } = decodeEntry(value, index);
      if (Buffer.compare(previousHash, previous.hash) !== 0) {
        throw new LogDamage(index, `entry ${index} does not follow the one that stands before it`);
      }
      if (witness?.index === index) requireWitness(entry, witness);
      sizes.add(entry.payload.length);
      previous = { index, term: entry.term, hash: entry.hash };
    }
  }
  return previous;
}

function requireWitness(entry: LogWitness, witness: LogWitness): void {
  if (entry.term === witness.term && Buffer.compare(entry.hash, witness.hash) === 0) return;
  throw new LogDamage(
    entry.index,
    `entry ${entry.index} is not the one that was applied: log and state are not of one node`,
  );
}

function requireNothingLost(
  start: LogWitness,
  last: LogWitness,
  hardState: HardState,
  witness: LogWitness | undefined,
): void {
  const lost = (promised: number, by: string): LogDamage =>
    new LogDamage(last.index + 1, `it ends at entry ${last.index}, but ${promised} was ${by}`);
  if (hardState.commit > last.index) throw lost(hardState.commit, 'committed');
  const appliedIndex = witness?.index ?? 0;
  if (appliedIndex > last.index) throw lost(appliedIndex, 'applied to the state');
  if (appliedIndex < start.index) {
    const applied = appliedIndex === 0 ? 'is empty' : `has applied entry ${appliedIndex}`;
    throw new LogDamage(
      appliedIndex + 1,
      `the state ${applied}, but the log begins at ${start.index + 1}`,
    );
  }
}
