// Read barriers of this node: many callers share one ReadIndex round. A round that is not answered (its
// message or its leader was lost) is asked again under a new name; a name is never used twice, in no
// life of the node, so a late answer can confirm nothing but the round that asked for it. Late answers of
// the same leader count: else reads would never come through where an answer takes longer than a retry.

import type { Clock } from '../../platform/clock.ts';
import type { Random } from '../../platform/random.ts';
import { GroupRefusal } from '../group-refusal.ts';
import { ReplicaError } from '../replica.ts';

/** Rounds that wait for their answer; later callers share the next one. */
const ROUNDS_MAX = 8;

interface Waiter {
  readonly deadlineMs: number;
  resolve(): void;
  reject(error: Error): void;
}

interface Round {
  waiters: readonly Waiter[];
  /** The last time. */
  askedAtMs: number;
  /** Every name under which it was asked: the answer to any of them will do. */
  readonly contexts: string[];
}

interface Confirmed {
  readonly waiters: readonly Waiter[];
  /** May be answered when this is applied. */
  readonly index: number;
}

export interface ReadBarriersOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly countMax: number;
  readonly timeoutMs: number;
  /** A round that is not answered by then is asked again. */
  readonly retryMs: number;
}

export class ReadBarriers {
  readonly #options: ReadBarriersOptions;
  readonly #life: string;
  #roundCount = 0;
  #waiting: Waiter[] = [];
  readonly #rounds = new Set<Round>();
  readonly #roundByContext = new Map<string, Round>();
  /** Those that must be asked once more. */
  #overdue: Round[] = [];
  #confirmed: Confirmed[] = [];
  #count = 0;

  constructor(options: ReadBarriersOptions) {
    this.#options = options;
    this.#life = options.random.uuid();
  }

  add(): Promise<void> {
    if (this.#count >= this.#options.countMax) {
      const message = `${this.#count} reads wait already`;
      return Promise.reject(new ReplicaError('queue-full', message));
    }
    this.#count += 1;
    const deadlineMs = this.#options.clock.monotonicMs() + this.#options.timeoutMs;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ deadlineMs, resolve, reject });
    });
  }

  /**
   * A name to be asked now: of a round that is overdue, or of a new one for all who wait for one. Undefined
   * if there is nothing to ask.
   */
  takeRound(): string | undefined {
    const overdue = this.#overdue.shift();
    if (overdue !== undefined) return this.#ask(overdue);
    if (this.#waiting.length === 0 || this.#rounds.size >= ROUNDS_MAX) return undefined;
    const round: Round = { waiters: this.#waiting, askedAtMs: 0, contexts: [] };
    this.#waiting = [];
    this.#rounds.add(round);
    return this.#ask(round);
  }

  /** Raft has answered a round: its reads hold from `index` on. */
  confirm(context: string, index: number): void {
    const round = this.#roundByContext.get(context);
    if (round === undefined) return;
    this.#forget(round);
    this.#confirmed.push({ waiters: round.waiters, index });
  }

  /** Answers what the machine has come to. */
  release(appliedIndex: number): void {
    if (this.#confirmed.length === 0) return;
    const due = this.#confirmed.filter(({ index }) => index <= appliedIndex);
    this.#confirmed = this.#confirmed.filter(({ index }) => index > appliedIndex);
    for (const { waiters } of due) {
      this.#count -= waiters.length;
      for (const waiter of waiters) waiter.resolve();
    }
  }

  /** The leader may have forgotten what it was asked: everything unanswered must be asked again. */
  askAgain(): void {
    for (const round of this.#rounds) {
      this.#forget(round);
      this.#waiting.push(...round.waiters);
    }
  }

  /** Asks again what is overdue and refuses what has waited too long. */
  onTick(): void {
    if (this.#count === 0) return;
    const nowMs = this.#options.clock.monotonicMs();
    const isLate = ({ askedAtMs }: Round): boolean => nowMs - askedAtMs >= this.#options.retryMs;
    this.#overdue = [...this.#rounds].filter(isLate);
    const inTime = ({ deadlineMs }: Waiter): boolean => deadlineMs > nowMs;
    this.#keep(inTime, new GroupRefusal('no-quorum', 'no leader could prove itself in time'));
  }

  rejectAll(error: Error): void {
    this.askAgain();
    this.#keep(() => false, error);
  }

  #ask(round: Round): string {
    this.#roundCount += 1;
    const context = `${this.#life}/${this.#roundCount}`;
    round.contexts.push(context);
    round.askedAtMs = this.#options.clock.monotonicMs();
    this.#roundByContext.set(context, round);
    return context;
  }

  #forget(round: Round): void {
    this.#rounds.delete(round);
    this.#overdue = this.#overdue.filter((other) => other !== round);
    for (const context of round.contexts) this.#roundByContext.delete(context);
  }

  #keep(stays: (waiter: Waiter) => boolean, error: Error): void {
    const gone = this.#waiting.filter((waiter) => !stays(waiter));
    this.#waiting = this.#waiting.filter(stays);
    for (const round of this.#rounds) {
      gone.push(...round.waiters.filter((waiter) => !stays(waiter)));
      round.waiters = round.waiters.filter(stays);
      if (round.waiters.length === 0) this.#forget(round);
    }
    this.#confirmed = this.#confirmed.map(({ waiters, index }) => {
      gone.push(...waiters.filter((waiter) => !stays(waiter)));
      return { waiters: waiters.filter(stays), index };
    });
    this.#count -= gone.length;
    for (const waiter of gone) waiter.reject(error);
  }
}
