// Lets an HTTP application listen on a real socket, and closes it in time.

import { constants } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import type { AddressInfo } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import type { FastifyInstance } from 'fastify';
import type { Clock } from '../../../cluster/platform/clock.ts';
import type { Logger } from '../../../cluster/platform/logger.ts';
import { remoteOf, type SocketEnd } from '../../../cluster/platform/net.ts';
import type { TlsTexts } from '../../../cluster/platform/tls-in-use.ts';
import { RefusalLog } from '../../../cluster/transport/handshake/refusal-log.ts';
import type { HttpListening, ServedAt } from '../../node/platform.ts';
import type { ConnectionRoom } from './connection-room.ts';
import { tlsContextOf } from './tls-context.ts';
import { certificateFault } from './tls-files.ts';

/** A connection that is silent, half asked or not read may not keep the node from stopping. */
const CLOSE_GRACE_MS = 5_000;

/** What the listeners of a process share. */
export interface HttpServingParts {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly room: ConnectionRoom;
}

/** Rejects with what the system says, as `EADDRINUSE`. */
export async function serveHttp(
  app: FastifyInstance,
  { host, port: wanted, tls }: HttpListening,
  { clock, logger, room }: HttpServingParts,
): Promise<ServedAt> {
  const { server } = app;
  room.watch(server);
  if (server instanceof TlsServer) {
    logRefusals(server, new RefusalLog({ clock, logger }));
    if (tls !== undefined) showCertificates(server, tls);
  }
  await app.listen({ host: await oneAddressOf(host), port: wanted });
  const { address, port } = server.address() as AddressInfo;
  return { address: { host: address, port }, close: () => closeInTime(app, clock) };
}

/**
 * By the name `localhost` fastify opens further servers, one for each other address that it has. They have none of the
 * bounds of this one, nor its certificates when they are renewed. Of the addresses the one that clients ask at who were
 * told nothing: those who go by the name try all.
 */
async function oneAddressOf(host: string): Promise<string> {
  return host === 'localhost' ? (await lookup(host, { order: 'ipv4first' })).address : host;
}

/**
 * A session that is resumed is not asked for a certificate, and one that has ended would go on for ever, from session
 * to session: where clients must have one, they show it each time.
 */
function showCertificates(
  server: TlsServer,
  { inUse, verifyIncoming }: NonNullable<HttpListening['tls']>,
): void {
  const resumption = verifyIncoming ? { secureOptions: constants.SSL_OP_NO_TICKET } : {};
  const show = (texts: TlsTexts) =>
    server.setSecureContext({ ...tlsContextOf(texts), ...resumption });
  show(inUse.texts);
  inUse.onRenewed(show);
}

/** A connection in TLS; `_parent` is Node's name for what it goes over, which knows the address for longer. */
interface SecuredSocket extends SocketEnd {
  readonly authorizationError?: Error | string | null;
  readonly _parent?: SocketEnd | null;
}

/**
 * Whoever connects only sees that the line is closed. What comes of strangers that look whether the port is open is
 * not told: it would push out what an operator waits for.
 */
function logRefusals(server: TlsServer, refusals: RefusalLog): void {
  // A socket that was asked for its address once knows it when it is closed.
  server.on('connection', (socket) => void socket.remoteAddress);
  server.on('tlsClientError', (error: NodeJS.ErrnoException, socket: SecuredSocket) => {
    const why = objectionTo(error, socket);
    const end = socket.remoteAddress === undefined ? (socket._parent ?? {}) : socket;
    if (why !== undefined) refusals.note({ remote: remoteOf(end), why, level: 'warn' });
  });
}

/** What is wrong with the certificate of a client that must have one (`tls.verify_incoming`); undefined: nothing. */
function objectionTo(
  { code }: NodeJS.ErrnoException,
  { authorizationError }: SecuredSocket,
): string | undefined {
  if (code === 'ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE') return 'it shows no certificate';
  if (authorizationError === null || authorizationError === undefined) return undefined;
  return certificateFault(authorizationError, 'an authority of tls.ca_file');
}

/** Lets requests under way finish; whoever has not finished when the grace is over is cut off. */
async function closeInTime(app: FastifyInstance, clock: Clock): Promise<void> {
  const cut = clock.after(CLOSE_GRACE_MS, () => app.server.closeAllConnections());
  try {
    await app.close();
  } finally {
    cut.cancel();
  }
}
