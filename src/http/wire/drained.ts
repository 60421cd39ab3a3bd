// How long an answer waits for its reader. Its text, and of what is sent piece by piece a view of the disk, is
// kept until it is read, so whoever reads nothing of it for a while is cut off.

import type { Clock } from '../../../cluster/platform/clock.ts';
import { LIMITS } from '../settings.ts';
import type { RawResponse } from './wire-types.ts';

/** What has a 'drain': the answer, or what compresses it. */
interface Target {
  once(event: 'drain', listener: () => void): unknown;
  off(event: 'drain', listener: () => void): unknown;
}

/** The request that is being answered. */
interface Sending {
  readonly response: RawResponse;
  readonly parts: { readonly clock: Pick<Clock, 'after'> };
}

/** Resolves when the client reads on or is gone; one that does not read in `LIMITS.stallMs` is cut off. */
export function drained(sending: Sending, target: Target = sending.response): Promise<void> {
  const { response } = sending;
  return new Promise((resolve) => {
    const cancel = cutOffLater(sending);
    const done = (): void => {
      cancel();
      target.off('drain', done);
      response.off('close', done);
      resolve();
    };
    target.once('drain', done);
    response.once('close', done);
    if (response.destroyed) done();
  });
}

/** Behind the end of an answer: whoever has not read the rest of it in `LIMITS.stallMs` is cut off. */
export function endsInTime(sending: Sending): void {
  const { response } = sending;
  if (response.writableFinished || response.destroyed) return;
  const cancel = cutOffLater(sending);
  response.once('finish', cancel);
  response.once('close', cancel);
}

function cutOffLater({ response, parts }: Sending): () => void {
  const timer = parts.clock.after(LIMITS.stallMs, () => response.destroy());
  return () => timer.cancel();
}
