// How a call between nodes fails. The code says what the caller may conclude: with `lost` and `timeout` it
// may have been carried out, with every other code it was not, unless its handler says otherwise.

export type RpcErrorCode =
  /** Nothing was sent. */
  | 'unreachable'
  /** Sent, and there will be no answer: the link ended, or the other node failed over it. */
  | 'lost'
  /** Sent, and not answered within the deadline: it may be carried out still. */
  | 'timeout'
  /** The other node says no; `refusal` says why. */
  | 'refused'
  /** Handed on from node to node more often than is sensible. Nothing was done. */
  | 'too-many-hops'
  /** Nothing was sent. */
  | 'too-large';

/** What a handler answers instead of bytes. */
export interface Refusal {
  readonly code: string;
  readonly says: string;
}

export class RpcError extends Error {
  override readonly name = 'RpcError';
  readonly code: RpcErrorCode;
  readonly refusal: Refusal | undefined;

  constructor(code: RpcErrorCode, message: string, refusal?: Refusal) {
    super(message);
    this.code = code;
    this.refusal = refusal;
  }
}

/** Thrown by a handler: reaches the caller as RpcError 'refused' with these words. */
export class RpcRefusal extends Error {
  override readonly name = 'RpcRefusal';
  readonly code: string;

  constructor(code: string, says: string) {
    super(says);
    this.code = code;
  }
}
