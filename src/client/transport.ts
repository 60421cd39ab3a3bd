// How requests leave: the port that the client needs from the outside world. An implementation sends
// one request and gives back whatever the server answered, of any status; it never retries. Only when
// no whole answer came does it reject, and then it says how far things went.

export interface TransportRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

export interface TransportResponse {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly text: string;
}

/** A request whose body, or whose answer, is longer than one wants to hold. */
export interface StreamRequest extends Omit<TransportRequest, 'body'> {
  /** Taken as fast as the server reads, and left where the server answers before its end. */
  readonly body: AsyncIterable<Uint8Array> | undefined;
}

export interface StreamResponse extends Omit<TransportResponse, 'text'> {
  /**
   * The body as it comes; throws TransportError when it breaks off. To be read to its end, or left by
   * ending the loop.
   */
  readonly body: AsyncIterable<Uint8Array>;
}

export interface Transport {
  /** Rejects with TransportError when no whole answer came. */
  send(request: TransportRequest): Promise<TransportResponse>;
  /**
   * Rejects with TransportError when no answer began, and with what the body of the request threw. An
   * answer may take as long as it needs to begin once the whole body is sent.
   */
  stream(request: StreamRequest): Promise<StreamResponse>;
}

export type TransportFailure =
  /** Nobody listens at the address. */
  | 'refused'
  /** The host name or the route to it is unknown. */
  | 'no-such-host'
  /** Certificates do not fit, or one side speaks TLS and the other does not. */
  | 'tls'
  /** No answer within the time that the transport waits. */
  | 'timeout'
  /** The connection ended before the answer was whole: whether the server acted is not known. */
  | 'broken'
  /** An answer came that no server of this kind would give. */
  | 'unreadable';

/** No answer. The message never holds a header, so no secret either. */
export class TransportError extends Error {
  override readonly name = 'TransportError';
  readonly failure: TransportFailure;

  constructor(failure: TransportFailure, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.failure = failure;
  }
}
