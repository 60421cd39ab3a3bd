// How another datacenter becomes primary. Elected: a majority of the datacenters promises to take nothing of
// a lower epoch, and has nothing that the candidate lacks, so what a majority has acknowledged survives.
// Handed over: the primary stops taking writes, the successor has everything, and the primary is among those
// who promise. Forced: an operator takes the loss. What binds is in the logs of the datacenters; here is who
// asks whom.

import { messageOf } from '../../base/message-of.ts';
import type { RequireStill } from '../../base/require-still.ts';
import { RpcRefusal } from '../../transport/calls/rpc-error.ts';
import type { RpcRequest, RpcServer } from '../../transport/transport.ts';
import { isSameCursor, positionText } from '../global-log.ts';
import { areTwoFederations } from '../refuse-outsiders.ts';
import { type AskLeaderOptions, askLeader } from './ask-leader.ts';
import { Candidacy, type CandidacyOptions, type Promoted } from './candidacy/candidacy.ts';
import { RestOfLog, type RestOfLogOptions } from './candidacy/rest-of-log.ts';
import { WayBack } from './candidacy/way-back.ts';
import type { Wish } from './candidacy/wish.ts';
import { type HandOverDeps, handOver } from './hand-over.ts';
import type { LaterClaim } from './later-reign.ts';
import { PromiseGiver, type PromiseGiverOptions } from './promise-giver.ts';
import {
  decodeEpochsAsk,
  decodeTake,
  encodeEpochs,
  encodeTaken,
  PROMOTION_METHOD,
  PROMOTION_REFUSAL,
} from './promotion-frames.ts';
import { type PromotionState, requireAsked } from './promotion-port.ts';
import { PromotionRefusal, refused } from './promotion-refusal.ts';
import { DEFAULT_PROMOTION_TIMING, type PromotionTiming } from './promotion-timing.ts';
import { Renewal, type RenewalOptions } from './renewal.ts';

export interface PromotionOptions
  extends Omit<PromiseGiverOptions, 'callMs' | 'yieldMs'>,
    Pick<CandidacyOptions, 'datacenters' | 'isNamed' | 'isRivalled'>,
    Pick<HandOverDeps, 'ackedSeqOf'>,
    Pick<RenewalOptions, 'claim' | 'federationId' | 'hearAll' | 'isDiverged' | 'random'>,
    Pick<RestOfLogOptions, 'source' | 'unreadableBy'> {
  /**
   * Why a reign that this datacenter began by itself, or gave away, would pass over what others have, and what to do
   * about it; undefined: nobody is known to have any.
   */
  readonly passesOver: () => string | undefined;
  /** As `call`, to whom others follow in a reign that the own log knows nothing of. */
  readonly callFollowed: AskLeaderOptions['call'];
  readonly timing?: Partial<PromotionTiming>;
}

export class Promotion {
  /** To be served for all datacenters, by their methods. */
  readonly handlers: Readonly<Record<string, RpcServer>> = {
    [PROMOTION_METHOD.promise]: (request) => this.#promises.answer(request),
    [PROMOTION_METHOD.take]: (request) => this.#onTake(request),
    [PROMOTION_METHOD.epochs]: async (request) => this.#onEpochs(request),
    [PROMOTION_METHOD.rest]: async (request) => this.#rest.give(request, this.#lead()),
  };
  readonly #options: PromotionOptions;
  readonly #timing: PromotionTiming;
  readonly #promises: PromiseGiver;
  readonly #renewal: Renewal;
  readonly #rest: RestOfLog;
  readonly #candidacy: Candidacy;
  #isUnderWay = false;

  constructor(options: PromotionOptions) {
    this.#options = options;
    this.#timing = { ...DEFAULT_PROMOTION_TIMING, ...options.timing };
    const { callMs, yieldMs } = this.#timing;
    this.#promises = new PromiseGiver({ ...options, callMs, yieldMs });
    this.#renewal = new Renewal({
      ...options,
      call: options.callFollowed,
      isFree: () => !this.#isUnderWay && !this.#promises.isYielding,
      begin: (after) => this.#alone(() => this.#run({ kind: 'renewed', after })),
    });
    const ask = (datacenter: string, method: string, payload: Uint8Array) =>
      askLeader(options, { datacenter, method, payload, deadlineMs: callMs });
    this.#rest = new RestOfLog({ ...options, ask });
    const wayBack = new WayBack({ ...options, ask, rest: this.#rest });
    this.#candidacy = new Candidacy({
      ...{ ...options, ask, rest: this.#rest, wayBack },
      isYielding: () => this.#promises.isYielding,
      passedOverAt: (cursor) =>
        this.#promises.passedOverBy({ candidate: options.datacenter, cursor }),
      passesOver: () => this.#renewal.passesOver(),
    });
  }

  /** This server leads its datacenter: from now on it learns of reigns that began without it. */
  start(): void {
    this.#renewal.start();
  }

  /** It does not any more. Stopping twice is harmless. */
  stop(): void {
    this.#renewal.stop();
    this.#promises.endYielding();
  }

  /**
   * Makes this datacenter primary by a majority of all; a primary whom a promise to another one has outrun begins
   * the next epoch. On its leader. Rejects with PromotionRefusal, and with what `requireStill` throws before anybody
   * gives anything up.
   */
  elect(requireStill?: RequireStill): Promise<Promoted> {
    return this.#asWished(() => this.#stand({ kind: 'elected', requireStill }));
  }

  /**
   * On the primary's leader: another datacenter has promised a later epoch, and takes nothing of this reign. Resolves
   * when another reign is known, or the next one has begun here, or neither can be for now.
   */
  onNewerEpoch(epoch: number): Promise<void> {
    return this.#renewal.onNewerEpoch(epoch);
  }

  /** Who is said to have begun a later reign, where the own datacenter still takes itself for the primary. */
  outrunBy(): LaterClaim | undefined {
    const isPrimary = this.#options.port.state()?.isPrimary === true;
    return isPrimary ? this.#renewal.laterClaim() : undefined;
  }

  /** That a forced move has to name. On its leader. Throws PromotionRefusal. */
  nextEpoch(): number {
    return this.#candidacy.nextEpoch();
  }

  /**
   * Makes this datacenter primary without a majority: what the others have and it has not is lost. `next`
   * must be `nextEpoch`, so that nobody does it twice; the epoch that begins is behind it, and of this move alone.
   * On its leader. Rejects as `elect`.
   */
  force(next: number, requireStill?: RequireStill): Promise<Promoted> {
    return this.#asWished(() => this.#stand({ kind: 'forced', next, requireStill }));
  }

  /** Behind a start it may not know yet where somebody is who has more. */
  async #stand(wish: Wish): Promise<Promoted> {
    await this.#options.hearAll();
    return await this.#run(wish);
  }

  /** Whoever asked for a promise before asked an earlier reign: this one takes writes at once. */
  async #run(wish: Wish): Promise<Promoted> {
    const promoted = await this.#candidacy.run(wish);
    this.#promises.endYielding();
    return promoted;
  }

  /** As `handOver` in hand-over.ts. On the primary's leader. Rejects as `elect`. */
  handOver(to: string, requireStill?: RequireStill): Promise<number> {
    const deps = { ...this.#options, timing: this.#timing, requireStill };
    return this.#asWished(() => handOver(deps, to));
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
    return requireAsked(this.#options.datacenter, this.#options.port);
  }

  /** Of a person. A renewal that does not come about is tried again at once, and would be in the way for ever. */
  async #asWished<T>(work: () => Promise<T>): Promise<T> {
    await this.#renewal.over();
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
