// Waits until this datacenter's state has reached a position of the global log, for reads that must
// not be older than something that the caller has seen elsewhere.

import type { Clock } from '../../cluster/platform/clock.ts';
import { AclError } from '../acl/error.ts';
import type { Position } from '../state/outcome.ts';

/** How long a read waits for the position that it asks for. */
export const POSITION_WAIT_MS = 10_000;

interface Waiter {
  readonly wanted: Position;
  /** Resolves the wait; the second call does nothing. */
  arrived(): void;
}

export class PositionWaiters {
  readonly #current: () => Position;
  readonly #clock: Clock;
  readonly #waiters = new Set<Waiter>();

  constructor(current: () => Position, clock: Clock) {
    this.#current = current;
    this.#clock = clock;
  }

  /** The state may have moved on. */
  onApplied(): void {
    if (this.#waiters.size === 0) return;
    const current = this.#current();
    for (const waiter of [...this.#waiters]) {
      if (isReached(waiter.wanted, current)) waiter.arrived();
    }
  }

  /** Resolves at once when the state is there already. Rejects with 'wait-timeout'. */
  async reached(wanted: Position): Promise<void> {
    if (isReached(wanted, this.#current())) return;
    const inTime = await new Promise<boolean>((resolve) => {
      const finish = (arrived: boolean): void => {
        timer.cancel();
        this.#waiters.delete(waiter);
        resolve(arrived);
      };
      const waiter: Waiter = { wanted, arrived: () => finish(true) };
      const timer = this.#clock.after(POSITION_WAIT_MS, () => finish(false));
      this.#waiters.add(waiter);
    });
    if (inTime) return;
    throw new AclError(
      'wait-timeout',
      `Position ${textOf(wanted)} was not reached in time; this datacenter is at ${textOf(this.#current())}`,
    );
  }
}

function isReached(wanted: Position, current: Position): boolean {
  if (wanted.epoch !== current.epoch) return wanted.epoch < current.epoch;
  return wanted.seq <= current.seq;
}

function textOf({ epoch, seq }: Position): string {
  return `${epoch}.${seq}`;
}
