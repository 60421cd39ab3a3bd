// A thread of a table check: looks at the tables that it is given, tells which are damaged, and ends.

import { parentPort, workerData } from 'node:worker_threads';
import { damagedTables } from './table-files.ts';

/** What a thread is given. */
export interface TablesToRead {
  readonly location: string;
  readonly files: readonly string[];
}

const { location, files } = workerData as TablesToRead;
parentPort?.postMessage(damagedTables(location, files));
