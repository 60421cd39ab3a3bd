// The log as it lies on a simulated disk, read row by row. What a checker asks the disk it asks here, so
// that no running node can tell it anything.

import { LogDamage } from '../../../cluster/log/log-damage.ts';
import {
  CLUSTER_KEY,
  decodeEntry,
  decodeGeneration,
  decodeHardState,
  decodeText,
  decodeWitness,
  entryKey,
  GENERATION_KEY,
  HARD_STATE_KEY,
  type HardState,
  LOG_ORIGIN,
  type LogEntry,
  type LogWitness,
  START_KEY,
} from '../../../cluster/log/log-entry.ts';
import { LOG_STORE } from '../subject/subject.ts';
import { textOf } from '../world/key-text.ts';
import type { SimHost } from '../world/sim-host.ts';
import { SortedRows } from '../world/sorted-rows.ts';

const NO_HARD_STATE: HardState = { term: 0, vote: 0, commit: 0 };

/** What a row says, by row: one on a disk never changes, and checkers ask for it after every event. */
const DECODED = new WeakMap<Uint8Array, { readonly value: unknown }>();

export class LogImage {
  readonly #rows: SortedRows;

  constructor(rows: SortedRows) {
    this.#rows = rows;
  }

  get hardState(): HardState {
    return this.#decoded(HARD_STATE_KEY, decodeHardState) ?? NO_HARD_STATE;
  }

  /** The entry before the first one that is kept. */
  get start(): LogWitness {
    return this.#decoded(START_KEY, decodeWitness) ?? LOG_ORIGIN;
  }

  get generation(): number {
    return this.#decoded(GENERATION_KEY, decodeGeneration) ?? 0;
  }

  /** The cluster that it belongs to; undefined before there is one. */
  get clusterId(): string | undefined {
    return this.#decoded(CLUSTER_KEY, (row) => decodeText(row, 'the id of the cluster'));
  }

  entry(index: number): LogEntry | undefined {
    return this.#decoded(entryKey(index), (row) => decodeEntry(row, index).entry);
  }

  /** Whether it holds this very entry, or a snapshot that contains its place. */
  holds({ index, hash }: LogWitness): boolean {
    const { start } = this;
    if (index < start.index) return true;
    const found = index === start.index ? start : this.entry(index);
    return found !== undefined && Buffer.compare(found.hash, hash) === 0;
  }

  /** A row that is damaged is one that is not there. Each row has one key, and so one meaning. */
  #decoded<T>(key: Uint8Array, decode: (row: Uint8Array) => T): T | undefined {
    const row = this.#rows.get(textOf(key));
    if (row === undefined) return undefined;
    const decoded = DECODED.get(row) ?? { value: unlessDamaged(row, decode) };
    DECODED.set(row, decoded);
    return decoded.value as T | undefined;
  }
}

function unlessDamaged<T>(row: Uint8Array, decode: (row: Uint8Array) => T): T | undefined {
  try {
    return decode(row);
  } catch (error) {
    if (error instanceof LogDamage) return undefined;
    throw error;
  }
}

/** What is sure to be on the disk, whatever happens to the power now. */
export function logOn(host: SimHost): LogImage {
  return new LogImage(host.disk.store(LOG_STORE)?.synced ?? SortedRows.EMPTY);
}
