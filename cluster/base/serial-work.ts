// Work that must not overlap, in the order in which it was given.

export class SerialWork {
  #last: Promise<unknown> = Promise.resolve();

  /** Runs `work` when all before it is done, failed or not. */
  run<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work, work);
    this.#last = done.catch(() => undefined);
    return done;
  }

  /** Resolves when nothing is under way. */
  async idle(): Promise<void> {
    await this.#last;
  }
}
