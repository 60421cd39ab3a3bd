// The key-value store on LevelDB. Every batch is synced; a failed write or a damaged row ends the use
// of the store (the handle is poisoned by then, and trying again could lie). A database that was
// there once is never made anew in silence: a VERSION file beside it says that it must exist.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Snapshot } from 'classic-level';
import { assert } from '../../../cluster/base/assert.ts';
import type { Kv, KvRange, KvRow, KvSnapshot, KvWrite } from '../../../cluster/platform/kv.ts';
import { makeFolder, writeWhole } from './durable-files.ts';
import { levelFolder } from './files.ts';
import { isHeldBySomebody } from './folder-lock.ts';
import { LevelDatabase, LOCKED, type RowIterator } from './level-database.ts';
import { TableChecks } from './table-checks.ts';
import type { TableDamage } from './table-files.ts';
import { findWalHole } from './write-ahead-log.ts';

export interface LevelKvOptions {
  /** Holds the VERSION file and the database. */
  readonly folder: string;
  /** What the store is for; written down at the first opening, so that two stores cannot be swapped. */
  readonly name: string;
  /** Called once, with the first failure of a write or a read. The process should end. */
  readonly onFatal: (cause: Error) => void;
  /** Called when it is closed. */
  readonly onClosed?: () => void;
  /** Those that were begun before; left out: the check begins with the opening. */
  readonly tableChecks?: TableChecks;
  /** Defaults to what was measured to serve a state of a million objects best. */
  readonly tuning?: LevelTuning;
}

export interface LevelTuning {
  /** Uncompressed blocks held in memory. */
  readonly cacheBytes: number;
  /** Rows in memory before they become a table; up to two of these live at a time. */
  readonly writeBufferBytes: number;
  readonly blockBytes: number;
  readonly tableBytes: number;
  /** Also makes most damage of a table an error when it is read, instead of other data. */
  readonly isCompressed: boolean;
}

const DEFAULT_TUNING: LevelTuning = {
  cacheBytes: 32 * 1024 * 1024,
  writeBufferBytes: 8 * 1024 * 1024,
  blockBytes: 4096,
  tableBytes: 4 * 1024 * 1024,
  isCompressed: true,
};

const FORMAT = 1;
const SLICE_ROWS = 256;
const SLICE_BYTES = 64 * 1024;
const NO_BYTES = new Uint8Array();

/** The database cannot be opened, or not any more. The message says what an operator can do. */
class LevelKvError extends Error {
  override readonly name = 'LevelKvError';
}

/** Opens the store, or makes it when its folder has never held one. Rejects with LevelKvError. */
export async function openLevelKv(options: LevelKvOptions): Promise<Kv> {
  const { folder, name, tuning = DEFAULT_TUNING, tableChecks = new TableChecks() } = options;
  const location = levelFolder(folder);
  const isNew = !requireOwnFolder(folder, name);
  if (isNew) requireNothingLeft(location);
  else requireWholeWal(location);
  const check = existsSync(location) ? tableChecks.take(location) : undefined;
  const database = new LevelDatabase(location, {
    keyEncoding: 'buffer',
    valueEncoding: 'buffer',
    // A lost CURRENT file with this on would empty the database without a word.
    createIfMissing: isNew,
    cacheSize: tuning.cacheBytes,
    writeBufferSize: tuning.writeBufferBytes,
    blockSize: tuning.blockBytes,
    maxFileSize: tuning.tableBytes,
    compression: tuning.isCompressed,
  });
  try {
    await database.open();
  } catch (error) {
    throw openingFailed(location, error);
  }
  const damage = await check?.damage();
  if (damage !== undefined) {
    await database.close();
    throw damaged(location, damage);
  }
  if (isNew) writeWhole(versionPath(folder), versionText(name));
  return new LevelKv(database, options);
}

const versionPath = (folder: string): string => join(folder, 'VERSION');
const versionText = (name: string): string => `${JSON.stringify({ format: FORMAT, name })}\n`;

/** Whether the folder holds a store already. Refuses one of another format or purpose. */
function requireOwnFolder(folder: string, name: string): boolean {
  makeFolder(folder);
  if (!existsSync(versionPath(folder))) return false;
  const text = readFileSync(versionPath(folder), 'utf8');
  if (text === versionText(name)) return true;
  throw new LevelKvError(
    `${versionPath(folder)} says ${text.trim()}, expected ${versionText(name).trim()}: ` +
      'another store, or one of another release: check data_dir; if the file is damaged, restore the folder',
  );
}

/** Without VERSION there may be a database that was being made; tables without CURRENT are a lost one. */
function requireNothingLeft(location: string): void {
  if (!existsSync(location) || existsSync(join(location, 'CURRENT'))) return;
  const left = readdirSync(location).filter((file) => /\.(?:ldb|sst)$/.test(file));
  if (left.length === 0) return;
  throw new LevelKvError(
    `${location} holds ${left.length} tables but neither CURRENT nor a VERSION file beside it: ` +
      'restore the folder from a copy, or move it away to begin with an empty store',
  );
}

/** LevelDB itself would open and leave out what it cannot read. */
function requireWholeWal(location: string): void {
  if (!existsSync(location)) return;
  const hole = findWalHole(location);
  if (hole === undefined) return;
  throw damaged(location, hole, ', and acknowledged writes follow');
}

function damaged(location: string, { file, offsetBytes }: TableDamage, what = ''): LevelKvError {
  return new LevelKvError(
    `${join(location, file)} is damaged at byte ${offsetBytes}${what}: ` +
      `of several servers, move the data folder away and ${JOIN_ANEW}`,
  );
}

