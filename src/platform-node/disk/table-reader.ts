// A thread of table checks: looks at the tables that it is given, database by database, tells of each which are
// damaged, and ends.

import { parentPort, workerData } from 'node:worker_threads';
import { damagedTables, type TableDamage } from './table-files.ts';

/** What a thread is given of one database. */
export interface TablesToRead {
  readonly location: string;
  readonly files: readonly string[];
}

/** What it tells of each. */
export interface TablesRead {
  readonly location: string;
  readonly damaged: readonly TableDamage[];
}

for (const { location, files } of workerData as readonly TablesToRead[]) {
  const read: TablesRead = { location, damaged: damagedTables(location, files) };
  parentPort?.postMessage(read);
}
