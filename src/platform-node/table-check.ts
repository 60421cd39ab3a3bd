// Reads the tables of a database against their checksums while it is being opened, in threads beside it: a
// state of a million tokens has a quarter of a gigabyte of them.

import { readdirSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { damagedTables, type TableDamage } from './table-files.ts';
import type { TablesToRead } from './table-reader.ts';

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

/**
 * Begins to read the tables that are there now. To be called before the database is opened: what is written
 * since is not looked at.
 */
export function startTableCheck(location: string): TableCheck {
  const tables = tablesOf(location);
  return new TableCheck(location, tables, damageOf(location, tables));
}

export class TableCheck {
  readonly #location: string;
  readonly #before: readonly Table[];
  readonly #damaged: Promise<readonly TableDamage[]>;

  constructor(
    location: string,
    before: readonly Table[],
    damaged: Promise<readonly TableDamage[]>,
  ) {
    this.#location = location;
    this.#before = before;
    this.#damaged = damaged;
    // Whoever waits is told. Nobody does when the database cannot be opened.
    damaged.catch(() => undefined);
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

async function damageOf(
  location: string,
  tables: readonly Table[],
): Promise<readonly TableDamage[]> {
  const totalBytes = tables.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  const files = tables.map(({ file }) => file);
  if (totalBytes <= SMALL_BYTES) return damagedTables(location, files);
  const threads = Math.min(availableParallelism(), THREADS_MAX);
  const shares = Array.from({ length: threads }, (_, share) =>
    files.filter((_, at) => at % threads === share),
  );
  return (await Promise.all(shares.map((share) => readBeside({ location, files: share })))).flat();
}

/** Rejects when the thread fails, or ends without an answer. */
function readBeside(tables: TablesToRead): Promise<readonly TableDamage[]> {
  return new Promise((resolve, reject) => {
    const thread = new Worker(READER, { workerData: tables });
    thread.once('message', resolve);
    thread.once('error', reject);
    thread.once('exit', (code) => reject(new Error(`a table check ended with status ${code}`)));
  });
}
