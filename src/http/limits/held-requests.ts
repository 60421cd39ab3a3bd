// What requests hold in memory while they wait for something: a leader, a position of the global log, a disk, another
// datacenter, a change. Each waits no longer than its time; how much may wait at once is bounded here. A request goes
// on after its client has gone, so connections do not bound it. Where it is full, who holds more than an equal share is
// refused, so nobody can fill it for others.

import { readBytesOf } from '../../../cluster/base/json-bounds.ts';
import { AclError } from '../../acl/error.ts';
import { LIMITS } from '../settings.ts';
import type { Exchange } from '../wire/exchange.ts';
import { headBytesOf } from './head-size.ts';

const NO_BYTES = new Uint8Array();

export class HeldRequests {
  readonly #bytesMax: number;
  #bytes = 0;
  /** By client address; none is zero. */
  readonly #bytesByClient = new Map<string, number>();

  constructor(bytesMax: number = LIMITS.heldBytes) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Begins to answer a request with that body, or refuses it. What waits for nothing is not counted. */
  serve(exchange: Exchange, body: Uint8Array | undefined, begin: () => Promise<void> | void): void {
    if (this.#bytes >= this.#bytesMax && this.#hasItsShare(exchange.client)) {
      exchange.fail(this.#refusalFor(exchange.client));
      return;
    }
    const answered = begin();
    if (answered !== undefined) void this.#hold(exchange, body ?? NO_BYTES, answered);
  }

  #hasItsShare(client: string): boolean {
    return (this.#bytesByClient.get(client) ?? 0) >= this.#bytesMax / this.#bytesByClient.size;
  }

  #refusalFor(client: string): AclError {
    const [own, all] = [this.#bytesByClient.get(client) ?? 0, this.#bytes].map(mebibytesOf);
    const text = `nothing was done: requests that are under way hold ${all} MiB, those of ${client} ${own} MiB of it: try again when some of them are answered`;
    return new AclError('unavailable', text);
  }

  /** It never rejects. */
  async #hold(
    { client, target, request }: Exchange,
    body: Uint8Array,
    answered: Promise<void>,
  ): Promise<void> {
    const bytes = readBytesOf(body) + headBytesOf(target, request.rawHeaders);
    this.#add(client, bytes);
    await answered;
    this.#add(client, -bytes);
  }

  #add(client: string, bytes: number): void {
    this.#bytes += bytes;
    const ofClient = (this.#bytesByClient.get(client) ?? 0) + bytes;
    if (ofClient > 0) this.#bytesByClient.set(client, ofClient);
    else this.#bytesByClient.delete(client);
  }
}

function mebibytesOf(bytes: number): number {
  return Math.floor(bytes / 1024 / 1024);
}
