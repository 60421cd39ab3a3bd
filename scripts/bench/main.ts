// `npm run bench`: its command line. What is measured prints tables and, as the last line, the same figures as
// JSON.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InvalidArgumentError } from 'commander';
import { exitAtSignals } from '../exit-at-signals.ts';
import { scriptProgram, wholeNumber, wholeNumbers } from '../script-program.ts';
import { benchDatacenters } from './datacenters/bench-datacenters.ts';
import { benchFeed } from './feed.ts';
import { benchGroup } from './group.ts';
import { benchOneServer } from './one-server.ts';

interface Options {
  readonly sizes: readonly number[];
  readonly seconds: number;
  readonly rounds: number;
  readonly servers: number;
  readonly datacenters: number;
  readonly delays: readonly number[];
  readonly rates: readonly number[];
  readonly entries: number;
  readonly tokens: number;
  readonly feed?: true;
  readonly data?: string;
}

const options = scriptProgram(
  'npm run bench --',
  'Measures one server; with --servers 3 a group; with --datacenters 2 two datacenters; with --feed the feed between two, in one process.',
)
  .option('--seconds <count>', 'of each measurement', wholeNumber, 4)
  .option('--rounds <count>', 'of all of them', wholeNumber, 9)
  .option('--servers <count>', 'of each datacenter', wholeNumber, 1)
  .option('--datacenters <count>', '1 or 2', datacentersIn, 1)
  .option('--feed', 'the feed alone')
  .option('--sizes <counts>', 'one server: tokens that it holds', wholeNumbers, [10_000, 1_000_000])
  .option(
    '--data <folder>',
    'one server: keeps what it fills, and takes what is kept; measures copies',
  )
  .option('--delays <ms>', 'two datacenters: between them, one way', wholeNumbers, [0, 50, 150])
  .option('--rates <counts>', 'two datacenters: writes a second', wholeNumbers, [1, 100, 1_000])
  .option(
    '--entries <count>',
    'two datacenters: missed during a cut; 0: none',
    wholeNumber,
    100_000,
  )
  .option('--tokens <count>', 'two datacenters: in a snapshot; 0: none', wholeNumber, 100_000)
  .parse()
  .opts<Options>();
const workFolder = mkdtempSync(join(tmpdir(), 'conclave-bench-'));
// Behind the end of what was started: a process that is just being killed may write into it yet.
process.once('exit', () => rmSync(workFolder, { recursive: true, force: true, maxRetries: 10 }));
exitAtSignals();
await measure(options, workFolder);

async function measure(
  { seconds: secondsEach, rounds, servers, ...rest }: Options,
  workFolder: string,
): Promise<void> {
  if (rest.feed) await benchFeed({ secondsEach, rounds });
  else if (rest.datacenters === 2) {
    const { delays: delaysMs, rates: ratesPerSecond, entries, tokens } = rest;
    const load = { delaysMs, ratesPerSecond, entries, tokens };
    await benchDatacenters({ servers, secondsEach, ...load, workFolder });
  } else if (servers > 1) await benchGroup({ servers, secondsEach, rounds, workFolder });
  else {
    const { sizes, data: kept } = rest;
    await benchOneServer({ sizes, secondsEach, rounds, kept, workFolder });
  }
}

function datacentersIn(text: string): number {
  const count = wholeNumber(text);
  if (count === 1 || count === 2) return count;
  throw new InvalidArgumentError('The benchmark knows one datacenter, or two.');
}
