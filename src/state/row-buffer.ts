// Rows that are changed in memory before they are written as one batch. Reads see what was changed.

import type { KvWrite } from '../../cluster/platform/kv.ts';
import type { Getter } from './getter.ts';
import { ROW } from './tables.ts';

/** Rows that can be changed. */
export interface Rows extends Getter {
  put(key: Uint8Array, value: Uint8Array): void;
  delete(key: Uint8Array): void;
}

interface Row {
  readonly key: Uint8Array;
  /** Undefined: there is none. */
  readonly value: Uint8Array | undefined;
  /** False: only read so far. */
  readonly isChanged: boolean;
}

export class RowBuffer implements Rows {
  readonly #store: Getter;
  readonly #rows = new Map<string, Row>();

  constructor(store: Getter) {
    this.#store = store;
  }

  /** Read from the store at the first time. */
  get(key: Uint8Array): Uint8Array | undefined {
    const name = nameOf(key);
    const known = this.#rows.get(name);
    if (known !== undefined) return known.value;
    const value = this.#store.get(key);
    this.#rows.set(name, { key, value, isChanged: false });
    return value;
  }

  put(key: Uint8Array, value: Uint8Array): void {
    this.#rows.set(nameOf(key), { key, value, isChanged: true });
  }

  delete(key: Uint8Array): void {
    this.#rows.set(nameOf(key), { key, value: undefined, isChanged: true });
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
}

/** The rows of the state that is coming in, under the keys that they will have. */
export function stagedRows(rows: Rows): Rows {
  return {
    get: (key) => rows.get(stagedKey(key)),
    put: (key, value) => rows.put(stagedKey(key), value),
    delete: (key) => rows.delete(stagedKey(key)),
  };
}

/** Where a row of the state that is coming in stands. */
export function stagedKey(key: Uint8Array): Uint8Array {
  const staged = new Uint8Array(key.length + 1);
  staged[0] = ROW.staged;
  staged.set(key, 1);
  return staged;
}

/** The bytes of a key as text, to be looked up by. */
export function nameOf(key: Uint8Array): string {
  return (key instanceof Buffer ? key : Buffer.from(key)).toString('latin1');
}
