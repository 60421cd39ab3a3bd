// Whatever is opened in order is closed in reverse order, once.

/** Collects closing actions; `close` runs them last first, and a second `close` waits for the first. */
export class Closer {
  readonly #actions: (() => Promise<void> | void)[] = [];
  #closing: Promise<void> | undefined;

  /** Adds an action that `close` will run before those added earlier. */
  defer(action: () => Promise<void> | void): void {
    this.#actions.push(action);
  }

  /** Runs every action even when one fails; rejects with the first failure at the end. */
  close(): Promise<void> {
    this.#closing ??= this.#run();
    return this.#closing;
  }

  async #run(): Promise<void> {
    let failure: unknown;
    for (let action = this.#actions.pop(); action !== undefined; action = this.#actions.pop()) {
      try {
        await action();
      } catch (error) {
        failure ??= error;
      }
    }
    if (failure !== undefined) throw failure;
  }
}
