// How another datacenter becomes primary. Elected: a majority of the datacenters promises to take nothing of
// a lower epoch, and has nothing that the candidate lacks, so what a majority has acknowledged survives.
// Handed over: the primary stops taking writes, the successor has everything, and the primary is among those
// who promise. Forced: an operator takes the loss. What binds is in the logs of the datacenters; here is who
// asks whom.

import { messageOf } from '../../base/message-of.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logger.ts';
import type { Random } from '../../platform/random.ts';
import { RpcError, RpcRefusal } from '../../transport/calls/rpc-error.ts';
import type { RpcRequest, RpcServer } from '../../transport/transport.ts';
import type { PrimaryClaim } from '../directory/directory.ts';
import { type GlobalCursor, isFurther, isSameCursor, positionText } from '../global-log.ts';
import { areTwoFederations } from '../refuse-outsiders.ts';
import { type AskLeaderOptions, askLeader } from './ask-leader.ts';
import { Candidacy, type Promoted, type Wish } from './candidacy.ts';
import { type LaterClaim, LaterReign } from './later-reign.ts';
import { type PassedOverOptions, passedOverBy } from './passed-over.ts';
import {
  decodeAsk,
  decodeEpochsAsk,
  decodeTake,
  decodeTaken,
  encodeEpochs,
  encodePromise,
  encodeTake,
  encodeTaken,
  PROMOTION_METHOD,
  PROMOTION_REFUSAL,
  type PromiseAnswer,
  type PromiseAsk,
} from './promotion-frames.ts';
import {
  isRenewing,
  type PromotionPort,
  type PromotionState,
  requireLeading,
  successorOf,
} from './promotion-port.ts';
import { PromotionRefusal, refused, undecided, wayOnWithout } from './promotion-refusal.ts';
import { RestOfLog, type RestOfLogOptions } from './rest-of-log.ts';
import { WayBack } from './way-back.ts';

export interface PromotionOptions
  extends PassedOverOptions,
    Pick<RestOfLogOptions, 'source' | 'unreadableBy'> {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Empty while none is known. */
  readonly federationId: () => string;
  readonly port: PromotionPort;
  /** Who is said to be primary. */
  readonly claim: () => PrimaryClaim | undefined;
  /** The latest epoch that anybody has told of, those that were removed too; 0 while nobody has. */
  readonly heardEpoch: () => number;
  /** Whether another one is said to have begun that epoch of this datacenter, too. */
  readonly isRivalled: (epoch: number) => boolean;
  /**
   * Why a reign that this datacenter began by itself, or gave away, would pass over what others have, and what to do
   * about it; undefined: nobody is known to have any.
   */
  readonly passesOver: () => string | undefined;
  /** Asks all that are known who is primary and where all are: `claim` and `addressesOf` say it. Never rejects. */
  readonly hearAll: () => Promise<void>;
  /** Whether the own log says which cluster has that name: then that one alone is asked. */
  readonly isNamed: (datacenter: string) => boolean;
  /** All that are known to have a part in the federation, whether the own log lists them or not. */
  readonly datacenters: () => readonly string[];
  /**
   * Whoever wrote the reign that the own log knows of asks how far this datacenter is, and may have been put back:
   * from when it is called on, nothing of what has come of it before is begun to be taken.
   */
  readonly onWriterAsks: () => void;
  /** The feed cannot go on: the primary has not what is here. */
  readonly isDiverged: () => boolean;
  /** As `call`, to whom others follow in a reign that the own log knows nothing of. */
  readonly callFollowed: AskLeaderOptions['call'];
  /** How far a datacenter that follows this one has acknowledged; undefined: it is not heard. */
  readonly ackedSeqOf: (datacenter: string) => number | undefined;
  readonly timing?: Partial<PromotionTiming>;
}

