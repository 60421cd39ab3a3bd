// What a group of commands changes, held in memory until it is written as one batch. Reads see what
// was changed before in the group. Beside the rows that a command asks for, it keeps everything that
// follows from them: what object-rows.ts says of objects, the index, the position, the entries of the
// global log, and who is to be told.

import { assert, must } from '../../cluster/base/assert.ts';
import type { LogWitness } from '../../cluster/log/log-entry.ts';
import type { KvWrite } from '../../cluster/platform/kv.ts';
import type { AccessorId, NamespaceName } from '../acl/ids.ts';
import type { Token } from '../acl/token.ts';
import { globalEffectsOf, type RowEffect } from './global-effects.ts';
import { comparePlaces, type Position } from './global-log/cursor.ts';
import type { EntryBody, EntryRequest, GlobalEntry } from './global-log/global-entry.ts';
import {
  GlobalLogWriter,
  type PackedEntry,
  promisedWith,
  withoutKept,
} from './global-log/global-log-writer.ts';
import { forkIndexOf } from './global-log/left-fork.ts';
import type { WrittenEntry } from './global-log/recent-entries.ts';
import { isPrimary, type Replication } from './global-log/replication.ts';
import { StagedImport } from './global-log/staged-import.ts';
import { notPrimary } from './refusals.ts';
import type { Stamped } from './rows/layout/stamp.ts';
import { encodeMeta, type Meta } from './rows/meta.ts';
import { LinkTargets } from './rows/objects/link-targets.ts';
import { type ArrivedRow, ObjectRows, type Sums } from './rows/objects/object-rows.ts';
import type { ObjectTable } from './rows/objects/objects.ts';
import type { Getter } from './rows/store/getter.ts';
import type { KeyspaceStep } from './rows/store/keyspaces.ts';
import { RowBuffer, type WritableRows } from './rows/store/row-buffer.ts';
import type { RowsBefore } from './rows/store/rows-before.ts';
import { isBookkeepingRow, META_KEY } from './rows/tables.ts';
import type { ObjectCounts, TableName } from './view.ts';
import type { AppliedChange } from './watch.ts';

/** What is written and what is announced when a group of commands is done. */
export interface Finished {
  readonly writes: readonly KvWrite[];
  /** What rows of objects, and all that follows from them, hold before these writes. */
  readonly before: RowsBefore;
  /** What every row holds behind them, over a store with all that came before them. */
  readonly after: (store: Getter) => Getter;
  readonly meta: Meta;
  readonly changes: readonly AppliedChange[];
  /** With 'adopt', it is another state than before. */
  readonly keyspaceStep: KeyspaceStep | undefined;
  /** Whether this datacenter stands elsewhere in the global log than before. */
  readonly hasMoved: boolean;
  /** How it stands there. */
  readonly replication: Replication | undefined;
  /** Entries that this primary wrote, in order. */
  readonly written: readonly WrittenEntry[];
}

/** What an entry of the global log says of the command that it comes from. */
export interface CommandOrigin {
  readonly timeMs: number;
  readonly principal: AccessorId | undefined;
  readonly request: EntryRequest | undefined;
}

export class ChangeSet implements WritableRows {
  readonly #rows: RowBuffer;
  #objects: ObjectRows;
  readonly #log: GlobalLogWriter;
  /** What objects of the group may link to, as it is by now. */
  readonly links: LinkTargets;
  readonly #tableIndexes: Record<TableName, number>;
  readonly #changes: AppliedChange[] = [];
  #index: number;
  #position: Position;
  #bootstrapIndex: number | undefined;
  #groupRecord: Uint8Array | undefined;
  #level: number;
  #keyspaceStep: KeyspaceStep | undefined;
  /** Of the command that is being applied. */
  #effects: RowEffect[] = [];
  #touchedTables = new Set<TableName>();
  #isBootstrap = false;
  #rowsChanged = 0;
  /** Undefined while nobody asked. */
  #staging: { readonly staged: StagedImport | undefined } | undefined;

