// What goes into the log of a leader has an answer in time, whatever becomes of it: where nothing comes to a quorum of
// disks, it would wait without an end. The run goes on without anybody who waits for it, and holds all that it held:
// what is checked against what it changes, and further tries of the same request, must not overtake it.

import type { Clock } from '../../../cluster/platform/clock.ts';
import { AclError } from '../../acl/error.ts';

/** As long as another server waits for its leader. */
export const WRITE_MAX_MS = 30_000;

/** How the caller knows it, and how long it may take. */
export interface Answered {
  readonly what: 'write' | 'change' | 'restore';
  readonly limitMs: number;
}

export const AS_WRITE: Answered = { what: 'write', limitMs: WRITE_MAX_MS };

/**
 * What the run comes to. Rejects with 'outcome-unknown' when it is neither over by then nor has called `applied`:
 * what it may wait for once it has taken effect has a time of its own.
 */
export function answeredInTime<Output>(
  clock: Pick<Clock, 'after'>,
  { what, limitMs }: Answered,
  run: (applied: () => void) => Promise<Output>,
): Promise<Output> {
  return new Promise((resolve, reject) => {
    const timer = clock.after(limitMs, () => {
      const why = `the leader has waited for it for ${limitMs / 1000} s`;
      const text = `whether the ${what} took effect is not known: ${why}`;
      reject(new AclError('outcome-unknown', text));
    });
    const inTime = (): void => timer.cancel();
    run(inTime).finally(inTime).then(resolve, reject);
  });
}
