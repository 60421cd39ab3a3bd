// Watches whether the clocks of the servers differ. Every command has the time of the server that proposed it: one
// that lies in the future says that the clock there is ahead, or the own one behind. Tokens are made, void and
// deleted by these clocks, so somebody should know.

import type { Clock } from '../../cluster/platform/clock.ts';
import type { Logger } from '../../cluster/platform/logger.ts';

/** Clocks that are kept right differ by less. */
const BEHIND_MS = 5_000;
/** It is told at most so often. */
const TELL_EVERY_MS = 600_000;

export interface ClockWatchOptions {
  readonly clock: Clock;
  readonly logger: Logger;
}

export class ClockWatch {
  readonly #options: ClockWatchOptions;
  #behindMs = 0;
  #toldAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: ClockWatchOptions) {
    this.#options = options;
  }

  /** By so much this server's clock is behind that of whoever proposed the last command; 0 where it is not. */
  get behindMs(): number {
    return this.#behindMs;
  }

  /** A command of that time is about to be applied. */
  note(timeMs: number): void {
    const { clock, logger } = this.#options;
    this.#behindMs = Math.max(0, timeMs - clock.wallMs());
    if (this.#behindMs < BEHIND_MS) return;
    const nowMs = clock.monotonicMs();
    if (nowMs - this.#toldAtMs < TELL_EVERY_MS) return;
    this.#toldAtMs = nowMs;
    logger.warn({ behindMs: this.#behindMs }, 'the clocks of the servers differ');
  }
}
