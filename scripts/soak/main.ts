// `npm run soak`: load and faults over a local cluster for a while, and a report with a picture at the end.
//
//   npm run soak -- --minutes 30 [--datacenters 2] [--servers 3] [--wan-delay 20] [--clients 4] [--seed 7]
//     [--out .soak]
//
// Exit status 0: nothing that was answered was lost, and all servers hold the same in the end.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { randomFrom } from '../../test/hard/crash-load.ts';
import { soak } from './soak.ts';
import { soakPicture, soakText } from './soak-report.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    datacenters: { type: 'string', default: '1' },
    servers: { type: 'string', default: '3' },
    'wan-delay': { type: 'string', default: '0' },
    clients: { type: 'string', default: '4' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    out: { type: 'string', default: join(import.meta.dirname, '..', '..', '..', '.soak') },
  },
});

const seed = number(values.seed);
const out = resolve(values.out);
const interrupted = new AbortController();
process.once('SIGINT', () => interrupted.abort());
process.once('SIGTERM', () => interrupted.abort());

say(`Seed ${seed}; Ctrl-C ends it early, with a report.`);
const outcome = await soak({
  shape: {
    datacenters: number(values.datacenters),
    servers: number(values.servers),
    wanDelayMs: number(values['wan-delay']),
  },
  minutes: number(values.minutes),
  clientsPerNode: number(values.clients),
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

function number(text: string): number {
  const found = Number(text);
  if (!Number.isFinite(found) || found < 0) throw new Error(`${text} is no number`);
  return found;
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
