// Watches whether the clocks of the servers differ. Every command has the time of the server that proposed it: one
// that lies in the future says that the clock there is ahead, or the own one behind; so does an entry of the primary. A
// leader hears what most others have come to, when it has something to delete. Tokens are made, void and deleted by
// these clocks, so somebody should know.

import type { Clock } from '../../../cluster/platform/clock.ts';
import type { Logger } from '../../../cluster/platform/logger.ts';

/** Clocks that are kept right differ by less. */
const APART_MS = 5_000;
/** Each way of it is told at most so often. */
const TELL_EVERY_MS = 600_000;

export interface ClockWatchOptions {
  readonly clock: Clock;
  readonly logger: Logger;
}

export class ClockWatch {
  readonly #options: ClockWatchOptions;
  #behindMs = 0;
  #behindPrimaryMs = 0;
  /** By what was told. */
  readonly #toldAtMs = new Map<string, number>();

  constructor(options: ClockWatchOptions) {
    this.#options = options;
  }

  /** By so much this server's clock is behind that of whoever proposed the last command; 0 where it is not. */
  get behindMs(): number {
    return this.#behindMs;
  }

  /**
   * By so much this server's clock was behind that of whoever led the primary, when the last entries came; 0 where it
   * was not, and where this server does not lead a secondary.
   */
  get behindPrimaryMs(): number {
    return this.#behindPrimaryMs;
  }

  /** A command of that time is about to be applied. */
  note(timeMs: number): void {
    const behindMs = Math.max(0, timeMs - this.#options.clock.wallMs());
    this.#behindMs = behindMs;
    if (behindMs >= APART_MS) this.#tell('behindMs', behindMs);
  }

  /** This server leads a secondary, and an entry came that the primary has made at that time. */
  noteEntry(timeMs: number): void {
    const behindMs = Math.max(0, timeMs - this.#options.clock.wallMs());
    this.#behindPrimaryMs = behindMs;
    if (behindMs >= APART_MS) this.#tell('behindPrimaryMs', behindMs);
  }

  /** It does not any more: what came then says nothing of now. */
  forgetEntries(): void {
    this.#behindPrimaryMs = 0;
  }

  /** This server leads, and a majority of the servers has come to that time. */
  noteAgreed(timeMs: number): void {
    const aheadMs = this.#options.clock.wallMs() - timeMs;
    if (aheadMs >= APART_MS) this.#tell('aheadMs', aheadMs);
  }

  #tell(what: 'behindMs' | 'behindPrimaryMs' | 'aheadMs', ms: number): void {
    const { clock, logger } = this.#options;
    const nowMs = clock.monotonicMs();
    if (nowMs - (this.#toldAtMs.get(what) ?? Number.NEGATIVE_INFINITY) < TELL_EVERY_MS) return;
    this.#toldAtMs.set(what, nowMs);
    logger.warn({ [what]: ms }, 'the clocks of the servers differ');
  }
}
