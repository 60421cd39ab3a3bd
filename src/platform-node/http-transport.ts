// Requests of the command line over HTTP, HTTPS with an authority of its own, or a Unix socket. The
// global fetch knows neither of the last two without another package, so this uses Node's own client.

import { readFileSync } from 'node:fs';
import { type IncomingMessage, type RequestOptions, request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import {
  type Transport,
  TransportError,
  type TransportFailure,
  type TransportRequest,
  type TransportResponse,
} from '../client/transport.ts';

export interface HttpTransportOptions {
  /** Path of a Unix socket to connect to in place of the host of the address. */
  readonly socketPath?: string | undefined;
  /** PEM file with the authority that the server's certificate must come from. */
  readonly caFile?: string | undefined;
  /** So long nothing may arrive before the request is given up. */
  readonly timeoutMs: number;
}

/** A transport over Node's HTTP client. Throws when the authority's file cannot be read. */
export function httpTransport(options: HttpTransportOptions): Transport {
  const ca = options.caFile === undefined ? undefined : readFileSync(options.caFile, 'utf8');
  return { send: (request) => send(request, options, ca) };
}

function send(
  request: TransportRequest,
  options: HttpTransportOptions,
  ca: string | undefined,
): Promise<TransportResponse> {
  return new Promise((resolve, reject) => {
    const body = request.body === undefined ? undefined : Buffer.from(request.body);
    const settings: RequestOptions & { readonly ca?: string } = {
      method: request.method,
      headers: { ...request.headers, 'content-length': String(body?.length ?? 0) },
      timeout: options.timeoutMs,
      ...(options.socketPath === undefined ? {} : { socketPath: options.socketPath }),
      ...(ca === undefined ? {} : { ca }),
    };
    const start = request.url.startsWith('https:') ? httpsRequest : httpRequest;
    const outgoing = start(request.url, settings, (incoming) => {
      readAnswer(incoming).then(resolve, (error: unknown) => reject(failureOf(error)));
    });
    outgoing.on('timeout', () => {
      const seconds = Math.round(options.timeoutMs / 1000);
      outgoing.destroy(new TransportError('timeout', `no answer within ${seconds} seconds`));
    });
    outgoing.on('error', (error) => reject(failureOf(error)));
    outgoing.end(body);
  });
}

async function readAnswer(incoming: IncomingMessage): Promise<TransportResponse> {
  const parts: Buffer[] = [];
  for await (const part of incoming) parts.push(part as Buffer);
  const headers = Object.entries(incoming.headers).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.join(', ') : (value ?? ''),
  ]);
  return {
    status: incoming.statusCode ?? 0,
    headers: Object.fromEntries(headers) as Record<string, string>,
    text: Buffer.concat(parts).toString('utf8'),
  };
}

const FAILURES: ReadonlyMap<string, TransportFailure> = new Map([
  ['ECONNREFUSED', 'refused'],
  ['ENOENT', 'refused'],
  ['EACCES', 'refused'],
  ['ENOTFOUND', 'no-such-host'],
  ['EAI_AGAIN', 'no-such-host'],
  ['EHOSTUNREACH', 'no-such-host'],
  ['ENETUNREACH', 'no-such-host'],
  ['ETIMEDOUT', 'timeout'],
  ['EPROTO', 'tls'],
  ['HPE_INVALID_CONSTANT', 'tls'],
]);

function failureOf(error: unknown): TransportError {
  if (error instanceof TransportError) return error;
  const { code = '', message } = error as NodeJS.ErrnoException;
  const isTls = /^(ERR_(TLS|SSL)|CERT_|UNABLE_TO_|DEPTH_ZERO|SELF_SIGNED)/.test(code);
  const failure = isTls ? 'tls' : (FAILURES.get(code) ?? 'broken');
  return new TransportError(failure, message === '' ? code : message, { cause: error });
}
