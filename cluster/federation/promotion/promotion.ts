// How another datacenter becomes primary. Elected: a majority of the datacenters promises to take nothing of
// a lower epoch, and has nothing that the candidate lacks, so what a majority has acknowledged survives.
// Handed over: the primary stops taking writes, the successor has everything, and the primary is among those
// who promise. Forced: an operator names the epoch and takes the loss. What binds is in the logs of the
// datacenters; here is who asks whom, in which order.

import { messageOf } from '../../base/message-of.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logger.ts';
import type { NetAddress } from '../../platform/net.ts';
import type { Random } from '../../platform/random.ts';
import { RpcError, RpcRefusal } from '../../transport/rpc-error.ts';
import type { RpcCall, RpcRequest, RpcServer } from '../../transport/transport.ts';
import type { PrimaryClaim } from '../directory/directory.ts';
import { type GlobalCursor, isSameCursor, positionText } from '../global-log.ts';
import { type Ballot, ballotText, type Count, countOf, isFurther } from './ballot.ts';
import { LaterReign } from './later-reign.ts';
import {
  decodeAsk,
  decodePromise,
  decodeTake,
  decodeTaken,
  encodeAsk,
  encodeEpochs,
  encodePromise,
  encodeTake,
  encodeTaken,
  PROMOTION_METHOD,
  PROMOTION_REFUSAL,
  type PromiseAnswer,
  type PromiseAsk,
} from './promotion-frames.ts';
import { type PromotionPort, type PromotionState, successorOf } from './promotion-port.ts';
import { PromotionRefusal } from './promotion-refusal.ts';

export interface PromotionOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** The own one. */
  readonly datacenter: string;
  readonly port: PromotionPort;
  /** Of its servers, the leader's first; none: nobody knows. */
  readonly addressesOf: (datacenter: string) => readonly NetAddress[];
  /** Who is said to be primary. */
  readonly claim: () => PrimaryClaim | undefined;
  /** The feed cannot go on: the primary has not what is here. */
  readonly isDiverged: () => boolean;
  /** How far a datacenter that follows this one has acknowledged; undefined: it is not heard. */
  readonly ackedSeqOf: (datacenter: string) => number | undefined;
  /** Rejects with RpcError. */
  readonly call: (to: NetAddress, request: RpcCall) => Promise<Uint8Array>;
  readonly timing?: Partial<PromotionTiming>;
}

export interface PromotionTiming {
  readonly callMs: number;
  /** Of a whole hand-over at the successor. */
  readonly takeMs: number;
  /** So long the primary waits, without writes, until its successor has everything. */
  readonly catchUpMs: number;
}

export const DEFAULT_PROMOTION_TIMING: PromotionTiming = {
  callMs: 5_000,
  takeMs: 20_000,
  catchUpMs: 10_000,
};

export interface Promoted {
  readonly epoch: number;
  readonly promises: readonly string[];
  /** The last entry of the reigns before that the new primary has. */
  readonly cursor: GlobalCursor;
}

/** How a candidate stands. */
type Wish =
  | { readonly kind: 'elected' }
  /** The primary itself, whom somebody outran with a promise. */
  | { readonly kind: 'renewed'; readonly after: number }
  | { readonly kind: 'handed-over'; readonly by: string }
  | { readonly kind: 'forced'; readonly epoch: number };

const OWN_PROMISE_TRIES = 5;
const POLL_MS = 20;

export class Promotion {
  /** To be served for all datacenters, by their methods. */
  readonly handlers: Readonly<Record<string, RpcServer>> = {
    [PROMOTION_METHOD.promise]: (request) => this.#onPromise(request),
    [PROMOTION_METHOD.take]: (request) => this.#onTake(request),
    [PROMOTION_METHOD.epochs]: async () => this.#onEpochs(),
  };
  readonly #options: PromotionOptions;
  readonly #timing: PromotionTiming;
  readonly #laterReign: LaterReign;
  #isUnderWay = false;

  constructor(options: PromotionOptions) {
    this.#options = options;
    this.#timing = { ...DEFAULT_PROMOTION_TIMING, ...options.timing };
    this.#laterReign = new LaterReign(options);
  }

  /** This server leads its datacenter: from now on it learns of reigns that began without it. */
  start(): void {
    this.#laterReign.start();
  }

  /** It does not any more. Stopping twice is harmless. */
  stop(): void {
    this.#laterReign.stop();
  }

