// Reads the tables of databases against their checksums while they are being opened, in threads beside it: a
// state of a million tokens has a quarter of a gigabyte of them.

import { readdirSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { damagedTables, type TableDamage } from './table-files.ts';
import type { TablesRead, TablesToRead } from './table-reader.ts';

/** A table as it lies there: its name may be taken by another one later. */
interface Table {
  readonly file: string;
  readonly sizeBytes: number;
  readonly mark: string;
}

/** Beside this file where it was compiled, and beside the program where it was packed. */
const READER = new URL('./table-reader.js', import.meta.url);
/** So little is read sooner than a thread has started. */
const SMALL_BYTES = 16 * 1024 * 1024;
const THREADS_MAX = 4;

type Damaged = Promise<readonly TableDamage[]>;

/** A database and its tables. */
interface Found {
  readonly location: string;
  readonly tables: readonly Table[];
}

/**
 * Begins to read the tables that are there now: all by the same threads, database by database. To be called
 * before these are opened: what is written since is not looked at.
 */
export function startTableChecks(locations: readonly string[]): readonly TableCheck[] {
  const databases = locations.map((location) => ({ location, tables: tablesOf(location) }));
  const tables = databases.flatMap((database) => database.tables);
  const totalBytes = tables.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  const damagedIn = totalBytes <= SMALL_BYTES ? damagedHere : damagedBeside(databases);
  return databases.map((database) => new TableCheck(database, damagedIn(database)));
}

export class TableCheck {
  readonly #location: string;
  readonly #before: readonly Table[];
  readonly #damaged: Damaged;

  constructor({ location, tables }: Found, damaged: Damaged) {
    this.#location = location;
    this.#before = tables;
    this.#damaged = damaged;
    // Whoever waits is told. Nobody does when the database cannot be opened.
    damaged.catch(() => undefined);
  }

  /** The folder of the database. */
  get location(): string {
    return this.#location;
  }

  /**
   * The first damage in tables that belong to the database. To be called when it is open: opening removes what
   * a process that was killed has left half written. Rejects when a table cannot be read.
   */
  async damage(): Promise<TableDamage | undefined> {
    const damaged = await this.#damaged;
    const now = new Set(tablesOf(this.#location).map(({ mark }) => mark));
    const kept = new Set(this.#before.filter(({ mark }) => now.has(mark)).map(({ file }) => file));
    return damaged.find(({ file }) => kept.has(file));
  }
}

function tablesOf(location: string): readonly Table[] {
  const files = readdirSync(location).filter((file) => /\.(?:ldb|sst)$/.test(file));
  return files.flatMap((file) => tableAt(location, file));
}

function tableAt(location: string, file: string): readonly Table[] {
  try {
    const { ino, size, mtimeMs } = statSync(join(location, file));
    return [{ file, sizeBytes: size, mark: `${file} ${ino} ${size} ${mtimeMs}` }];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

async function damagedHere({ location, tables }: Found): Damaged {
  return damagedTables(
    location,
    tables.map(({ file }) => file),
  );
}

/** The tables of each database are dealt to all threads. */
function damagedBeside(databases: readonly Found[]): (database: Found) => Damaged {
  const threads = Math.min(availableParallelism(), THREADS_MAX);
  const shares = Array.from({ length: threads }, (_, share) =>
    readBeside(
      databases.map(({ location, tables }) => ({
        location,
        files: tables.filter((_, at) => at % threads === share).map(({ file }) => file),
      })),
    ),
  );
  return async ({ location }) =>
    (await Promise.all(shares.map((damagedIn) => damagedIn(location)))).flat();
}

/** What the thread tells of a database; rejects when it fails, or ends without having told. */
function readBeside(share: readonly TablesToRead[]): (location: string) => Damaged {
  const thread = new Worker(READER, { workerData: share });
  // Three of each database.
  thread.setMaxListeners(0);
  return (location) =>
    new Promise((resolve, reject) => {
      thread.on('message', (read: TablesRead) => {
        if (read.location === location) resolve(read.damaged);
      });
      thread.once('error', reject);
      thread.once('exit', (code) => reject(new Error(`a table check ended with status ${code}`)));
    });
}
