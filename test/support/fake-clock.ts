// A clock that stands still until a test moves it.

import type { Clock, Timer } from '../../cluster/platform/clock.ts';

interface Pending {
  readonly atMs: number;
  readonly action: () => void;
  isCancelled: boolean;
}

export class FakeClock implements Clock {
  #nowMs: number;
  #pending: Pending[] = [];

  constructor(nowMs = Date.parse('2026-01-01T00:00:00Z')) {
    this.#nowMs = nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, action: () => void): Timer {
    const pending: Pending = { atMs: this.#nowMs + delayMs, action, isCancelled: false };
    this.#pending.push(pending);
    return {
      cancel: () => {
        pending.isCancelled = true;
        this.#pending = this.#pending.filter((each) => each !== pending);
      },
    };
  }

  /** Moves time on and runs what came due, in order; what that starts with no delay waits its turn. */
  advance(byMs: number): void {
    this.#nowMs += byMs;
    const due = this.#pending.filter(({ atMs }) => atMs <= this.#nowMs);
    this.#pending = this.#pending.filter(({ atMs }) => atMs > this.#nowMs);
    due.sort((left, right) => left.atMs - right.atMs);
    for (const each of due) {
      // One that came due at the same time may have cancelled it.
      if (!each.isCancelled) each.action();
    }
  }

  get pendingCount(): number {
    return this.#pending.length;
  }
}
