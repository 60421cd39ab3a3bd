// A line between datacenters that a test cuts and heals: a proxy of bytes on the loopback address. Cut, it
// ends every connection and takes no new ones, as a network does whose middle is gone.

import { connect, createServer, type Server, type Socket } from 'node:net';

interface Owner {
  teardown(action: () => Promise<void>): void;
}

export class CuttableLine {
  readonly port: number;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #isCut = false;

  private constructor(server: Server, targetPort: number) {
    this.#server = server;
    const address = server.address();
    this.port = typeof address === 'object' && address !== null ? address.port : 0;
    server.on('connection', (near) => this.#join(near, targetPort));
  }

  /** Leads to that port of the loopback address. */
  static async to(owner: Owner, targetPort: number): Promise<CuttableLine> {
    const server = createServer();
    await new Promise<void>((resolve) => {
      server.listen({ host: '127.0.0.1', port: 0 }, resolve);
    });
    const line = new CuttableLine(server, targetPort);
    owner.teardown(() => line.#close());
    return line;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  cut(): void {
    this.#isCut = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  heal(): void {
    this.#isCut = false;
  }

  #join(near: Socket, targetPort: number): void {
    this.#keep(near);
    if (this.#isCut) {
      near.destroy();
      return;
    }
    const far = connect({ host: '127.0.0.1', port: targetPort });
    this.#keep(far);
    near.pipe(far);
    far.pipe(near);
    near.on('close', () => far.destroy());
    far.on('close', () => near.destroy());
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    // How a connection ends is for its two ends to say.
    socket.on('error', () => undefined);
    socket.on('close', () => this.#sockets.delete(socket));
  }

  #close(): Promise<void> {
    this.cut();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }
}
