// How long an answer waits for its reader. What is sent piece by piece holds a view of the disk, so whoever
// reads nothing of it for a while is cut off.

import type { Exchange } from './exchange.ts';
import { LIMITS } from './settings.ts';

/** What has a 'drain': the answer, or what compresses it. */
interface Target {
  once(event: 'drain', listener: () => void): unknown;
  off(event: 'drain', listener: () => void): unknown;
}

/** Resolves when the client reads on or is gone; one that does not read in `LIMITS.stallMs` is cut off. */
export function drained(
  { response, parts }: Pick<Exchange, 'response' | 'parts'>,
  target: Target = response,
): Promise<void> {
  return new Promise((resolve) => {
    const timer = parts.clock.after(LIMITS.stallMs, () => response.destroy());
    const done = (): void => {
      timer.cancel();
      target.off('drain', done);
      response.off('close', done);
      resolve();
    };
    target.once('drain', done);
    response.once('close', done);
    if (response.destroyed) done();
  });
}
