// Frames between nodes over WebSockets, plain or in TLS. Whatever is no WebSocket, too large or not binary
// ends its own connection and nothing else, with the reason in the log.

import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { SecureContextOptions, TLSSocket } from 'node:tls';
import { type VerifyClientCallbackAsync, WebSocket, WebSocketServer } from 'ws';
import type { Clock } from '../../../cluster/platform/clock.ts';
import type { Logger } from '../../../cluster/platform/logger.ts';
import {
  addressText,
  type Conn,
  FRAME_MAX_BYTES,
  type Listening,
  type Net,
  type NetAddress,
  remoteOf,
  type SocketEnd,
} from '../../../cluster/platform/net.ts';
import type { TlsInUse, TlsTexts } from '../../../cluster/platform/tls-in-use.ts';
import { RefusalLog } from '../../../cluster/transport/handshake/refusal-log.ts';
import { STRANGERS_MAX, StrangerSockets } from './stranger-sockets.ts';
import { CERTIFICATES_CHECKED, tlsContextOf } from './tls-context.ts';
import { certificateFault } from './tls-files.ts';
import { WsConn } from './ws-conn.ts';

export interface WsNetOptions {
  /**
   * Undefined: plain WebSockets. With a `ca`, each side must show a certificate that this authority has signed,
   * for whatever host name: that says that a node belongs, and the handshake says which one it is. Without it,
   * whoever is dialled must show one for its host name from an authority that this machine trusts.
   */
  readonly tls: TlsInUse | undefined;
  /** Connections of which it is not known who is there, where fewer than STRANGERS_MAX are to be had. */
  readonly strangersMax?: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** So long a stranger has for TLS, and for the request that makes a connection a WebSocket. */
const STRANGER_TIMEOUT_MS = 5_000;
/** Between two looks at whose time is over. */
const STRANGER_CHECK_MS = 1_000;
const HEADERS_MAX_BYTES = 8 * 1024;
const TLS_VERSION = 'TLSv1.3';
/** The first byte of what a client of TLS says. */
const TLS_HANDSHAKE = 0x16;
/** What TLS 1.3 tells of that is a closed connection, behind a handshake that seemed to be over. */
const MAY_REFUSE_CERTIFICATE =
  'it may not take the certificate of this server, which its log tells then';
const ONE_HAS_TLS = 'servers of which one alone has tls.cluster.* do not reach each other';

/** Of the page that a browser names. */
const ORIGIN_SHOWN_MAX = 100;

/** Nodes send whole messages, and what stands between may cut some. Each piece costs hundreds of bytes, if small. */
const FRAGMENTS_MAX = 64;

const WEB_SOCKET_OPTIONS = {
  perMessageDeflate: false,
  maxPayload: FRAME_MAX_BYTES,
  maxFragments: FRAGMENTS_MAX,
  // Nodes ping each other in frames of their own.
  autoPong: false,
} as const;

/** The network of this machine. */
export function openWsNet({ tls, strangersMax = STRANGERS_MAX, clock, logger }: WsNetOptions): Net {
  const refusals = new RefusalLog({ clock, logger });
  const onRefused: OnRefused = (end, why, level) =>
    refusals.note({ remote: remoteOf(end), why, level });
  return {
    listen: (address, onConn) => listen({ address, tls, strangersMax, onConn, onRefused }),
    dial: (address, { timeoutMs }) => dial(address, tls?.texts, timeoutMs),
  };
}

type OnRefused = (end: SocketEnd, why: string, level: 'warn' | 'debug') => void;

interface ListenOptions {
  readonly address: NetAddress;
  readonly tls: TlsInUse | undefined;
  readonly strangersMax: number;
  readonly onConn: (conn: Conn) => void;
  readonly onRefused: OnRefused;
}

async function listen(options: ListenOptions): Promise<Listening> {
  const { host, port } = options.address;
  const server = serverFor(options);
  const strangers = new StrangerSockets(
    (socket) => options.onRefused(socket, 'too many connections do not say who they are', 'warn'),
    Math.min(options.strangersMax, STRANGERS_MAX),
  );
  server.on('connection', (socket: Socket) => strangers.add(remoteOf(socket), socket));
  const webSockets = new WebSocketServer({
    server,
    clientTracking: false,
    verifyClient: refusingPages(options.onRefused),
    ...WEB_SOCKET_OPTIONS,
  });
  await new Promise<void>((resolve, reject) => {
    // It passes on what the server says.
    webSockets.on('error', (cause) =>
      reject(
        new Error(`cannot listen at ${addressText({ host, port })}: ${cause.message}`, { cause }),
      ),
    );
    server.listen({ host, port }, resolve);
  });
  webSockets.on('connection', (webSocket, { socket }) => {
    const remote = remoteOf(socket);
    const conn = new WsConn({ webSocket, socket, remote });
    conn.distrust(() => strangers.onKnown(remote));
    options.onConn(conn);
  });
  return {
    address: { host, port: (server.address() as AddressInfo).port },
    close: () => stopListening(server),
  };
}

/**
 * A browser lets every page open a WebSocket to any address that its machine reaches, the loopback one too, where a
 * server may listen without a key; and it says of which page, which no node does.
 */
function refusingPages(onRefused: OnRefused): VerifyClientCallbackAsync {
  return ({ origin, req }, answer) => {
    // What the type leaves out: nodes send none.
    const page = origin as string | undefined;
    if (page === undefined) return answer(true);
    const says = `a page of ${page.slice(0, ORIGIN_SHOWN_MAX)} connects, and this port is for nodes`;
    onRefused(req.socket, says, 'warn');
    answer(false, 403);
  };
}

/** Ends those that never became WebSockets; the others are their owners' to close. */
function stopListening(server: Server): Promise<void> {
  server.close();
  server.closeAllConnections();
  return new Promise((resolve) => setImmediate(resolve));
}

function serverFor(options: ListenOptions): Server {
  const { tls, onRefused } = options;
  const http: ServerOptions = {
    maxHeaderSize: HEADERS_MAX_BYTES,
    headersTimeout: STRANGER_TIMEOUT_MS,
    requestTimeout: STRANGER_TIMEOUT_MS,
    connectionsCheckingInterval: STRANGER_CHECK_MS,
  };
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    onRefused(
      request.socket,
      'what came is a plain HTTP request, and this port is for nodes',
      'warn',
    );
    refuseHttp(response);
  };
  const server =
    tls === undefined
      ? createServer(http, onRequest)
      : secured({ ...options, tls }, http, onRequest);
  // What goes wrong in TLS comes here, too.
  server.on('clientError', (error: ClientError, socket: Socket) => {
    // Somebody looked whether the port is open.
    const level = error.code === 'ECONNRESET' ? 'debug' : 'warn';
    onRefused(socket, whyNoNode(error, tls !== undefined), level);
    socket.destroy();
  });
  return server;
}

