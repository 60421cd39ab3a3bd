// How a datacenter becomes primary. A trial first: whoever is asked gives nothing up. Then the own promise, then
// those of the others; and where somebody has more and the wish is for that, it is taken before they promise.

import { messageOf } from '../../../base/message-of.ts';
import type { Logger } from '../../../platform/logger.ts';
import type { Random } from '../../../platform/random.ts';
import { type GlobalCursor, isFurther, isSameCursor, positionText } from '../../global-log.ts';
import { LAST_EPOCH } from '../promotion-frames.ts';
import {
  isRenewing,
  type PromotionPort,
  type PromotionState,
  requireLeading,
} from '../promotion-port.ts';
import { PromotionRefusal, refused, undecided } from '../promotion-refusal.ts';
import { type Ballot, ballotText, type Count, endOf, furtherIn, type Standing } from './ballot.ts';
import {
  already,
  furtherThere,
  goesFirstText,
  lostText,
  noMajority,
  passingOver,
} from './candidacy-refusals.ts';
import { giverOf, NO_GIVER, unreadableText } from './find-giver.ts';
import { forcedEpoch } from './forced-epoch.ts';
import { Poll, type Polled, type PollOptions } from './poll.ts';
import type { RestOfLog } from './rest-of-log.ts';
import { restoreAheadText } from './restore-ahead.ts';
import type { Fork, WayBack } from './way-back.ts';
import { takesRest, type Wish } from './wish.ts';

export interface Promoted {
  readonly epoch: number;
  readonly promises: readonly string[];
  /** The last entry of the reigns before that the new primary has. */
  readonly cursor: GlobalCursor;
}

const OWN_PROMISE_TRIES = 5;
/** A primary that still writes may be ahead again when its promise is asked for. */
const BALLOTS_MAX = 3;

/** The promises as they were given, when this datacenter was there. */
interface Vote extends Polled {
  readonly cursor: GlobalCursor;
  /** Why what others have more could not be taken; empty, or begins with a semicolon. */
  readonly says: string;
}

/** How far this datacenter is by what others gave, and why they gave no more. */
type Taken = Pick<Vote, 'cursor' | 'says'>;

export interface CandidacyOptions extends PollOptions {
  readonly logger: Logger;
  readonly random: Pick<Random, 'fraction'>;
  readonly port: PromotionPort;
  readonly rest: RestOfLog;
  readonly wayBack: WayBack;
  /** The latest epoch that anybody has told of, those that were removed too; 0 while nobody has. */
  readonly heardEpoch: () => number;
  /** Whether another one is said to have begun that epoch of this datacenter, too. */
  readonly isRivalled: (epoch: number) => boolean;
  /** Whether this datacenter, the primary, takes no writes because another one asks for its promise. */
  readonly isYielding: () => boolean;
  /** Why a reign that this datacenter began by itself would pass over what others have; undefined where none would. */
  readonly passesOver: () => string | undefined;
  /** Who is known to have what this datacenter wrote and has lost, and is not at that place either, or may be. */
  readonly passedOverAt: (cursor: GlobalCursor) => Promise<string | undefined>;
}

/** Who has more of the log than is there at `cursor`, behind a restore; the furthest first, and not empty. */
interface RestoreAt {
  readonly cursor: GlobalCursor;
  readonly stuck: readonly Standing[];
  readonly says: string;
}

interface Plan {
  readonly epoch: number;
  /** To be left before anybody is asked for a promise. */
  readonly fork: Fork | undefined;
}

export class Candidacy {
  readonly #options: CandidacyOptions;
  readonly #poll: Poll;

  constructor(options: CandidacyOptions) {
    this.#options = options;
    this.#poll = new Poll(options);
  }

  /** Behind every epoch that was promised here or elsewhere, or is said to have begun. Throws PromotionRefusal. */
  nextEpoch(): number {
    const { heardEpoch, port } = this.#options;
    return Math.max(requireLeading(port).maxEpoch, heardEpoch(), this.#poll.knownEpoch) + 1;
  }

  /** Resolves when this datacenter is primary. Rejects with PromotionRefusal, and with what the wish requires. */
  async run(wish: Wish): Promise<Promoted> {
    if (wish.kind !== 'renewed') return await this.#run(wish);
    return await this.#run({ ...wish, after: Math.max(wish.after, this.nextEpoch() - 1) });
  }

  async #run(wish: Wish): Promise<Promoted> {
    const { port } = this.#options;
    const state = requireLeading(port);
    if (!state.isPrimary) return await this.#become(wish, state);
    await this.#requireOutrun(wish, state);
    // If it wrote on, whoever follows it would be ahead of where it was when it asked.
    const release = port.seal();
    try {
      await port.settled();
      return await this.#become(wish, requireLeading(port));
    } finally {
      release();
    }
  }

