// Writes that wait until other datacenters have them. Each waits for one seq and one level, for a bounded
// time; what it comes to never says that the write is undone, only who is known to have it.

import type { Clock, Timer } from '../../platform/clock.ts';

/** How many datacenters must have an entry. The primary alone has it before anybody can wait. */
export type AckLevel = 'majority' | 'all';

export type AckResult =
  | 'reached'
  /** Not in time; it may be reached later. */
  | 'timeout'
  /** This datacenter, or this server, is not the one that hears acknowledgements any more. */
  | 'reign-over'
  /** Too many wait already. */
  | 'too-many';

export interface AckWish {
  readonly seq: number;
  readonly level: AckLevel;
  readonly timeoutMs: number;
}

interface Waiter {
  readonly seq: number;
  readonly resolve: (result: AckResult) => void;
  readonly timer: Timer;
}

export interface AckWaitersOptions {
  readonly clock: Clock;
  readonly waitersMax: number;
  /** Up to where that level is reached. */
  readonly reachedSeq: (level: AckLevel) => number;
}

export class AckWaiters {
  readonly #options: AckWaitersOptions;
  /** By seq, the smallest first. */
  readonly #waiting: Readonly<Record<AckLevel, Waiter[]>> = { majority: [], all: [] };

  constructor(options: AckWaitersOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#waiting.majority.length + this.#waiting.all.length;
  }

  wait({ seq, level, timeoutMs }: AckWish): Promise<AckResult> {
    const { clock, reachedSeq, waitersMax } = this.#options;
    if (seq <= reachedSeq(level)) return Promise.resolve('reached');
    if (this.count >= waitersMax) return Promise.resolve('too-many');
    return new Promise((resolve) => {
      const waiting = this.#waiting[level];
      const timer = clock.after(timeoutMs, () => {
        const at = waiting.indexOf(waiter);
        if (at >= 0) waiting.splice(at, 1);
        resolve('timeout');
      });
      const waiter: Waiter = { seq, resolve, timer };
      // Writes come in the order of their entries, nearly.
      let place = waiting.length;
      while (place > 0 && waiting[place - 1]!.seq > seq) place -= 1;
      waiting.splice(place, 0, waiter);
    });
  }

  /** More may be acknowledged. */
  onAcknowledged(): void {
    for (const level of ['majority', 'all'] as const) {
      const waiting = this.#waiting[level];
      if (waiting.length === 0) continue;
      const reachedSeq = this.#options.reachedSeq(level);
      const later = waiting.findIndex(({ seq }) => seq > reachedSeq);
      const reached = waiting.splice(0, later < 0 ? waiting.length : later);
      for (const waiter of reached) settle(waiter, 'reached');
    }
  }

  onReignOver(): void {
    for (const waiting of Object.values(this.#waiting)) {
      for (const waiter of waiting.splice(0)) settle(waiter, 'reign-over');
    }
  }
}

function settle({ timer, resolve }: Waiter, result: AckResult): void {
  timer.cancel();
  resolve(result);
}
