// What a group of commands changes, held in memory until it is written as one batch. Reads see what
// was changed before in the group. Beside the rows that a command asks for, it keeps everything that
// follows from them: index rows, counts, digests, the index, the position and who is to be told.

import { assert } from '../../cluster/base/assert.ts';
import type { LogWitness } from '../../cluster/log/log-entry.ts';
import type { KvWrite } from '../../cluster/platform/kv.ts';
import type { NamespaceName } from '../acl/ids.ts';
import { Digest, rowHash } from './digest.ts';
import { globalEffectsOf, type RowEffect } from './global-effects.ts';
import type { KeyspaceStep } from './keyspaces.ts';
import { decodeCounts, encodeCounts, encodeMeta, type Meta, type Totals } from './meta.ts';
import type { IndexRow, ObjectTable } from './objects.ts';
import type { Position } from './outcome.ts';
import { decodeNumber, encodeNumber } from './packing.ts';
import { type Getter, idsOf } from './reads.ts';
import { decodeRecord, encodeRecord } from './record-codec.ts';
import type { Stamped } from './stamp.ts';
import { idAtEnd, META_KEY, rowKey } from './tables.ts';
import type { ObjectCounts, TableName } from './view.ts';
import type { AppliedChange } from './watch.ts';

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

interface Row {
  readonly key: Uint8Array;
  /** Undefined: there is none. */
  value: Uint8Array | undefined;
  /** False: only read so far. */
  isChanged: boolean;
}

/** What is written and what is announced when a group of commands is done. */
export interface Finished {
  readonly writes: readonly KvWrite[];
  readonly meta: Meta;
  readonly changes: readonly AppliedChange[];
  /** With 'adopt', it is another state than before. */
  readonly keyspaceStep: KeyspaceStep | undefined;
}

export class ChangeSet implements Getter {
  readonly #store: Getter;
  readonly #rows = new Map<string, Row>();
  readonly #counts = new Map<NamespaceName, Mutable<ObjectCounts>>();
  #globalDigest: Digest;
  #fullDigest: Digest;
  readonly #tableIndexes: Record<TableName, number>;
  readonly #changes: AppliedChange[] = [];
  #index: number;
  #position: Position;
  #totals: Mutable<Totals>;
  #bootstrapIndex: number | undefined;
  #groupRecord: Uint8Array | undefined;
  #keyspaceStep: KeyspaceStep | undefined;
  /** Of the command that is being applied. */
  #effects: RowEffect[] = [];
  #touchedTables = new Set<TableName>();
  #rowsChanged = 0;

  constructor(store: Getter, meta: Meta) {
    this.#store = store;
    this.#globalDigest = new Digest(meta.globalDigest);
    this.#fullDigest = new Digest(meta.fullDigest);
    this.#tableIndexes = { ...meta.tableIndexes };
    this.#index = meta.index;
    this.#position = meta.position;
    this.#totals = { ...meta.totals };
    this.#bootstrapIndex = meta.bootstrapIndex;
    this.#groupRecord = meta.groupRecord;
  }

  get(key: Uint8Array): Uint8Array | undefined {
    return this.#rowOf(key).value;
  }

  /** The index after the last command. */
  get index(): number {
    return this.#index;
  }

  get position(): Position {
    return this.#position;
  }

  /** What the current command stamps on the objects that it changes. */
  get nextIndex(): number {
    return this.#index + 1;
  }

  get bootstrapIndex(): number | undefined {
    return this.#bootstrapIndex;
  }

  /** Whether the current command has changed nothing yet. */
  get isUntouched(): boolean {
    return this.#rowsChanged === 0;
  }

  /** The full digest as of the last command. */
  get fullDigestHex(): string {
    return this.#fullDigest.hex();
  }

  /** What a namespace holds, the current command included. */
  countsOf(namespace: NamespaceName): ObjectCounts {
    return this.#counts.get(namespace) ?? decodeCounts(this.get(countsKey(namespace)));
  }

