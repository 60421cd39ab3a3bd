// Calls of another node that are carried out here: so many at once and no more, and each is answered, by
// its handler or in its place.

import type { Logger } from '../../platform/logger.ts';
import type { AnswerFrame, CallFrame, RefusalFrame } from '../../wire/frame.ts';
import type { RpcCaller, RpcServer } from '../transport.ts';
import { RpcRefusal } from './rpc-error.ts';

/** Codes of refusals that no handler gives. They are on the wire: none gets another meaning. */
export const OWN_REFUSAL = {
  /** Not carried out: too many are. */
  busy: 'transport.busy',
  /** Not carried out: this node is closing. */
  closing: 'transport.closing',
  /** Not carried out. */
  tooManyHops: 'transport.too-many-hops',
  /** Carried out, perhaps in part: the handler failed over it. */
  failed: 'transport.failed',
  /** Carried out. */
  answerTooLarge: 'transport.answer-too-large',
} as const;

export interface CallServerOptions {
  readonly serve: RpcServer;
  readonly logger: Logger;
  readonly callsMax: number;
  readonly servedMaxBytes: number;
  readonly payloadMaxBytes: number;
  readonly hopsMax: number;
}

export type CallReply = AnswerFrame | RefusalFrame;

export class CallServer {
  readonly #options: CallServerOptions;
  #count = 0;
  #bytes = 0;
  #isClosing = false;
  #onIdle: (() => void) | undefined;

  constructor(options: CallServerOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#count;
  }

  /** `reply` is called once, now or later. */
  take(frame: CallFrame, from: RpcCaller, reply: (frame: CallReply) => void): void {
    const refusal = this.#refusalOf(frame);
    if (refusal !== undefined) reply(refusal);
    else void this.#carryOut(frame, from, reply);
  }

  /** Takes no more. Resolves when every call is answered. */
  drain(): Promise<void> {
    this.#isClosing = true;
    if (this.#count === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onIdle = resolve;
    });
  }

  #refusalOf({ id, method, hops, payload }: CallFrame): RefusalFrame | undefined {
    const { callsMax, servedMaxBytes, hopsMax } = this.#options;
    if (this.#isClosing) return refusal(id, OWN_REFUSAL.closing, 'the node is closing');
    if (hops > hopsMax) {
      const says = `${method} was handed on ${hops} times, at most ${hopsMax} are sensible`;
      return refusal(id, OWN_REFUSAL.tooManyHops, says);
    }
    if (this.#count >= callsMax || this.#bytes + payload.length > servedMaxBytes) {
      return refusal(id, OWN_REFUSAL.busy, `${this.#count} calls are under way already`);
    }
    return undefined;
  }

  async #carryOut(
    { id, method, payload, hops, remainingMs }: CallFrame,
    from: RpcCaller,
    reply: (frame: CallReply) => void,
  ): Promise<void> {
    this.#count += 1;
    this.#bytes += payload.length;
    try {
      const request = { from, method, payload, hops, deadlineMs: remainingMs };
      reply(this.#answer(id, await this.#options.serve(request)));
    } catch (error) {
      reply(this.#refusalFor(id, method, error));
    } finally {
      this.#count -= 1;
      this.#bytes -= payload.length;
      if (this.#count === 0) this.#onIdle?.();
    }
  }

  #answer(id: number, payload: Uint8Array): CallReply {
    const { payloadMaxBytes } = this.#options;
    if (payload.length <= payloadMaxBytes) return { kind: 'answer', id, payload };
    const says = `it has ${payload.length} bytes, at most ${payloadMaxBytes} are sent`;
    return refusal(id, OWN_REFUSAL.answerTooLarge, says);
  }

  #refusalFor(id: number, method: string, error: unknown): RefusalFrame {
    if (error instanceof RpcRefusal) return refusal(id, error.code, error.message);
    this.#options.logger.error({ method, cause: error }, 'a call of another node failed here');
    return refusal(id, OWN_REFUSAL.failed, `${method} failed over there, see the log of that node`);
  }
}

function refusal(id: number, code: string, says: string): RefusalFrame {
  return { kind: 'refusal', id, code, says };
}
