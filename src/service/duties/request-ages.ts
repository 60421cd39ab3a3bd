// How long requests have been remembered, as one server has seen it by its own clock. The times in the
// state are those of whoever led then, and clocks differ: a request that a leader with a slow clock took is
// not ten minutes old because it looks so. What was remembered at a moment has an answer with a smaller
// index than the state had then.

import { REQUEST_MEMORY_MS } from '../../state/rows/bookkeeping.ts';

/** Moments that are kept lie so far apart: that much longer may a request be remembered. */
const MOMENT_EVERY_MS = 10_000;

interface Moment {
  readonly atMs: number;
  readonly index: number;
}

export class RequestAges {
  /** Ascending; one of them at most is older than the memory. */
  #moments: readonly Moment[] = [];
  /** The newest that is older than the memory, as of the last look. */
  #due: Moment | undefined;
  /** Where the next look goes on. */
  #after: Uint8Array | undefined;

  /** The state has this index now. `nowMs` is of a clock that never goes back. */
  note(nowMs: number, index: number): void {
    const last = this.#moments.at(-1);
    if (last !== undefined && nowMs - last.atMs < MOMENT_EVERY_MS) return;
    const due = this.#moments.findLastIndex((each) => isDue(each, nowMs));
    this.#moments = [...this.#moments.slice(Math.max(0, due)), { atMs: nowMs, index }];
  }

  /**
   * Answers with a smaller index than this were seen ten minutes ago; undefined when none was. Whenever that is more
   * than before, the next look begins at the beginning: what earlier ones passed over may be due by now, and where
   * many requests come, they never get to the end.
   */
  dueBelow(nowMs: number): number | undefined {
    const due = this.#moments.findLast((each) => isDue(each, nowMs));
    if (due !== this.#due) this.#after = undefined;
    this.#due = due;
    return due?.index;
  }

  /** Where a look through the requests goes on; undefined for the beginning. */
  get after(): Uint8Array | undefined {
    return this.#after;
  }

  looked(next: Uint8Array | undefined): void {
    this.#after = next;
  }
}

function isDue({ atMs }: Moment, nowMs: number): boolean {
  return atMs + REQUEST_MEMORY_MS <= nowMs;
}
