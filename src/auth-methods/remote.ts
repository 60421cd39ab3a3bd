// Asking an outside service on behalf of an auth method: bounded requests, strict JSON, and a cache
// whose reloads are shared and spaced, so that a flood of logins is never a flood of requests.
// Errors have two texts: `summary` for whoever logs in, `message` with the details for the operator.

import { AclError } from '../acl/error.ts';
import { HttpsFailure, type HttpsRequest, type HttpsResponse } from './https-client.ts';
import type { Surroundings } from './surroundings.ts';

export const REQUEST_TIMEOUT_MS = 10_000;
export const ANSWER_BYTES_MAX = 1024 * 1024;
/** Keys and discovery documents are used this long before they are asked for again. */
export const FRESH_MS = 600_000;
/** At least this long lies between two reloads that were caused by an unknown key. */
export const RELOAD_COOLDOWN_MS = 30_000;
const CACHE_ENTRIES_MAX = 128;

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
    throw new RemoteFailure(`no answer (${error.kind})`, error.message, { cause: error });
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

/** Decodes a body as a JSON object, or throws RemoteFailure. */
export function jsonObjectOf(body: Uint8Array): Readonly<Record<string, unknown>> {
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
  { logger }: Surroundings,
  {
    method,
    what,
    failure,
  }: { readonly method: string; readonly what: string; failure: RemoteFailure },
): AclError {
  logger.warn({ authMethod: method, what, error: failure.message }, 'auth method got no answer');
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

interface CacheEntry<T> {
  readonly value: T;
  readonly loadedAtMs: number;
  /** When a reload was last begun; a reload that failed counts too. */
  readonly reloadedAtMs: number;
}

/** A bounded cache of remote documents by key. Failures are not cached; loads in flight are shared. */
export class RemoteCache<T> {
  readonly #nowMs: () => number;
  readonly #entries = new Map<string, CacheEntry<T>>();
  readonly #loading = new Map<string, Promise<T>>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** The cached value while it is fresh, otherwise a new one. */
  get(key: string, load: () => Promise<T>): Promise<T> {
    const entry = this.#entries.get(key);
    if (entry !== undefined && this.#sinceMs(entry.loadedAtMs) < FRESH_MS) {
      return Promise.resolve(entry.value);
    }
    return this.load(key, load);
  }

  /** A new value, or undefined when the cached one was loaded too short a while ago. */
  reload(key: string, load: () => Promise<T>): Promise<T | undefined> {
    const running = this.#loading.get(key);
    if (running !== undefined) return running;
    const entry = this.#entries.get(key);
    if (entry !== undefined && this.#sinceMs(entry.reloadedAtMs) < RELOAD_COOLDOWN_MS) {
      return Promise.resolve(undefined);
    }
    if (entry !== undefined) this.#entries.set(key, { ...entry, reloadedAtMs: this.#nowMs() });
    return this.load(key, load);
  }

  /** Loads in any case; two loads of one key at a time become one. */
  load(key: string, load: () => Promise<T>): Promise<T> {
    const running = this.#loading.get(key);
    if (running !== undefined) return running;
    const loading = this.#store(key, load).finally(() => this.#loading.delete(key));
    this.#loading.set(key, loading);
    return loading;
  }

  async #store(key: string, load: () => Promise<T>): Promise<T> {
    const value = await load();
    this.#entries.delete(key);
    const loadedAtMs = this.#nowMs();
    this.#entries.set(key, { value, loadedAtMs, reloadedAtMs: loadedAtMs });
    const oldest = this.#entries.keys().next();
    if (this.#entries.size > CACHE_ENTRIES_MAX && oldest.done !== true) {
      this.#entries.delete(oldest.value);
    }
    return value;
  }

  /** A wall clock that was set back makes an entry old, not young for ever. */
  #sinceMs(momentMs: number): number {
    const elapsedMs = this.#nowMs() - momentMs;
    return elapsedMs < 0 ? FRESH_MS : elapsedMs;
  }
}
