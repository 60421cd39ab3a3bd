// Scripts that start processes end them when they are told to stop themselves. Whoever is ended by a signal alone
// ends nothing else: no handler of `exit` runs.

import { constants } from 'node:os';

/** From now on a signal to stop ends this process as `process.exit` does. It may come several times: npm repeats it. */
export function exitAtSignals(): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => process.exit(128 + constants.signals[signal]));
  }
}
