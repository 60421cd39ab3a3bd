// Asking an outside service on behalf of an auth method: bounded requests and strict JSON.
// Errors have two texts: `summary` for whoever logs in, `message` with the details for the operator.

import { excessOf } from '../../../cluster/base/json-bounds.ts';
import { AclError } from '../../acl/error.ts';
import { HttpsFailure, type HttpsRequest, type HttpsResponse } from './https-client.ts';
import type { Outside } from './outside.ts';
import type { Surroundings } from './surroundings.ts';

export const REQUEST_TIMEOUT_MS = 10_000;
const ANSWER_BYTES_MAX = 1024 * 1024;

/** An outside service gave no usable answer. */
export class RemoteFailure extends Error {
  override readonly name = 'RemoteFailure';
  /** Says what went wrong without naming hosts or addresses. */
  readonly summary: string;

  constructor(summary: string, message = summary, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.summary = summary;
  }
}

export type BoundedRequest = Omit<HttpsRequest, 'timeoutMs' | 'maxBytes'>;

/** Sends one request within the limits above; rejects with RemoteFailure when there is no answer. */
export async function ask({ http }: Surroundings, request: BoundedRequest): Promise<HttpsResponse> {
  try {
    return await http.request({
      ...request,
      timeoutMs: REQUEST_TIMEOUT_MS,
      maxBytes: ANSWER_BYTES_MAX,
    });
  } catch (error) {
    if (!(error instanceof HttpsFailure)) throw error;
    const summary =
      error.kind === 'busy' ? 'too many requests are under way' : `no answer (${error.kind})`;
    throw new RemoteFailure(summary, error.message, { cause: error });
  }
}

/** GETs a JSON object; any status but 200 and anything but an object is a RemoteFailure. */
export async function askForJson(
  surroundings: Surroundings,
  { url, caPem }: { readonly url: string; readonly caPem: string },
): Promise<Readonly<Record<string, unknown>>> {
  const headers = { accept: 'application/json' };
  const request = { method: 'GET', url, headers, caPem: caPem || undefined } as const;
  const response = await ask(surroundings, request);
  if (response.status !== 200) throw new RemoteFailure(`unexpected status ${response.status}`);
  return jsonObjectOf(response.body);
}

/** Decodes a body as a JSON object, or throws RemoteFailure, also where to read it would keep everybody waiting. */
export function jsonObjectOf(body: Uint8Array): Readonly<Record<string, unknown>> {
  const excess = excessOf(body);
  if (excess !== undefined) throw new RemoteFailure(`the answer has ${excess}`);
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch (error) {
    throw new RemoteFailure('the answer is not JSON', undefined, { cause: error });
  }
  if (!isRecord(value)) throw new RemoteFailure('the answer is not a JSON object');
  return value;
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * What a caller of login meets when `what` could not be asked: the summary, under a code that says
 * that nothing was done and that it may be tried again. The details go to the log.
 */
export function loginUnavailable(
  { unanswered }: Outside,
  {
    method,
    what,
    failure,
  }: { readonly method: string; readonly what: string; failure: RemoteFailure },
): AclError {
  unanswered.note({ authMethod: method, what, error: failure.message });
  return new AclError('unavailable', `error asking for ${what}: ${failure.summary}`, {
    cause: failure,
  });
}

/** Throws when `text` is no absolute http or https URL, or holds a user or password. */
export function parseHttpUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) throw new RemoteFailure('not an absolute URL');
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw new RemoteFailure('the scheme must be https or http');
  }
  if (url.username !== '' || url.password !== '') {
    throw new RemoteFailure('a URL must not hold a user or a password');
  }
  return url;
}