/** An old copy of one of several has forgotten what that one promised to the others: it is no way back for it. */
const JOIN_ANEW =
  'let this one join anew (never put back an old copy of it); of one that is alone, restore the folder from a copy';

/** What the system says where it has not what a store needs, and what to do. */
const WANTING: readonly (readonly [pattern: RegExp, next: string])[] = [
  [/No space left|quota exceeded/i, 'make room on its disk'],
  [/Too many open files/i, 'let the process open more files (LimitNOFILE, ulimit -n)'],
  [/Permission denied|not permitted/i, 'give its folder to the user of this process'],
  [/Read-only file system/i, 'mount its disk for writing'],
];

function openingFailed(location: string, error: unknown): LevelKvError {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  const said = cause instanceof Error ? cause.message : String(cause);
  return new LevelKvError(`cannot open ${location}: ${adviceOn(cause)} (${said})`, {
    cause: error,
  });
}

/** What to do about a store that cannot be opened for this reason. */
export function adviceOn(cause: unknown): string {
  if (isHeldBySomebody(cause)) return 'another process has it open';
  const said = cause instanceof Error ? cause.message : String(cause);
  const isWithoutLocks = (cause as { readonly code?: unknown }).code === LOCKED;
  const next = isWithoutLocks
    ? 'put data_dir on a disk that has locks'
    : WANTING.find(([pattern]) => pattern.test(said))?.[1];
  if (next !== undefined) return `nothing is wrong with the store: ${next}, and start again`;
  return (
    'the store was here before and cannot be opened: of several servers, move the data folder away and ' +
    JOIN_ANEW
  );
}

class LevelKv implements Kv {
  readonly #database: LevelDatabase;
  readonly #options: Pick<LevelKvOptions, 'onFatal' | 'onClosed'>;
  #writing: Promise<void> | undefined;
  #failure: Error | undefined;
  #closing: Promise<void> | undefined;

  constructor(database: LevelDatabase, options: Pick<LevelKvOptions, 'onFatal' | 'onClosed'>) {
    this.#database = database;
    this.#options = options;
  }

  get(key: Uint8Array): Uint8Array | undefined {
    this.#requireUsable();
    try {
      return this.#database.getSync(key);
    } catch (error) {
      throw this.#fail(error);
    }
  }

  rows(range: KvRange): AsyncIterable<readonly KvRow[]> {
    this.#requireUsable();
    return this.#slicesOf(this.#database.iterator(iteratorOptions(range)), range);
  }

  async write(writes: readonly KvWrite[]): Promise<void> {
    this.#requireUsable();
    assert(this.#writing === undefined, 'one batch of a store is in flight at a time');
    this.#writing = this.#writeBatch(writes);
    try {
      await this.#writing;
    } catch (error) {
      throw this.#fail(error);
    } finally {
      this.#writing = undefined;
    }
  }

  async #writeBatch(writes: readonly KvWrite[]): Promise<void> {
    const batch = this.#database.batch();
    for (const write of writes) {
      if (write.type === 'put') batch.put(write.key, write.value);
      else batch.del(write.key);
    }
    await batch.write({ sync: true });
  }

  snapshot(): KvSnapshot {
    this.#requireUsable();
    const snapshot: Snapshot = this.#database.snapshot();
    return {
      get: (key) => {
        this.#requireUsable();
        try {
          return this.#database.getSync(key, { snapshot });
        } catch (error) {
          throw this.#fail(error);
        }
      },
      rows: (range) => {
        this.#requireUsable();
        const options = { ...iteratorOptions(range), snapshot };
        return this.#slicesOf(this.#database.iterator(options), range);
      },
      close: () => snapshot.close(),
    };
  }

  async *#slicesOf(
    iterator: RowIterator,
    { sliceRows = SLICE_ROWS, isValuesOnly = false }: KvRange,
  ): AsyncGenerator<readonly KvRow[]> {
    const rowsMax = Math.min(sliceRows, SLICE_ROWS);
    try {
      for (;;) {
        const entries = await iterator.nextv(rowsMax);
        if (entries.length === 0) return;
        yield entries.map(([key, value]) => ({ key: isValuesOnly ? NO_BYTES : key, value }));
      }
    } catch (error) {
      throw this.#fail(error);
    } finally {
      await this.#database.closeIterator(iterator);
    }
  }

  async compact(range: { readonly from: Uint8Array; readonly to: Uint8Array }): Promise<void> {
    this.#requireUsable();
    await this.#database.compactRange(range.from, range.to);
  }

  close(): Promise<void> {
    this.#closing ??= this.#closeOnce();
    return this.#closing;
  }

  async #closeOnce(): Promise<void> {
    // Its own caller hears of a failure of the write.
    await this.#writing?.catch(() => undefined);
    await this.#database.close();
    this.#options.onClosed?.();
  }

  #requireUsable(): void {
    if (this.#failure !== undefined) {
      throw new LevelKvError(`the store failed before: ${this.#failure.message}`, {
        cause: this.#failure,
      });
    }
    if (this.#closing !== undefined) throw new LevelKvError('the store is closed');
  }

  #fail(error: unknown): Error {
    const cause = error instanceof Error ? error : new Error(String(error));
    // A read that closing overtook has not failed.
    if (this.#closing !== undefined || this.#failure !== undefined) return cause;
    this.#failure = cause;
    this.#options.onFatal(cause);
    return cause;
  }
}

function iteratorOptions(range: KvRange): object {
  return {
    gte: range.from,
    lt: range.to,
    reverse: range.reverse ?? false,
    limit: range.limit ?? -1,
    highWaterMarkBytes: SLICE_BYTES,
    // Another encoding of keys would be that of the range as well.
    ...(range.isValuesOnly === true && { keys: false }),
  };
}
