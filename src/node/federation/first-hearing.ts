// A primary whose data folders were put back to an earlier day does not know that. Whoever has more of its reign tells
// it, by asking for the global log, soon after it has begun. So behind a start what all share is not written before
// all that the log lists have been heard: writes wait for that, as for a leader, and not for long. A server that has
// seen some of it written since its start waits for nobody: whoever led then had heard the others, or waited for them.
// That somebody led proves nothing: it may have been told that it has lost what they have, and was closed. Nor do
// writes that were seen, for who begins a reign by itself, or gives one away: others may have begun one since.

import type { Clock } from '../../../cluster/platform/clock.ts';
import { LeaderAway } from '../../service/remote.ts';

export interface FirstHearingOptions {
  readonly clock: Clock;
  /** The own one. */
  readonly datacenter: string;
  /** Those that the log lists, where this server leads the primary, or may by itself begin a reign; else none. */
  readonly others: () => readonly string[];
  /** Whether it was heard in this reign. */
  readonly isHeard: (datacenter: string) => boolean;
  /** Where the global log ends at this server. */
  readonly headSeq: () => number;
  /** Whether this server has had, since its start, all that its leader began with: what comes later is new. */
  readonly hasCaughtUp: () => boolean;
}

/** Whoever is there asks again within two seconds. */
const WAIT_MS = 2_500;
const LOOK_MS = 50;

export class FirstHearing {
  readonly #options: FirstHearingOptions;
  #headSeq: number;
  #untilMs = 0;
  #hasSeenWrites = false;
  #mayWrite = false;

  constructor(options: FirstHearingOptions) {
    this.#options = options;
    this.#headSeq = options.headSeq();
  }

  /** To be told when the global log may have grown. */
  look(): void {
    const { hasCaughtUp, headSeq } = this.#options;
    const seq = headSeq();
    if (seq > this.#headSeq && hasCaughtUp()) this.#hasSeenWrites = true;
    this.#headSeq = seq;
  }

  /** A reign of this server has begun, of the primary, or of a datacenter that was it and may be again by itself. */
  begin(): void {
    this.#untilMs = this.#options.clock.monotonicMs() + WAIT_MS;
    this.#mayWrite = this.#hasSeenWrites;
  }

  /** Why nothing global may be written yet; undefined when it may. Another try, soon, may work. */
  refusal(): LeaderAway | undefined {
    const awaits = this.#mayWrite ? undefined : this.awaits();
    return awaits === undefined
      ? undefined
      : new LeaderAway({ says: `Nothing was written: ${awaits}` });
  }

  /**
   * Whom it waits for, whatever it has seen written: since then others may have begun a reign, and told so nobody but
   * whoever led before. Undefined: for nobody any more.
   */
  awaits(): string | undefined {
    const { clock, datacenter, isHeard, others } = this.#options;
    if (clock.monotonicMs() >= this.#untilMs) return undefined;
    const awaited = others().filter((each) => !isHeard(each));
    if (awaited.length === 0) {
      // A promise of this datacenter ends what is known of followers, and not that all were heard.
      this.#untilMs = 0;
      return undefined;
    }
    return `datacenter ${datacenter} has just begun, and waits a moment to hear ${awaited.join(', ')}`;
  }

  /** Resolves when it waits for nobody any more. */
  async over(): Promise<void> {
    const { clock } = this.#options;
    while (this.awaits() !== undefined) {
      await new Promise<void>((resolve) => {
        clock.after(LOOK_MS, resolve);
      });
    }
  }
}
