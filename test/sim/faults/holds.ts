// Things that several faults may hold at once: the first one begins it, the last one ends it.

export interface HoldActions<T> {
  readonly begin: (what: T) => void;
  readonly end: (what: T) => void;
}

export class Holds<T> {
  readonly #actions: HoldActions<T>;
  readonly #counts = new Map<T, number>();

  constructor(actions: HoldActions<T>) {
    this.#actions = actions;
  }

  begin(what: T): void {
    const count = this.#counts.get(what) ?? 0;
    this.#counts.set(what, count + 1);
    if (count === 0) this.#actions.begin(what);
  }

  end(what: T): void {
    const count = this.#counts.get(what) ?? 0;
    if (count === 0) return;
    this.#counts.set(what, count - 1);
    if (count === 1) this.#actions.end(what);
  }

  /** Whoever holds it, it is over. */
  endAll(what: T): void {
    const count = this.#counts.get(what) ?? 0;
    this.#counts.set(what, 0);
    if (count > 0) this.#actions.end(what);
  }
}
