// Watches how long the event loop keeps others waiting. A leader whose loop stands still cannot show
// that it lives: long before it is taken for dead, the log says so.

import type { Clock, Timer } from '../../../cluster/platform/clock.ts';
import type { Logger } from '../../../cluster/platform/logger.ts';
import type { LoopDelay, LoopDelays } from '../platform.ts';

/** The figures are those of the last whole window. */
const WINDOW_MS = 10_000;
/** So many windows the largest delay is remembered for: whoever looks once a minute sees it. */
const WINDOWS_KEPT = 6;
/** The alarm is raised at most so often. */
const ALARM_EVERY_MS = 60_000;

export interface LoopWatchOptions {
  readonly delay: LoopDelay;
  readonly clock: Clock;
  readonly logger: Logger;
  /** A delay from here on is worth an alarm. */
  readonly alarmMs: number;
}

export class LoopWatch {
  readonly #options: LoopWatchOptions;
  #timer: Timer | undefined;
  #last: LoopDelays = { p50Ms: 0, p99Ms: 0, maxMs: 0 };
  #largestMs: readonly number[] = [];
  #alarmedAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: LoopWatchOptions) {
    this.#options = options;
    this.#await();
  }

  /** Of the last window; `maxMs` of the last minute. */
  figures(): LoopDelays {
    return { ...this.#last, maxMs: Math.max(0, ...this.#largestMs) };
  }

  close(): void {
    this.#timer?.cancel();
    this.#options.delay.close();
  }

  #await(): void {
    this.#timer = this.#options.clock.after(WINDOW_MS, () => {
      this.#look();
      this.#await();
    });
  }

  #look(): void {
    const { delay, clock, logger, alarmMs } = this.#options;
    this.#last = delay.take();
    const { maxMs } = this.#last;
    this.#largestMs = [...this.#largestMs, maxMs].slice(-WINDOWS_KEPT);
    const nowMs = clock.monotonicMs();
    if (maxMs < alarmMs || nowMs - this.#alarmedAtMs < ALARM_EVERY_MS) return;
    this.#alarmedAtMs = nowMs;
    const fields = { delayMs: Math.round(maxMs), alarmMs: Math.round(alarmMs) };
    logger.warn(fields, 'the event loop stood still for a good part of an election timeout');
  }
}
