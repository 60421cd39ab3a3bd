// Waits until the state has come to something: a position, an index. Whoever waits is looked at after
// every applied change, and goes away when the time is over.

import type { Clock } from '../../cluster/platform/clock.ts';

interface Waiter<Goal> {
  readonly wanted: Goal;
  /** Ends the wait; the second call does nothing. */
  arrived(): void;
}

export interface GoalWaitersOptions<Goal> {
  readonly clock: Clock;
  /** Whether the state has come to it by now. Called often. */
  readonly isReached: (wanted: Goal) => boolean;
}

export class GoalWaiters<Goal> {
  readonly #options: GoalWaitersOptions<Goal>;
  readonly #waiters = new Set<Waiter<Goal>>();

  constructor(options: GoalWaitersOptions<Goal>) {
    this.#options = options;
  }

  /** The state may have moved on. */
  onApplied(): void {
    if (this.#waiters.size === 0) return;
    const { isReached } = this.#options;
    for (const waiter of [...this.#waiters]) {
      if (isReached(waiter.wanted)) waiter.arrived();
    }
  }

  /** Resolves with whether it was reached within `limitMs`; at once when it is reached already, or nobody waits. */
  reached(wanted: Goal, limitMs: number): Promise<boolean> {
    const { clock, isReached } = this.#options;
    const isThere = isReached(wanted);
    if (isThere || limitMs <= 0) return Promise.resolve(isThere);
    return new Promise((resolve) => {
      const finish = (inTime: boolean): void => {
        timer.cancel();
        this.#waiters.delete(waiter);
        resolve(inTime);
      };
      const waiter: Waiter<Goal> = { wanted, arrived: () => finish(true) };
      const timer = clock.after(limitMs, () => finish(isReached(wanted)));
      this.#waiters.add(waiter);
    });
  }
}
