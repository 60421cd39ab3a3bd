// What a run has found wrong. The first one ends the run: what follows it means little.

export interface Violation {
  /** The checker's name, as docs/TESTING.md lists it. */
  readonly checker: string;
  readonly says: string;
  readonly atMs: number;
}

export interface ViolationsOptions {
  readonly nowMs: () => number;
  /** Checkers that are not listened to. */
  readonly ignored: readonly string[];
}

export class Violations {
  readonly #found: Violation[] = [];
  readonly #options: ViolationsOptions;

  constructor(options: ViolationsOptions) {
    this.#options = options;
  }

  get first(): Violation | undefined {
    return this.#found[0];
  }

  add(checker: string, says: string): void {
    const { nowMs, ignored } = this.#options;
    if (!ignored.includes(checker)) this.#found.push({ checker, says, atMs: nowMs() });
  }

  require(condition: boolean, checker: string, says: () => string): void {
    if (!condition) this.add(checker, says());
  }
}
