// The objects of one keyspace with everything that follows from them: index rows, counts, lists, totals
// and digests. Whoever puts or deletes an object here has done all of it.

import { assert } from '../../../../cluster/base/assert.ts';
import type { NamespaceName } from '../../../acl/ids.ts';
import type { ObjectCounts } from '../../view.ts';
import { Digest, rowHash } from '../digest.ts';
import { withId, withoutId } from '../layout/id-list.ts';
import { decodeNumber, encodeNumber } from '../layout/packing.ts';
import { decodeRecord, encodeRecord } from '../layout/record-codec.ts';
import type { Stamped } from '../layout/stamp.ts';
import { decodeCounts, encodeCounts, type Totals } from '../meta.ts';
import type { Rows } from '../store/row-buffer.ts';
import { nameOf } from '../store/rows-before.ts';
import { idAtEnd, NO_BYTES, rowKey } from '../tables.ts';
import type { IndexRow, ObjectTable } from './objects.ts';

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/** What is known of all objects without reading them. */
export interface Sums {
  readonly globalDigest: Uint8Array;
  readonly fullDigest: Uint8Array;
  readonly totals: Totals;
}

/** The row of an object that another datacenter tells of. */
export interface ArrivedRow {
  readonly value: Uint8Array;
  /** Where somebody has it already. */
  readonly hash?: Uint8Array | undefined;
  /** There is no such object yet: none is looked for. */
  readonly isNew?: boolean;
}

/** An object's row after it was put. */
export interface PutRow<T> {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
  /** The object that was there before. */
  readonly old: T | undefined;
}

export class ObjectRows {
  readonly #rows: Rows;
  readonly #counts = new Map<NamespaceName, Mutable<ObjectCounts>>();
  readonly #globalDigest: Digest;
  readonly #fullDigest: Digest;
  readonly #totals: Mutable<Totals>;

  constructor(rows: Rows, { globalDigest, fullDigest, totals }: Sums) {
    this.#rows = rows;
    this.#globalDigest = new Digest(globalDigest);
    this.#fullDigest = new Digest(fullDigest);
    this.#totals = { ...totals };
  }

  get fullDigestHex(): string {
    return this.#fullDigest.hex();
  }

  get globalDigest(): Uint8Array {
    return this.#globalDigest.bytes();
  }

  get localTokenCount(): number {
    return this.#totals.localTokens;
  }

  /** As of now. */
  sums(): Sums {
    return {
      globalDigest: this.#globalDigest.bytes(),
      fullDigest: this.#fullDigest.bytes(),
      totals: { ...this.#totals },
    };
  }

  countsOf(namespace: NamespaceName): ObjectCounts {
    return this.#counts.get(namespace) ?? decodeCounts(this.#rows.get(countsKey(namespace)));
  }

  /** Makes or replaces an object. It must carry its indexes, and stay global or local. */
  put<T extends Stamped>(table: ObjectTable<T>, object: T, arrived?: ArrivedRow): PutRow<T> {
    const value = arrived?.value ?? encodeRecord(table.codec, object);
    const key = table.keyOf(object);
    const oldValue = arrived?.isNew === true ? undefined : this.#rows.get(key);
    const old = oldValue === undefined ? undefined : decodeRecord(table.codec, oldValue);
    const isLocal = table.isLocal(object);
    this.#rows.replace(key, { from: oldValue, to: value });
    this.#replaceIndexRows(
      old === undefined ? [] : table.indexRowsOf(old),
      table.indexRowsOf(object),
    );
    if (old === undefined) this.#count(table, object, 1);
    else {
      assert(table.isLocal(old) === isLocal, 'an object stays global or local');
      this.#takeFromDigests(key, oldValue!, isLocal);
    }
    this.#addToDigests(arrived?.hash ?? rowHash(key, value), isLocal);
    return { key, value, old };
  }

