// A primary whose data folders were put back to an earlier day does not know that. Whoever has more of its reign tells
// it, by asking for the global log, soon after it has begun. So behind a start what all share is not written before
// all that the log lists have been heard: writes wait for that, as for a leader, and not for long. A server that was
// started while its group had a leader waits for nobody: its log is not of an earlier day than that leader's.

import type { Clock } from '../../cluster/platform/clock.ts';
import { LeaderAway } from '../service/remote.ts';

export interface FirstHearingOptions {
  readonly clock: Clock;
  /** The own one. */
  readonly datacenter: string;
  /** Those that the log lists, where this server leads the primary; else none. */
  readonly others: () => readonly string[];
  /** Whether it was heard in this reign. */
  readonly isHeard: (datacenter: string) => boolean;
}

/** Whoever is there asks again within two seconds. */
const WAIT_MS = 2_500;

export class FirstHearing {
  readonly #options: FirstHearingOptions;
  #followsSinceMs: number | undefined;
  #untilMs: number | undefined;
  /** The group has had a leader for long enough since this server was started: the others were heard then. */
  #isSettled = false;

  constructor(options: FirstHearingOptions) {
    this.#options = options;
  }

  /** Whether this server follows another one of its group: to be told when that may have changed. */
  follows(isFollowing: boolean): void {
    const nowMs = this.#options.clock.monotonicMs();
    if (isFollowing) {
      this.#followsSinceMs ??= nowMs;
      return;
    }
    const forMs = nowMs - (this.#followsSinceMs ?? nowMs);
    if (forMs >= WAIT_MS) this.#isSettled = true;
    this.#followsSinceMs = undefined;
  }

  /** A reign of this server has begun, of a datacenter that was the primary before. */
  begin(): void {
    this.follows(false);
    const nowMs = this.#options.clock.monotonicMs();
    if (nowMs >= (this.#untilMs ?? Number.POSITIVE_INFINITY)) this.#isSettled = true;
    this.#untilMs = this.#isSettled ? nowMs : nowMs + WAIT_MS;
  }

  /** Why nothing global may be written yet; undefined when it may. Another try, soon, may work. */
  refusal(): LeaderAway | undefined {
    const { clock, datacenter, isHeard, others } = this.#options;
    if (clock.monotonicMs() >= (this.#untilMs ?? 0)) return undefined;
    const awaited = others().filter((each) => !isHeard(each));
    if (awaited.length === 0) return undefined;
    const names = awaited.join(', ');
    const says = `Nothing was written: datacenter ${datacenter} has just begun, and waits a moment to hear ${names}`;
    return new LeaderAway({ says });
  }
}
