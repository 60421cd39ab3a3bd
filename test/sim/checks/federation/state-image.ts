// What the state on one disk says of the global log and of the objects that all datacenters share, read
// from its rows and followed write by write. Nothing is asked of a running node, and no digest of the
// product is believed.

import type { KvWrite } from '../../../../cluster/platform/kv.ts';
import { isGlobalRow } from '../../../../src/state/global-effects.ts';
import {
  decodeReplication,
  REPLICATION_KEY,
  type Replication,
} from '../../../../src/state/global-log/replication.ts';
import { decodeKeyspaces, KEYSPACES_KEY } from '../../../../src/state/rows/store/keyspaces.ts';
import { isObjectRow, ROW } from '../../../../src/state/rows/tables.ts';
import { bytesOf, textOf } from '../../world/key-text.ts';
import { rowsDigest } from '../../world/rows-digest.ts';
import { applied, type SimStore } from '../../world/sim-disk.ts';
import { SortedRows } from '../../world/sorted-rows.ts';

const REPLICATION = textOf(REPLICATION_KEY);
const KEYSPACES = textOf(KEYSPACES_KEY);
/** Kind and number, before the key of a row that is not in the first keyspace. */
const PREFIX_BYTES = 5;

/** The shared objects of one keyspace. */
export class GlobalRows {
  rows = SortedRows.EMPTY;

  /** Equal objects have equal digests. */
  get digest(): string {
    return rowsDigest(this.rows);
  }

  static of(rows: SortedRows): GlobalRows {
    const all = new GlobalRows();
    all.rows = rows;
    return all;
  }

  /** Rows that are no shared objects are passed over. */
  write(writes: readonly KvWrite[]): void {
    const own = writes.filter((write) => {
      return write.type === 'put'
        ? isShared(write.key, write.value)
        : this.rows.get(textOf(write.key)) !== undefined;
    });
    this.rows = applied(this.rows, own);
  }
}

/** One more batch after these, elsewhere. */
export function withWrites(before: SortedRows, writes: readonly KvWrite[]): GlobalRows {
  const after = GlobalRows.of(before);
  after.write(writes);
  return after;
}

export class StateImage {
  readonly #store: SimStore;
  readonly #byKeyspace = new Map<number, GlobalRows>();

  constructor(store: SimStore) {
    this.#store = store;
    for (const { key, value } of store.rows.all()) {
      this.#write([{ type: 'put', key: bytesOf(key), value }]);
    }
  }

  follow(writes: readonly KvWrite[]): void {
    this.#write(writes);
  }

  get keyspace(): number {
    return decodeKeyspaces(this.#store.rows.get(KEYSPACES)).current;
  }

  get replication(): Replication | undefined {
    return replicationIn(this.#store);
  }

  /** Of the keyspace that counts. */
  get objects(): GlobalRows {
    return this.#in(this.keyspace);
  }

  /** An object of the keyspace that counts, shared or not, by the key that it has in the first one. */
  object(key: Uint8Array): Uint8Array | undefined {
    const { keyspace } = this;
    if (keyspace === 0) return this.#store.rows.get(textOf(key));
    const prefix = Buffer.alloc(PREFIX_BYTES, ROW.inKeyspace);
    prefix.writeUInt32BE(keyspace, 1);
    return this.#store.rows.get(textOf(prefix) + textOf(key));
  }

  has(key: Uint8Array): boolean {
    return this.#store.rows.get(textOf(key)) !== undefined;
  }

  #write(writes: readonly KvWrite[]): void {
    const first = writes.filter(({ key }) => isObjectRow(key[0]!));
    this.#in(0).write(first);
    const others = new Map<number, KvWrite[]>();
    for (const write of writes) {
      if (write.key[0] !== ROW.inKeyspace) continue;
      const keyspace = Buffer.from(write.key).readUInt32BE(1);
      const own = { ...write, key: write.key.subarray(PREFIX_BYTES) };
      others.set(keyspace, [...(others.get(keyspace) ?? []), own]);
    }
    for (const [keyspace, own] of others) this.#in(keyspace).write(own);
  }

  #in(keyspace: number): GlobalRows {
    const rows = this.#byKeyspace.get(keyspace) ?? new GlobalRows();
    this.#byKeyspace.set(keyspace, rows);
    return rows;
  }
}

/** By row: a row on a disk never changes, and checkers ask for it after every event. */
const DECODED = new WeakMap<Uint8Array, Replication>();

/** How the datacenter of this disk stands in the global log; undefined before it has one. */
export function replicationIn(store: SimStore): Replication | undefined {
  const row = store.rows.get(REPLICATION);
  if (row === undefined) return undefined;
  const known = DECODED.get(row) ?? decodeReplication(row);
  DECODED.set(row, known);
  return known;
}

function isShared(key: Uint8Array, value: Uint8Array): boolean {
  return isObjectRow(key[0]!) && isGlobalRow(key, value);
}
