// What `npm run bench` prints of one server: a table of the loads, one of the processes, and as the last line the
// same figures as JSON.

import { cpus } from 'node:os';
import { shown, table } from './figures.ts';
import type { Row } from './in-turn.ts';

export interface ServerFigures {
  readonly tokens: number;
  readonly startMs: number;
  /** Of reads, until its tables were in order. */
  readonly settledSeconds: number;
  readonly anonymousMib: number;
  /** NaN where an earlier run made them. */
  readonly seedPerSecond: number;
}

export function printOneServer(
  rows: readonly Row[],
  servers: readonly ServerFigures[],
  run: { readonly connections: number; readonly rounds: number; readonly secondsEach: number },
): void {
  process.stdout.write(tableOfRows(rows));
  process.stdout.write(`\n${tableOfServers(servers)}`);
  const machine = { node: process.version, cores: cpus().length, ...run };
  process.stdout.write(`\n${JSON.stringify({ machine, rows, servers })}\n`);
}

function tableOfRows(rows: readonly Row[]): string {
  const toFirst = `of ${rows[0]?.tokens.toLocaleString('en-US')}`;
  const ofProcessor = ['processor µs', 'ceiling µs', 'ratio', toFirst];
  const heading = ['', 'tokens', 'per s', 'p50 ms', 'p99 ms', 'ceiling per s', 'ratio'];
  const cells = rows.map((row) => [
    row.what,
    row.tokens.toLocaleString('en-US'),
    shown(row.perSecond),
    shown(row.p50Ms),
    shown(row.p99Ms),
    shown(row.ceilingPerSecond ?? Number.NaN),
    row.ratio === undefined ? '-' : row.ratio.toFixed(2),
    shown(row.processorUs),
    shown(row.ceilingProcessorUs ?? Number.NaN),
    row.processorRatio === undefined ? '-' : row.processorRatio.toFixed(2),
    row.dearness.toFixed(2),
  ]);
  return table([...heading, ...ofProcessor], cells);
}

function tableOfServers(servers: readonly ServerFigures[]): string {
  const heading = ['', 'tokens', 'start ms', 'settled s', 'anonymous MiB', 'made per s'];
  const cells = servers.map((server) => [
    'server process',
    server.tokens.toLocaleString('en-US'),
    shown(server.startMs),
    shown(server.settledSeconds),
    shown(server.anonymousMib),
    shown(server.seedPerSecond),
  ]);
  return table(heading, cells);
}