  /**
   * Makes this datacenter primary by a majority of all; a primary whom a promise to another one has outrun begins
   * the next epoch. On its leader. Rejects with PromotionRefusal.
   */
  elect(): Promise<Promoted> {
    return this.#alone(() => this.#run({ kind: 'elected' }));
  }

  /**
   * On the primary's leader: another datacenter has promised a later epoch, and takes nothing of this reign.
   * If that one began, this one is over; if nobody came of it, this datacenter begins the next. One that is said
   * to have begun and cannot be asked may have writes of its own: only a person passes over them, by `elect`.
   * Resolves when either is done, or cannot be for now.
   */
  async onNewerEpoch(epoch: number): Promise<void> {
    const state = this.#options.port.state();
    if (this.#isUnderWay || state?.isPrimary !== true || state.epoch >= epoch) return;
    try {
      if (await this.#laterReign.look()) return;
      const claim = this.outrunBy();
      if (claim !== undefined) {
        throw refused(`${claim.datacenter} has begun epoch ${claim.epoch}, and does not answer`);
      }
      await this.#alone(() => this.#run({ kind: 'renewed', after: epoch }));
    } catch (error) {
      const why = messageOf(error);
      this.#options.logger.warn({ epoch, why }, 'this reign is outrun, and no other has begun');
    }
  }

  /** Who is said to have begun a later reign, where the own datacenter still takes itself for the primary. */
  outrunBy(): PrimaryClaim | undefined {
    const isPrimary = this.#options.port.state()?.isPrimary === true;
    return isPrimary ? this.#laterReign.claimed() : undefined;
  }

  /**
   * Makes this datacenter primary without a majority: what the others have and it has not is lost. `epoch`
   * must be the next one, so that nobody does it twice. On its leader. Rejects with PromotionRefusal.
   */
  force(epoch: number): Promise<Promoted> {
    return this.#alone(() => this.#run({ kind: 'forced', epoch }));
  }

  /**
   * On the primary's leader: that datacenter is primary after it, and nothing is lost. Gives the epoch. Where
   * it has promised one to that datacenter already, and nobody began it, the same is tried anew with the next.
   */
  handOver(to: string): Promise<number> {
    return this.#alone(async () => {
      const { datacenter, port } = this.#options;
      const state = this.#require();
      const successor = successorOf(datacenter, state);
      if (!state.isPrimary && successor !== to) {
        const promised = successor && `: it has promised epoch ${state.maxEpoch} to ${successor}`;
        throw refused(`this datacenter is not the primary${promised ?? ''}`);
      }
      if (to === datacenter) throw refused(`${to} is the primary already`);
      const release = port.seal();
      try {
        const cursor = await port.settled();
        // Whoever is promised an epoch had everything then, and is asked again whether it is there.
        if (successor === undefined) await this.#awaitAck(to, cursor.seq);
        const { takeMs } = this.#timing;
        const answer = await this.#ask(to, PROMOTION_METHOD.take, encodeTake(cursor), takeMs);
        return decodeTaken(answer);
      } catch (error) {
        throw refusalOf(error);
      } finally {
        // If it has promised by now, its log takes no more writes whatever is released here.
        release();
      }
    });
  }

