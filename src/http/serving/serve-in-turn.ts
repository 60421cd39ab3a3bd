// One request of a connection after the other. Who sends ahead gets the answers in that order anyway, and
// deployed servers do likewise. A request that waits for its turn is not begun: it holds what was read of it,
// is forgotten when its client goes, and a client that sends ahead without end is cut off. Reading on later
// would be kinder, but what Node has read of a connection it makes requests of, thousands at a time.

import type { FastifyInstance } from 'fastify';
import type { Logger } from '../../../cluster/platform/logger.ts';
import { headCharsOf, textBytesOf } from '../limits/head-size.ts';
import { LIMITS } from '../settings.ts';
import { holdInFewPieces } from '../wire/few-pieces.ts';
import type { RawExchange, RawRequest, RawResponse } from '../wire/wire-types.ts';

type Server = FastifyInstance['server'];
type Serve = (request: RawRequest, response: RawResponse) => void;

/**
 * From now on the server's listeners get each request when its answer can be sent. Those that Node would answer
 * by itself wait as well, so the server must leave the header `Host` to be looked after here.
 */
export function serveInTurn(server: Server, logger: Logger): void {
  server.maxHeadersCount = LIMITS.headersMax + 1;
  const listeners = server.listeners('request') as Serve[];
  const ahead = new SentAhead(logger);
  const serve: Serve = (request, response) => {
    if (isCutShort(request)) refuse(response, 431);
    else if (isWithoutHost(request)) refuse(response, 400);
    else for (const listener of listeners) listener.call(server, request, response);
  };
  const inTurn =
    (begin: Serve): Serve =>
    (request, response) => {
      // Node gives an answer the socket when those before it are out.
      const isInTurn = response.socket !== null;
      holdInFewPieces(request, { isInTurn });
      if (isInTurn) begin(request, response);
      else ahead.add({ request, response }, begin);
    };
  server.removeAllListeners('request');
  server.on('request', inTurn(serve));
  server.on(
    'checkExpectation',
    inTurn((_request, response) => refuse(response, 417)),
  );
}

/**
 * Whether there are more headers than are looked at: Node leaves those out, and among them may be the token, the
 * namespace or the length of the body.
 */
function isCutShort({ rawHeaders }: RawRequest): boolean {
  return rawHeaders.length > 2 * LIMITS.headersMax;
}

function isWithoutHost({ httpVersionMinor, httpVersionMajor, headers }: RawRequest): boolean {
  return headers.host === undefined && httpVersionMinor === 1 && httpVersionMajor === 1;
}

/** What is no request to any endpoint: the status says all. */
function refuse(response: RawResponse, status: number): void {
  response.writeHead(status, ['Content-Length', '0', 'Connection', 'close']);
  response.end();
}

/** What of one connection waits. */
interface Waiting {
  /** Where each request begins in what was read of the connection, the oldest first. */
  readonly beginnings: number[];
  /** What their headers take beside their characters. */
  textBytes: number;
}

/** The requests that wait for those before them. */
class SentAhead {
  readonly #logger: Logger;
  readonly #bySocket = new WeakMap<RawRequest['socket'], Waiting>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Has a request begun in its turn, which does not come where the connection ends before. */
  add({ request, response }: RawExchange, begin: Serve): void {
    const { socket, rawHeaders } = request;
    if (socket.destroyed) return;
    const waiting = this.#waitingOn(socket);
    const { beginnings } = waiting;
    beginnings.push(socket.bytesRead - headCharsOf(request.url ?? '', rawHeaders));
    waiting.textBytes += textBytesOf(rawHeaders);
    const heldBytes = socket.bytesRead - (beginnings[0] ?? 0) + waiting.textBytes;
    if (beginnings.length > LIMITS.sentAheadMax || heldBytes > LIMITS.sentAheadBytes) {
      this.#logger.debug({ client: socket.remoteAddress }, 'too many requests sent ahead');
      socket.destroy();
      return;
    }
    response.once('socket', () => {
      beginnings.shift();
      waiting.textBytes -= textBytesOf(rawHeaders);
      if (!socket.destroyed) begin(request, response);
    });
  }

  #waitingOn(socket: RawRequest['socket']): Waiting {
    const known = this.#bySocket.get(socket);
    if (known !== undefined) return known;
    const fresh = { beginnings: [], textBytes: 0 };
    this.#bySocket.set(socket, fresh);
    return fresh;
  }
}
