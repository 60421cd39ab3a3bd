// What a datacenter answers whoever asks for its promise: how far it is and, where all is well, that it takes nothing
// of a lower epoch from then on. A primary writes nothing while it is asked.

import type { Clock } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logger.ts';
import { RpcRefusal } from '../../transport/calls/rpc-error.ts';
import type { RpcRequest } from '../../transport/transport.ts';
import { isFurther, positionText } from '../global-log.ts';
import { type PassedOverOptions, passedOverBy } from './passed-over.ts';
import {
  decodeAsk,
  encodePromise,
  PROMOTION_REFUSAL,
  type PromiseAnswer,
  type PromiseAsk,
} from './promotion-frames.ts';
import {
  isRenewing,
  type PromotionPort,
  type PromotionState,
  requireAsked,
} from './promotion-port.ts';
import { wayOnWithout } from './promotion-refusal.ts';
import type { PromotionTiming } from './promotion-timing.ts';

export interface PromiseGiverOptions
  extends PassedOverOptions,
    Pick<PromotionTiming, 'callMs' | 'yieldMs'> {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly port: PromotionPort;
  /** The latest epoch that anybody has told of, those that were removed too; 0 while nobody has. */
  readonly heardEpoch: () => number;
  /**
   * Whoever wrote the reign that the own log knows of asks how far this datacenter is, and may have been put back:
   * from when it is called on, nothing of what has come of it before is begun to be taken.
   */
  readonly onWriterAsks: () => void;
}

export class PromiseGiver {
  readonly #options: PromiseGiverOptions;
  #endYielding: (() => void) | undefined;

  constructor(options: PromiseGiverOptions) {
    this.#options = options;
  }

  /** Whether this datacenter, the primary, takes no writes because another one asks for its promise. */
  get isYielding(): boolean {
    return this.#endYielding !== undefined;
  }

  /** From now on it takes writes again. Ending it twice is harmless. */
  endYielding(): void {
    this.#endYielding?.();
  }

  /** To a candidate. Rejects with RpcRefusal, and WireDamage. */
  async answer({ from, payload }: RpcRequest): Promise<Uint8Array> {
    const { datacenter, heardEpoch, port } = this.#options;
    const ask = decodeAsk(payload);
    if (ask.candidate !== from.datacenter) {
      const says = `${from.datacenter} asks for a promise to ${ask.candidate}`;
      throw new RpcRefusal(PROMOTION_REFUSAL.refused, says);
    }
    if (!ask.isTrial) await this.#yieldTo(ask);
    const passesOver = await this.passedOverBy(ask);
    const state = requireAsked(datacenter, port);
    if (ask.isTrial && passesOver !== undefined) {
      const says = `${datacenter} has lost what ${passesOver} has of its reigns, and promises nothing to whoever lacks that`;
      const wayOn = wayOnWithout(passesOver, datacenter, state);
      throw new RpcRefusal(PROMOTION_REFUSAL.refused, `${says}: ${wayOn}`);
    }
    const isRefused = passesOver !== undefined || heardEpoch() >= ask.epoch;
    const { isGranted, cursor, maxEpoch } =
      ask.isTrial || isRefused ? this.#told(ask, state) : await port.promise(ask);
    if (isGranted && !ask.isTrial) this.endYielding();
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
  passedOverBy(ask: Pick<PromiseAsk, 'candidate' | 'cursor'>): Promise<string | undefined> {
    const { callMs, port } = this.#options;
    const own = port.state()?.cursor ?? ask.cursor;
    // Whoever asks this one waits for twice as long.
    return passedOverBy(this.#options, { ...ask, own, deadlineMs: callMs / 2 });
  }

  /**
   * A primary that wrote on would have more each time that it is asked: so for a while it takes no writes, and what it
   * has then is taken before it is asked again. Nor does it begin a reign of its own meanwhile. Whoever will be
   * promised nothing, whatever it takes, keeps no write waiting. Resolves when nothing is being written any more.
   */
  async #yieldTo(ask: PromiseAsk): Promise<void> {
    const { datacenter, heardEpoch, port } = this.#options;
    const state = requireAsked(datacenter, port);
    const isReign = state.isPrimary || isRenewing(datacenter, state);
    const mayEverPromise =
      heardEpoch() < ask.epoch && port.mayPromise({ ...ask, cursor: state.cursor });
    if (!isReign || !mayEverPromise) return;
    this.#yield();
    await port.settled();
  }

  #yield(): void {
    const { clock, port, yieldMs } = this.#options;
    const release = port.seal();
    this.endYielding();
    const end = (): void => {
      timer.cancel();
      release();
      if (this.#endYielding === end) this.#endYielding = undefined;
    };
    const timer = clock.after(yieldMs, end);
    this.#endYielding = end;
  }
}
