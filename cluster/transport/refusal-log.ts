// Refused connections and calls in the log, each with its reason, though not so often that strangers could fill it.

import type { Clock } from '../platform/clock.ts';
import type { Logger } from '../platform/logger.ts';

export interface RefusalLogOptions {
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface Refused {
  /** `a connection` unless it says otherwise. */
  readonly what?: string;
  /** `host:port` of the other side. */
  readonly remote: string;
  /** As the other side calls itself, if it came so far. */
  readonly name?: string | undefined;
  readonly why: string;
  /** Whether an operator should see it. */
  readonly level: 'warn' | 'debug';
}

/** The same refusal of the same host is in the log once in so long. */
const WINDOW_MS = 60_000;
/** So many different ones are; of more there is one line. */
const LINES_MAX = 60;

export class RefusalLog {
  readonly #options: RefusalLogOptions;
  /** Of this window. */
  readonly #logged = new Set<string>();
  #windowStartMs = Number.NEGATIVE_INFINITY;

  constructor(options: RefusalLogOptions) {
    this.#options = options;
  }

  note({ what = 'a connection', remote, name, why, level }: Refused): void {
    const { clock, logger } = this.#options;
    const nowMs = clock.monotonicMs();
    if (nowMs - this.#windowStartMs >= WINDOW_MS) {
      this.#windowStartMs = nowMs;
      this.#logged.clear();
    }
    const key = `${hostOf(remote)} ${why}`;
    if (this.#logged.has(key) || this.#logged.size > LINES_MAX) return;
    this.#logged.add(key);
    if (this.#logged.size <= LINES_MAX) logger[level]({ remote, name, why }, `${what} was refused`);
    else logger.warn({ remote }, 'more is refused than is logged');
  }
}

/** The same one comes from another port each time. */
function hostOf(remote: string): string {
  return remote.slice(0, Math.max(0, remote.lastIndexOf(':')));
}
