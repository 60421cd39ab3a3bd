// What a run has found wrong. The first one ends the run: what follows it means little.

export interface Violation {
  /** The checker's name, as docs/TESTING.md lists it. */
  readonly checker: string;
  readonly says: string;
  readonly atMs: number;
}

export class Violations {
  readonly #found: Violation[] = [];
  readonly #nowMs: () => number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  get first(): Violation | undefined {
    return this.#found[0];
  }

  add(checker: string, says: string): void {
    this.#found.push({ checker, says, atMs: this.#nowMs() });
  }

  require(condition: boolean, checker: string, says: () => string): void {
    if (!condition) this.add(checker, says());
  }
}
