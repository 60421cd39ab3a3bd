// Writes at a steady rate, whether or not the server keeps up: each is due at its time, goes out on the next
// free connection, and its latency counts from when it was due. On bare sockets, because the generator
// competes with what it measures.

import { connect, type Socket } from 'node:net';
import { answerSize, headerOf, statusOf } from '../http-answer.ts';

export interface SteadyPlan {
  readonly host: string;
  /** Connections are spread over these in turn. */
  readonly ports: readonly number[];
  readonly connections: number;
  readonly perSecond: number;
  readonly durationMs: number;
  /** The whole request as bytes. */
  readonly request: string;
  /** Called with the position that the answer tells, `epoch.seq`. */
  readonly onWritten?: (position: string) => void;
}

export interface SteadyResult {
  /** From when it was due to its answer, ascending. */
  readonly latenciesMs: readonly number[];
  /** From the first due time to the last answer. */
  readonly perSecond: number;
}

const TICK_MS = 1;
const POSITION_HEADER = 'x-service-position';

/** Resolves when every write is answered. Rejects at the first answer that is not 200, or broken connection. */
export function steadyWrites(plan: SteadyPlan): Promise<SteadyResult> {
  return new Promise((resolve, reject) => {
    new SteadyWriter(plan, resolve, reject).start();
  });
}

interface Way {
  readonly socket: Socket;
  received: Buffer;
  dueMs: number;
}

class SteadyWriter {
  readonly #plan: SteadyPlan;
  readonly #resolve: (result: SteadyResult) => void;
  readonly #reject: (error: Error) => void;
  readonly #count: number;
  readonly #latenciesMs: number[] = [];
  readonly #ways: Way[] = [];
  readonly #free: Way[] = [];
  #startedMs = 0;
  #sentCount = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    plan: SteadyPlan,
    resolve: (result: SteadyResult) => void,
    reject: (error: Error) => void,
  ) {
    this.#plan = plan;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#count = Math.max(1, Math.round((plan.perSecond * plan.durationMs) / 1000));
  }

  start(): void {
    const { host, ports, connections } = this.#plan;
    for (let place = 0; place < connections; place += 1) {
      const port = ports[place % ports.length] ?? 0;
      const socket = connect({ host, port, noDelay: true });
      const way: Way = { socket, received: Buffer.alloc(0), dueMs: 0 };
      this.#ways.push(way);
      socket.on('connect', () => this.#onConnected(way));
      socket.on('data', (piece) => this.#onData(way, piece));
      socket.on('error', (error) => this.#fail(error));
      socket.on('close', () => this.#fail(new Error('the server closed a connection')));
    }
  }

  #onConnected(way: Way): void {
    this.#free.push(way);
    if (this.#free.length < this.#ways.length) return;
    this.#startedMs = performance.now();
    this.#timer = setInterval(() => this.#sendDue(), TICK_MS);
  }

  #dueMs(serial: number): number {
    return this.#startedMs + (serial * 1000) / this.#plan.perSecond;
  }

  #sendDue(): void {
    while (this.#sentCount < this.#count && performance.now() >= this.#dueMs(this.#sentCount)) {
      const way = this.#free.pop();
      if (way === undefined) return;
      way.dueMs = this.#dueMs(this.#sentCount);
      this.#sentCount += 1;
      way.socket.write(this.#plan.request);
    }
  }

  #onData(way: Way, piece: Buffer): void {
    way.received = way.received.length === 0 ? piece : Buffer.concat([way.received, piece]);
    const size = answerSize(way.received);
    if (size === undefined || way.received.length < size) return;
    const answer = way.received.subarray(0, size);
    way.received = way.received.subarray(size);
    if (statusOf(answer) !== 200) {
      this.#fail(new Error(`not 200: ${answer.toString()}`));
      return;
    }
    this.#latenciesMs.push(performance.now() - way.dueMs);
    this.#plan.onWritten?.(headerOf(answer, POSITION_HEADER) ?? '');
    this.#free.push(way);
    if (this.#latenciesMs.length === this.#count) this.#done();
    else this.#sendDue();
  }

  #done(): void {
    const seconds = (performance.now() - this.#startedMs) / 1000;
    this.#close();
    const latenciesMs = this.#latenciesMs.sort((one, other) => one - other);
    this.#resolve({ latenciesMs, perSecond: this.#count / seconds });
  }

  #fail(error: Error): void {
    this.#close();
    this.#reject(error);
  }

  #close(): void {
    clearInterval(this.#timer);
    for (const { socket } of this.#ways) {
      socket.removeAllListeners('close');
      socket.destroy();
    }
  }
}