export interface PromotionTiming {
  readonly callMs: number;
  /** Of a whole hand-over at the successor. */
  readonly takeMs: number;
  /** So long the primary waits, while it writes on, until its successor has what there was at first. */
  readonly catchUpMs: number;
  /** So long it waits then, without writes, until that one has the rest: clients wait for longer. */
  readonly restMs: number;
  /** So long a primary takes no writes behind the last time that another one asked for its promise. */
  readonly yieldMs: number;
}

const DEFAULT_PROMOTION_TIMING: PromotionTiming = {
  callMs: 5_000,
  takeMs: 20_000,
  catchUpMs: 10_000,
  restMs: 3_000,
  // Of a candidate that asks all anew when the slowest has answered.
  yieldMs: 10_000,
};

const POLL_MS = 20;

export class Promotion {
  /** To be served for all datacenters, by their methods. */
  readonly handlers: Readonly<Record<string, RpcServer>> = {
    [PROMOTION_METHOD.promise]: (request) => this.#onPromise(request),
    [PROMOTION_METHOD.take]: (request) => this.#onTake(request),
    [PROMOTION_METHOD.epochs]: async (request) => this.#onEpochs(request),
    [PROMOTION_METHOD.rest]: async (request) => this.#rest.give(request, this.#lead()),
  };
  readonly #options: PromotionOptions;
  readonly #timing: PromotionTiming;
  readonly #laterReign: LaterReign;
  readonly #rest: RestOfLog;
  readonly #candidacy: Candidacy;
  #isUnderWay = false;
  /** A renewal is tried, or it is being looked whether one is to be. */
  #isRenewing = false;
  /** Resolves when the last renewal that this primary tried by itself is over. */
  #renewal: Promise<unknown> = Promise.resolve();
  /** Ends that this primary takes no writes for whoever asks for its promise. */
  #endYielding: (() => void) | undefined;

