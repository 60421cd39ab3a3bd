// The leader's clock-work: once a second it deletes what is void or too old, in small passes that follow
// each other sooner while there is more. A pass that fails is tried again at the next beat; void tokens
// stay void meanwhile, so nothing hangs on it but space.

import type { Timer } from '../../../cluster/platform/clock.ts';
import type { ServiceDeps } from '../../service/deps.ts';
import { REAP_BATCH_MAX, reapOnce } from '../../service/duties/duties.ts';
import { RequestAges } from '../../service/duties/request-ages.ts';
import { VoidTokenRounds } from '../../service/duties/void-token-rounds.ts';
import { LeaderAway } from '../../service/remote.ts';
import { isMoved } from '../../service/writes/tries.ts';

const BEAT_MS = 1_000;
/** When a pass has found more than it may take at once. */
const BUSY_BEAT_MS = 100;

export class LeaderDuties {
  readonly #deps: ServiceDeps;
  readonly #ages = new RequestAges();
  /** Of the present reign: another leader may have left something behind where this one was. */
  #rounds = new VoidTokenRounds();
  #timer: Timer | undefined;
  #pass: Promise<void> | undefined;
  #isOn = false;
  #backlog = 0;
  #hasToldOfMore = false;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
  }

  /** Void tokens that the last pass found; REAP_BATCH_MAX or more mean that there are more. */
  get backlog(): number {
    return this.#backlog;
  }

  /** This node leads now. */
  start(): void {
    this.#isOn = true;
    this.#rounds = new VoidTokenRounds();
    this.#awaitBeat(BEAT_MS);
  }

  /** It does not any more: the pass under way comes to nothing. */
  stop(): void {
    this.#isOn = false;
    this.#backlog = 0;
    this.#timer?.cancel();
  }

  /** Stops, and waits for the pass under way. */
  async close(): Promise<void> {
    this.stop();
    await this.#pass;
  }

  #awaitBeat(delayMs: number): void {
    this.#timer?.cancel();
    this.#timer = this.#deps.clock.after(delayMs, () => {
      this.#pass = this.#beat(this.#pass);
    });
  }

  /** One pass at a time, also across two reigns. */
  async #beat(before: Promise<void> | undefined): Promise<void> {
    await before;
    const isBusy = this.#isOn && (await this.#reap());
    if (this.#isOn) this.#awaitBeat(isBusy ? BUSY_BEAT_MS : BEAT_MS);
  }

  /** Once for as long as it lasts. */
  #tell(): void {
    const isMore = this.#backlog >= REAP_BATCH_MAX;
    if (isMore && !this.#hasToldOfMore) {
      this.#deps.logger.info({ deleted: this.#backlog }, 'void tokens deleted, more are waiting');
    }
    this.#hasToldOfMore = isMore;
  }

  /** Whether there is more of anything. */
  async #reap(): Promise<boolean> {
    try {
      const report = await reapOnce(this.#deps, { ages: this.#ages, rounds: this.#rounds });
      this.#backlog = report.expiredTokens + report.orphanedTokens;
      this.#tell();
      return report.isMore;
    } catch (error) {
      // Somebody else leads by now, or another datacenter is primary, whose duty it is.
      if (error instanceof LeaderAway || isMoved(error)) return false;
      this.#deps.logger.warn(
        { cause: error },
        'deleting void tokens failed; the next beat tries again',
      );
      return false;
    }
  }
}
