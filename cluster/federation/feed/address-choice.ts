// Which server of the primary to ask next: one that works as long as it does, one after the other while
// none does, from the likeliest on whenever that is another one or a later reign is said to have begun (whoever
// was promised it may have been asked before), and where a redirection points first.

import type { NetAddress } from '../../platform/net.ts';

export interface Whereabouts {
  /** The likeliest first. */
  readonly addresses: () => readonly NetAddress[];
  /** The latest reign that anybody says has begun; 0 while nobody does. */
  readonly toldEpoch: () => number;
}

export class AddressChoice {
  readonly #known: Whereabouts;
  readonly #redirectsMax: number;
  #turn = 0;
  /** The first of all when one was chosen last. */
  #likeliest: NetAddress | undefined;
  /** As it was told then. */
  #epoch = 0;
  #hint: NetAddress | undefined;
  #redirectCount = 0;

  constructor(known: Whereabouts, redirectsMax: number) {
    this.#known = known;
    this.#redirectsMax = redirectsMax;
  }

  next(): NetAddress | undefined {
    if (this.#hint !== undefined) return this.#hint;
    const all = this.#known.addresses();
    const epoch = this.#known.toldEpoch();
    const [first] = all;
    if (first !== undefined && (epoch > this.#epoch || !isSame(first, this.#likeliest))) {
      this.#likeliest = first;
      this.#epoch = epoch;
      this.#turn = 0;
    }
    return all[this.#turn % Math.max(1, all.length)];
  }

  /** It serves: it is asked again. */
  worked(): void {
    this.#hint = this.next();
    this.#redirectCount = 0;
  }

  /** Another one's turn. */
  failed(): void {
    this.#hint = undefined;
    this.#redirectCount = 0;
    this.#turn += 1;
  }

  /** False when there is nowhere to go, or it has gone round in circles. */
  redirected(to: readonly NetAddress[]): boolean {
    const [first] = to;
    if (first === undefined || this.#redirectCount >= this.#redirectsMax) return false;
    this.#redirectCount += 1;
    this.#hint = first;
    return true;
  }
}

function isSame({ host, port }: NetAddress, other: NetAddress | undefined): boolean {
  return host === other?.host && port === other.port;
}
