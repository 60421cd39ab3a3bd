// How this node stands to the leader of its group, in the words of the service; and its own reigns. A
// reign begins when this node leads, has applied what earlier leaders left and has made what must
// exist; only then it takes writes and does the leader's housekeeping.

import type { Clock, Timer } from '../../../cluster/platform/clock.ts';
import type { Logger } from '../../../cluster/platform/logger.ts';
import type { LeaderContact } from '../../service/deps.ts';
import { LeaderAway } from '../../service/remote.ts';

/** Whom the group follows, as this node knows. */
export interface Lead {
  readonly isSelf: boolean;
  readonly isKnown: boolean;
  /**
   * Since this node heard the leader and had all that was committed then; where it leads, since it heard a
   * quorum. Undefined when there is none.
   */
  readonly lastContactMs: number | undefined;
  readonly term: number;
}

export interface LeadershipOptions {
  readonly lead: () => Lead;
  readonly onLeaderChanged: (listener: () => void) => () => void;
  /**
   * Makes what must exist before the first write, by a command of the reign: when that is applied, so
   * is all that came before.
   */
  readonly prepare: () => Promise<void>;
  readonly onReign: (term: number) => void;
  readonly onReignOver: () => void;
  /** So long is a reign waited for that is to begin. */
  readonly reignWaitMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** How often it is noted when the leader was heard: as exact is what a node without one tells. */
const NOTE_EVERY_MS = 1_000;
/** The group is asked at most so often, because every read wants to know. Changes are told at once. */
const LEAD_FRESH_MS = 20;
/** After a failed preparation. */
const RETRY_MS = 1_000;

const SELF: LeaderContact = { isLeader: true, knownLeader: true, lastContactMs: 0 };

/** A reign that is to begin: whoever writes waits for it. */
interface Coming {
  readonly term: number;
  readonly ready: Promise<number>;
  resolve(term: number): void;
  reject(error: Error): void;
}

export class Leadership {
  readonly #options: LeadershipOptions;
  readonly #stopListening: () => void;
  #coming: Coming | undefined;
  /** The term of the reign; undefined outside of one. */
  #reign: number | undefined;
  readonly #openedAtMs: number;
  /** When this node last had all that was committed then; undefined before the first time. */
  #lastHeardMs: number | undefined;
  #lead: Lead;
  #leadAtMs: number;
  #noteTimer: Timer | undefined;
  #isClosed = false;

  constructor(options: LeadershipOptions) {
    this.#options = options;
    const nowMs = options.clock.monotonicMs();
    this.#openedAtMs = nowMs;
    this.#lead = options.lead();
    this.#leadAtMs = nowMs;
    this.#stopListening = options.onLeaderChanged(() => this.#follow());
    this.#note();
    this.#follow();
  }

  /** Never younger than the truth. */
  contact(): LeaderContact {
    const nowMs = this.#options.clock.monotonicMs();
    if (nowMs - this.#leadAtMs >= LEAD_FRESH_MS) this.#look(nowMs);
    const { isKnown, isSelf, lastContactMs } = this.#lead;
    // A quorum answered a moment ago.
    if (this.#reign !== undefined && lastContactMs === 0) return SELF;
    const sinceMs = this.#lastHeardMs ?? this.#openedAtMs;
    return { isLeader: isSelf, knownLeader: isKnown, lastContactMs: nowMs - sinceMs };
  }

  /** The term of the reign, once it has begun. Rejects with LeaderAway when there is none to come, or none in time. */
  reign(): number | Promise<number> {
    if (this.#reign !== undefined) return this.#reign;
    return this.#coming === undefined
      ? Promise.reject(new LeaderAway())
      : this.#readyInTime(this.#coming);
  }

  /** Whether a command of that reign may still enter the log. */
  isReign(term: number): boolean {
    return this.#reign === term;
  }

  get isReigning(): boolean {
    return this.#reign !== undefined;
  }

  close(): void {
    this.#isClosed = true;
    this.#stopListening();
    this.#noteTimer?.cancel();
    this.#end();
  }

  /** What a reign begins with may never come to a quorum of disks. */
  #readyInTime({ ready }: Coming): Promise<number> {
    const { clock, reignWaitMs } = this.#options;
    return new Promise((resolve, reject) => {
      const timer = clock.after(reignWaitMs, () => reject(new LeaderAway()));
      ready.finally(() => timer.cancel()).then(resolve, reject);
    });
  }

  #look(nowMs: number): void {
    this.#lead = this.#options.lead();
    this.#leadAtMs = nowMs;
    const { isSelf, lastContactMs } = this.#lead;
    // Before its reign it may lack what an earlier leader has answered.
    if (lastContactMs === undefined || (isSelf && this.#reign === undefined)) return;
    // What was there once, is there.
    const heardMs = nowMs - lastContactMs;
    this.#lastHeardMs = Math.max(this.#lastHeardMs ?? heardMs, heardMs);
  }

  #follow(): void {
    this.#look(this.#options.clock.monotonicMs());
    const { isSelf, term } = this.#lead;
    const current = this.#reign ?? this.#coming?.term;
    if (isSelf && term === current) return;
    this.#end();
    if (isSelf && !this.#isClosed) this.#begin(term);
  }

  #begin(term: number): void {
    const { promise, resolve, reject } = waiter();
    this.#coming = { term, ready: promise, resolve, reject };
    void this.#prepare(this.#coming);
  }

  async #prepare(coming: Coming): Promise<void> {
    const { prepare, logger, clock, onReign } = this.#options;
    try {
      await prepare();
    } catch (error) {
      if (this.#coming !== coming) return;
      logger.warn({ cause: error }, 'the leader could not prepare its reign; it tries again');
      clock.after(RETRY_MS, () => {
        if (this.#coming === coming) void this.#prepare(coming);
      });
      return;
    }
    if (this.#coming !== coming) return;
    this.#coming = undefined;
    this.#reign = coming.term;
    coming.resolve(coming.term);
    onReign(coming.term);
  }

  #end(): void {
    this.#coming?.reject(new LeaderAway());
    this.#coming = undefined;
    if (this.#reign === undefined) return;
    this.#reign = undefined;
    this.#options.onReignOver();
  }

  #note(): void {
    this.#look(this.#options.clock.monotonicMs());
    this.#noteTimer = this.#options.clock.after(NOTE_EVERY_MS, () => this.#note());
  }
}

/** Nobody need wait for it. */
function waiter(): {
  readonly promise: Promise<number>;
  resolve(term: number): void;
  reject(error: Error): void;
} {
  let settle: { resolve(term: number): void; reject(error: Error): void } | undefined;
  const promise = new Promise<number>((resolve, reject) => {
    settle = { resolve, reject };
  });
  promise.catch(() => undefined);
  const { resolve, reject } = settle as NonNullable<typeof settle>;
  return { promise, resolve, reject };
}
