// Refused connections in the log, each with its reason, though not so often that strangers could fill it.

import type { Clock } from '../platform/clock.ts';
import type { Logger } from '../platform/logger.ts';

export interface RefusalLogOptions {
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface RefusedConnection {
  /** `host:port` of the other side. */
  readonly remote: string;
  /** As the other side calls itself, if it came so far. */
  readonly name?: string | undefined;
  readonly why: string;
  /** Whether an operator should see it. */
  readonly level: 'warn' | 'debug';
}

/** The same refusal of the same host is in the log once in so long. */
const LOG_AGAIN_MS = 60_000;
/** So many refusals are told apart; then older ones may be in the log again. */
const LOGGED_MAX = 256;

export class RefusalLog {
  readonly #options: RefusalLogOptions;
  readonly #loggedAtMs = new Map<string, number>();

  constructor(options: RefusalLogOptions) {
    this.#options = options;
  }

  note({ remote, name, why, level }: RefusedConnection): void {
    const { clock, logger } = this.#options;
    const key = `${hostOf(remote)} ${why}`;
    const nowMs = clock.monotonicMs();
    const loggedAtMs = this.#loggedAtMs.get(key) ?? Number.NEGATIVE_INFINITY;
    if (nowMs - loggedAtMs < LOG_AGAIN_MS) return;
    if (this.#loggedAtMs.size >= LOGGED_MAX) this.#loggedAtMs.clear();
    this.#loggedAtMs.set(key, nowMs);
    logger[level]({ remote, name, why }, 'a connection was refused');
  }
}

/** The same one comes from another port each time. */
function hostOf(remote: string): string {
  return remote.slice(0, Math.max(0, remote.lastIndexOf(':')));
}
