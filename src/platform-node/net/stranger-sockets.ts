// The sockets of one listener of which it is not known who is there: so many of one address, and in all. The
// oldest gives way to a newcomer, who may be a node: an honest one is through in milliseconds, and the oldest
// is the one that only waits. Whoever is known is not counted any more.

import type { Socket } from 'node:net';

/** Of one address; the nodes of a whole cluster may be at one. Whoever has so many is not in the way of others. */
export const STRANGERS_OF_ADDRESS_MAX = 256;
export const STRANGERS_MAX = 1024;

interface Stranger {
  /** `host:port` of its end. */
  readonly remote: string;
  readonly address: string;
  readonly socket: Socket;
}

export class StrangerSockets {
  readonly #onGivesWay: (socket: Socket) => void;
  readonly #max: number;
  /** Both in the order of their coming. */
  readonly #byRemote = new Map<string, Stranger>();
  readonly #byAddress = new Map<string, Set<Stranger>>();

  /** `onGivesWay` is told of each that is about to be destroyed. */
  constructor(onGivesWay: (socket: Socket) => void, max: number = STRANGERS_MAX) {
    this.#onGivesWay = onGivesWay;
    this.#max = max;
  }

  add(remote: string, socket: Socket): void {
    const address = socket.remoteAddress;
    // It ended before it was accepted.
    if (address === undefined) return;
    this.#makeRoom(address);
    const stranger = { remote, address, socket };
    this.#byRemote.set(remote, stranger);
    this.#byAddress.set(address, (this.#byAddress.get(address) ?? new Set()).add(stranger));
    socket.once('close', () => this.#remove(stranger));
  }

  /** It is known who is there. */
  onKnown(remote: string): void {
    const stranger = this.#byRemote.get(remote);
    if (stranger !== undefined) this.#remove(stranger);
  }

  #makeRoom(address: string): void {
    const ofAddress = this.#byAddress.get(address);
    const isFullForAddress = (ofAddress?.size ?? 0) >= STRANGERS_OF_ADDRESS_MAX;
    if (!isFullForAddress && this.#byRemote.size < this.#max) return;
    const [oldest] = isFullForAddress ? (ofAddress ?? []) : this.#byRemote.values();
    if (oldest === undefined) return;
    this.#remove(oldest);
    this.#onGivesWay(oldest.socket);
    oldest.socket.destroy();
  }

  #remove(stranger: Stranger): void {
    const { address, remote } = stranger;
    if (this.#byRemote.get(remote) === stranger) this.#byRemote.delete(remote);
    const ofAddress = this.#byAddress.get(address);
    ofAddress?.delete(stranger);
    if (ofAddress?.size === 0) this.#byAddress.delete(address);
  }
}
