// Refused connections and calls in the log, each with its reason, though not so often that strangers could fill it.

import { LineWindow } from '../../base/line-window.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logger.ts';
import { hostOf } from '../../platform/net.ts';

export interface RefusalLogOptions {
  readonly clock: Clock;
  readonly logger: Logger;
}

const SAYS = {
  connection: 'a connection was refused',
  call: 'a call was refused',
} as const;

export interface Refused {
  /** A connection unless it says otherwise. */
  readonly what?: keyof typeof SAYS;
  /** `host:port` of the other side. */
  readonly remote: string;
  /** As the other side calls itself, if it came so far. */
  readonly name?: string | undefined;
  readonly why: string;
  /** Whether an operator should see it. */
  readonly level: 'warn' | 'debug';
}

export class RefusalLog {
  readonly #options: RefusalLogOptions;
  readonly #window = new LineWindow();

  constructor(options: RefusalLogOptions) {
    this.#options = options;
  }

  note({ what = 'connection', remote, name, why, level }: Refused): void {
    const { clock, logger } = this.#options;
    // The same one comes from another port each time.
    const written = this.#window.admit(`${hostOf(remote)} ${why}`, clock.monotonicMs());
    if (written === 'line') logger[level]({ remote, name, why }, SAYS[what]);
    if (written === 'that there are more') {
      logger.warn({ remote }, 'more is refused than is logged');
    }
  }
}
