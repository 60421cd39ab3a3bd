// How many connections one client address may hold at a time. One more is told so and closed, before
// any of its bytes are read.

import type { FastifyInstance } from 'fastify';

type Server = FastifyInstance['server'];

const TEXT = 'too many connections from this client\n';
const REFUSAL =
  'HTTP/1.1 429 Too Many Requests\r\nContent-Type: text/plain; charset=utf-8\r\n' +
  `Content-Length: ${TEXT.length}\r\nRetry-After: 1\r\nConnection: close\r\n\r\n${TEXT}`;

/** Keeps `server` to `max` connections a client. `isPlain`: the refusal can be written as text. */
export function limitConnections(
  server: Server,
  limit: { readonly max: number; readonly isPlain: boolean },
): void {
  if (limit.max === 0) return;
  const countByClient = new Map<string, number>();
  server.on('connection', (socket) => {
    const client = socket.remoteAddress ?? 'unknown';
    const count = (countByClient.get(client) ?? 0) + 1;
    if (count > limit.max) {
      // At once: not a byte of its request may be read and acted upon.
      if (limit.isPlain) socket.write(REFUSAL);
      socket.destroy();
      return;
    }
    countByClient.set(client, count);
    socket.once('close', () => {
      const left = (countByClient.get(client) ?? 1) - 1;
      if (left === 0) countByClient.delete(client);
      else countByClient.set(client, left);
    });
  });
}
