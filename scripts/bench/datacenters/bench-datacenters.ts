// `npm run bench -- --datacenters 2`: two datacenters of real servers with a slow line between them: the lag of
// the secondary, writes that are sent to it, and how fast it catches up.

import { cpus } from 'node:os';
import { join } from 'node:path';
import { shown, table } from '../figures.ts';
import { DatacentersUnderLoad } from './datacenters-under-load.ts';
import { type CatchUpFigures, measureEntries, measureSnapshot } from './measure-catch-up.ts';
import {
  type ForwardedFigures,
  type LagFigures,
  measureForwarded,
  measureLag,
} from './measure-lag.ts';

export interface DatacentersBenchOptions {
  /** Of each datacenter. */
  readonly servers: number;
  readonly secondsEach: number;
  /** One way, milliseconds. */
  readonly delaysMs: readonly number[];
  readonly ratesPerSecond: readonly number[];
  /** Entries that the secondary catches up with; 0 leaves it out. */
  readonly entries: number;
  /** Objects of the snapshot; 0 leaves it out. */
  readonly tokens: number;
  /** Empty, for the data; whoever asks deletes it. */
  readonly workFolder: string;
}

/** So many are measured at the slowest rate, however long it takes. */
const LAGS_MIN = 10;

interface Results {
  readonly lags: readonly LagFigures[];
  readonly forwarded: readonly ForwardedFigures[];
  readonly catchUps: readonly CatchUpFigures[];
}

/** Prints tables and one JSON line. */
export async function benchDatacenters(options: DatacentersBenchOptions): Promise<void> {
  const { workFolder, ...rest } = options;
  const results = await measure(options);
  print(results);
  const machine = { node: process.version, cores: cpus().length, ...rest };
  process.stdout.write(`\n${JSON.stringify({ machine, ...results })}\n`);
}

async function measure(options: DatacentersBenchOptions): Promise<Results> {
  const { servers, secondsEach: seconds, delaysMs, ratesPerSecond, entries, tokens } = options;
  const lags: LagFigures[] = [];
  const forwarded: ForwardedFigures[] = [];
  const catchUps: CatchUpFigures[] = [];
  const farthestMs = Math.max(0, ...delaysMs);
  const datacenters = await DatacentersUnderLoad.open(join(options.workFolder, 'tail'), servers);
  try {
    await datacenters.cluster.startAll();
    await datacenters.converged(datacenters.allNames);
    for (const delayMs of delaysMs) {
      for (const perSecond of ratesPerSecond) {
        say(`${perSecond} writes/s with ${delayMs} ms`);
        const atLeastS = LAGS_MIN / perSecond;
        const load = { delayMs, perSecond, seconds: Math.max(seconds, atLeastS) };
        lags.push(await measureLag(datacenters, load));
      }
      forwarded.push(await measureForwarded(datacenters, delayMs, seconds));
    }
    for (const delayMs of entries === 0 ? [] : new Set([0, farthestMs])) {
      say(`writing ${entries} entries while the line is cut, then ${delayMs} ms`);
      catchUps.push(await measureEntries(datacenters, entries, delayMs));
    }
  } finally {
    await datacenters.close();
  }
  if (tokens > 0) {
    say(`making ${tokens} tokens for a snapshot`);
    catchUps.push(await measureSnapshot(options.workFolder, tokens, farthestMs));
  }
  return { lags, forwarded, catchUps };
}

function say(text: string): void {
  process.stderr.write(`bench: ${text}\n`);
}

function print({ lags, forwarded, catchUps }: Results): void {
  const lagRows = lags.map((row) => [
    'lag of the secondary',
    ...[row.delayMs, row.wantedPerSecond, row.perSecond, row.p50Ms, row.p99Ms].map(shown),
    ...[row.p99OverDelayMs, row.primaryMsPerWrite, row.secondaryMsPerWrite].map(shown),
  ]);
  const forwardedRows = forwarded.map((row) => [
    'write sent to the secondary',
    ...[shown(row.delayMs), '', '', shown(row.p50Ms), shown(row.p99Ms)],
    ...[`${shown(row.p50OverDelayMs)} (p50)`, '', ''],
  ]);
  const heading = [
    ...['', 'delay ms', 'wanted per s', 'per s', 'p50 ms', 'p99 ms'],
    ...['over the delay', 'cpu ms, primary', 'cpu ms, secondary'],
  ];
  process.stdout.write(table(heading, [...lagRows, ...forwardedRows]));
  if (catchUps.length === 0) return;
  const catchUpRows = catchUps.map((row) => [
    row.what === 'entries' ? 'entries after a cut' : 'snapshot for an empty one',
    ...[row.delayMs, row.count, row.seconds, row.perSecond].map(shown),
    ...[row.primaryMsPerThousand, row.secondaryMsPerThousand].map(shown),
    ...[row.primaryMib, row.secondaryMib].map(shown),
  ]);
  const catchUpHeading = [
    ...['catching up', 'delay ms', 'count', 'seconds', 'per s'],
    ...['cpu ms per 1,000, primary', 'secondary', 'MiB at most, primary', 'secondary'],
  ];
  process.stdout.write(`\n${table(catchUpHeading, catchUpRows)}`);
}
