// Room for the connections of clients, over all listeners of a process. Who comes when it is full is closed at
// once, before any of its bytes are read.

import type { Server } from 'node:net';
import type { Clock } from '../../../cluster/platform/clock.ts';
import type { Logger } from '../../../cluster/platform/logger.ts';
import { remoteOf } from '../../../cluster/platform/net.ts';
import { RefusalLog } from '../../../cluster/transport/handshake/refusal-log.ts';

export interface ConnectionRoomOptions {
  readonly max: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class ConnectionRoom {
  readonly #max: number;
  readonly #refusals: RefusalLog;
  #count = 0;

  constructor({ max, clock, logger }: ConnectionRoomOptions) {
    this.#max = max;
    this.#refusals = new RefusalLog({ clock, logger });
  }

  /** From now on the connections of `server` take room. */
  watch(server: Server): void {
    server.on('connection', (socket) => {
      if (this.#count >= this.#max) {
        const remote = remoteOf(socket);
        const why = `${this.#count} are open, and more would leave the databases without files`;
        this.#refusals.note({ remote, why, level: 'warn' });
        socket.destroy();
        return;
      }
      this.#count += 1;
      socket.once('close', () => {
        this.#count -= 1;
      });
    });
  }
}