interface ClientError extends Error {
  readonly code?: string;
  /** What OpenSSL says in few words. */
  readonly reason?: string;
  /** What could not be read. */
  readonly rawPacket?: Uint8Array;
}

/** For people: what came over a connection that never became a WebSocket. */
function whyNoNode({ code, reason, message, rawPacket }: ClientError, hasTls: boolean): string {
  if (!hasTls && rawPacket?.[0] === TLS_HANDSHAKE) {
    return `what came is TLS, and none is spoken here: ${ONE_HAS_TLS}`;
  }
  if (code === 'ERR_SSL_HTTP_REQUEST') {
    return `what came is not TLS, which is spoken here: ${ONE_HAS_TLS}`;
  }
  return `what came is no node: ${reason ?? message}`;
}

function secured(
  { tls, onRefused }: ListenOptions & { readonly tls: TlsInUse },
  http: ServerOptions,
  onRequest: (request: IncomingMessage, response: ServerResponse) => void,
): Server {
  const isMutual = tls.texts.ca !== undefined;
  const limits = { handshakeTimeout: STRANGER_TIMEOUT_MS, requestCert: isMutual } as const;
  const options = { ...http, ...limits, ...contextOf(tls.texts), rejectUnauthorized: false };
  const server = createTlsServer(options, onRequest);
  tls.onRenewed((texts) => server.setSecureContext(contextOf(texts)));
  if (!isMutual) return server;
  // Refused here and not in TLS, where nobody would learn from whom it came and what is wrong with it.
  server.on('secureConnection', (socket) => {
    const objection = objectionTo(socket);
    if (objection === undefined) return;
    onRefused(socket, objection, 'warn');
    socket.destroy();
  });
  return server;
}

/**
 * A session that is resumed counts as authorized even if no certificate was ever shown, so it must be shown
 * each time.
 */
function objectionTo(socket: TLSSocket): string | undefined {
  if (!socket.authorized) {
    return certificateFault(socket.authorizationError, 'the authority of this cluster');
  }
  const hasShownIt = socket.getPeerX509Certificate() !== undefined && !socket.isSessionReused();
  return hasShownIt ? undefined : 'it resumes a session instead of showing a certificate';
}

function refuseHttp(response: ServerResponse): void {
  response.writeHead(426, { Connection: 'close', 'Content-Type': 'text/plain' });
  response.end('This port is for the servers of a cluster. HTTP is answered on ports.http.\n');
}

function dial(address: NetAddress, tls: TlsTexts | undefined, timeoutMs: number): Promise<Conn> {
  const remote = addressText(address);
  return new Promise((resolve, reject) => {
    const webSocket = new WebSocket(`${tls === undefined ? 'ws' : 'wss'}://${remote}/`, {
      ...WEB_SOCKET_OPTIONS,
      handshakeTimeout: timeoutMs,
      // Masks guard proxies against scripts in browsers; there is neither here, and zeros cost nothing.
      generateMask: (mask) => mask.fill(0),
      ...(tls === undefined ? {} : tlsToDial(tls)),
    });
    const onFailed = (error: ClientError): void => reject(dialFault(error, tls));
    webSocket.once('error', onFailed);
    webSocket.once('upgrade', ({ socket }) => {
      webSocket.once('open', () => {
        webSocket.off('error', onFailed);
        resolve(new WsConn({ webSocket, socket, remote }));
      });
    });
  });
}

/** Whoever expects TLS, or none, closes the connection without a word when the other comes: who dials may guess. */
function dialFault(error: ClientError, tls: TlsTexts | undefined): Error {
  if (error.code !== 'ECONNRESET') return error;
  const isMutual = tls?.ca !== undefined;
  const maybe = ['it may have gone', ...(isMutual ? [MAY_REFUSE_CERTIFICATE] : [])].join('; ');
  return new Error(`${error.message} (${maybe}; or ${ONE_HAS_TLS})`, { cause: error });
}

function tlsToDial(tls: TlsTexts): WebSocket.ClientOptions {
  const own = { ...contextOf(tls), ...CERTIFICATES_CHECKED };
  return tls.ca === undefined ? own : { ...own, checkServerIdentity: hasNoObjection };
}

function contextOf(tls: TlsTexts): SecureContextOptions {
  return { ...tlsContextOf(tls), minVersion: TLS_VERSION };
}

/** Any host name will do. Node asks for the objection, if there is one. */
function hasNoObjection(): boolean {
  return false;
}
