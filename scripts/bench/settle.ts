// Reads from a server until its tables are in order. LevelDB merges tables that reads have to look into in vain,
// once after much was written and beside the first reads: with a million tokens that were made a minute ago it
// takes two seconds of another thread, and the reads beside it find their blocks gone.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { levelFolder } from '../../src/platform-node/disk/files.ts';
import { asExpected, runLoad } from './load.ts';

const CONNECTIONS = 64;
const SECONDS_MAX = 120;
/** A merge shows when it is done, and takes about one. */
const QUIET_SECONDS = 4;

/** Resolves with how many seconds it took until four of them changed no table; rejects after two minutes. */
export async function settle({
  port,
  folder,
  request,
}: {
  readonly port: number;
  /** The data folder of the server. */
  readonly folder: string;
  /** Reads all over what is there, each with another number. */
  readonly request: (serial: number) => string;
}): Promise<number> {
  let before = tablesIn(folder);
  let serial = 0;
  let quietSeconds = 0;
  for (let seconds = 1; seconds <= SECONDS_MAX; seconds += 1) {
    const result = await runLoad({
      ...{ host: '127.0.0.1', ports: [port], connections: CONNECTIONS, expectedStatus: 200 },
      ...{ warmUpMs: 0, durationMs: 1000 },
      request: () => request(serial++),
    });
    asExpected(result);
    const now = tablesIn(folder);
    quietSeconds = now === before ? quietSeconds + 1 : 0;
    if (quietSeconds === QUIET_SECONDS) return seconds;
    before = now;
  }
  throw new Error(`the tables in ${folder} still change after ${SECONDS_MAX} seconds of reads`);
}

function tablesIn(folder: string): string {
  const names = readdirSync(levelFolder(join(folder, 'state')));
  return names
    .filter((name) => name.endsWith('.ldb'))
    .sort()
    .join();
}
