// A network that does what a test says, on the clock of the test: connections delay, fill up, break, or go
// deaf in one direction. Frames of one connection arrive whole and in order, or the connection closes.

import type { Clock } from '../../cluster/platform/clock.ts';
import {
  type Conn,
  type ConnHandlers,
  FRAME_MAX_BYTES,
  type Listening,
  type Net,
  type NetAddress,
} from '../../cluster/platform/net.ts';

export class FakeNet {
  readonly clock: Clock;
  /** One way, for whatever is sent from now on. */
  delayMs = 1;
  /** So much longer it takes on each new connection: one of them overtakes another. */
  drawExtraMs: () => number = () => 0;
  /** Bytes a millisecond in each direction of a connection. */
  bytesPerMs = Number.POSITIVE_INFINITY;
  readonly #listeners = new Map<string, (conn: Conn) => void>();
  readonly #conns: FakeConn[] = [];
  readonly #cuts = new Set<string>();
  readonly #dead = new Set<string>();
  #nextPort = 20_000;
  dialCount = 0;
  /** Every frame as it is sent. */
  onFrame: (frame: Uint8Array, from: string, to: string) => void = () => undefined;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** The network as one host sees it. */
  host(host: string): Net {
    return {
      listen: (address, onConn) => this.#listen(address, onConn),
      dial: (address, { timeoutMs }) => this.#dial(host, address, timeoutMs),
    };
  }

  /** Nothing goes from one host to the other any more, not even that a connection is closed. */
  cut(from: string, to: string): void {
    this.#cuts.add(`${from} ${to}`);
  }

  heal(): void {
    this.#cuts.clear();
  }

  /** The host is dark for good, and its connections are half open. */
  kill(host: string): void {
    this.#dead.add(host);
  }

  isCut(from: string, to: string): boolean {
    return this.#cuts.has(`${from} ${to}`) || this.#dead.has(from) || this.#dead.has(to);
  }

  /** Breaks every connection between two hosts, at both ends; what is under way is lost. */
  breakAll(one: string, other: string): void {
    for (const conn of this.#between(one, other)) conn.break('the network broke it');
  }

  /** How many connections stand between two hosts. */
  countBetween(one: string, other: string): number {
    return this.#between(one, other).filter(({ host }) => host === one).length;
  }

  #between(one: string, other: string): readonly FakeConn[] {
    return this.#conns.filter(
      ({ host, remoteHost, isOpen }) =>
        isOpen && [`${one} ${other}`, `${other} ${one}`].includes(`${host} ${remoteHost}`),
    );
  }

  #listen({ host, port }: NetAddress, onConn: (conn: Conn) => void): Promise<Listening> {
    const taken = port === 0 ? this.#nextPort : port;
    this.#nextPort += 1;
    const key = `${host}:${taken}`;
    if (this.#listeners.has(key)) return Promise.reject(new Error(`${key} is taken`));
    this.#listeners.set(key, onConn);
    return Promise.resolve({
      address: { host, port: taken },
      close: async () => {
        this.#listeners.delete(key);
      },
    });
  }

  #dial(from: string, { host, port }: NetAddress, timeoutMs: number): Promise<Conn> {
    this.dialCount += 1;
    return new Promise((resolve, reject) => {
      if (this.isCut(from, host) || this.isCut(host, from)) {
        this.clock.after(timeoutMs, () => reject(new Error(`no answer within ${timeoutMs} ms`)));
        return;
      }
      this.clock.after(this.delayMs, () => {
        const onConn = this.#listeners.get(`${host}:${port}`);
        if (onConn === undefined) {
          reject(new Error('nobody listens there'));
          return;
        }
        const extraMs = this.drawExtraMs();
        const near = new FakeConn(this, {
          host: from,
          remoteHost: host,
          remotePort: port,
          extraMs,
        });
        const back = { host, remoteHost: from, remotePort: this.#nextPort, extraMs };
        const far = new FakeConn(this, back);
        this.#nextPort += 1;
        near.join(far);
        far.join(near);
        this.#conns.push(near, far);
        onConn(far);
        resolve(near);
      });
    });
  }
}

