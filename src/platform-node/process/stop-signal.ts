// The signals by which a server is told to stop, by a person, npm or a service manager.

import { killItself } from './stopped-in-time.ts';

/** What is sent twice within this is meant once: npm sends on what the terminal has sent to the server already. */
export const SAME_SIGNAL_MS = 1_000;

/** SIGINT or SIGTERM, whichever comes first. Another one, later, ends the process at once. */
export function nextStopSignal(hasTerminal: boolean): Promise<NodeJS.Signals> {
  const signals: NodeJS.Signals[] = ['SIGINT', 'SIGTERM'];
  // Of a terminal it says that it is closed, to a service that it shall read its files anew.
  if (hasTerminal) signals.push('SIGHUP');
  return new Promise((resolve) => {
    const onSignal = (signal: NodeJS.Signals): void => {
      resolve(signal);
      setTimeout(() => {
        for (const each of signals) process.off(each, onSignal);
        // What process 1 does not handle never reaches it.
        if (process.pid === 1) for (const each of signals) process.once(each, killItself);
      }, SAME_SIGNAL_MS).unref();
    };
    for (const each of signals) process.on(each, onSignal);
  });
}