  /** Deletes an object that is there; gives the key of its row. */
  delete<T extends Stamped>(table: ObjectTable<T>, object: T): Uint8Array {
    const key = table.keyOf(object);
    const value = this.#rows.get(key);
    assert(value !== undefined, 'what is deleted is there', { table: table.name });
    this.#rows.deleteRow(key);
    this.#replaceIndexRows(table.indexRowsOf(object), []);
    this.#count(table, object, -1);
    this.#takeFromDigests(key, value, table.isLocal(object));
    return key;
  }

  /** Writes the counts that have changed among the rows. To be called before the rows are written. */
  putCounts(): void {
    for (const [namespace, counts] of this.#counts) {
      const key = countsKey(namespace);
      if (Object.values(counts).every((count) => count === 0)) this.#rows.deleteRow(key);
      else this.#rows.putRow(key, encodeCounts(counts));
    }
  }

  #replaceIndexRows(old: readonly IndexRow[], fresh: readonly IndexRow[]): void {
    if (old.length === 0) {
      for (const { key, value } of fresh) this.#rows.replace(key, { from: undefined, to: value });
      return;
    }
    const leftOver = new Map(old.map((row) => [nameOf(row.key), row]));
    for (const row of fresh) {
      const name = nameOf(row.key);
      const same = leftOver.get(name);
      leftOver.delete(name);
      if (same !== undefined && Buffer.compare(same.value, row.value) === 0) continue;
      this.#rows.replace(row.key, { from: same?.value, to: row.value });
    }
    for (const { key, value } of leftOver.values()) {
      this.#rows.replace(key, { from: value, to: undefined });
    }
  }

  /** All that counts objects or lists them: `by` is 1 for one more, -1 for one less. */
  #count<T extends Stamped>(table: ObjectTable<T>, object: T, by: 1 | -1): void {
    this.#countInNamespace(table, object, by);
    const counterKey = table.counterKeyOf(object);
    if (counterKey !== undefined) this.#addToCounter(counterKey, by);
    const listKey = table.listKeyOf(object);
    if (listKey !== undefined) this.#changeList(listKey, idAtEnd(table.keyOf(object)), by);
  }

  #countInNamespace<T extends Stamped>(table: ObjectTable<T>, object: T, by: 1 | -1): void {
    const { countedAs } = table;
    if (countedAs === undefined) {
      this.#totals.namespaces += by;
      return;
    }
    const namespace = table.namespaceOf(object);
    let counts = this.#counts.get(namespace);
    if (counts === undefined) {
      counts = { ...this.countsOf(namespace) };
      this.#counts.set(namespace, counts);
    }
    counts[countedAs] += by;
    this.#totals[countedAs] += by;
    if (table.isLocal(object)) this.#totals.localTokens += by;
  }

  #addToCounter(key: Uint8Array, by: 1 | -1): void {
    const count = decodeNumber(this.#rows.get(key)) + by;
    if (count === 0) this.#rows.deleteRow(key);
    else this.#rows.putRow(key, encodeNumber(count));
  }

  #changeList(key: Uint8Array, id: Uint8Array, by: 1 | -1): void {
    const before = this.#rows.get(key) ?? NO_BYTES;
    const list = by === 1 ? withId(before, id) : withoutId(before, id);
    if (list.length === 0) this.#rows.deleteRow(key);
    else this.#rows.putRow(key, list);
  }

  #addToDigests(hash: Uint8Array, isLocal: boolean): void {
    this.#fullDigest.add(hash);
    if (!isLocal) this.#globalDigest.add(hash);
  }

  #takeFromDigests(key: Uint8Array, value: Uint8Array, isLocal: boolean): void {
    const hash = rowHash(key, value);
    this.#fullDigest.subtract(hash);
    if (!isLocal) this.#globalDigest.subtract(hash);
  }
}

function countsKey(namespace: NamespaceName): Uint8Array {
  return rowKey('counts', namespace);
}