interface FakeConnOptions {
  readonly host: string;
  readonly remoteHost: string;
  readonly remotePort: number;
  readonly extraMs: number;
}

/** One end of a connection. */
class FakeConn implements Conn {
  readonly host: string;
  readonly remoteHost: string;
  readonly remote: string;
  readonly #net: FakeNet;
  readonly #extraMs: number;
  #other!: FakeConn;
  #handlers: ConnHandlers | undefined;
  /** What came before anybody took it over. */
  #early: (() => void)[] = [];
  #bufferedBytes = 0;
  #sentBytes = 0;
  /** Of frames that have arrived. */
  #wholeBytes = 0;
  /** When what was sent before has arrived. */
  #busyUntilMs = 0;
  isOpen = true;

  constructor(net: FakeNet, { host, remoteHost, remotePort, extraMs }: FakeConnOptions) {
    this.#net = net;
    this.host = host;
    this.remoteHost = remoteHost;
    this.remote = `${remoteHost}:${remotePort}`;
    this.#extraMs = extraMs;
  }

  join(other: FakeConn): void {
    this.#other = other;
  }

  handle(handlers: ConnHandlers): void {
    this.#handlers = handlers;
    const early = this.#early;
    this.#early = [];
    for (const action of early) this.#net.clock.after(0, action);
  }

  trust(): void {}

  send(frame: Uint8Array): void {
    if (!this.isOpen) return;
    this.#bufferedBytes += frame.length;
    this.#sentBytes += frame.length;
    const bytes = new Uint8Array(frame);
    this.#net.onFrame(bytes, this.host, this.remoteHost);
    this.#carry(frame.length, () => {
      this.#bufferedBytes -= frame.length;
      this.#wholeBytes += frame.length;
      if (frame.length > FRAME_MAX_BYTES) this.break('a frame was too large');
      else this.#other.#hand(() => this.#other.#handlers?.onFrame(bytes));
    });
  }

  receivedBytes(): number {
    return this.#other.#arrivedBytes();
  }

  bufferedBytes(): number {
    return this.#bufferedBytes;
  }

  /** Of what it has sent; those that the capacity holds back are still to come. */
  #arrivedBytes(): number {
    if (this.#net.isCut(this.host, this.remoteHost)) return this.#wholeBytes;
    const waitingMs = Math.max(0, this.#busyUntilMs - this.#net.clock.monotonicMs());
    if (waitingMs === 0) return this.#sentBytes;
    return Math.max(this.#wholeBytes, this.#sentBytes - waitingMs * this.#net.bytesPerMs);
  }

  close(why: string): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.#net.clock.after(0, () => this.#handlers?.onClose(why));
    this.#carry(0, () => this.#other.#onFarClose(why));
  }

  break(why: string): void {
    for (const end of [this, this.#other]) end.#onFarClose(why);
  }

  #onFarClose(why: string): void {
    this.#hand(() => {
      if (!this.isOpen) return;
      this.isOpen = false;
      this.#handlers?.onClose(why);
    });
  }

  #hand(action: () => void): void {
    if (!this.isOpen) return;
    if (this.#handlers === undefined) this.#early.push(action);
    else action();
  }

  /** In order, not before what was sent earlier; never, where the way is cut. */
  #carry(bytes: number, arrive: () => void): void {
    const { clock, delayMs, bytesPerMs } = this.#net;
    const nowMs = clock.monotonicMs();
    this.#busyUntilMs = Math.max(this.#busyUntilMs, nowMs) + bytes / bytesPerMs;
    clock.after(this.#busyUntilMs - nowMs + delayMs + this.#extraMs, () => {
      if (!this.#net.isCut(this.host, this.remoteHost)) arrive();
    });
  }
}
