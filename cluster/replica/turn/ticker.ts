// Raft's ticks, out of real time. A timer that fires late says that the process stood still, and then
// messages may wait unread that should have been heard first: the tick lets them pass, and the whole
// gap counts as one.

import type { Clock, Timer } from '../../platform/clock.ts';

export interface TickerOptions {
  readonly clock: Clock;
  readonly tickMs: number;
  /** A timer that is later than this was late by a pause, not by chance. */
  readonly lateMs: number;
  readonly onTick: () => void;
  readonly onPause: (lateByMs: number) => void;
}

export class Ticker {
  readonly #options: TickerOptions;
  #dueAtMs = 0;
  #timer: Timer | undefined;

  constructor(options: TickerOptions) {
    this.#options = options;
    this.#await(options.tickMs);
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #await(delayMs: number): void {
    const { clock } = this.#options;
    this.#dueAtMs = clock.monotonicMs() + delayMs;
    this.#timer = clock.after(delayMs, () => this.#onTimer());
  }

  #onTimer(): void {
    const { clock, lateMs, onPause } = this.#options;
    const lateByMs = clock.monotonicMs() - this.#dueAtMs;
    if (lateByMs > lateMs) {
      onPause(lateByMs);
      this.#timer = clock.after(0, () => this.#tick(0));
    } else {
      this.#tick(lateByMs);
    }
  }

  #tick(lateByMs: number): void {
    const { tickMs, onTick } = this.#options;
    // The next one comes a little earlier, so that small delays do not add up.
    this.#await(tickMs - Math.min(lateByMs, tickMs / 2));
    onTick();
  }
}
