// A refusal by the server, as the caller of the client meets it. The message is the server's own text,
// so that it can be shown as it is; `code` is the stable word to branch on.

import type { TransportResponse } from './transport.ts';

export interface AskedOf {
  readonly method: string;
  /** Without the query, which could carry what nobody should log. */
  readonly path: string;
}

/** A date is no number, and what is longer no time to wait. */
const WAIT_SECONDS = /^\d{1,6}$/;

/** The server answered with something else than success. Never carries the token that was sent. */
export class ClientError extends Error {
  override readonly name = 'ClientError';
  readonly status: number;
  /** The service's word for the refusal, such as `not-found`; undefined when it sent none. */
  readonly code: string | undefined;
  readonly asked: AskedOf;
  /** Seconds after which trying again makes sense, where the server says so. */
  readonly retryAfterSeconds: number | undefined;

  constructor(asked: AskedOf, response: TransportResponse) {
    const { code, text } = problemOf(response);
    super(text);
    this.status = response.status;
    this.code = code;
    this.asked = asked;
    const wait = response.headers['retry-after'] ?? '';
    this.retryAfterSeconds = WAIT_SECONDS.test(wait) ? Number(wait) : undefined;
  }
}

/** Reads a problem document; anything else is taken as the bare text of the error. */
function problemOf(response: TransportResponse): { code: string | undefined; text: string } {
  const bare = response.text.trim() || `status ${response.status} without a text`;
  if (response.headers['content-type']?.startsWith('application/problem+json') !== true)
    return { code: undefined, text: bare };
  const problem = parseObject(response.text);
  const detail = problem.detail;
  const code = problem.code;
  return {
    code: typeof code === 'string' ? code : undefined,
    text: typeof detail === 'string' ? detail : bare,
  };
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