  constructor(options: PromotionOptions) {
    this.#options = options;
    this.#timing = { ...DEFAULT_PROMOTION_TIMING, ...options.timing };
    this.#laterReign = new LaterReign({
      ...options,
      call: options.callFollowed,
      onNone: () => this.#renewAgain(),
    });
    const { callMs: deadlineMs } = this.#timing;
    const ask = (datacenter: string, method: string, payload: Uint8Array) =>
      askLeader(options, { datacenter, method, payload, deadlineMs });
    this.#rest = new RestOfLog({ ...options, ask });
    const wayBack = new WayBack({ ...options, ask, rest: this.#rest });
    const isYielding = () => this.#endYielding !== undefined;
    const passedOverAt = (cursor: GlobalCursor) =>
      this.#passedOverBy({ candidate: options.datacenter, cursor });
    this.#candidacy = new Candidacy({
      ...{ ...options, ask, rest: this.#rest, wayBack },
      ...{ isYielding, passedOverAt, passesOver: () => this.#passedOverByRenewal() },
    });
  }

  /** This server leads its datacenter: from now on it learns of reigns that began without it. */
  start(): void {
    this.#laterReign.start();
  }

  /** It does not any more. Stopping twice is harmless. */
  stop(): void {
    this.#laterReign.stop();
    this.#endYielding?.();
  }

  /**
   * Makes this datacenter primary by a majority of all; a primary whom a promise to another one has outrun begins
   * the next epoch. On its leader. Rejects with PromotionRefusal.
   */
  elect(): Promise<Promoted> {
    return this.#asWished(() => this.#stand({ kind: 'elected' }));
  }

  /**
   * On the primary's leader: another datacenter has promised a later epoch, and takes nothing of this reign.
   * If that one began, this one is over; if nobody came of it, this datacenter begins the next. One that is said
   * to have begun and cannot be asked may have writes of its own: only a person passes over them, by `elect`.
   * Resolves when either is done, or cannot be for now.
   */
  async onNewerEpoch(epoch: number): Promise<void> {
    const state = this.#options.port.state();
    if (state?.isPrimary !== true || state.epoch >= epoch) return;
    await this.#renew(state, epoch);
  }

  /**
   * Whoever was to promise may have been lost behind the own promise. What only this datacenter could have begun has
   * not begun, so it waits for no person.
   */
  async #renewAgain(): Promise<void> {
    const { datacenter, port } = this.#options;
    const state = port.isLeading() ? port.state() : undefined;
    if (state === undefined || !isRenewing(datacenter, state)) return;
    await this.#renew(state, state.maxEpoch);
  }

  /** Begins an epoch behind that one, unless somebody has begun one since. */
  async #renew(state: PromotionState, after: number): Promise<void> {
    if (this.#isRenewing || !this.#mayRenew(state)) return;
    this.#isRenewing = true;
    try {
      await this.#renewUnlessBegun(state, after);
    } catch (error) {
      const why = messageOf(error);
      const says = 'this reign is outrun, and no other has begun';
      this.#options.logger.warn({ epoch: after, why }, says);
    } finally {
      this.#isRenewing = false;
    }
  }

  async #renewUnlessBegun(state: PromotionState, after: number): Promise<void> {
    // Whoever was asked for a promise may have heard of a reign of which nobody has told this one yet.
    await this.#options.hearAll();
    if (await this.#laterReign.look()) return;
    // Whoever has it may not answer when it is asked for its promise.
    const passesOver = this.#passedOverByRenewal();
    if (passesOver !== undefined) throw refused(passesOver);
    if (!this.#mayRenew(state)) return;
    const renewal = this.#alone(() => this.#run({ kind: 'renewed', after }));
    this.#renewal = renewal.catch(() => undefined);
    await renewal;
  }

  /** What this datacenter would pass over if it went on by itself, as it has been heard by now. */
  #passedOverByRenewal(): string | undefined {
    const { datacenter, passesOver, port } = this.#options;
    const later = this.#laterReign.claimed();
    if (later !== undefined) {
      const why = later.isOver ? 'is the primary no more' : 'does not answer';
      return `${later.datacenter} has begun epoch ${later.epoch}, and ${why}`;
    }
    const told = this.#options.claim();
    const epoch = port.state()?.epoch ?? 0;
    // It has lost that itself: whoever has it goes on.
    if (told?.datacenter === datacenter && told.epoch > epoch) {
      return `this datacenter began epoch ${told.epoch}, and has lost it`;
    }
    return passesOver();
  }

  /** Not where a person has begun something meanwhile, or another one asks for the promise of this datacenter. */
  #mayRenew({ epoch }: PromotionState): boolean {
    const isFree = !this.#isUnderWay && this.#endYielding === undefined;
    return isFree && this.#options.port.state()?.epoch === epoch;
  }

  /** Who is said to have begun a later reign, where the own datacenter still takes itself for the primary. */
  outrunBy(): LaterClaim | undefined {
    const isPrimary = this.#options.port.state()?.isPrimary === true;
    return isPrimary ? this.#laterReign.claimed() : undefined;
  }

  /** That a forced move has to name. On its leader. Throws PromotionRefusal. */
  nextEpoch(): number {
    return this.#candidacy.nextEpoch();
  }

  /**
   * Makes this datacenter primary without a majority: what the others have and it has not is lost. `next`
   * must be `nextEpoch`, so that nobody does it twice; the epoch that begins is behind it, and of this move alone.
   * On its leader. Rejects with PromotionRefusal.
   */
  force(next: number): Promise<Promoted> {
    return this.#asWished(() => this.#stand({ kind: 'forced', next }));
  }

  /** Behind a start it may not know yet where somebody is who has more. */
  async #stand(wish: Wish): Promise<Promoted> {
    await this.#options.hearAll();
    return await this.#run(wish);
  }

  /** Whoever asked for a promise before asked an earlier reign: this one takes writes at once. */
  async #run(wish: Wish): Promise<Promoted> {
    const promoted = await this.#candidacy.run(wish);
    this.#endYielding?.();
    return promoted;
  }

  /**
   * On the primary's leader: that datacenter is primary after it, nothing is lost, and nobody is left without
   * what it writes. Gives the epoch. Where one was promised to that datacenter already, and nobody began it, the
   * same is tried anew with the next. Rejects with PromotionRefusal.
   */
  handOver(to: string): Promise<number> {
    return this.#asWished(async () => {
      const { datacenter, port } = this.#options;
      const state = requireLeading(port);
      const successor = successorOf(datacenter, state);
      if (!state.isPrimary && successor !== to) {
        const promised = successor && `: it has promised epoch ${state.maxEpoch} to ${successor}`;
        throw refused(`${datacenter} is not the primary${promised ?? ''}`);
      }
      if (to === datacenter) throw refused(`${to} is the primary already`);
      // Whoever is promised an epoch had everything then, and is asked again whether it is there. Whoever is away, or
      // far behind, keeps no write waiting.
      const mustCatchUp = successor === undefined;
      const leftBehind = mustCatchUp ? await port.leftBehindBy(to) : undefined;
      if (leftBehind !== undefined) throw refused(leftBehind);
      if (mustCatchUp) await this.#awaitAck(to, state.cursor.seq, this.#timing.catchUpMs);
      const release = port.seal();
      try {
        const cursor = await port.settled();
        if (mustCatchUp) await this.#awaitAck(to, cursor.seq, this.#timing.restMs);
        // As it has been heard by now.
        const passesOver = this.#options.passesOver();
        if (passesOver !== undefined) throw refused(passesOver);
        const answer = await askLeader(this.#options, {
          datacenter: to,
          method: PROMOTION_METHOD.take,
          payload: encodeTake(cursor),
          deadlineMs: this.#timing.takeMs,
        });
        return decodeTaken(answer);
      } catch (error) {
        throw refusalOf(error);
      } finally {
        // If it has promised by now, its log takes no more writes whatever is released here.
        release();
      }
    });
  }

  async #awaitAck(datacenter: string, seq: number, limitMs: number): Promise<void> {
    const { ackedSeqOf, clock } = this.#options;
    const untilMs = clock.monotonicMs() + limitMs;
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
    const { datacenter, heardEpoch, port } = this.#options;
    const ask = decodeAsk(payload);
    if (ask.candidate !== from.datacenter) {
      const says = `${from.datacenter} asks for a promise to ${ask.candidate}`;
      throw new RpcRefusal(PROMOTION_REFUSAL.refused, says);
    }
    if (!ask.isTrial) await this.#yieldTo(ask);
    const passesOver = await this.#passedOverBy(ask);
    const state = this.#lead();
    if (ask.isTrial && passesOver !== undefined) {
      const says = `${datacenter} has lost what ${passesOver} has of its reigns, and promises nothing to whoever lacks that`;
      const wayOn = wayOnWithout(passesOver, datacenter, state);
      throw new RpcRefusal(PROMOTION_REFUSAL.refused, `${says}: ${wayOn}`);
    }
    const isRefused = passesOver !== undefined || heardEpoch() >= ask.epoch;
    const { isGranted, cursor, maxEpoch } =
      ask.isTrial || isRefused ? this.#told(ask, state) : await port.promise(ask);
    if (isGranted && !ask.isTrial) this.#endYielding?.();
    // The candidate may have heard nothing of whoever has begun it, and this one not before it promised.
    const begunEpoch = heardEpoch();
    const answer = {
      isGranted: isGranted && begunEpoch < ask.epoch,
      cursor,
      maxEpoch: Math.max(maxEpoch, begunEpoch),
    };
    if (!ask.isTrial) {
      const { epoch, candidate } = ask;
      const fields = { epoch, candidate, isGranted: answer.isGranted, passesOver };
      this.#options.logger.warn(fields, 'a datacenter asked for a promise');
    }
    return encodePromise(answer);
  }

  /**
   * What binds nobody: how far this datacenter is. Whoever wrote its reign has all that is on its way from there into
   * the own log, or has lost it: then it must not write in the place of what may yet land. For others it counts as
   * little as what is on no quorum of disks.
   */
  #told(ask: PromiseAsk, { cursor, maxEpoch, primary }: PromotionState): PromiseAnswer {
    const { onWriterAsks, port } = this.#options;
    const isWriter = ask.candidate === primary;
    if (isWriter) onWriterAsks();
    const place = isWriter ? port.mayReach(cursor) : cursor;
    if (isFurther(place, cursor)) {
      const fields = {
        to: ask.candidate,
        position: positionText(place),
        applied: positionText(cursor),
      };
      this.#options.logger.warn(fields, 'tells of what has come and is not applied yet');
    }
    const isGranted = ask.isTrial && port.mayPromise(ask) && !isFurther(place, ask.cursor);
    return { isGranted, cursor: place, maxEpoch };
  }

  /** Who has of the own reigns what is lost here, and the candidate has not; or may have. */
  #passedOverBy(ask: Pick<PromiseAsk, 'candidate' | 'cursor'>): Promise<string | undefined> {
    const own = this.#options.port.state()?.cursor ?? ask.cursor;
    // Whoever asks this one waits for twice as long.
    return passedOverBy(this.#options, { ...ask, own, deadlineMs: this.#timing.callMs / 2 });
  }

  /**
   * A primary that wrote on would have more each time that it is asked: so for a while it takes no writes, and what it
   * has then is taken before it is asked again. Nor does it begin a reign of its own meanwhile. Whoever will be
   * promised nothing, whatever it takes, keeps no write waiting. Resolves when nothing is being written any more.
   */
  async #yieldTo(ask: PromiseAsk): Promise<void> {
    const { datacenter, heardEpoch, port } = this.#options;
    const state = this.#lead();
    const isReign = state.isPrimary || isRenewing(datacenter, state);
    const mayEverPromise =
      heardEpoch() < ask.epoch && port.mayPromise({ ...ask, cursor: state.cursor });
    if (!isReign || !mayEverPromise) return;
    this.#yield();
    await port.settled();
  }

  #yield(): void {
    const { clock, port } = this.#options;
    const release = port.seal();
    this.#endYielding?.();
    const end = (): void => {
      timer.cancel();
      release();
      if (this.#endYielding === end) this.#endYielding = undefined;
    };
    const timer = clock.after(this.#timing.yieldMs, end);
    this.#endYielding = end;
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

  #onEpochs({ from, payload }: RpcRequest): Uint8Array {
    const { epochs, isPrimary, isWitness, isDiverged } = this.#lead();
    const theirs = decodeEpochsAsk(payload);
    const own = this.#options.federationId();
    if (areTwoFederations(own, theirs ?? '')) {
      const says = `${from.datacenter} is of federation ${theirs}, ${this.#options.datacenter} of ${own}`;
      throw new RpcRefusal(PROMOTION_REFUSAL.refused, says);
    }
    // What a witness has of a reign, nobody but a candidate can go on with.
    const tells = isPrimary || (isWitness && !isDiverged);
    if (tells) return encodeEpochs(epochs, theirs === undefined ? undefined : own);
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

  /** Of a person. A renewal that does not come about is tried again at once, and would be in the way for ever. */
  async #asWished<T>(work: () => Promise<T>): Promise<T> {
    await this.#renewal;
    return await this.#alone(work);
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

/** What the successor says, in its words; what is not known stays so. */
function refusalOf(error: unknown): unknown {
  if (!(error instanceof RpcError)) return error;
  const isUndecided = error.refusal?.code === PROMOTION_REFUSAL.undecided;
  const isKnown = error.code !== 'lost' && error.code !== 'timeout' && !isUndecided;
  return isKnown ? refused(error.message) : undecided(error.message);
}
