// Scripts that start processes end them when they are told to stop themselves. Whoever is ended by a signal alone
// ends nothing else: no handler of `exit` runs.

import type { ChildProcess } from 'node:child_process';
import { constants } from 'node:os';

/** From now on a signal to stop ends this process as `process.exit` does. It may come several times: npm repeats it. */
export function exitAtSignals(): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => process.exit(128 + constants.signals[signal]));
  }
}

/** Whoever ends leaves no such child behind; `kill` says how it is ended, which must not take a turn of the loop. */
export function endWithProcess(
  child: ChildProcess,
  kill = (): void => void child.kill('SIGKILL'),
): void {
  process.prependOnceListener('exit', kill);
  child.once('close', () => process.off('exit', kill));
}