  /** `replication` and `meta` are those of the store. */
  constructor(store: Getter, meta: Meta, replication: Replication | undefined) {
    this.#rows = new RowBuffer(store);
    this.#objects = new ObjectRows(this.#rows, meta);
    this.#log = new GlobalLogWriter(this.#rows, replication);
    this.links = new LinkTargets(this.#rows);
    this.#tableIndexes = { ...meta.tableIndexes };
    this.#index = meta.index;
    this.#position = meta.position;
    this.#bootstrapIndex = meta.bootstrapIndex;
    this.#groupRecord = meta.groupRecord;
    this.#level = meta.level;
  }

  get(key: Uint8Array): Uint8Array | undefined {
    return this.#rows.get(key);
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

  /** Of all rows that the group has read or changed so far. */
  get touchedBytes(): number {
    return this.#rows.bytes;
  }

  /** The full digest as of the last command. */
  get fullDigestHex(): string {
    return this.#objects.fullDigestHex;
  }

  /** Of all global objects, the current command included. */
  get globalDigest(): Uint8Array {
    return this.#objects.globalDigest;
  }

  /** How the datacenter stands in the global log; undefined before it began one. */
  get replication(): Replication | undefined {
    return this.#log.replication;
  }

  /** The snapshot of another datacenter that is coming in. */
  get staged(): StagedImport | undefined {
    this.#staging ??= { staged: StagedImport.in(this.#rows) };
    return this.#staging.staged;
  }

  /** Digests and totals, the current command included. */
  get sums(): Sums {
    return this.#objects.sums();
  }

  /** What a namespace holds, the current command included. */
  countsOf(namespace: NamespaceName): ObjectCounts {
    return this.#objects.countsOf(namespace);
  }

  /** How many tokens live in this datacenter alone, the current command included. */
  get localTokenCount(): number {
    return this.#objects.localTokenCount;
  }

  /** Makes or replaces an object, with all that follows from it. It must carry its indexes. */
  put<T extends Stamped>(table: ObjectTable<T>, object: T): void {
    const isLocal = table.isLocal(object);
    this.#assertMayWrite(isLocal);
    this.#put(table, object, isLocal);
  }

  /** Deletes an object that is there, with all that follows from it. */
  delete<T extends Stamped>(table: ObjectTable<T>, object: T): void {
    const isLocal = table.isLocal(object);
    this.#assertMayWrite(isLocal);
    this.#delete(table, object, isLocal);
  }

  /** As an entry of the global log says, whose bytes they are. */
  putArrived<T extends Stamped>(table: ObjectTable<T>, object: T, row: ArrivedRow): void {
    this.#put(table, object, false, row);
  }

  /** As an entry of the global log says. */
  deleteArrived<T extends Stamped>(table: ObjectTable<T>, object: T): void {
    this.#delete(table, object, table.isLocal(object));
  }

  /** Whether global objects may be changed here: before there is a global log, and in the primary. */
  get mayWriteGlobal(): boolean {
    const { replication } = this.#log;
    return replication === undefined || isPrimary(replication);
  }

  /** Throws the refusal of a datacenter that is not the primary. */
  requireGlobalWrites(): void {
    const { replication } = this.#log;
    if (replication !== undefined && !isPrimary(replication)) throw notPrimary(replication);
  }

  /** A row that is no object and follows from none: in no digest, and announced to nobody. */
  putRow(key: Uint8Array, value: Uint8Array): void {
    this.#rows.putRow(key, value);
    this.#rowsChanged += 1;
    if (isBookkeepingRow(key[0]!)) this.#carrying?.copyRow(key, value, this.#level);
  }

  deleteRow(key: Uint8Array): void {
    this.#rows.deleteRow(key);
    this.#rowsChanged += 1;
    if (isBookkeepingRow(key[0]!)) this.#carrying?.copyRow(key, undefined, this.#level);
  }

  /** Readers of the table see it changed by what the current command does to other tables. */
  touch(table: TableName): void {
    this.#changes.push({ table, key: '', watchKeys: [] });
    this.#touchedTables.add(table);
  }

  /** The current command is the bootstrap: its index is what a later reset must name. */
  markBootstrap(): void {
    this.#isBootstrap = true;
    this.#rowsChanged += 1;
  }

  /** Who belongs to the group from here on. Nothing that users see moves. */
  setGroupRecord(groupRecord: Uint8Array): void {
    this.#groupRecord = groupRecord;
  }

  /** The level that the datacenter uses. */
  get level(): number {
    return this.#level;
  }

  /** All who read the log read that level. Never back. */
  raiseLevel(level: number): void {
    this.#level = Math.max(this.#level, level);
    this.#rowsChanged += 1;
  }

  /** The batch opens or drops what collects a restore. A command that does is alone in its batch. */
  setKeyspaceStep(step: 'stage' | 'drop'): void {
    this.#keyspaceStep = step;
  }

  /**
   * What was collected is the state from now on, as `restored` describes it. Nothing that was given out
   * comes back: index, position and the index of the last bootstrap go on from the larger one.
   */
  adoptRestored(restored: Meta, origin: CommandOrigin): void {
    this.#keyspaceStep = 'adopt';
    this.#rowsChanged += 1;
    this.#moveIndexOfAll(Math.max(this.#index, restored.index) + 1);
    this.#position = positionAfter(this.#position, restored.position);
    const wasBootstrapped = this.#bootstrapIndex ?? restored.bootstrapIndex;
    this.#bootstrapIndex = wasBootstrapped === undefined ? undefined : this.#index;
    this.#objects = new ObjectRows(this.#rows, restored);
    this.#append({ kind: 'reset' }, origin, this.#position);
  }

  /**
   * The global objects of another datacenter, and the local ones that were carried over, are the state
   * from now on.
   */
  adoptStaged(): void {
    const staged = must(this.staged, 'a snapshot that came in');
    const before = must(this.#log.replication, 'a global log');
    const { cursor, epochs, datacenters, datacentersSeq, ...header } = staged.progress.header;
    const { epoch } = must(epochs.at(-1), 'an epoch');
    staged.end();
    this.#staging = { staged: undefined };
    this.#keyspaceStep = 'adopt';
    this.#rowsChanged += 1;
    this.#moveIndexOfAll(Math.max(this.#index + 1, header.index));
    this.#position = { epoch: cursor.epoch, seq: cursor.seq };
    this.#bootstrapIndex = header.bootstrapIndex;
    this.#objects = new ObjectRows(this.#rows, staged.sums);
    this.#log.change({
      ...withoutKept(before, cursor.seq + 1),
      ...promisedWith(before, epoch),
      federationId: before.federationId === '' ? header.federationId : before.federationId,
      cursor,
      epochs,
      datacenters,
      datacentersSeq,
      isDiverged: false,
    });
  }

  beginCommand(): void {
    this.#rowsChanged = 0;
  }

  /**
   * The command has changed all the objects that it will: the index moves if it changed one; if a global
   * one, so does the position, and the global log has an entry. Bookkeeping rows may still follow.
   */
  endObjects(origin: CommandOrigin): void {
    if (this.#effects.length > 0) this.#moveIndex(this.#index + 1);
    if (this.#isBootstrap) this.#bootstrapIndex = this.#index;
    const effects = globalEffectsOf(this.#effects);
    if (effects.length > 0) {
      this.#position = { epoch: this.#position.epoch, seq: this.#position.seq + 1 };
      this.#append({ kind: 'effects', effects }, origin, this.#position);
    }
    this.#clearCommand();
  }

  /** The global log begins here, as `replication` says. */
  beginLog(replication: Replication): void {
    this.changeReplication(replication);
    const { epoch, seq } = replication.cursor;
    this.#position = { epoch, seq };
  }

  /** How the datacenter stands in the global log, but for what an entry says. */
  changeReplication(replication: Replication): void {
    this.#log.change(replication);
    this.#rowsChanged += 1;
  }

  /** The primary says something that is not of objects: the next entry, of `epoch`. */
  appendEntry(body: EntryBody, origin: CommandOrigin, epoch: number): void {
    this.#position = { epoch, seq: this.#position.seq + 1 };
    this.#rowsChanged += 1;
    this.#append(body, origin, this.#position);
  }

  /**
   * The next entry of the primary is in the objects: its index counts here as a change made elsewhere.
   */
  endArrived(entry: GlobalEntry, packed: PackedEntry): void {
    if (this.#effects.length > 0) this.#moveIndex(Math.max(this.#index + 1, entry.index));
    else this.#index = Math.max(this.#index, entry.index);
    if (entry.isBootstrap) this.#bootstrapIndex = entry.index;
    this.#position = { epoch: entry.epoch, seq: entry.seq };
    this.#rowsChanged += 1;
    this.#log.take(entry, packed, this.#level);
    this.#clearCommand();
  }

  /** Ends the group: all that is to be written, up to and with the applied entry. */
  finish(appliedEntry: LogWitness): Finished {
    assert(this.#effects.length === 0, 'every command of a group is ended');
    this.#objects.putCounts();
    this.#staging?.staged?.finish();
    const { hasMoved, replication } = this.#log.finish();
    const meta: Meta = {
      appliedEntry,
      index: this.#index,
      position: this.#position,
      tableIndexes: this.#tableIndexes,
      bootstrapIndex: this.#bootstrapIndex,
      ...this.#objects.sums(),
      groupRecord: this.#groupRecord,
      level: this.#level,
    };
    const rows = this.#rows;
    rows.putRow(META_KEY, encodeMeta(meta));
    return {
      writes: rows.writes(),
      before: rows.before(),
      after: (store) => rows.after(store),
      meta,
      changes: this.#changes,
      keyspaceStep: this.#keyspaceStep,
      hasMoved,
      replication,
      written: this.#log.written,
    };
  }

  #assertMayWrite(isLocal: boolean): void {
    assert(isLocal || this.mayWriteGlobal, 'global objects are changed by the primary alone');
  }

  #put<T extends Stamped>(
    table: ObjectTable<T>,
    object: T,
    isLocal: boolean,
    arrived?: ArrivedRow,
  ): void {
    const { key, value, old } = this.#objects.put(table, object, arrived);
    this.#rowsChanged += 1;
    this.#note(table, old, object, { key, value, isLocal });
    // Only tokens can be local.
    const staged = isLocal ? this.#carrying : undefined;
    const forkIndex = staged && forkIndexOf(this, staged.progress.header.epochs);
    staged?.putLocal(object as unknown as Token, { forkIndex, level: this.#level });
  }

  #delete<T extends Stamped>(table: ObjectTable<T>, object: T, isLocal: boolean): void {
    const key = this.#objects.delete(table, object);
    this.#rowsChanged += 1;
    this.#note(table, object, object, { key, value: undefined, isLocal });
    if (isLocal) this.#carrying?.deleteLocal(object as unknown as Token, this.#level);
  }

  /** What is written locally is written there too. */
  get #carrying(): StagedImport | undefined {
    const { staged } = this;
    return staged?.isCarrying === true ? staged : undefined;
  }

  #append(body: EntryBody, origin: CommandOrigin, position: Position): void {
    const { replication } = this.#log;
    if (replication === undefined) return;
    assert(
      isPrimary(replication) || body.kind === 'epoch-start',
      'only the primary writes entries of the global log',
    );
    // Field by field: spreading objects takes longer than making them, and every write comes here.
    const { timeMs, principal, request } = origin;
    this.#log.write({
      epoch: position.epoch,
      seq: position.seq,
      prevHash: replication.cursor.hash,
      index: this.#index,
      timeMs,
      body,
      digest: this.globalDigest,
      isBootstrap: this.#isBootstrap,
      principal,
      request,
    });
  }

  #moveIndex(index: number): void {
    this.#index = index;
    for (const table of this.#touchedTables) this.#tableIndexes[table] = index;
  }

  #moveIndexOfAll(index: number): void {
    this.#index = index;
    for (const table of Object.keys(this.#tableIndexes) as TableName[]) {
      this.#tableIndexes[table] = index;
    }
  }

  #clearCommand(): void {
    this.#effects = [];
    this.#touchedTables.clear();
    this.#isBootstrap = false;
  }

  #note<T extends Stamped>(
    table: ObjectTable<T>,
    old: T | undefined,
    object: T,
    effect: RowEffect,
  ): void {
    const watchKeys = table.watchKeysOf(object);
    const [key = ''] = watchKeys;
    const isSame = old === undefined || old === object;
    const all = isSame ? watchKeys : [...new Set([...watchKeys, ...table.watchKeysOf(old)])];
    this.#changes.push({ table: table.name, key, watchKeys: all });
    this.#effects.push(effect);
    this.#touchedTables.add(table.name);
  }
}

function positionAfter(left: Position, right: Position): Position {
  const { epoch, seq } = comparePlaces(left, right) >= 0 ? left : right;
  return { epoch, seq: seq + 1 };
}