  async #run(wish: Wish): Promise<Promoted> {
    const trial = this.#require();
    if (trial.isPrimary && wish.kind !== 'renewed' && wish.kind !== 'elected') throw already();
    const epoch = await this.#epochFor(wish, trial);
    const cursor = await this.#promiseSelf(epoch);
    const ask = { epoch, candidate: this.#options.datacenter, cursor, isTrial: false };
    const ballot = await this.#poll(ask, trial);
    const { promised, hasMajority, further, rivals } = this.#count(ballot, trial, {
      epoch,
      cursor,
    });
    // Two reigns of one epoch could not be told apart.
    const isUnrivalled = further.length === 0 && rivals.length === 0;
    const mayBegin = wish.kind === 'forced' ? isUnrivalled : hasMajority;
    if (!mayBegin) throw undecided(`epoch ${epoch} does not begin: ${ballotText(ballot)}`);
    if (wish.kind === 'handed-over' && !promised.includes(wish.by)) {
      throw undecided(`epoch ${epoch} does not begin without ${wish.by}: ${ballotText(ballot)}`);
    }
    const isForced = wish.kind === 'forced';
    if (!(await this.#options.port.start({ epoch, promises: promised, isForced }))) {
      throw undecided(`epoch ${epoch} could not begin: another one was promised meanwhile`);
    }
    const fields = { epoch, promises: promised, isForced, position: positionText(cursor) };
    this.#options.logger.warn(fields, 'this datacenter is the primary now');
    return { epoch, promises: promised, cursor };
  }

  /** Asks everybody whether it would come to it, before anybody gives anything up. */
  async #epochFor(wish: Wish, state: PromotionState): Promise<number> {
    const { cursor, maxEpoch } = state;
    const candidate = this.#options.datacenter;
    const next = maxEpoch + 1;
    if (wish.kind === 'forced' && wish.epoch !== next) {
      throw refused(`the next epoch is ${next}, not ${wish.epoch}`);
    }
    // Whether anybody else promised a later one is what the trial finds out, so it asks for none of them.
    const ask = { epoch: Number.MAX_SAFE_INTEGER, candidate, cursor, isTrial: true };
    const ballot = await this.#poll(ask, state);
    const count = this.#count(ballot, state, ask);
    // Who has promised a later epoch to another one takes nothing of this reign, and never will.
    if (state.isPrimary && wish.kind === 'elected' && count.maxEpoch <= maxEpoch) throw already();
    if (wish.kind === 'forced') {
      if (count.further.length === 0) return next;
      throw furtherThere(count, ballot);
    }
    if (wish.kind === 'handed-over' && !count.promised.includes(wish.by)) {
      throw refused(`${wish.by} does not hand over: ${ballotText(ballot)}`);
    }
    // Whoever has begun the later epoch is about to be heard of: nobody but a person passes over it.
    if (wish.kind === 'renewed' && count.further.length > 0) throw furtherThere(count, ballot);
    if (!count.hasMajority) throw refused(`there is no majority: ${ballotText(ballot)}`);
    const after = wish.kind === 'renewed' ? wish.after : 0;
    return Math.max(maxEpoch, count.maxEpoch, after) + 1;
  }

  /** From here on the own place does not move. Resolves with it. */
  async #promiseSelf(epoch: number): Promise<GlobalCursor> {
    const { datacenter: candidate, port } = this.#options;
    for (let tries = 0; tries < OWN_PROMISE_TRIES; tries += 1) {
      const { cursor } = this.#require();
      const answer = await port.promise({ epoch, candidate, cursor, isTrial: false });
      if (answer.isGranted) return answer.cursor;
      // Entries have come in between: it is further than it said.
      if (!isFurther(answer.cursor, cursor)) break;
    }
    throw refused(`this datacenter cannot promise epoch ${epoch} to itself`);
  }

  async #poll(ask: PromiseAsk, { voters }: PromotionState): Promise<Ballot> {
    const others = voters.filter((voter) => voter !== this.#options.datacenter);
    const answers = await Promise.all(
      others.map(async (voter): Promise<readonly [string, PromiseAnswer | string]> => {
        try {
          const { callMs } = this.#timing;
          const bytes = await this.#ask(voter, PROMOTION_METHOD.promise, encodeAsk(ask), callMs);
          return [voter, decodePromise(bytes)];
        } catch (error) {
          return [voter, messageOf(error)];
        }
      }),
    );
    return new Map(answers);
  }

  #count(
    ballot: Ballot,
    { voters }: PromotionState,
    { epoch, cursor }: Pick<PromiseAsk, 'epoch' | 'cursor'>,
  ): Count {
    return countOf(ballot, { voters, candidate: this.#options.datacenter, cursor, epoch });
  }

  /** The leader of that datacenter, whichever of its servers that is. Rejects with RpcError. */
  async #ask(
    datacenter: string,
    method: string,
    payload: Uint8Array,
    deadlineMs: number,
  ): Promise<Uint8Array> {
    const { addressesOf, call } = this.#options;
    let failure = new RpcError('unreachable', `no address of ${datacenter} is known`);
    for (const address of addressesOf(datacenter)) {
      try {
        return await call(address, { method, payload, deadlineMs, hops: 0, datacenter });
      } catch (error) {
        if (!(error instanceof RpcError)) throw error;
        failure = error;
        const isElsewhere = error.refusal?.code === PROMOTION_REFUSAL.notLeading;
        if (!isElsewhere && error.code !== 'unreachable') throw error;
      }
    }
    throw failure;
  }

  async #awaitAck(datacenter: string, seq: number): Promise<void> {
    const { ackedSeqOf, clock } = this.#options;
    const untilMs = clock.monotonicMs() + this.#timing.catchUpMs;
    while ((ackedSeqOf(datacenter) ?? -1) < seq) {
      if (clock.monotonicMs() >= untilMs) {
        const acked = ackedSeqOf(datacenter) ?? 'nothing';
        throw refused(`${datacenter} has acknowledged ${acked} of ${seq}, and was waited for`);
      }
      await new Promise<void>((resolve) => {
        clock.after(POLL_MS, resolve);
      });
    }
  }

  async #onPromise({ from, payload }: RpcRequest): Promise<Uint8Array> {
    const { port } = this.#options;
    const ask = decodeAsk(payload);
    const { cursor, maxEpoch } = this.#lead();
    if (ask.candidate !== from.datacenter) {
      const says = `${from.datacenter} asks for a promise to ${ask.candidate}`;
      throw new RpcRefusal(PROMOTION_REFUSAL.refused, says);
    }
    const answer = ask.isTrial
      ? { isGranted: port.mayPromise(ask), cursor, maxEpoch }
      : await port.promise(ask);
    if (!ask.isTrial) {
      const { epoch, candidate } = ask;
      const fields = { epoch, candidate, isGranted: answer.isGranted };
      this.#options.logger.warn(fields, 'a datacenter asked for a promise');
    }
    return encodePromise(answer);
  }

  async #onTake({ from, payload }: RpcRequest): Promise<Uint8Array> {
    const theirs = decodeTake(payload);
    const { cursor } = this.#lead();
    if (!isSameCursor(cursor, theirs)) {
      const says = `${this.#options.datacenter} is at ${positionText(cursor)}, ${from.datacenter} at ${positionText(theirs)}`;
      throw new RpcRefusal(PROMOTION_REFUSAL.refused, says);
    }
    try {
      const wish = { kind: 'handed-over', by: from.datacenter } as const;
      const { epoch } = await this.#alone(() => this.#run(wish));
      return encodeTaken(epoch);
    } catch (error) {
      const isRefusal = error instanceof PromotionRefusal;
      const why = messageOf(error);
      throw new RpcRefusal(PROMOTION_REFUSAL[isRefusal ? error.code : 'undecided'], why);
    }
  }

  #onEpochs(): Uint8Array {
    const { epochs, isPrimary } = this.#lead();
    if (isPrimary) return encodeEpochs(epochs);
    const says = `${this.#options.datacenter} is not the primary`;
    throw new RpcRefusal(PROMOTION_REFUSAL.refused, says);
  }

  /** Throws RpcRefusal. */
  #lead(): PromotionState {
    const { datacenter, port } = this.#options;
    const state = port.isLeading() ? port.state() : undefined;
    if (state !== undefined) return state;
    const says = `this server does not lead ${datacenter}, or it has no global log yet`;
    throw new RpcRefusal(PROMOTION_REFUSAL.notLeading, says);
  }

  /** Throws PromotionRefusal. */
  #require(): PromotionState {
    const { port } = this.#options;
    if (!port.isLeading()) throw refused('this server does not lead its datacenter');
    const state = port.state();
    if (state === undefined) throw refused('there is no global log here yet');
    return state;
  }

  async #alone<T>(work: () => Promise<T>): Promise<T> {
    if (this.#isUnderWay) throw refused('a promotion is under way here already');
    this.#isUnderWay = true;
    try {
      return await work();
    } finally {
      this.#isUnderWay = false;
    }
  }
}

function refused(says: string): PromotionRefusal {
  return new PromotionRefusal('refused', says);
}

function already(): PromotionRefusal {
  return refused('this datacenter is the primary already');
}

function furtherThere({ further }: Count, ballot: Ballot): PromotionRefusal {
  const says = `${further.join(', ')} can be reached and has more`;
  return refused(`${says}: promote that one. ${ballotText(ballot)}`);
}

function undecided(says: string): PromotionRefusal {
  return new PromotionRefusal('undecided', says);
}

/** What the successor says, in its words; what is not known stays so. */
function refusalOf(error: unknown): unknown {
  if (!(error instanceof RpcError)) return error;
  const isUndecided = error.refusal?.code === PROMOTION_REFUSAL.undecided;
  const isKnown = error.code !== 'lost' && error.code !== 'timeout' && !isUndecided;
  return isKnown ? refused(error.message) : undecided(error.message);
}
