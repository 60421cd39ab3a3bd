// Read barriers of this node: many callers share one ReadIndex round. A round that is not answered (its
// message or its leader was lost) is asked again under a new name; a name is never used twice, in no
// life of the node, so a late answer can confirm nothing but the round that asked for it.

import type { Clock } from '../platform/clock.ts';
import type { Random } from '../platform/random.ts';
import { GroupRefusal } from './group-refusal.ts';
import { ReplicaError } from './replica.ts';

/** Rounds that wait for their answer; later callers share the next one. */
const ROUNDS_MAX = 8;

interface Waiter {
  readonly deadlineMs: number;
  resolve(): void;
  reject(error: Error): void;
}

interface Round {
  readonly waiters: readonly Waiter[];
  readonly askedAtMs: number;
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
  readonly #roundByContext = new Map<string, Round>();
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

  /** A new round for all who wait for one, to be asked now; undefined if there is nothing to ask. */
  takeRound(): string | undefined {
    if (this.#waiting.length === 0 || this.#roundByContext.size >= ROUNDS_MAX) return undefined;
    this.#roundCount += 1;
    const context = `${this.#life}/${this.#roundCount}`;
    const waiters = this.#waiting;
    this.#waiting = [];
    this.#roundByContext.set(context, { waiters, askedAtMs: this.#options.clock.monotonicMs() });
    return context;
  }

  /** Raft has answered a round: its reads hold from `index` on. */
  confirm(context: string, index: number): void {
    const round = this.#roundByContext.get(context);
    if (round === undefined) return;
    this.#roundByContext.delete(context);
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
    for (const [context, { waiters }] of this.#roundByContext) {
      this.#roundByContext.delete(context);
      this.#waiting.push(...waiters);
    }
  }

  /** Asks again what is overdue and refuses what has waited too long. */
  onTick(): void {
    const nowMs = this.#options.clock.monotonicMs();
    for (const [context, { waiters, askedAtMs }] of this.#roundByContext) {
      if (nowMs - askedAtMs < this.#options.retryMs) continue;
      this.#roundByContext.delete(context);
      this.#waiting.push(...waiters);
    }
    const inTime = ({ deadlineMs }: Waiter): boolean => deadlineMs > nowMs;
    this.#keep(inTime, new GroupRefusal('no-quorum', 'no leader could prove itself in time'));
  }

  rejectAll(error: Error): void {
    this.askAgain();
    this.#keep(() => false, error);
  }

  /** Those in a round that was asked wait for its answer, or for its turn to be asked again. */
  #keep(stays: (waiter: Waiter) => boolean, error: Error): void {
    const gone = this.#waiting.filter((waiter) => !stays(waiter));
    this.#waiting = this.#waiting.filter(stays);
    this.#confirmed = this.#confirmed.map(({ waiters, index }) => {
      gone.push(...waiters.filter((waiter) => !stays(waiter)));
      return { waiters: waiters.filter(stays), index };
    });
    this.#count -= gone.length;
    for (const waiter of gone) waiter.reject(error);
  }
}
