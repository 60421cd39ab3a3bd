// A primary that a promise to another one has outrun, and that goes on by itself where nobody has begun a later reign:
// with an epoch behind that promise. Whoever has begun one, or is said to have, is never passed over so.

import { messageOf } from '../../base/message-of.ts';
import { type LaterClaim, LaterReign, type LaterReignOptions } from './later-reign.ts';
import { isRenewing, type PromotionState } from './promotion-port.ts';
import { refused } from './promotion-refusal.ts';

export interface RenewalOptions extends Omit<LaterReignOptions, 'onNone'> {
  /** Asks all that are known who is primary and where all are: `claim` says it. Never rejects. */
  readonly hearAll: () => Promise<void>;
  /** What a reign that this datacenter began by itself would pass over; undefined: nothing that is known. */
  readonly passesOver: () => string | undefined;
  /** Not where a person has begun something meanwhile, or another one asks for the promise of this datacenter. */
  readonly isFree: () => boolean;
  /** Begins an epoch behind that one. Rejects with PromotionRefusal. */
  readonly begin: (after: number) => Promise<unknown>;
}

export class Renewal {
  readonly #options: RenewalOptions;
  readonly #laterReign: LaterReign;
  /** One is tried, or it is being looked whether one is to be. */
  #isUnderWay = false;
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: RenewalOptions) {
    this.#options = options;
    this.#laterReign = new LaterReign({ ...options, onNone: () => this.#again() });
  }

  /** This server leads its datacenter: from now on it learns of reigns that began without it. */
  start(): void {
    this.#laterReign.start();
  }

  /** It does not any more. Stopping twice is harmless. */
  stop(): void {
    this.#laterReign.stop();
  }

  /** Who is said to have begun a later reign than the own log knows of. */
  laterClaim(): LaterClaim | undefined {
    return this.#laterReign.claimed();
  }

  /** Resolves when the last one that was tried is over, however it ended. */
  async over(): Promise<void> {
    await this.#last;
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
  async #again(): Promise<void> {
    const { datacenter, port } = this.#options;
    const state = port.isLeading() ? port.state() : undefined;
    if (state === undefined || !isRenewing(datacenter, state)) return;
    await this.#renew(state, state.maxEpoch);
  }

  /** Begins an epoch behind that one, unless somebody has begun one since. */
  async #renew(state: PromotionState, after: number): Promise<void> {
    if (this.#isUnderWay || !this.#mayRenew(state)) return;
    this.#isUnderWay = true;
    try {
      await this.#renewUnlessBegun(state, after);
    } catch (error) {
      const why = messageOf(error);
      const says = 'this reign is outrun, and no other has begun';
      this.#options.logger.warn({ epoch: after, why }, says);
    } finally {
      this.#isUnderWay = false;
    }
  }

  async #renewUnlessBegun(state: PromotionState, after: number): Promise<void> {
    // Whoever was asked for a promise may have heard of a reign of which nobody has told this one yet.
    await this.#options.hearAll();
    if (await this.#laterReign.look()) return;
    // Whoever has it may not answer when it is asked for its promise.
    const passesOver = this.passesOver();
    if (passesOver !== undefined) throw refused(passesOver);
    if (!this.#mayRenew(state)) return;
    const renewal = this.#options.begin(after);
    this.#last = renewal.catch(() => undefined);
    await renewal;
  }

  /** What this datacenter would pass over if it went on by itself, as it has been heard by now. */
  passesOver(): string | undefined {
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

  #mayRenew({ epoch }: PromotionState): boolean {
    const { isFree, port } = this.#options;
    return isFree() && port.state()?.epoch === epoch;
  }
}
