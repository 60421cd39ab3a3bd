// Asks others for their promises, or whether they would give them, and counts what they say.

import { messageOf } from '../../../base/message-of.ts';
import type { GlobalCursor } from '../../global-log.ts';
import {
  decodePromise,
  encodeAsk,
  PROMOTION_METHOD,
  type PromiseAnswer,
  type PromiseAsk,
} from '../promotion-frames.ts';
import { type Ballot, type Count, countOf, endOf, type Standing } from './ballot.ts';
import { takesRest, type Wish } from './wish.ts';

export interface PollOptions {
  /** The own one. */
  readonly datacenter: string;
  /** All that are known to have a part in the federation, whether the own log lists them or not. */
  readonly datacenters: () => readonly string[];
  /** Whether the own log says which cluster has that name: then that one alone is asked. */
  readonly isNamed: (datacenter: string) => boolean;
  /** The leader of that datacenter. Rejects with RpcError. */
  readonly ask: (datacenter: string, method: string, payload: Uint8Array) => Promise<Uint8Array>;
}

export interface PollQuestion {
  readonly wish: Wish;
  /** Those whose promises count. */
  readonly voters: readonly string[];
  readonly ask: PromiseAsk;
  /** They have no more than is there, and may have by now: the log goes on, and so does what is given. */
  readonly following: readonly string[];
}

/** What they said. */
export interface Polled {
  readonly ballot: Ballot;
  readonly count: Count;
}

export class Poll {
  readonly #options: PollOptions;
  #knownEpoch = 0;

  constructor(options: PollOptions) {
    this.#options = options;
  }

  /** The latest epoch that anybody knew who was asked; 0 while nobody was. */
  get knownEpoch(): number {
    return this.#knownEpoch;
  }

  /** Never rejects: who does not answer is on the ballot with why. */
  async hold(question: PollQuestion): Promise<Polled> {
    const ballot = await this.#ask(question);
    const count = this.#count(ballot, question);
    this.#knownEpoch = Math.max(this.#knownEpoch, count.maxEpoch);
    return { ballot, count };
  }

  /** A list of voters may be older than the federation is: whoever takes what others have asks all that are known. */
  async #ask({ wish, voters, ask, following }: PollQuestion): Promise<Ballot> {
    const { ask: say, datacenter, datacenters } = this.#options;
    const known = takesRest(wish) ? datacenters() : [];
    const others = [...new Set([...voters, ...known])].filter((each) => each !== datacenter);
    const answers = await Promise.all(
      others.map(async (voter): Promise<readonly [string, PromiseAnswer | string]> => {
        try {
          const cursor = following.includes(voter) ? endOf(ask.cursor) : ask.cursor;
          const bytes = await say(voter, PROMOTION_METHOD.promise, encodeAsk({ ...ask, cursor }));
          return [voter, decodePromise(bytes)];
        } catch (error) {
          return [voter, messageOf(error)];
        }
      }),
    );
    return new Map(answers);
  }

  #count(ballot: Ballot, { voters, ask: { epoch, cursor }, following }: PollQuestion): Count {
    const { datacenter: candidate, isNamed } = this.#options;
    const cursorFor = (each: string): GlobalCursor => {
      return following.includes(each) ? endOf(cursor) : cursor;
    };
    // Who is listed had something. One that has nothing has just come, or has lost its disks and is another cluster.
    const isWhole = (each: Standing): boolean => each.cursor.seq > 0 || isNamed(each.datacenter);
    return countOf(ballot, { voters, candidate, cursorFor, epoch, isWhole });
  }
}
