// Work that is done again and again: the next time begins so long after the last one ended, and a
// failure of one time does not end it.

import type { Clock, Timer } from '../../platform/clock.ts';

export interface RepeatedOptions {
  readonly clock: Clock;
  readonly everyMs: number;
  readonly work: () => Promise<void>;
  readonly onFailed: (error: unknown) => void;
}

export class Repeated {
  readonly #options: RepeatedOptions;
  #timer: Timer | undefined;
  #running: Promise<void> | undefined;
  #isAskedAgain = false;
  #isClosed = false;

  /** The first time comes at once. */
  constructor(options: RepeatedOptions) {
    this.#options = options;
    this.#schedule(0);
  }

  /** Does it now; when it is being done, once more after that. */
  now(): void {
    if (this.#running === undefined) this.#schedule(0);
    else this.#isAskedAgain = true;
  }

  /** Waits for what is under way. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    await this.#running;
  }

  #schedule(delayMs: number): void {
    this.#timer?.cancel();
    if (this.#isClosed) return;
    this.#timer = this.#options.clock.after(delayMs, () => {
      this.#running = this.#run();
    });
  }

  async #run(): Promise<void> {
    const { work, onFailed, everyMs } = this.#options;
    try {
      await work();
    } catch (error) {
      onFailed(error);
    }
    this.#running = undefined;
    const isAskedAgain = this.#isAskedAgain;
    this.#isAskedAgain = false;
    this.#schedule(isAskedAgain ? 0 : everyMs);
  }
}
