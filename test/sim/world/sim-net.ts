// The network between hosts: connections that keep the order of their frames, over links that delay,
// hold, cut one way or both, and lose. A process that dies resets its connections; a host that loses
// power leaves them half open, until it is back and does not know them.

import type { Conn, Listening, Net, NetAddress } from '../../../cluster/platform/net.ts';
import { Endpoint, joined } from './sim-conn.ts';
import type { SimProcess } from './sim-process.ts';
import type { Stream } from './stream.ts';
import type { Trace } from './trace.ts';
import type { VirtualTime } from './virtual-time.ts';

/** One direction between two hosts. */
export class Link {
  readonly from: string;
  readonly to: string;
  leastMs = 0.2;
  meanMs = 0.5;
  /** A lost packet is sent again by TCP: its frame and all behind it come later. */
  lossRate = 0;
  #isCut = false;
  #holdCount = 0;
  #held: (() => void)[] = [];

  constructor(from: string, to: string) {
    this.from = from;
    this.to = to;
  }

  get isCut(): boolean {
    return this.#isCut;
  }

  cut(): void {
    this.#isCut = true;
  }

  heal(): void {
    this.#isCut = false;
    this.#goOn();
  }

  /** What is on its way waits, whether the link is cut or not. Gives what lets it go on. */
  holdUp(): () => void {
    this.#holdCount += 1;
    return () => {
      this.#holdCount -= 1;
      this.#goOn();
    };
  }

  get isOpen(): boolean {
    return !this.#isCut && this.#holdCount === 0;
  }

  #goOn(): void {
    if (!this.isOpen) return;
    const held = this.#held;
    this.#held = [];
    for (const action of held) action();
  }

  hold(action: () => void): void {
    this.#held.push(action);
  }

  drawMs(stream: Stream): number {
    let delayMs = stream.exponential(this.leastMs, this.meanMs);
    for (let again = 200; this.lossRate > 0 && stream.chance(this.lossRate); again *= 2) {
      delayMs += again;
      if (again > 3000) break;
    }
    return delayMs;
  }
}

interface Listener {
  readonly process: SimProcess;
  readonly onConn: (conn: Conn) => void;
}

/** A frame as it leaves its process. */
export interface LeavingFrame {
  readonly from: string;
  readonly to: string;
  readonly frame: Uint8Array;
}

export interface NetOptions {
  readonly time: VirtualTime;
  readonly trace: Trace;
  readonly stream: Stream;
  readonly onFrame: (leaving: LeavingFrame) => void;
}

const FIRST_FREE_PORT = 40_000;

export class SimNet {
  readonly #options: NetOptions;
  readonly #links = new Map<string, Link>();
  readonly #listeners = new Map<string, Listener>();
  readonly #endpointsByHost = new Map<string, Set<Endpoint>>();
  /** Hosts without power answer nothing, not even that nobody listens. */
  readonly #dark = new Set<string>();
  #freePort = FIRST_FREE_PORT;

  constructor(options: NetOptions) {
    this.#options = options;
  }

  link(from: string, to: string): Link {
    const name = `${from}>${to}`;
    const link = this.#links.get(name) ?? new Link(from, to);
    this.#links.set(name, link);
    return link;
  }

