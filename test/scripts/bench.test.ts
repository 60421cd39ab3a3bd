// What a benchmark leaves behind that is told to stop: nothing.

import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { endWithProcess, exitAtSignals } from '../../scripts/exit-at-signals.ts';
import { until } from '../support/running/running-group.ts';

exitAtSignals();

const MAIN = join(import.meta.dirname, '..', '..', 'scripts', 'bench', 'main.js');
const noProcesses = process.platform !== 'linux' && 'the list of processes is that of Linux';

/** Of processes whose command line has the folder. */
function processesIn(folder: string): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => commandLineOf(name).includes(folder))
    .map(Number);
}

function commandLineOf(name: string): string {
  try {
    return readFileSync(`/proc/${name}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}

const FORMS: readonly (readonly [options: string, count: number, signal: NodeJS.Signals])[] = [
  ['--datacenters 2 --delays 0 --rates 1 --seconds 60', 2, 'SIGINT'],
  ['--sizes 100 --seconds 60 --rounds 1', 1, 'SIGTERM'],
];

for (const [options, count, signal] of FORMS) {
  t.test(
    `bench ${options}: told to stop twice, nothing goes on`,
    { skip: noProcesses },
    async (t) => {
      const folder = mkdtempSync(join(tmpdir(), 'bench-'));
      t.teardown(() => {
        for (const pid of processesIn(folder)) process.kill(pid, 'SIGKILL');
        rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
      });
      const bench = spawn(process.execPath, [MAIN, ...options.split(' ')], {
        stdio: 'ignore',
        env: { ...process.env, TMPDIR: folder },
      });
      endWithProcess(bench, () => void bench.kill('SIGTERM'));
      const ended = new Promise((resolve) => bench.once('close', resolve));
      await until('its servers run', () => processesIn(folder).length >= count);
      bench.kill(signal);
      await new Promise((resolve) => setTimeout(resolve, 50));
      bench.kill(signal);
      t.equal(await ended, signal === 'SIGINT' ? 130 : 143);
      await until('its servers are gone', () => processesIn(folder).length === 0);
      t.same(readdirSync(folder), [], 'nor does it leave its data');
    },
  );
}