  /**
   * A primary that nobody has outrun, that shares its epoch with nobody, and that lacks nothing, is one already; and
   * one that goes on by itself is told again and again that it was outrun, so it gives no writes up before it hears a
   * majority. Throws PromotionRefusal.
   */
  async #requireOutrun(wish: Wish, state: PromotionState): Promise<void> {
    const { cursor, epoch, maxEpoch, voters } = state;
    if (wish.kind === 'renewed') {
      const { ballot, count } = await this.#trial(wish, voters, cursor, voters);
      if (!count.hasMajority) throw noMajority(ballot);
      return;
    }
    if (wish.kind === 'handed-over') throw already(this.#options.datacenter);
    // What it is known to have lost an operator may give up: whoever has that yields to the next reign.
    if (wish.kind === 'forced' && (await this.#options.passedOverAt(cursor)) !== undefined) return;
    if (this.#nextFor(wish) > maxEpoch + 1 || this.#options.isRivalled(epoch)) return;
    const { ballot, count } = await this.#trial(wish, voters, cursor);
    const own = requireLeading(this.#options.port).cursor;
    // What others had by then, and this primary has not by now, it has lost.
    const hasLost = count.further.some((each) => isFurther(each.cursor, own));
    // Who has promised a later epoch to another one takes nothing of this reign, and never will.
    if (count.maxEpoch <= maxEpoch && !hasLost) throw already(this.#options.datacenter, ballot);
  }

  async #become(wish: Wish, state: PromotionState): Promise<Promoted> {
    const { epoch, fork } = await this.#epochFor(wish, state);
    if (wish.kind === 'renewed') this.#requireOwn(epoch, wish.after);
    if (wish.kind === 'elected' || wish.kind === 'forced') wish.requireStill?.();
    if (fork === undefined) {
      const own = await this.#promiseSelf(epoch);
      return await changing(() => this.#begin(wish, epoch, own));
    }
    return await changing(async () => {
      await this.#leave(fork);
      return await this.#begin(wish, epoch, await this.#promiseSelf(epoch));
    });
  }

  /** `own`: where this datacenter was when it promised that epoch to itself. */
  async #begin(wish: Wish, epoch: number, own: GlobalCursor): Promise<Promoted> {
    const { cursor, ballot, count, says } = await this.#vote(wish, epoch, own);
    const { promised, hasMajority, further, rivals } = count;
    const isForced = wish.kind === 'forced';
    const isFurthest = further.length === 0 || (takesRest(wish) && !isForced);
    // Two reigns of one epoch could not be told apart, and one that was forced needed none of these promises.
    const mayBegin = isFurthest && rivals.length === 0 && (isForced || hasMajority);
    if (wish.kind === 'handed-over' && !promised.includes(wish.by)) {
      throw undecided(`epoch ${epoch} does not begin without ${wish.by}: ${ballotText(ballot)}`);
    }
    if (!mayBegin) throw undecided(`epoch ${epoch} does not begin: ${ballotText(ballot)}${says}`);
    const why = wish.kind === 'renewed' ? this.#options.passesOver() : undefined;
    if (why !== undefined) throw undecided(`epoch ${epoch} does not begin: ${why}`);
    const passedOver = isForced ? undefined : await this.#options.passedOverAt(cursor);
    if (passedOver !== undefined) {
      const lost = this.#lostText(passedOver, ballot);
      throw undecided(`epoch ${epoch} does not begin: ${lost}${says}`);
    }
    const told = this.#options.heardEpoch();
    if (told >= epoch) {
      throw undecided(`epoch ${epoch} does not begin: others tell of epoch ${told} by now`);
    }
    if (!(await this.#options.port.start({ epoch, promises: promised, isForced }))) {
      throw undecided(`epoch ${epoch} could not begin: another one was promised meanwhile`);
    }
    const fields = { epoch, promises: promised, isForced, position: positionText(cursor) };
    this.#options.logger.warn(fields, 'this datacenter is the primary now');
    return { epoch, promises: promised, cursor };
  }

  /**
   * What was promised to another one while the others were asked is not taken back, and what others were heard to have
   * meanwhile is not passed over. Whoever told of a later epoch than anybody before may have heard that it has begun:
   * all are heard first, with the next try. Throws PromotionRefusal.
   */
  #requireOwn(epoch: number, after: number): void {
    const { datacenter, isYielding, passesOver, port } = this.#options;
    const why = passesOver();
    if (why !== undefined) throw refused(why);
    const told = epoch - 1;
    if (told > after) throw refused(`others tell of epoch ${told}, which may have begun`);
    const state = requireLeading(port);
    const isOwn = state.isPrimary || isRenewing(datacenter, state);
    if (isOwn && !isYielding()) return;
    throw refused('another datacenter asks for the promise of this one, or has it');
  }

  /** Asks everybody whether it would come to it, before anybody gives anything up. */
  async #epochFor(wish: Wish, state: PromotionState): Promise<Plan> {
    const { cursor } = state;
    this.#nextFor(wish);
    const first = await this.#trial(wish, state.voters, cursor);
    const { further } = first.count;
    const mayGoBack = further.every(({ datacenter }) => state.witnesses.includes(datacenter));
    const { giver, fork, says, restored } = takesRest(wish)
      ? await giverOf(this.#options, further, { cursor, mayGoBack })
      : NO_GIVER;
    const { ballot, count } =
      giver === undefined
        ? first
        : await this.#trial(
            wish,
            withFurther(state.voters, first.count),
            giver.cursor,
            upTo(giver.cursor, first.ballot),
          );
    const stuck = count.further.filter(({ datacenter }) => restored.includes(datacenter));
    const restoreThere = () =>
      this.#restoreThere(wish, state, { cursor: giver?.cursor ?? cursor, stuck, says });
    const isBlocked = wish.kind === 'forced' || state.isDiverged || state.isPrimary;
    if (stuck.length > 0 && (isBlocked || !count.hasMajority)) throw await restoreThere();
    if (wish.kind === 'forced') {
      if (count.further.length > 0) throw furtherThere(count, ballot, says);
      return { epoch: forcedEpoch(this.#nextFor(wish), this.#options.random), fork };
    }
    if (wish.kind === 'handed-over' && !count.promised.includes(wish.by)) {
      throw refused(`${wish.by} does not hand over: ${ballotText(ballot)}`);
    }
    if (!takesRest(wish) && count.further.length > 0) throw passingOver(wish, count, ballot);
    // What it lacks has begun without what it set apart, or is about to: who has it goes first, where somebody
    // is there. So does who came behind its list: those whom that names may be no majority any more.
    const isUnlisted = count.further.some(({ datacenter }) => !state.voters.includes(datacenter));
    const isBeside = state.isDiverged || state.isPrimary || isUnlisted;
    if (isBeside && count.further.length > 0) throw furtherThere(count, ballot, says);
    const passedOver = await this.#options.passedOverAt(giver?.cursor ?? cursor);
    if (stuck.some(({ datacenter }) => datacenter === passedOver)) throw await restoreThere();
    const why = `${says}${goesFirstText(count.further, state)}`;
    if (passedOver !== undefined) throw refused(`${this.#lostText(passedOver, ballot)}${why}`);
    if (!count.hasMajority) throw noMajority(ballot, why);
    const after = wish.kind === 'renewed' ? wish.after : 0;
    return { epoch: Math.max(this.nextEpoch(), after + 1), fork };
  }

  #lostText(passedOver: string, ballot: Ballot): string {
    const { datacenter, port } = this.#options;
    return lostText(passedOver, datacenter, { state: requireLeading(port), ballot });
  }

  /** What to do about those that have more behind a restore: whoever may have the objects goes first. */
  async #restoreThere(
    wish: Wish,
    state: PromotionState,
    { cursor, stuck, says }: RestoreAt,
  ): Promise<PromotionRefusal> {
    const { datacenter } = this.#options;
    const voters = withFurther(state.voters, { further: stuck });
    // As if it had that: who has lost it refuses whoever lacks it, and does not say how far it is.
    const { ballot } = await this.#trial(wish, voters, stuck[0]!.cursor);
    const further = furtherIn(ballot, () => cursor);
    const isListed = (each: Standing): boolean => state.witnesses.includes(each.datacenter);
    if (!further.every(isListed)) return furtherThere({ further }, ballot, says);
    const text = restoreAheadText({ datacenter, state, ballot, stuck });
    return refused(`${text}. ${ballotText(ballot)}${says}`);
  }

  /** From here on the own datacenter is where the reign that outran it began. Rejects with PromotionRefusal. */
  async #leave(fork: Fork): Promise<void> {
    try {
      await this.#options.wayBack.take(fork);
    } catch (error) {
      const { datacenter } = this.#options;
      throw undecided(`${datacenter} did not come back to what is shared: ${messageOf(error)}`);
    }
  }

  /** Throws PromotionRefusal where an operator names another one. */
  #nextFor(wish: Wish): number {
    const next = this.nextEpoch();
    if (wish.kind !== 'forced' || wish.next === next) return next;
    throw refused(`the next epoch is ${next}, not ${wish.next}`);
  }

  /**
   * Who would promise, to this datacenter if it were there: nothing is given up. `following` have no more than is
   * there, and may have by now: the log goes on, and so does what is given.
   */
  async #trial(
    wish: Wish,
    voters: readonly string[],
    cursor: GlobalCursor,
    following: readonly string[] = [],
  ): Promise<Vote> {
    const ask = { epoch: LAST_EPOCH, candidate: this.#options.datacenter, cursor, isTrial: true };
    const polled = await this.#poll.hold({ wish, voters, ask, following });
    return { ...polled, cursor, says: '' };
  }

  /** Asks for the promises. Where somebody has more, it is taken first, and all are asked again. */
  async #vote(wish: Wish, epoch: number, own: GlobalCursor): Promise<Vote> {
    const { datacenter: candidate, port } = this.#options;
    let cursor = own;
    for (let ballots = 1; ; ballots += 1) {
      // What was taken may say that there are others by now.
      const { voters } = requireLeading(port);
      const ask = { epoch, candidate, cursor, isTrial: false };
      const polled = await this.#poll.hold({ wish, voters, ask, following: [] });
      const mayTake = takesRest(wish) && ballots < BALLOTS_MAX;
      const giving = mayTake ? polled.count.further : [];
      const reached = await this.#takeRest(giving, epoch, cursor);
      if (isSameCursor(reached.cursor, cursor)) return { ...polled, ...reached };
      ({ cursor } = reached);
    }
  }

