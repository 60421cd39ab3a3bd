// How the primary hands over: its successor has everything, and it takes no writes until that one has begun.

import type { RequireStill } from '../../base/require-still.ts';
import type { Clock } from '../../platform/clock.ts';
import { RpcError } from '../../transport/calls/rpc-error.ts';
import { type AskLeaderOptions, askLeader } from './ask-leader.ts';
import {
  decodeTaken,
  encodeTake,
  PROMOTION_METHOD,
  PROMOTION_REFUSAL,
} from './promotion-frames.ts';
import { type PromotionPort, requireLeading, successorOf } from './promotion-port.ts';
import { refused, undecided } from './promotion-refusal.ts';
import type { PromotionTiming } from './promotion-timing.ts';

export interface HandOverDeps extends AskLeaderOptions {
  readonly clock: Clock;
  /** The own one. */
  readonly datacenter: string;
  readonly port: Pick<PromotionPort, 'isLeading' | 'leftBehindBy' | 'seal' | 'settled' | 'state'>;
  /** Why a reign that is given away would pass over what others have; undefined where none would. */
  readonly passesOver: () => string | undefined;
  /** How far a datacenter that follows this one has acknowledged; undefined: it is not heard. */
  readonly ackedSeqOf: (datacenter: string) => number | undefined;
  readonly timing: Pick<PromotionTiming, 'catchUpMs' | 'restMs' | 'takeMs'>;
  /** Of whoever asks for it; asked when everything else is done. */
  readonly requireStill: RequireStill | undefined;
}

const POLL_MS = 20;

/**
 * On the primary's leader: that datacenter is primary after it, nothing is lost, and nobody is left without
 * what it writes. Gives the epoch. Where one was promised to that datacenter already, and nobody began it, the
 * same is tried anew with the next. Rejects with PromotionRefusal, and with what `requireStill` throws.
 */
export async function handOver(deps: HandOverDeps, to: string): Promise<number> {
  const { datacenter, port, timing } = deps;
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
  if (mustCatchUp)
    await awaitAck(deps, { datacenter: to, seq: state.cursor.seq, limitMs: timing.catchUpMs });
  const release = port.seal();
  try {
    const cursor = await port.settled();
    if (mustCatchUp)
      await awaitAck(deps, { datacenter: to, seq: cursor.seq, limitMs: timing.restMs });
    // As it has been heard by now.
    const passesOver = deps.passesOver();
    if (passesOver !== undefined) throw refused(passesOver);
    deps.requireStill?.();
    const answer = await askLeader(deps, {
      datacenter: to,
      method: PROMOTION_METHOD.take,
      payload: encodeTake(cursor),
      deadlineMs: timing.takeMs,
    });
    return decodeTaken(answer);
  } catch (error) {
    throw refusalOf(error);
  } finally {
    // If it has promised by now, its log takes no more writes whatever is released here.
    release();
  }
}

interface AckAsk {
  readonly datacenter: string;
  readonly seq: number;
  readonly limitMs: number;
}

async function awaitAck(
  { ackedSeqOf, clock }: Pick<HandOverDeps, 'ackedSeqOf' | 'clock'>,
  { datacenter, seq, limitMs }: AckAsk,
): Promise<void> {
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

/** What the successor says, in its words; what is not known stays so. */
function refusalOf(error: unknown): unknown {
  if (!(error instanceof RpcError)) return error;
  const isUndecided = error.refusal?.code === PROMOTION_REFUSAL.undecided;
  const isKnown = error.code !== 'lost' && error.code !== 'timeout' && !isUndecided;
  return isKnown ? refused(error.message) : undecided(error.message);
}
