// How many connections one client address may hold at a time. One more is told so and closed, before
// any of its bytes are read.

import type { FastifyInstance } from 'fastify';
import type { Clock } from '../../../cluster/platform/clock.ts';
import type { Logger } from '../../../cluster/platform/logger.ts';
import { remoteOf } from '../../../cluster/platform/net.ts';
import { RefusalLog } from '../../../cluster/transport/handshake/refusal-log.ts';

type Server = FastifyInstance['server'];

const TEXT = 'too many connections from this client\n';
const REFUSAL =
  'HTTP/1.1 429 Too Many Requests\r\nContent-Type: text/plain; charset=utf-8\r\n' +
  `Content-Length: ${TEXT.length}\r\nRetry-After: 1\r\nConnection: close\r\n\r\n${TEXT}`;

export class ConnectionLimit {
  readonly #max: number;
  readonly #refusals: RefusalLog;
  readonly #countByClient = new Map<string, number>();

  /** `max` connections a client; 0: no limit. */
  constructor(max: number, log: { readonly clock: Clock; readonly logger: Logger }) {
    this.#max = max;
    this.#refusals = new RefusalLog(log);
  }

  /** Counts the connections of `server`, too. `isPlain`: the refusal can be written as text. */
  keep(server: Server, { isPlain }: { readonly isPlain: boolean }): void {
    if (this.#max === 0) return;
    server.on('connection', (socket) => {
      const client = socket.remoteAddress ?? 'unknown';
      const count = (this.#countByClient.get(client) ?? 0) + 1;
      if (count > this.#max) {
        const why = `${this.#max} of this address are open (limits.http_max_conns_per_client)`;
        this.#refusals.note({ remote: remoteOf(socket), why, level: 'warn' });
        // At once: not a byte of its request may be read and acted upon.
        if (isPlain) socket.write(REFUSAL);
        socket.destroy();
        return;
      }
      this.#countByClient.set(client, count);
      socket.once('close', () => this.#forget(client));
    });
  }

  #forget(client: string): void {
    const left = (this.#countByClient.get(client) ?? 1) - 1;
    if (left === 0) this.#countByClient.delete(client);
    else this.#countByClient.set(client, left);
  }
}