  /** Makes or replaces an object, with all that follows from it. It must carry its indexes. */
  put<T extends Stamped>(table: ObjectTable<T>, object: T): void {
    const key = table.keyOf(object);
    const row = this.#rowOf(key);
    const oldValue = row.value;
    const old = oldValue === undefined ? undefined : decodeRecord(table.codec, oldValue);
    const value = encodeRecord(table.codec, object);
    this.#change(row, value);
    this.#replaceIndexRows(
      old === undefined ? [] : table.indexRowsOf(old),
      table.indexRowsOf(object),
    );
    const isLocal = table.isLocal(object);
    if (old === undefined) this.#count(table, object, 1);
    else this.#takeFromDigests(key, oldValue!, table.isLocal(old));
    this.#addToDigests(key, value, isLocal);
    this.#note(table, old, object, { key, value, isLocal });
  }

  /** Deletes an object that is there, with all that follows from it. */
  delete<T extends Stamped>(table: ObjectTable<T>, object: T): void {
    const key = table.keyOf(object);
    const value = this.get(key);
    assert(value !== undefined, 'what is deleted is there', { table: table.name });
    const isLocal = table.isLocal(object);
    this.deleteRow(key);
    this.#replaceIndexRows(table.indexRowsOf(object), []);
    this.#count(table, object, -1);
    this.#takeFromDigests(key, value, isLocal);
    this.#note(table, object, object, { key, value: undefined, isLocal });
  }

  /** A row that is no object and follows from none: in no digest, and announced to nobody. */
  putRow(key: Uint8Array, value: Uint8Array): void {
    this.#rows.set(nameOf(key), { key, value, isChanged: true });
    this.#rowsChanged += 1;
  }

  deleteRow(key: Uint8Array): void {
    this.#rows.set(nameOf(key), { key, value: undefined, isChanged: true });
    this.#rowsChanged += 1;
  }

  /** Readers of the table see it changed by what the current command does to other tables. */
  touch(table: TableName): void {
    this.#changes.push({ table, key: '', watchKeys: [] });
    this.#touchedTables.add(table);
  }

  /** The current command is the bootstrap: its index is what a later reset must name. */
  markBootstrap(): void {
    this.#bootstrapIndex = this.nextIndex;
    this.#rowsChanged += 1;
  }

  /** Who belongs to the group from here on. Nothing that users see moves. */
  setGroupRecord(groupRecord: Uint8Array): void {
    this.#groupRecord = groupRecord;
  }

  /** The batch opens or drops what collects a restore. A command that does is alone in its batch. */
  setKeyspaceStep(step: 'stage' | 'drop'): void {
    this.#keyspaceStep = step;
  }

  /**
   * What was collected is the state from now on, as `restored` describes it. Nothing that was given out
   * comes back: index, position and the index of the last bootstrap go on from the larger one.
   */
  adoptRestored(restored: Meta): void {
    this.#keyspaceStep = 'adopt';
    this.#rowsChanged += 1;
    this.#index = Math.max(this.#index, restored.index) + 1;
    this.#position = positionAfter(this.#position, restored.position);
    for (const table of Object.keys(this.#tableIndexes) as TableName[]) {
      this.#tableIndexes[table] = this.#index;
    }
    const wasBootstrapped = this.#bootstrapIndex ?? restored.bootstrapIndex;
    this.#bootstrapIndex = wasBootstrapped === undefined ? undefined : this.#index;
    this.#globalDigest = new Digest(restored.globalDigest);
    this.#fullDigest = new Digest(restored.fullDigest);
    this.#totals = { ...restored.totals };
  }

  beginCommand(): void {
    this.#rowsChanged = 0;
  }

  /**
   * The command has changed all the objects that it will: the index moves if it changed one, the
   * position if a global one. Bookkeeping rows may still follow.
   */
  endObjects(): void {
    if (this.#effects.length > 0) {
      this.#index += 1;
      for (const table of this.#touchedTables) this.#tableIndexes[table] = this.#index;
    }
    if (globalEffectsOf(this.#effects).length > 0) {
      this.#position = { epoch: this.#position.epoch, seq: this.#position.seq + 1 };
    }
    this.#effects = [];
    this.#touchedTables.clear();
  }

  /** Ends the group: all that is to be written, up to and with the applied entry. */
  finish(appliedEntry: LogWitness): Finished {
    assert(this.#effects.length === 0, 'every command of a group is ended');
    for (const [namespace, counts] of this.#counts) this.#putCounts(namespace, counts);
    const meta: Meta = {
      appliedEntry,
      index: this.#index,
      position: this.#position,
      tableIndexes: this.#tableIndexes,
      bootstrapIndex: this.#bootstrapIndex,
      globalDigest: this.#globalDigest.bytes(),
      fullDigest: this.#fullDigest.bytes(),
      totals: this.#totals,
      groupRecord: this.#groupRecord,
    };
    this.putRow(META_KEY, encodeMeta(meta));
    const writes: KvWrite[] = [];
    for (const { key, value, isChanged } of this.#rows.values()) {
      if (!isChanged) continue;
      writes.push(value === undefined ? { type: 'del', key } : { type: 'put', key, value });
    }
    return { writes, meta, changes: this.#changes, keyspaceStep: this.#keyspaceStep };
  }

  /** The row as it is now, read from the store at the first time. */
  #rowOf(key: Uint8Array): Row {
    const name = nameOf(key);
    const known = this.#rows.get(name);
    if (known !== undefined) return known;
    const row: Row = { key, value: this.#store.get(key), isChanged: false };
    this.#rows.set(name, row);
    return row;
  }

  #change(row: Row, value: Uint8Array): void {
    row.value = value;
    row.isChanged = true;
    this.#rowsChanged += 1;
  }

  #putCounts(namespace: NamespaceName, counts: ObjectCounts): void {
    const key = countsKey(namespace);
    if (Object.values(counts).every((count) => count === 0)) this.deleteRow(key);
    else this.putRow(key, encodeCounts(counts));
  }

  #replaceIndexRows(old: readonly IndexRow[], fresh: readonly IndexRow[]): void {
    if (old.length === 0) {
      for (const row of fresh) this.putRow(row.key, row.value);
      return;
    }
    const leftOver = new Map(old.map((row) => [nameOf(row.key), row]));
    for (const row of fresh) {
      const name = nameOf(row.key);
      const same = leftOver.get(name);
      leftOver.delete(name);
      if (same !== undefined && Buffer.compare(same.value, row.value) === 0) continue;
      this.putRow(row.key, row.value);
    }
    for (const row of leftOver.values()) this.deleteRow(row.key);
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
    const counts = this.#counts.get(namespace) ?? { ...this.countsOf(namespace) };
    this.#counts.set(namespace, counts);
    counts[countedAs] += by;
    this.#totals[countedAs] += by;
    if (table.isLocal(object)) this.#totals.localTokens += by;
  }

  #addToCounter(key: Uint8Array, by: 1 | -1): void {
    const count = decodeNumber(this.get(key)) + by;
    if (count === 0) this.deleteRow(key);
    else this.putRow(key, encodeNumber(count));
  }

  #changeList(key: Uint8Array, id: Uint8Array, by: 1 | -1): void {
    const others = idsOf(this.get(key)).filter((each) => Buffer.compare(each, id) !== 0);
    const ids = by === 1 ? [...others, id].sort(Buffer.compare) : others;
    if (ids.length === 0) this.deleteRow(key);
    else this.putRow(key, Buffer.concat(ids));
  }

  #addToDigests(key: Uint8Array, value: Uint8Array, isLocal: boolean): void {
    const hash = rowHash(key, value);
    this.#fullDigest.add(hash);
    if (!isLocal) this.#globalDigest.add(hash);
  }

  #takeFromDigests(key: Uint8Array, value: Uint8Array, isLocal: boolean): void {
    const hash = rowHash(key, value);
    this.#fullDigest.subtract(hash);
    if (!isLocal) this.#globalDigest.subtract(hash);
  }

  #note<T extends Stamped>(
    table: ObjectTable<T>,
    old: T | undefined,
    object: T,
    effect: RowEffect,
  ): void {
    const watchKeys = table.watchKeysOf(object);
    const oldKeys = old === undefined || old === object ? [] : table.watchKeysOf(old);
    const lostKeys = oldKeys.filter((key) => !watchKeys.includes(key));
    const [key = ''] = watchKeys;
    this.#changes.push({ table: table.name, key, watchKeys: [...watchKeys, ...lostKeys] });
    this.#effects.push(effect);
    this.#touchedTables.add(table.name);
  }
}

function positionAfter(left: Position, right: Position): Position {
  const isLeftLater = left.epoch === right.epoch ? left.seq >= right.seq : left.epoch > right.epoch;
  const { epoch, seq } = isLeftLater ? left : right;
  return { epoch, seq: seq + 1 };
}

function countsKey(namespace: NamespaceName): Uint8Array {
  return rowKey('counts', namespace);
}

/** The bytes of a key as text, to be looked up by. */
function nameOf(key: Uint8Array): string {
  return (key instanceof Buffer ? key : Buffer.from(key)).toString('latin1');
}
