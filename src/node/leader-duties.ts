// The leader's clock-work: once a second it deletes what is void or too old. A pass that fails is
// tried again at the next beat; void tokens stay void meanwhile, so nothing hangs on it but space.

import type { Timer } from '../../cluster/platform/clock.ts';
import { REAP_BATCH_MAX, reapOnce } from '../service/duties.ts';
import type { ServiceDeps } from '../service/deps.ts';

const BEAT_MS = 1_000;

export class LeaderDuties {
  readonly #deps: ServiceDeps;
  #timer: Timer | undefined;
  #pass: Promise<void> | undefined;
  #isClosed = false;
  #backlog = 0;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
  }

  /** Void tokens that the last pass found; REAP_BATCH_MAX or more mean that there are more. */
  get backlog(): number {
    return this.#backlog;
  }

  start(): void {
    this.#timer = this.#deps.clock.after(BEAT_MS, () => {
      this.#pass = this.#beat();
    });
  }

  /** Stops the beat and waits for the pass under way. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    await this.#pass;
  }

  async #beat(): Promise<void> {
    if (this.#deps.leaderContact().isLeader) await this.#reap();
    if (!this.#isClosed) this.start();
  }

  async #reap(): Promise<void> {
    try {
      const report = await reapOnce(this.#deps);
      this.#backlog = report.expiredTokens + report.orphanedTokens;
      if (this.#backlog >= REAP_BATCH_MAX) {
        this.#deps.logger.info({ deleted: this.#backlog }, 'void tokens deleted, more are waiting');
      }
    } catch (error) {
      this.#deps.logger.warn(
        { cause: error },
        'deleting void tokens failed; the next beat tries again',
      );
    }
  }
}
