// Who wants to hear of something. Called in the order in which they came; what one of them throws is
// the caller's to deal with.

export class Listeners {
  readonly #listeners = new Set<() => void>();

  /** Returns how to take the listener away again. */
  add(listener: () => void): () => void {
    // One function given twice is two listeners.
    const own = (): void => listener();
    this.#listeners.add(own);
    return () => {
      this.#listeners.delete(own);
    };
  }

  call(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}
