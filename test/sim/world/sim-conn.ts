// One end of a connection. Frames arrive whole and in order, or the connection closes: that is the
// contract of the network port. What is under way when it closes may arrive before the closing, or not.

import {
  type Conn,
  type ConnHandlers,
  FRAME_MAX_BYTES,
  STRANGER_MAX_BYTES,
} from '../../../cluster/platform/net.ts';
import type { SimProcess } from './sim-process.ts';
import type { Stream } from './stream.ts';

/** What the kernels at both ends hold: only what is beyond it waits in the process. */
const KERNEL_BYTES = 128 * 1024;

/** One direction between two hosts, and the network that it belongs to, as an end needs them. */
export interface LinkOfConn {
  drawMs(stream: Stream): number;
}

export interface NetOfConn {
  readonly nowMs: number;
  isDark(host: string): boolean;
  send(link: LinkOfConn, delayMs: number, arrive: () => void): void;
}

export interface EndpointOptions {
  readonly net: NetOfConn;
  readonly process: SimProcess;
  readonly host: string;
  readonly remoteHost: string;
  readonly remotePort: number;
  readonly there: LinkOfConn;
  readonly stream: Stream;
  /** Whether it is the end that was dialled. */
  readonly isAccepted: boolean;
  readonly onFrame: (frame: Uint8Array) => void;
  readonly onGone: (endpoint: Endpoint) => void;
}

type Item =
  | { readonly kind: 'frame'; readonly frame: Uint8Array }
  | { readonly kind: 'end'; readonly why: string };

interface Travelling {
  readonly item: Item;
  readonly arrivesAtMs: number;
}

export class Endpoint implements Conn {
  readonly remote: string;
  readonly remoteHost: string;
  readonly process: SimProcess;
  readonly #options: EndpointOptions;
  #other!: Endpoint;
  #handlers: ConnHandlers | undefined;
  /** Arrived before anybody took the connection over. */
  #early: Item[] = [];
  #outgoing: Travelling[] = [];
  #isWaiting = false;
  /** What an accepted connection may still receive before it is trusted. */
  #strangerBytes = STRANGER_MAX_BYTES;
  #queuedBytes = 0;
  #receivedBytes = 0;
  #isClosed = false;
  /** It closed before anybody took it over: whoever does is told. */
  #closedWhy: string | undefined;
  /** Its host lost power, or its process is gone: it knows of no such connection. */
  #isGone = false;

  constructor(options: EndpointOptions) {
    this.#options = options;
    this.process = options.process;
    if (!options.isAccepted) this.trust();
    this.remoteHost = options.remoteHost;
    this.remote = `${options.remoteHost}:${options.remotePort}`;
  }

  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  handle(handlers: ConnHandlers): void {
    this.#handlers = handlers;
    const why = this.#closedWhy;
    if (why !== undefined) this.#options.process.deliverAfter(0, () => handlers.onClose(why));
    const early = this.#early;
    this.#early = [];
    if (early.length === 0) return;
    this.#options.process.deliverAfter(0, () => {
      for (const item of early) this.#hand(item);
    });
  }

  trust(): void {
    this.#strangerBytes = Number.POSITIVE_INFINITY;
  }

  send(frame: Uint8Array): void {
    if (this.#isClosed || this.#options.process.isOver) return;
    if (frame.length > FRAME_MAX_BYTES) {
      this.close(`a frame of ${frame.length} bytes is too large`);
      return;
    }
    this.#options.onFrame(frame);
    this.#queuedBytes += frame.length;
    this.#push({ kind: 'frame', frame: new Uint8Array(frame) });
  }

  receivedBytes(): number {
    return this.#receivedBytes;
  }

  bufferedBytes(): number {
    return Math.max(0, this.#queuedBytes - KERNEL_BYTES);
  }

  close(why: string): void {
    if (this.#isClosed) return;
    this.#finish(why);
    if (this.#options.stream.chance(0.5))
      this.#outgoing.length = Math.min(this.#outgoing.length, 1);
    this.#push({ kind: 'end', why: `closed by the other side: ${why}` });
  }

  /** The process that had it is gone; its kernel says so. */
  die(): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#isClosed = true;
    this.#options.onGone(this);
    if (this.#options.stream.chance(0.5))
      this.#outgoing.length = Math.min(this.#outgoing.length, 1);
    this.#push({ kind: 'end', why: 'ECONNRESET: the other process is gone' });
  }

  /** The host is dark: whatever it had to send is lost. */
  vanish(): void {
    this.#isGone = true;
    this.#isClosed = true;
    this.#outgoing = [];
  }

  /** Both ends learn that it is over, and nothing that is under way arrives. */
  reset(why: string): void {
    for (const end of [this, this.#other]) {
      end.#outgoing = [];
      end.#finish(why);
    }
  }

  joinTo(other: Endpoint): void {
    this.#other = other;
  }

  #finish(why: string): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#options.onGone(this);
    if (this.#handlers === undefined) this.#closedWhy = why;
    else this.#options.process.deliverAfter(0, () => this.#handlers?.onClose(why));
  }

  /** Nothing arrives before what was sent earlier. */
  #push(item: Item): void {
    const { net, there, stream } = this.#options;
    const before = this.#outgoing.at(-1)?.arrivesAtMs ?? 0;
    const arrivesAtMs = Math.max(before, net.nowMs + there.drawMs(stream));
    this.#outgoing.push({ item, arrivesAtMs });
    this.#awaitFirst();
  }

  #awaitFirst(): void {
    const { net, there } = this.#options;
    const [first] = this.#outgoing;
    if (first === undefined || this.#isWaiting) return;
    this.#isWaiting = true;
    net.send(there, first.arrivesAtMs - net.nowMs, () => {
      this.#isWaiting = false;
      this.#arriveDue();
      this.#awaitFirst();
    });
  }

  #arriveDue(): void {
    const { nowMs } = this.#options.net;
    const later = this.#outgoing.findIndex(({ arrivesAtMs }) => arrivesAtMs > nowMs);
    const due = this.#outgoing.splice(0, later < 0 ? this.#outgoing.length : later);
    for (const { item } of due) {
      if (item.kind === 'frame') this.#queuedBytes -= item.frame.length;
      this.#other.#arrive(item);
    }
  }

  #arrive(item: Item): void {
    const { net, host, process } = this.#options;
    if (net.isDark(host)) return;
    if (this.#isGone) {
      // The host is up and knows no such connection.
      if (item.kind === 'frame') this.#push({ kind: 'end', why: 'ECONNRESET: unknown connection' });
      return;
    }
    process.deliver(() => {
      if (this.#handlers === undefined) this.#early.push(item);
      else this.#hand(item);
    });
  }

  #hand(item: Item): void {
    if (this.#isClosed) return;
    if (item.kind === 'frame') {
      this.#receivedBytes += item.frame.length;
      this.#strangerBytes -= item.frame.length;
      if (this.#strangerBytes < 0) this.close('a stranger says too much');
      else this.#handlers?.onFrame(item.frame);
      return;
    }
    this.#isClosed = true;
    this.#options.onGone(this);
    if (this.#handlers === undefined) this.#closedWhy = item.why;
    else this.#handlers.onClose(item.why);
  }
}

export function joined(left: Endpoint, right: Endpoint): void {
  left.joinTo(right);
  right.joinTo(left);
}
