// A primary whose time is over, and a datacenter whose entries the primary has not, cannot learn so from a feed. Nor
// can one that was the primary before, where whoever is it now keeps too little of the log to say so. The leader of
// such a datacenter asks whoever is said to be primary for its epochs, and its own log takes them: that ends its reign,
// and sets apart what only it has. Where there is none to learn of, it goes on with what it has itself begun.

import type { Clock, Timer } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logger.ts';
import type { NetAddress } from '../../platform/net.ts';
import type { Random } from '../../platform/random.ts';
import { RpcError } from '../../transport/calls/rpc-error.ts';
import type { RpcCall } from '../../transport/transport.ts';
import type { PrimaryClaim } from '../directory/directory.ts';
import { areTwoFederations } from '../refuse-outsiders.ts';
import {
  decodeEpochs,
  encodeEpochsAsk,
  PROMOTION_METHOD,
  PROMOTION_REFUSAL,
} from './promotion-frames.ts';
import type { PromotionPort } from './promotion-port.ts';

export interface LaterReignOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** The own one. */
  readonly datacenter: string;
  /** Empty while none is known. */
  readonly federationId: () => string;
  readonly port: PromotionPort;
  /** Who is said to be primary. */
  readonly claim: () => PrimaryClaim | undefined;
  /** The feed cannot go on: the primary has not what is here. */
  readonly isDiverged: () => boolean;
  /** Rejects with RpcError. */
  readonly call: (to: NetAddress, request: RpcCall) => Promise<Uint8Array>;
  /** There is no later reign that could be learnt of now. */
  readonly onNone: () => Promise<void>;
}

/** A reign that is said to have begun. */
export interface LaterClaim extends PrimaryClaim {
  /** Whoever began it has answered that it is the primary no more: it has promised another reign since. */
  readonly isOver: boolean;
}

const EVERY_MS = 1_000;
const CALL_MS = 5_000;

export class LaterReign {
  readonly #options: LaterReignOptions;
  #timer: Timer | undefined;
  #reign = 0;
  /** Whoever was asked last said that it is the primary no more. Who does not answer may be gone by now. */
  #over: PrimaryClaim | undefined;
  /** Of the last reign that the own log was told of from here; 0: of none. */
  #learntEpoch = 0;

  constructor(options: LaterReignOptions) {
    this.#options = options;
  }

  /** This server leads its datacenter. */
  start(): void {
    this.stop();
    this.#await(this.#reign);
  }

  /** It does not any more. Stopping twice is harmless. */
  stop(): void {
    this.#reign += 1;
    this.#timer?.cancel();
  }

  /** Who is said to have begun a later reign than the own log knows of. */
  claimed(): LaterClaim | undefined {
    const { claim, datacenter, port } = this.#options;
    const told = claim();
    if (told === undefined || told.datacenter === datacenter) return undefined;
    const state = port.state();
    if (state === undefined || told.epoch <= state.epoch) return undefined;
    const over = this.#over;
    const isOver = over?.datacenter === told.datacenter && over.epoch === told.epoch;
    return { ...told, isOver };
  }

  /** Looks now. Whether the own log was told of a later reign. */
  async look(): Promise<boolean> {
    const { call, datacenter, federationId, logger, port } = this.#options;
    const state = port.state();
    const claim = this.claimed();
    if (state === undefined || claim === undefined) return false;
    const isStuck = state.isPrimary || state.primary === datacenter || this.#options.isDiverged();
    // What it wrote in any reign may be beside the later one, and is set apart before a snapshot of that is taken.
    const hasReigned = state.epochs.some(({ primary }) => primary === datacenter);
    if (!isStuck && (!hasReigned || claim.epoch <= this.#learntEpoch)) return false;
    let over: PrimaryClaim | undefined;
    for (const address of claim.addresses) {
      const request = {
        method: PROMOTION_METHOD.epochs,
        payload: encodeEpochsAsk(federationId()),
        deadlineMs: CALL_MS,
        hops: 0,
        datacenter: claim.datacenter,
      };
      const bytes = await call(address, request).catch((error: unknown) => {
        if (isRefused(error)) over = claim;
      });
      if (bytes === undefined) continue;
      this.#over = undefined;
      const { epochs, federationId: theirs } = decodeEpochs(bytes);
      // The reigns of another world end none here.
      if (areTwoFederations(federationId(), theirs)) continue;
      const latest = epochs.at(-1);
      if (latest === undefined || latest.epoch <= state.epoch) return false;
      const fields = { epoch: latest.epoch, primary: latest.primary, ownEpoch: state.epoch };
      logger.warn(fields, 'a later reign has begun elsewhere');
      await port.fence(epochs);
      this.#learntEpoch = latest.epoch;
      return true;
    }
    this.#over = over;
    return false;
  }

  #await(reign: number): void {
    const { clock, logger, random } = this.#options;
    this.#timer = clock.after(EVERY_MS * (1 + random.fraction()), () => {
      void this.look()
        .then((isLearnt) => (isLearnt ? undefined : this.#options.onNone()))
        .catch((error: unknown) => {
          logger.warn({ cause: error }, 'a later reign could not be learnt of');
        })
        .then(() => {
          if (this.#reign === reign) this.#await(reign);
        });
    });
  }
}

function isRefused(error: unknown): boolean {
  return error instanceof RpcError && error.refusal?.code === PROMOTION_REFUSAL.refused;
}
