// `npm run soak`: load and faults over a local cluster for a while, and a report with a picture at the end.
// Exit status 0: nothing that was answered was lost, and all servers hold the same in the end.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { nextStopSignal, SAME_SIGNAL_MS } from '../../src/platform-node/process/stop-signal.ts';
import { randomFrom } from '../../test/hard/crash-load.ts';
import { exitAtSignals } from '../exit-at-signals.ts';
import { scriptProgram, wholeNumber } from '../script-program.ts';
import { soak } from './soak.ts';
import { soakPicture, soakText } from './soak-report.ts';

interface Options {
  readonly minutes: number;
  readonly datacenters: number;
  readonly servers: number;
  readonly wanDelay: number;
  readonly clients: number;
  readonly rest: number;
  readonly primaryAway?: number;
  readonly seed?: number;
  readonly out: string;
}

const program = scriptProgram(
  'npm run soak --',
  'Load and one fault after the other on a cluster of real servers, then a report with a picture.',
)
  .option('--minutes <count>', 'so long', wholeNumber, 5)
  .option('--datacenters <count>', 'so many', wholeNumber, 1)
  .option('--servers <count>', 'of each datacenter', wholeNumber, 3)
  .option('--wan-delay <ms>', 'between datacenters, one way', wholeNumber, 0)
  .option('--clients <count>', 'of each server', wholeNumber, 4)
  .option('--rest <ms>', 'of a client, from an answer to its next question', wholeNumber, 5)
  .option(
    '--primary-away <minutes>',
    'so long the primary is cut off, in the middle of the time and on top of it, in place of faults',
    wholeNumber,
  )
  .option('--seed <seed>', 'of what the clients do and of the faults (default: drawn)', wholeNumber)
  .option('--out <folder>', 'of the report', join(import.meta.dirname, '..', '..', '..', '.soak'))
  .parse();
const options = program.opts<Options>();
const { minutes, primaryAway, seed = Date.now() % 2 ** 31 } = options;
if (primaryAway !== undefined && options.datacenters < 2)
  program.error('error: --primary-away needs two datacenters or more');
const out = resolve(options.out);
const interrupted = new AbortController();
void nextStopSignal(true).then(() => {
  interrupted.abort();
  setTimeout(exitAtSignals, SAME_SIGNAL_MS).unref();
});

say(`Seed ${seed}; Ctrl-C ends it early, with a report.`);
const outcome = await soak({
  shape: {
    datacenters: options.datacenters,
    servers: options.servers,
    wanDelayMs: options.wanDelay,
  },
  minutes,
  clientsPerNode: options.clients,
  restMs: options.rest,
  primaryAwayMinutes: primaryAway,
  seed,
  random: randomFrom(seed),
  tell: say,
  signal: interrupted.signal,
});
mkdirSync(out, { recursive: true });
writeFileSync(join(out, 'report.md'), soakText(outcome));
writeFileSync(join(out, 'report.svg'), soakPicture(outcome));
say(
  `\n${soakText(outcome)}\nReport: ${join(out, 'report.md')}\nPicture: ${join(out, 'report.svg')}`,
);
process.exitCode = outcome.faults.length === 0 ? 0 : 1;

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
