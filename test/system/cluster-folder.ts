// What `npm run cluster` has started in a folder, for tests that run its commands.

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { exitAtSignals } from '../../scripts/exit-at-signals.ts';

const MAIN = join(import.meta.dirname, '..', '..', 'scripts', 'cluster', 'main.js');
/** A supervisor that does not answer is not waited for any longer. */
const DOWN_MAX_MS = 15_000;

/** Its servers and its supervisor run on when the command has ended; no longer than this process, from now on. */
export function endClusterWithProcess(folder: string): void {
  process.prependOnceListener('exit', () => {
    if (!existsSync(join(folder, 'plan.json'))) return;
    const words = [MAIN, '--dir', folder, 'down'];
    spawnSync(process.execPath, words, { stdio: 'ignore', timeout: DOWN_MAX_MS });
  });
}

exitAtSignals();
