// The port through which auth methods reach the outside: one request, one bounded answer. Redirects
// are never followed, because a target that the operator did not name must never be asked. What
// implements it lives in src/platform-node; tests may implement it with a table.

export interface HttpsRequest {
  readonly method: 'GET' | 'POST';
  /** Absolute, `https:` or `http:`, without user and password. */
  readonly url: string;
  /** A `host` header replaces the one that the URL gives; it never changes which name TLS checks. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string | undefined;
  /** PEM certificates that replace the system's trust roots for this request. */
  readonly caPem?: string | undefined;
  /** Limit for the whole exchange, from the first byte sent to the last byte read. */
  readonly timeoutMs: number;
  /** Limit for the body of the answer; more fails with `too-large`. */
  readonly maxBytes: number;
}

export interface HttpsResponse {
  readonly status: number;
  /** Names in lower case; repeated headers joined with `, `. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

export interface HttpsClient {
  /** Resolves with any status. Rejects with HttpsFailure when there is no whole answer. */
  request(request: HttpsRequest): Promise<HttpsResponse>;
}

export type HttpsFailureKind =
  | 'bad-request'
  | 'connection'
  | 'tls'
  | 'timeout'
  | 'too-large'
  /** It was not sent: too many are under way. */
  | 'busy';

/** No whole answer came. The message names the host and the cause, never a header or a body. */
export class HttpsFailure extends Error {
  override readonly name = 'HttpsFailure';
  readonly kind: HttpsFailureKind;

  constructor(kind: HttpsFailureKind, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.kind = kind;
  }
}