  get links(): readonly Link[] {
    return [...this.#links.values()];
  }

  get connectionCount(): number {
    let count = 0;
    for (const endpoints of this.#endpointsByHost.values()) count += endpoints.size;
    return count / 2;
  }

  /** Bytes that wait in all connections, the fullest one alone. */
  get fullestBytes(): number {
    let bytes = 0;
    for (const endpoints of this.#endpointsByHost.values()) {
      for (const endpoint of endpoints) bytes = Math.max(bytes, endpoint.queuedBytes);
    }
    return bytes;
  }

  /** The network as one life of a host has it. */
  of(host: string, process: SimProcess): Net {
    process.onOver(() => this.#forget(process));
    return {
      listen: (address, onConn) => this.#listen(host, address, { process, onConn }),
      dial: (address, { timeoutMs }) => this.#dial(host, process, address, timeoutMs),
    };
  }

  isDark(host: string): boolean {
    return this.#dark.has(host);
  }

  /** The host lost its power: nobody is told. */
  darken(host: string): void {
    this.#dark.add(host);
    for (const endpoint of this.#endpointsOf(host)) endpoint.vanish();
    this.#endpointsByHost.delete(host);
  }

  lighten(host: string): void {
    this.#dark.delete(host);
  }

  /** Some middle box forgets the connections between two hosts. */
  reset(from: string, to: string): void {
    for (const endpoint of [...this.#endpointsOf(from)]) {
      if (endpoint.remoteHost === to) endpoint.reset('reset on the way');
    }
  }

  get nowMs(): number {
    return this.#options.time.nowMs;
  }

  /** Brings something over a link. What meets a cut or a hold waits until it is over, and then sets out again. */
  send(link: Link, delayMs: number, arrive: () => void): void {
    this.#options.time.after(delayMs, () => {
      if (link.isOpen) arrive();
      else link.hold(() => this.send(link, link.drawMs(this.#options.stream), arrive));
    });
  }

  async #listen(host: string, address: NetAddress, listener: Listener): Promise<Listening> {
    const port = address.port === 0 ? this.#takePort() : address.port;
    const name = `${host}:${port}`;
    await this.#delay(listener.process, 0.05);
    if (this.#listeners.has(name)) throw new Error(`EADDRINUSE: ${name} is taken`);
    this.#listeners.set(name, listener);
    return {
      address: { host: address.host, port },
      close: () => {
        if (this.#listeners.get(name) === listener) this.#listeners.delete(name);
        return Promise.resolve();
      },
    };
  }

  #takePort(): number {
    this.#freePort += 1;
    return this.#freePort;
  }

  #dial(
    host: string,
    process: SimProcess,
    { host: toHost, port }: NetAddress,
    timeoutMs: number,
  ): Promise<Conn> {
    const { time, stream } = this.#options;
    const there = this.link(host, toHost);
    const back = this.link(toHost, host);
    return new Promise((resolve, reject) => {
      let isOver = false;
      const settle = (action: () => void): void => {
        if (isOver) return;
        isOver = true;
        process.deliver(action);
      };
      time.after(timeoutMs, () => {
        settle(() => reject(new Error(`ETIMEDOUT: no answer of ${toHost}:${port}`)));
      });
      this.send(there, there.drawMs(stream), () => {
        if (isOver || process.isOver || this.#dark.has(toHost)) return;
        const listener = this.#listeners.get(`${toHost}:${port}`);
        const answerMs = back.drawMs(stream);
        if (listener === undefined) {
          const refused = `ECONNREFUSED: nobody listens on ${toHost}:${port}`;
          this.send(back, answerMs, () => settle(() => reject(new Error(refused))));
          return;
        }
        const [near, far] = this.#connect(
          { host, process },
          { host: toHost, process: listener.process },
          port,
        );
        listener.process.deliver(() => listener.onConn(far));
        this.send(back, answerMs, () => {
          if (isOver) near.reset('nobody waited for the connection any more');
          else settle(() => resolve(near));
        });
      });
    });
  }

  #connect(
    near: { readonly host: string; readonly process: SimProcess },
    far: { readonly host: string; readonly process: SimProcess },
    port: number,
  ): readonly [Endpoint, Endpoint] {
    const { stream, onFrame, trace } = this.#options;
    const endpoint = (
      own: typeof near,
      other: typeof near,
      otherPort: number,
      side: string,
    ): Endpoint =>
      new Endpoint({
        net: this,
        process: own.process,
        host: own.host,
        remoteHost: other.host,
        remotePort: otherPort,
        there: this.link(own.host, other.host),
        stream: stream.fork(side),
        isAccepted: side.endsWith('far'),
        onFrame: (frame) => {
          trace.bytes('frame', own.host, frame, () => `to ${other.host}, ${frame.length} bytes`);
          onFrame({ from: own.host, to: other.host, frame });
        },
        onGone: (gone) => this.#endpointsOf(own.host).delete(gone),
      });
    const number = this.#takePort();
    const left = endpoint(near, far, port, `conn ${number} near`);
    const right = endpoint(far, near, number, `conn ${number} far`);
    joined(left, right);
    this.#endpointsOf(near.host).add(left);
    this.#endpointsOf(far.host).add(right);
    return [left, right];
  }

  /** What a process had open is gone with it: the others are told, unless the power went too. */
  #forget(process: SimProcess): void {
    for (const [name, listener] of this.#listeners) {
      if (listener.process === process) this.#listeners.delete(name);
    }
    for (const endpoints of this.#endpointsByHost.values()) {
      for (const endpoint of [...endpoints]) {
        if (endpoint.process === process) endpoint.die();
      }
    }
  }

  #endpointsOf(host: string): Set<Endpoint> {
    const endpoints = this.#endpointsByHost.get(host) ?? new Set();
    this.#endpointsByHost.set(host, endpoints);
    return endpoints;
  }

  #delay(process: SimProcess, delayMs: number): Promise<void> {
    return new Promise((resolve) => process.deliverAfter(delayMs, resolve));
  }
}
