// A clock that stands still until a test moves it.

import type { Clock, Timer } from '../../cluster/platform/clock.ts';

interface Pending {
  readonly atMs: number;
  readonly action: () => void;
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
    const pending = { atMs: this.#nowMs + delayMs, action };
    this.#pending.push(pending);
    return {
      cancel: () => {
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
    for (const { action } of due) action();
  }

  get pendingCount(): number {
    return this.#pending.length;
  }
}
