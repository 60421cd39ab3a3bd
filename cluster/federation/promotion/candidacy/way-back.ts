// A primary that a later reign has outrun, and whose successor is lost for good, may be beside what a witness has of
// that reign: it has written on where the other one began. A witness is no candidate, and lends nobody a snapshot. So
// the old primary goes back to where the two chains part, sets apart what only it has, and takes the rest from there.

import type { Logger } from '../../../platform/logger.ts';
import { type GlobalCursor, positionText } from '../../global-log.ts';
import { areTwoFederations } from '../../refuse-outsiders.ts';
import {
  decodeEpochs,
  type EpochStart,
  encodeEpochsAsk,
  PROMOTION_METHOD,
} from '../promotion-frames.ts';
import type { PromotionPort } from '../promotion-port.ts';
import type { Standing } from './ballot.ts';
import type { RestOfLog } from './rest-of-log.ts';

export interface WayBackOptions {
  readonly logger: Logger;
  /** Empty while none is known. */
  readonly federationId: () => string;
  readonly port: Pick<PromotionPort, 'forkPlace' | 'goBack'>;
  readonly rest: Pick<RestOfLog, 'requireGiven'>;
  /** The leader of that datacenter. Rejects with RpcError. */
  readonly ask: (datacenter: string, method: string, payload: Uint8Array) => Promise<Uint8Array>;
}

/** Where the own chain is left, and for whose. */
export interface Fork {
  readonly datacenter: string;
  readonly place: GlobalCursor;
  readonly epochs: readonly EpochStart[];
}

export class WayBack {
  readonly #options: WayBackOptions;

  constructor(options: WayBackOptions) {
    this.#options = options;
  }

  /** Whether that witness gives what follows where its chain left the own one. Nothing changes. Rejects with why. */
  async find({ datacenter, cursor }: Standing): Promise<Fork> {
    const { ask, federationId, port, rest } = this.#options;
    const own = federationId();
    const bytes = await ask(datacenter, PROMOTION_METHOD.epochs, encodeEpochsAsk(own));
    const { epochs, federationId: theirs } = decodeEpochs(bytes);
    if (areTwoFederations(own, theirs)) {
      throw new Error(`${datacenter} is of federation ${theirs}, not of ${own}`);
    }
    const epoch = epochs.at(-1)?.epoch ?? 0;
    if (epoch !== cursor.epoch) {
      throw new Error(`${datacenter} tells of epoch ${epoch}, and is at ${positionText(cursor)}`);
    }
    const place = await port.forkPlace(epochs);
    await rest.requireGiven(datacenter, place);
    return { datacenter, place, epochs };
  }

  /** Resolves when the own datacenter is there. Rejects with what stands in the way. */
  async take({ datacenter, place, epochs }: Fork): Promise<void> {
    const { logger, port } = this.#options;
    const fields = { datacenter, position: positionText(place) };
    logger.warn(fields, 'goes back to where a later reign left the own log');
    await port.goBack(epochs);
    logger.warn(fields, 'went back to where a later reign left the own log');
  }
}
