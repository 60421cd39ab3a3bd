// The blocking queries that wait at the moment. Closing the server ends all waits, so that each client
// gets an answer; a client that goes away ends its own. There is room for so many, because each costs memory
// for minutes. Who comes when it is full takes the place of the client that has most, or is told so at once.

import { AclError } from '../../acl/error.ts';
import type { RawResponse } from '../wire/wire-types.ts';

const GIVEN_UP = 'too many blocking queries wait, and most of them are of this client';

/** Where one blocking query waits, however often it wakes. */
export class Place {
  #wait: AbortController | undefined;
  #end: 'none' | 'closing' | 'given-up' = 'none';

  /** Whether no other wait will begin: the answer is the last one. */
  get isClosing(): boolean {
    return this.#end === 'closing';
  }

  /**
   * Runs `wait` with a signal that fires when the client goes away or the server closes. Rejects with 'unavailable'
   * where the place was given up for somebody else.
   */
  async run(response: RawResponse, wait: (cancel: AbortSignal) => Promise<void>): Promise<void> {
    if (this.#end === 'none' && !response.destroyed) await this.#runUntilGone(response, wait);
    if (this.#end === 'given-up') throw new AclError('unavailable', GIVEN_UP);
  }

  close(): void {
    this.#endWith('closing');
  }

  giveUp(): void {
    this.#endWith('given-up');
  }

  #endWith(end: 'closing' | 'given-up'): void {
    this.#end = end;
    this.#wait?.abort();
  }

  async #runUntilGone(
    response: RawResponse,
    wait: (cancel: AbortSignal) => Promise<void>,
  ): Promise<void> {
    const controller = new AbortController();
    const onGone = () => controller.abort();
    this.#wait = controller;
    response.once('close', onGone);
    try {
      await wait(controller.signal);
    } finally {
      response.off('close', onGone);
      this.#wait = undefined;
    }
  }
}

export class Parked {
  readonly #max: number;
  /** By client; those of one in the order of their coming. */
  readonly #places = new Map<string, Set<Place>>();
  #count = 0;
  #isClosing: boolean = false;

  constructor(max: number) {
    this.#max = max;
  }

  get count(): number {
    return this.#count;
  }

  /** Keeps a place for a blocking query of `client` until it is over. Rejects with 'unavailable'. */
  async inPlace<Result>(client: string, query: (place: Place) => Promise<Result>): Promise<Result> {
    if (this.#count >= this.#max) this.#makeRoomFor(client);
    const place = new Place();
    if (this.#isClosing) place.close();
    this.#places.set(client, (this.#places.get(client) ?? new Set()).add(place));
    this.#count += 1;
    try {
      return await query(place);
    } finally {
      this.#remove(client, place);
    }
  }

  /** Ends all waits, also those that would begin later. */
  close(): void {
    this.#isClosing = true;
    for (const places of this.#places.values()) for (const place of places) place.close();
  }

  /** The oldest of the client that has most gives way, where that one has more even so. */
  #makeRoomFor(newcomer: string): void {
    let [most, ofMost] = ['', new Set<Place>()];
    for (const [client, places] of this.#places) {
      if (places.size > ofMost.size) [most, ofMost] = [client, places];
    }
    const [oldest] = ofMost;
    const isFairer = ofMost.size > (this.#places.get(newcomer)?.size ?? 0) + 1;
    if (oldest === undefined || !isFairer) {
      throw new AclError('unavailable', `${this.#count} blocking queries wait already`);
    }
    this.#remove(most, oldest);
    oldest.giveUp();
  }

  /** Once, whoever comes first. */
  #remove(client: string, place: Place): void {
    const places = this.#places.get(client);
    if (places?.delete(place) !== true) return;
    this.#count -= 1;
    if (places.size === 0) this.#places.delete(client);
  }
}
