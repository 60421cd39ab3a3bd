// The blocking queries that wait at the moment. Closing the server ends all waits, so that each client
// gets an answer; a client that goes away ends its own.

import type { RawResponse } from './wire-types.ts';

export class Parked {
  readonly #waits = new Set<AbortController>();
  #isClosing: boolean = false;

  get count(): number {
    return this.#waits.size;
  }

  get isClosing(): boolean {
    return this.#isClosing;
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
