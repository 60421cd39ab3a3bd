// Calls of this node that wait for their answers: each is answered once, or fails at its deadline, or
// with its link. Answers that nobody waits for any more are dropped.

import type { Clock, Timer } from '../../platform/clock.ts';
import type { AnswerFrame, CallFrame, RefusalFrame } from '../../wire/frame.ts';
import type { RpcCall } from '../transport.ts';
import { OWN_REFUSAL } from './call-server.ts';
import { RpcError } from './rpc-error.ts';

interface WaitingCall {
  readonly method: string;
  readonly resolve: (payload: Uint8Array) => void;
  readonly reject: (error: RpcError) => void;
  readonly timer: Timer;
}

export interface CallTableOptions {
  readonly clock: Clock;
  readonly callsMax: number;
  /** Never the same twice in the life of this node. */
  readonly nextId: () => number;
}

export class CallTable {
  readonly #options: CallTableOptions;
  readonly #waiting = new Map<number, WaitingCall>();

  constructor(options: CallTableOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#waiting.size;
  }

  /** Sends a call and resolves with its answer. Rejects with RpcError. */
  call(request: RpcCall, send: (frame: CallFrame) => void): Promise<Uint8Array> {
    const { clock, callsMax, nextId } = this.#options;
    const { method, payload, hops } = request;
    const deadlineMs = Math.ceil(request.deadlineMs);
    if (this.#waiting.size >= callsMax) {
      const says = `${method} was not sent: ${callsMax} calls wait for answers of that node`;
      return Promise.reject(new RpcError('unreachable', says));
    }
    const id = nextId();
    return new Promise((resolve, reject) => {
      const timer = clock.after(deadlineMs, () => {
        this.#waiting.delete(id);
        reject(new RpcError('timeout', `no answer to ${method} within ${deadlineMs} ms`));
      });
      this.#waiting.set(id, { method, resolve, reject, timer });
      send({ kind: 'call', id, method, hops, remainingMs: deadlineMs, payload });
    });
  }

  settle(frame: AnswerFrame | RefusalFrame): void {
    const waiting = this.#waiting.get(frame.id);
    if (waiting === undefined) return;
    this.#waiting.delete(frame.id);
    waiting.timer.cancel();
    if (frame.kind === 'answer') waiting.resolve(frame.payload);
    else waiting.reject(errorOf(waiting.method, frame));
  }

  /** The link ended: what was sent may have been carried out. */
  failAll(why: string): void {
    for (const [id, { method, reject, timer }] of this.#waiting) {
      this.#waiting.delete(id);
      timer.cancel();
      reject(new RpcError('lost', `the answer to ${method} is lost: ${why}`));
    }
  }
}

function errorOf(method: string, { code, says }: RefusalFrame): RpcError {
  switch (code) {
    case OWN_REFUSAL.tooManyHops:
      return new RpcError('too-many-hops', says);
    case OWN_REFUSAL.failed:
    case OWN_REFUSAL.answerTooLarge:
      return new RpcError('lost', `the answer to ${method} is lost: ${says}`);
    default:
      return new RpcError('refused', says, { code, says });
  }
}
