// Rows that are changed in memory before they are written as one batch. Reads see what was changed.

import type { KvWrite } from '../../../../cluster/platform/kv.ts';
import { ROW } from '../tables.ts';
import type { Getter } from './getter.ts';
import { nameOf, type RowsBefore } from './rows-before.ts';

/** Rows that can be changed. */
export interface WritableRows extends Getter {
  putRow(key: Uint8Array, value: Uint8Array): void;
  deleteRow(key: Uint8Array): void;
}

export interface Rows extends WritableRows {
  /** Puts or deletes a row that follows from others: what it held is known without reading it. */
  replace(key: Uint8Array, change: Replaced): void;
}

/** Undefined: there is no such row. */
export interface Replaced {
  readonly from: Uint8Array | undefined;
  readonly to: Uint8Array | undefined;
}

interface Row {
  readonly key: Uint8Array;
  /** Undefined: there is none. */
  value: Uint8Array | undefined;
  /** False: only read so far. */
  isChanged: boolean;
  /** What the store holds. */
  readonly before: Uint8Array | undefined | typeof UNREAD;
}

/** Rows of bookkeeping are written unseen; no reader puts them together with other rows. */
const UNREAD = Symbol('unread');

/** What a row costs beside its value: most rows that follow from objects have none. */
const ROW_BYTES = 100;

export class RowBuffer implements Rows {
  readonly #store: Getter;
  readonly #rows = new Map<string, Row>();
  #bytes = 0;

  constructor(store: Getter) {
    this.#store = store;
  }

  /** Of all that was read from the store or changed: what working on it costs, and what it holds. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Read from the store at the first time. */
  get(key: Uint8Array): Uint8Array | undefined {
    const name = nameOf(key);
    const known = this.#rows.get(name);
    if (known !== undefined) return known.value;
    const value = this.#store.get(key);
    this.#count(value);
    this.#rows.set(name, { key, value, isChanged: false, before: value });
    return value;
  }

  putRow(key: Uint8Array, value: Uint8Array): void {
    this.#change(key, value, UNREAD);
  }

  deleteRow(key: Uint8Array): void {
    this.#change(key, undefined, UNREAD);
  }

  replace(key: Uint8Array, { from, to }: Replaced): void {
    this.#change(key, to, from);
  }

  /** All that was changed. */
  writes(): readonly KvWrite[] {
    const writes: KvWrite[] = [];
    for (const { key, value, isChanged } of this.#rows.values()) {
      if (!isChanged) continue;
      writes.push(value === undefined ? { type: 'del', key } : { type: 'put', key, value });
    }
    return writes;
  }

  /**
   * Every row as it is once these are written, over a store with all that came before them. Nothing changes any more.
   * What this one was made over is not held by it: of a long row of batches, each would hold all before it.
   */
  after(store: Getter): Getter {
    const rows = this.#rows;
    return {
      get: (key) => {
        const known = rows.get(nameOf(key));
        return known === undefined ? store.get(key) : known.value;
      },
    };
  }

  /** What the rows that were changed hold in the store, as far as that is known. Nothing changes any more. */
  before(): RowsBefore {
    return {
      has: (name) => isKnownBefore(this.#rows.get(name)),
      get: (name) => {
        const row = this.#rows.get(name);
        return isKnownBefore(row) ? row.before : undefined;
      },
    };
  }

  #count(value: Uint8Array | undefined): void {
    this.#bytes += ROW_BYTES + (value?.length ?? 0);
  }

  #change(key: Uint8Array, value: Uint8Array | undefined, before: Row['before']): void {
    const name = nameOf(key);
    const known = this.#rows.get(name);
    this.#count(value);
    if (known === undefined) {
      this.#rows.set(name, { key, value, isChanged: true, before });
      return;
    }
    known.value = value;
    known.isChanged = true;
  }
}

function isKnownBefore(
  row: Row | undefined,
): row is Row & { readonly before: Uint8Array | undefined } {
  return row?.isChanged === true && row.before !== UNREAD;
}

/** The rows of the state that is coming in, under the keys that they will have. */
export function stagedRows(rows: Rows): Rows {
  return {
    get: (key) => rows.get(stagedKey(key)),
    putRow: (key, value) => rows.putRow(stagedKey(key), value),
    deleteRow: (key) => rows.deleteRow(stagedKey(key)),
    replace: (key, change) => rows.replace(stagedKey(key), change),
  };
}

/** Where a row of the state that is coming in stands. */
export function stagedKey(key: Uint8Array): Uint8Array {
  const staged = new Uint8Array(key.length + 1);
  staged[0] = ROW.staged;
  staged.set(key, 1);
  return staged;
}
