// The proxy in front of one node: the only way by which other nodes reach it. It reads along who dials, and
// from then on each direction of the connection is carried as the line between the two is.

import { connect, createServer, type Server, type Socket } from 'node:net';
import { HOST } from './cluster-plan.ts';
import { HelloReader } from './hello-reader.ts';
import type { Line, Lines } from './lines.ts';
import { Pump } from './pump.ts';

export interface LineProxyOptions {
  /** The node behind it. */
  readonly node: string;
  readonly listenPort: number;
  readonly nodePort: number;
  readonly lines: Lines;
}

interface Carried {
  readonly sockets: readonly Socket[];
  readonly pumps: readonly Pump[];
}

const CONNECTIONS_MAX = 256;
/** Of a connection that has not said yet who it is. */
const WHOLE: Line = { isCut: false, delayMs: 0 };

export class LineProxy {
  readonly #options: LineProxyOptions;
  readonly #server: Server;
  readonly #carried = new Set<Carried>();

  private constructor(options: LineProxyOptions, server: Server) {
    this.#options = options;
    this.#server = server;
    server.on('connection', (socket) => this.#carry(socket));
  }

  /** Rejects when the port cannot be had. */
  static async open(options: LineProxyOptions): Promise<LineProxy> {
    const server = createServer();
    server.maxConnections = CONNECTIONS_MAX;
    const proxy = new LineProxy(options, server);
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host: HOST, port: options.listenPort }, resolve);
    });
    return proxy;
  }

  /** Lines have changed. */
  look(): void {
    for (const { pumps } of this.#carried) for (const pump of pumps) pump.look();
  }

  async close(): Promise<void> {
    for (const { sockets } of this.#carried) destroyAll(sockets);
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #carry(dialler: Socket): void {
    const { node, nodePort, lines } = this.#options;
    const target = connect({ host: HOST, port: nodePort });
    const sockets = [dialler, target];
    // Its reader listens before the pump does: no byte of a hello passes a line that is cut.
    const nameOfDialler = readAlong(dialler, () => destroyAll(sockets));
    const outward = (): Line => {
      const name = nameOfDialler();
      return name === undefined ? WHOLE : lines.between(name, node);
    };
    const inward = (): Line => {
      const name = nameOfDialler();
      return name === undefined ? WHOLE : lines.between(node, name);
    };
    const carried = {
      sockets,
      pumps: [
        new Pump({ from: dialler, to: target, line: outward }),
        new Pump({ from: target, to: dialler, line: inward }),
      ],
    };
    this.#carried.add(carried);
    for (const socket of sockets) {
      socket.setNoDelay(true);
      // Its close follows.
      socket.on('error', () => undefined);
      socket.on('close', () => {
        if (sockets.every(({ destroyed }) => destroyed)) this.#carried.delete(carried);
      });
    }
  }
}

/** Gives what tells the name, once it is known. */
function readAlong(dialler: Socket, onStranger: () => void): () => string | undefined {
  let name: string | undefined;
  const reader = new HelloReader();
  const read = (bytes: Uint8Array): void => {
    const reading = reader.take(bytes);
    if (reading.kind === 'more') return;
    dialler.off('data', read);
    if (reading.kind === 'hello') name = reading.name;
    else onStranger();
  };
  dialler.on('data', read);
  return () => name;
}

function destroyAll(sockets: readonly Socket[]): void {
  for (const socket of sockets) socket.destroy();
}
