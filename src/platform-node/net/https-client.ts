// HttpsClient on Node's own http and https: one connection a request, no redirects, no change of protocol,
// hard limits for time and size. Never logs; its errors name host and cause and nothing of what was sent or received.

import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP } from 'node:net';
import { type ConnectionOptions, createSecureContext, type SecureContext } from 'node:tls';
import { LRUCache } from 'lru-cache';
import { GatheredBytes } from '../../../cluster/base/gathered-bytes.ts';
import {
  type HttpsClient,
  HttpsFailure,
  type HttpsFailureKind,
  type HttpsRequest,
  type HttpsResponse,
} from '../../auth-methods/outside/https-client.ts';
import { CERTIFICATES_CHECKED } from './tls-context.ts';

const HEADER_BYTES_MAX = 32 * 1024;
/** Of the certificates that are kept read, in UTF-16 units. */
const CA_TEXT_MAX = 4 * 1024 * 1024;
const TLS_VERSION_MIN = { minVersion: 'TLSv1.2' } as const;

export class NodeHttpsClient implements HttpsClient {
  /** By the text of the certificates: to read them takes longer than to ask. */
  readonly #contexts = new LRUCache<string, SecureContext>({
    maxSize: CA_TEXT_MAX,
    sizeCalculation: (_context, caPem) => caPem.length + 1,
  });

  async request(request: HttpsRequest): Promise<HttpsResponse> {
    const url = parseUrl(request.url);
    const deadline = new AbortController();
    const timer = setTimeout(() => deadline.abort(), request.timeoutMs);
    try {
      // Whatever becomes of a connection whose end nobody is told of, the deadline is kept.
      const { signal } = deadline;
      const tls = url.protocol === 'https:' ? this.#tlsOptions(url, request.caPem) : undefined;
      return await Promise.race([exchange(request, { url, tls, signal }), passed(signal)]);
    } catch (error) {
      if (deadline.signal.aborted) {
        throw failure('timeout', url, `no answer within ${request.timeoutMs} ms`, error);
      }
      throw error instanceof HttpsFailure ? error : failureOf(url, error);
    } finally {
      clearTimeout(timer);
    }
  }

  /** The name that TLS checks comes from the URL; left alone, Node would take it from a Host header. */
  #tlsOptions({ hostname }: URL, caPem: string | undefined): TlsOptions {
    const host = hostname.replace(/^\[|\]$/g, '');
    const servername = isIP(host) === 0 ? host : '';
    const checked = { servername, ...CERTIFICATES_CHECKED };
    if (caPem === undefined) return { ...checked, ...TLS_VERSION_MIN };
    return { ...checked, secureContext: this.#contextOf(caPem) };
  }

  #contextOf(caPem: string): SecureContext {
    const known = this.#contexts.get(caPem);
    if (known !== undefined) return known;
    const context = createSecureContext({ ca: caPem, ...TLS_VERSION_MIN });
    this.#contexts.set(caPem, context);
    return context;
  }
}

type TlsOptions = Pick<
  ConnectionOptions,
  'servername' | 'secureContext' | 'minVersion' | 'rejectUnauthorized'
>;

interface Way {
  readonly url: URL;
  /** Undefined where the URL is without. */
  readonly tls: TlsOptions | undefined;
  readonly signal: AbortSignal;
}

/** Rejects when the time is over; until then it does nothing. */
function passed(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

function parseUrl(text: string): URL {
  if (!URL.canParse(text)) throw new HttpsFailure('bad-request', 'the URL cannot be read');
  const url = new URL(text);
  if (url.protocol === 'https:' || url.protocol === 'http:') return url;
  throw new HttpsFailure('bad-request', `the URL has the scheme ${url.protocol}`);
}

async function exchange(request: HttpsRequest, way: Way): Promise<HttpsResponse> {
  const response = await send(request, way);
  try {
    const body = await bodyOf(response, request.maxBytes, way.url);
    return { status: response.statusCode ?? 0, headers: headersOf(response), body };
  } finally {
    response.destroy();
  }
}

function send(
  { method, headers, body }: HttpsRequest,
  { url, tls, signal }: Way,
): Promise<IncomingMessage> {
  const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
  const options: RequestOptions = {
    method,
    headers: { ...headers, ...length },
    signal,
    agent: false,
    maxHeaderSize: HEADER_BYTES_MAX,
  };
  return new Promise((resolve, reject) => {
    const sent =
      tls === undefined ? httpRequest(url, options) : httpsRequest(url, { ...options, ...tls });
    sent.on('response', resolve);
    sent.on('error', reject);
    sent.on('upgrade', (_response, socket) => {
      socket.destroy();
      reject(failure('connection', url, 'the answer changes the protocol'));
    });
    sent.on('close', () => reject(failure('connection', url, 'it was closed without an answer')));
    sent.end(body);
  });
}

async function bodyOf(response: IncomingMessage, maxBytes: number, url: URL): Promise<Uint8Array> {
  const gathered = new GatheredBytes();
  for await (const piece of response as AsyncIterable<Buffer>) {
    if (gathered.length + piece.length > maxBytes) {
      throw failure('too-large', url, `the answer is larger than ${maxBytes} bytes`);
    }
    gathered.add(piece);
  }
  return gathered.take();
}

function headersOf(response: IncomingMessage): Readonly<Record<string, string>> {
  const entries = Object.entries(response.headers).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.join(', ') : (value ?? ''),
  ]);
  return Object.fromEntries(entries);
}

function failureOf(url: URL, error: unknown): HttpsFailure {
  const code = codeOf(error);
  const kind: HttpsFailureKind = /CERT|TLS|SSL|SELF_SIGNED|ISSUER/.test(code)
    ? 'tls'
    : 'connection';
  return failure(kind, url, code === '' ? 'the connection failed' : code, error);
}

function failure(kind: HttpsFailureKind, url: URL, text: string, cause?: unknown): HttpsFailure {
  return new HttpsFailure(kind, `${url.host}: ${text}`, { cause });
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error) || !('code' in error)) return '';
  return typeof error.code === 'string' ? error.code : '';
}