  /** Takes what one of them gives. */
  async #takeRest(further: readonly Standing[], epoch: number, own: GlobalCursor): Promise<Taken> {
    const { logger } = this.#options;
    let after = own;
    let says = '';
    for (const giver of further) {
      const { datacenter } = giver;
      const fields = { epoch, datacenter, from: positionText(after) };
      try {
        await this.#options.rest.take(giver, { epoch, after }, (cursor) => {
          after = cursor;
        });
        logger.warn({ ...fields, to: positionText(after) }, 'took what a datacenter had more');
        return { cursor: after, says };
      } catch (error) {
        const unreadable = unreadableText(giver, error);
        if (unreadable !== undefined) throw undecided(unreadable);
        const why = messageOf(error);
        says += `; what ${datacenter} has more could not be taken: ${why}`;
        logger.warn({ ...fields, why }, 'what a datacenter has more could not be taken');
      }
    }
    return { cursor: after, says };
  }

  /** From here on only what others give moves the own place. Resolves with it. */
  async #promiseSelf(epoch: number): Promise<GlobalCursor> {
    const { datacenter: candidate, port } = this.#options;
    for (let tries = 0; tries < OWN_PROMISE_TRIES; tries += 1) {
      const { cursor } = requireLeading(port);
      // Entries of the present reign may come in between.
      const ask = { epoch, candidate, cursor: endOf(cursor), isTrial: false };
      const answer = await port.promise(ask);
      if (answer.isGranted) return answer.cursor;
      // So have those of a later one.
      if (!isFurther(answer.cursor, cursor)) break;
    }
    throw refused(`this datacenter cannot promise epoch ${epoch} to itself`);
  }
}

/** Something changes before all of it is done: whatever is refused by then, nobody says that nothing has changed. */
async function changing<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof PromotionRefusal ? undecided(error.message) : error;
  }
}

/** Those that had entries of the same reign, and none behind that place. */
function upTo(cursor: GlobalCursor, ballot: Ballot): readonly string[] {
  return [...ballot].flatMap(([datacenter, answer]) => {
    const isUpTo =
      typeof answer !== 'string' &&
      answer.cursor.epoch === cursor.epoch &&
      !isFurther(answer.cursor, cursor);
    return isUpTo ? [datacenter] : [];
  });
}

/** Whoever has more, and is not listed, came when this datacenter was away: what it gives will list it. */
function withFurther(
  voters: readonly string[],
  { further }: Pick<Count, 'further'>,
): readonly string[] {
  return [...new Set([...voters, ...further.map(({ datacenter }) => datacenter)])];
}
