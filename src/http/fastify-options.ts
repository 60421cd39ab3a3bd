// What fastify is told: its bounds, how it finds the route of a target, and what it says to what is no HTTP.

import { mayTakeItsTime } from './limits/slow-body.ts';
import type { HttpParts } from './parts.ts';
import { targetPathOf } from './routes/target-path.ts';
import { LIMITS } from './settings.ts';
import type { RawRequest } from './wire/wire-types.ts';

/** Where the router is sent for targets that it must not see. No client can name these paths. */
export const REDIRECT_PATH = '/./redirect';
export const REFUSED_PATH = '/./refused';

export function fastifyOptionsOf({ settings }: Pick<HttpParts, 'settings'>) {
  const { tls } = settings;
  // A request without `Host` waits for its turn as any other.
  const http = { maxHeaderSize: LIMITS.headerMaxBytes, requireHostHeader: false };
  return {
    bodyLimit: settings.bodyMaxBytes,
    requestTimeout: LIMITS.requestTimeoutMs,
    forceCloseConnections: 'idle' as const,
    return503OnClosing: false,
    exposeHeadRoutes: false,
    logger: false,
    schemaController: { compilersFactory: NO_COMPILERS },
    // The query is read from the target, by rules of its own.
    routerOptions: { maxParamLength: LIMITS.headerMaxBytes, querystringParser: () => ({}) },
    rewriteUrl,
    clientErrorHandler: refuseGarbage,
    ...(tls === undefined ? { http } : { https: { ...http, ...tlsOptionsOf(tls) } }),
  };
}

/** No route has a schema of fastify's. By these it does not load what would compile one. */
const NO_COMPILERS = { buildValidator: noCompiler, buildSerializer: noCompiler };

function noCompiler(): never {
  throw new Error('a route has a schema that nothing here compiles');
}

function tlsOptionsOf(tls: NonNullable<HttpParts['settings']['tls']>) {
  const { key, cert, ca } = tls.inUse.texts;
  const { verifyIncoming } = tls;
  const trusted = ca === undefined ? {} : { ca };
  return { key, cert, ...trusted, requestCert: verifyIncoming, rejectUnauthorized: verifyIncoming };
}

/** The first that fastify does with a request: here it is made into one that fastify understands. */
function rewriteUrl({ url, headers }: RawRequest): string {
  // Fastify refuses types that it cannot read before the parser is asked. No hook sees to this: it
  // would cost every request, and so does deleting where there is nothing to delete.
  if (headers['content-type'] !== undefined) delete headers['content-type'];
  const found = targetPathOf(url ?? '/');
  if (found.kind === 'clean') return found.path;
  return found.kind === 'redirect' ? REDIRECT_PATH : REFUSED_PATH;
}

/** The connection of a client; `_httpMessage` is Node's name for the answer that is under way on it. */
interface ClientSocket {
  readonly writable: boolean;
  readonly _httpMessage?: { readonly req: { readonly complete: boolean } } | null;
  end(text: string): void;
  destroy(): void;
}

/** What came is no HTTP, or comes too slowly: answers with the status alone, and closes. */
function refuseGarbage(error: Error & { readonly code?: string }, socket: ClientSocket): void {
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && mayTakeItsTime(socket)) return;
  const line =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? '431 Request Header Fields Too Large'
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? '408 Request Timeout'
        : '400 Bad Request';
  // A refusal now would be read as the answer to the whole request that came before.
  const isAnswering = socket._httpMessage?.req.complete === true;
  if (isAnswering || !socket.writable || error.code === 'ECONNRESET') socket.destroy();
  else socket.end(`HTTP/1.1 ${line}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
}
