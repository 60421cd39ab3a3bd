// The way to other datacenters: a call goes to any of their servers, and the answer comes back. One call
// is one try; a server that cannot be reached is passed over for the next one. What became of a call is
// told in the service's words.

import { addressText, type NetAddress } from '../../../../cluster/platform/net.ts';
import { RpcError } from '../../../../cluster/transport/calls/rpc-error.ts';
import type { RpcCall } from '../../../../cluster/transport/transport.ts';
import { AclError } from '../../../acl/error.ts';
import { type Call, PLAIN_CALL } from '../../../service/call.ts';
import {
  DatacenterAway,
  type Errand,
  type WaitThere,
} from '../../../service/datacenters/federation.ts';
import { LeaderAway, NOBODY_LEADS } from '../../../service/remote.ts';
import { decodeAnswer, encodeQuestion } from '../../calls/call-frames.ts';
import { CALL_MAX_MS, callLimitMs, isReadOf, kindOfCall } from '../../calls/call-limit.ts';
import { type CallKind, CallPlaces } from '../../calls/call-places.ts';

/** The method of every server by which other datacenters have something done. */
export const DATACENTER_METHOD = 'service.datacenter';
/** The name of the question that waits for a change; all others are those of operations. */
export const WAIT_QUESTION = 'wait-for-change';

/** A wait is asked for in pieces, so that one whose asker is gone does not last. */
export const WAIT_PIECE_MS = 20_000;

/** A wait asks for nothing that anybody needs a right to. */
const NO_CALL: Call = { ...PLAIN_CALL, consistency: 'stale' };

export interface DatacenterLineOptions {
  /** Where servers of that datacenter are reached, as far as it is known. */
  readonly addresses: (datacenter: string) => readonly NetAddress[];
  /** Rejects with RpcError. */
  readonly call: (to: NetAddress, request: RpcCall) => Promise<Uint8Array>;
  /** Calls of this server that may be under way at once. */
  readonly countMax: number;
  /** How long a write that does not say so waits for other datacenters where it runs. */
  readonly ackTimeoutMs: number;
}

interface Question {
  readonly datacenter: string;
  readonly method: string;
  readonly payload: Uint8Array;
  readonly deadlineMs: number;
  readonly kind: CallKind;
  /** It changes nothing, whatever place it takes. */
  readonly isRead: boolean;
}

export class DatacenterLine {
  readonly #options: DatacenterLineOptions;
  /** The address that answered last, by datacenter. */
  readonly #lastGood = new Map<string, string>();
  readonly #places: CallPlaces;

  constructor(options: DatacenterLineOptions) {
    this.#options = options;
    this.#places = new CallPlaces(options.countMax);
  }

  /** Calls under way. */
  get count(): number {
    return this.#places.count;
  }

  /** Rejects as `Federation.run` says. */
  async run(
    datacenter: string,
    { name, input, call }: Errand,
    method = DATACENTER_METHOD,
  ): Promise<unknown> {
    const payload = encodeQuestion({ name, input, call });
    const kind = kindOfCall({ name, call });
    const deadlineMs = callLimitMs({ name, call }, this.#options.ackTimeoutMs);
    const answer = await this.#ask({
      ...{ datacenter, payload, method, deadlineMs, kind },
      isRead: isReadOf(name),
    });
    try {
      return decodeAnswer(answer);
    } catch (error) {
      throw isNobodyLeading(error) ? leaderless(datacenter, error) : error;
    }
  }

  /** Rejects as `Federation.waitForChange` says. */
  async waitForChange(datacenter: string, wait: WaitThere): Promise<void> {
    const { target, index, cancel } = wait;
    const { table, object } = target;
    let leftMs = wait.timeoutMs;
    while (leftMs > 0 && !cancel.aborted) {
      const pieceMs = Math.min(leftMs, WAIT_PIECE_MS);
      const input = { target: { table, object }, index, timeoutMs: pieceMs };
      const answered = this.#ask({
        ...{ datacenter, method: DATACENTER_METHOD, kind: 'wait', isRead: true },
        payload: encodeQuestion({ name: WAIT_QUESTION, input, call: NO_CALL }),
        deadlineMs: pieceMs + CALL_MAX_MS,
      });
      const answer = await Promise.race([answered, whenAborted(cancel)]);
      if (answer === undefined || decodeAnswer(answer) === true) return;
      leftMs -= pieceMs;
    }
  }

  async #ask(question: Question): Promise<Uint8Array> {
    const giveBack = this.#places.take(question.kind);
    if (giveBack === undefined) {
      const full = this.#places.takenFrom(question.kind);
      throw new AclError('unavailable', `${full} wait for other datacenters already`);
    }
    try {
      return await this.#askAny(question);
    } finally {
      giveBack();
    }
  }

  async #askAny({ kind: _, isRead, ...question }: Question): Promise<Uint8Array> {
    const { datacenter } = question;
    const request = { ...question, hops: 0 };
    let failure: RpcError | undefined;
    for (const address of this.#addressesOf(datacenter)) {
      try {
        const answer = await this.#options.call(address, request);
        this.#lastGood.set(datacenter, addressText(address));
        return answer;
      } catch (error) {
        if (!(error instanceof RpcError)) throw error;
        if (!isUndone(error)) throw refusalOf(error, datacenter, isRead);
        failure = error;
      }
    }
    const why = failure === undefined ? 'no address of it is known' : failure.message;
    throw new DatacenterAway(datacenter, why, { cause: failure });
  }

  /** The one that answered last comes first. */
  #addressesOf(datacenter: string): readonly NetAddress[] {
    const all = this.#options.addresses(datacenter);
    const last = this.#lastGood.get(datacenter);
    const isLast = (address: NetAddress): boolean => addressText(address) === last;
    return [...all.filter(isLast), ...all.filter((address) => !isLast(address))];
  }
}

/** Whether nothing was done, so that the next server can be asked. */
function isUndone({ code }: RpcError): boolean {
  return code === 'unreachable' || code === 'refused' || code === 'too-many-hops';
}

function isNobodyLeading(error: unknown): error is LeaderAway {
  return error instanceof LeaderAway && error.message === NOBODY_LEADS;
}

/** Whoever reads it would look for the leader of the datacenter that was asked. */
function leaderless(datacenter: string, cause: LeaderAway): LeaderAway {
  return new LeaderAway({ says: `${NOBODY_LEADS} in datacenter ${datacenter}`, cause });
}

/** Never repeats what was sent. */
function refusalOf(cause: RpcError, datacenter: string, isRead: boolean): AclError {
  if (cause.code === 'too-large') return new AclError('body-too-large', cause.message, { cause });
  const what = isRead ? 'nothing was read' : 'whether the write took effect is not known';
  return new AclError('outcome-unknown', `${what}: ${datacenter}: ${cause.message}`, { cause });
}

function whenAborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(undefined), { once: true });
    if (signal.aborted) resolve(undefined);
  });
}
