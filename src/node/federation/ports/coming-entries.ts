// What this leader has taken of another datacenter and put, or is about to put, into its own log, and has not heard
// the end of: it may stand there, and land, however far the state says that this datacenter is.

import { type GlobalCursor, isFurther } from '../../../../cluster/federation/global-log.ts';

export class ComingEntries {
  /** Where each run of them ends, or a snapshot. */
  readonly #ends = new Set<GlobalCursor>();
  readonly #waiting = new Set<() => void>();

  /** Those up to `end` are coming until `put` has settled, which it has when all that it put in is decided. */
  async until<Output>(end: GlobalCursor, put: () => Promise<Output>): Promise<Output> {
    // Two runs may end in one place, and each counts.
    const own = { ...end };
    this.#ends.add(own);
    try {
      return await put();
    } finally {
      this.#ends.delete(own);
      if (this.#ends.size === 0) this.#tellWaiting();
    }
  }

  /** As far as the own log may come by them; `cursor`, where the state is, when they lead no further. */
  furthest(cursor: GlobalCursor): GlobalCursor {
    return [...this.#ends].reduce((most, each) => (isFurther(each, most) ? each : most), cursor);
  }

  /** Resolves when none are coming. */
  async over(): Promise<void> {
    if (this.#ends.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#waiting.add(resolve);
    });
  }

  #tellWaiting(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }
}
