// A primary whose data folders were put back to an earlier day does not know that. Whoever has more of its reign tells
// it soon after it has begun, by asking for the global log, or when it is asked. So behind a start what all share is
// not written before all that the log lists have been heard: writes wait for that, as for a leader, and not for long.
// The log of an earlier day may not list whoever has come since, so those of the settings are asked first who there is.
// A server that has seen some of it written since its start waits for nobody: whoever led then had heard the others, or
// waited for them.
// That somebody led proves nothing: it may have been told that it has lost what they have, and was closed. Nor do
// writes that were seen, for who begins a reign by itself, or gives one away: others may have begun one since.

import type { Clock } from '../../../../cluster/platform/clock.ts';
import { LeaderAway } from '../../../service/remote.ts';

export interface FirstHearingOptions {
  readonly clock: Clock;
  /** The own one. */
  readonly datacenter: string;
  /**
   * Those that the log lists, or that are said to have a part in it, where this server leads the primary, or may by
   * itself begin a reign; else none.
   */
  readonly others: () => readonly string[];
  /** Asks those of the settings who there is. Undefined where there are none. Never rejects. */
  readonly find: () => Promise<void> | undefined;
  /** Whether it is known, of this reign, how far it is. */
  readonly isHeard: (datacenter: string) => boolean;
  /** Asks it how far it is, so that it is heard. Resolves soon, within the limit. Never rejects. */
  readonly ask: (datacenter: string, limitMs: number) => Promise<void>;
  /** Where the global log ends at this server. */
  readonly headSeq: () => number;
  /** Whether this server has had, since its start, all that its leader began with: what comes later is new. */
  readonly hasCaughtUp: () => boolean;
}

/** Whoever was told to ask elsewhere asks again within two seconds. */
const WAIT_MS = 2_500;
const LOOK_MS = 50;
/** Where somebody is may come to be known meanwhile, and who leads it may change. */
const ASK_AGAIN_MS = 250;

export class FirstHearing {
  readonly #options: FirstHearingOptions;
  #headSeq: number;
  #untilMs = 0;
  #hasSeenWrites = false;
  #mayWrite = false;
  #isFinding = false;
  /** Whom this reign has asked, and has no answer of. */
  #asked = new Set<string>();

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
    const asked = new Set<string>();
    this.#asked = asked;
    const finding = this.#options.find();
    this.#isFinding = finding !== undefined;
    void finding?.then(() => this.#found(asked));
    this.#askOn(asked);
  }

  #found(asked: Set<string>): void {
    if (this.#asked !== asked) return;
    this.#isFinding = false;
    this.#ask(asked);
  }

  #askOn(asked: Set<string>): void {
    if (this.#asked !== asked) return;
    this.#ask(asked);
    const { clock } = this.#options;
    if (this.awaits() !== undefined) clock.after(ASK_AGAIN_MS, () => this.#askOn(asked));
  }

  /** Whoever follows an earlier leader that has fallen silent may take longer to notice than this one waits. */
  #ask(asked: Set<string>): void {
    const { ask, clock } = this.#options;
    const leftMs = this.#untilMs - clock.monotonicMs();
    for (const each of this.#awaited()) {
      if (asked.has(each)) continue;
      asked.add(each);
      void ask(each, leftMs).then(() => asked.delete(each));
    }
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
    const awaited = this.#awaited();
    const isFinding = this.#isFinding && this.#options.clock.monotonicMs() < this.#untilMs;
    if (awaited.length === 0 && !isFinding) return undefined;
    const { datacenter } = this.#options;
    const whom = awaited.length === 0 ? 'who else is there' : awaited.join(', ');
    return `datacenter ${datacenter} has just begun, and waits a moment to hear ${whom}`;
  }

  #awaited(): readonly string[] {
    const { clock, isHeard, others } = this.#options;
    if (clock.monotonicMs() >= this.#untilMs) return [];
    const awaited = others().filter((each) => !isHeard(each));
    // A promise of this datacenter ends what is known of followers, and not that all were heard.
    if (awaited.length === 0 && !this.#isFinding) this.#untilMs = 0;
    return awaited;
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
