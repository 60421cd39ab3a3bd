// Lets an HTTP application listen on a real socket, and closes it in time.

import type { AddressInfo } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import type { FastifyInstance } from 'fastify';
import type { Clock } from '../../cluster/platform/clock.ts';
import type { HttpListening, ServedAt } from '../node/platform.ts';
import type { ConnectionRoom } from './connection-room.ts';
import { tlsContextOf } from './tls-context.ts';

/** A connection that is silent, half asked or not read may not keep the node from stopping. */
const CLOSE_GRACE_MS = 5_000;

/** What the listeners of a process share. */
export interface HttpServingParts {
  readonly clock: Clock;
  readonly room: ConnectionRoom;
}

/** Rejects with what the system says, as `EADDRINUSE`. */
export async function serveHttp(
  app: FastifyInstance,
  { host, port: wanted, tls }: HttpListening,
  { clock, room }: HttpServingParts,
): Promise<ServedAt> {
  const { server } = app;
  room.watch(server);
  await app.listen({ host, port: wanted });
  if (server instanceof TlsServer) {
    tls?.onRenewed((texts) => server.setSecureContext(tlsContextOf(texts)));
  }
  const { address, port } = server.address() as AddressInfo;
  return { address: { host: address, port }, close: () => closeInTime(app, clock) };
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
