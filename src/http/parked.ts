// The blocking queries that wait at the moment. Closing the server ends all waits, so that each client
// gets an answer; a client that goes away ends its own. There is room for so many, because each costs memory
// for minutes; who comes when it is full is told so at once.

import { AclError } from '../acl/error.ts';
import type { RawResponse } from './wire-types.ts';

export class Parked {
  readonly #max: number;
  readonly #waits = new Set<AbortController>();
  #count = 0;
  #isClosing: boolean = false;

  constructor(max: number) {
    this.#max = max;
  }

  get count(): number {
    return this.#count;
  }

  get isClosing(): boolean {
    return this.#isClosing;
  }

  /** Keeps a place for a blocking query until it is over, however often it wakes. Rejects with 'unavailable'. */
  async inPlace<Result>(query: () => Promise<Result>): Promise<Result> {
    if (this.#count >= this.#max) {
      throw new AclError('unavailable', `${this.#count} blocking queries wait already`);
    }
    this.#count += 1;
    try {
      return await query();
    } finally {
      this.#count -= 1;
    }
  }

  /** Runs `wait` with a signal that fires when the client goes away or the server closes. */
  async run(response: RawResponse, wait: (cancel: AbortSignal) => Promise<void>): Promise<void> {
    if (this.#isClosing || response.destroyed) return;
    const controller = new AbortController();
    const onGone = () => controller.abort();
    this.#waits.add(controller);
    response.once('close', onGone);
    try {
      await wait(controller.signal);
    } finally {
      response.off('close', onGone);
      this.#waits.delete(controller);
    }
  }

  /** Ends all waits, also those that would begin later. */
  close(): void {
    this.#isClosing = true;
    for (const controller of this.#waits) controller.abort();
  }
}
