// Refusals that look alike, told once and then counted: whoever may be refused without end could otherwise push
// out of the files what others did.

/** So long they are counted. */
export const REPEATS_WINDOW_MS = 60_000;
/** So many different ones are told apart in a window. */
const KINDS_MAX = 1_000;

interface Repeated<Record> {
  /** Undefined: of those that are not told apart. */
  readonly last: Record | undefined;
  readonly count: number;
}

export class Repeats<Record> {
  readonly #kinds = new Map<string, { last: Record; count: number }>();
  #restCount = 0;

  /** Whether it is the first of its kind in this window, and is to be told; others are counted. */
  admit(kind: string, record: Record): boolean {
    const known = this.#kinds.get(kind);
    if (known !== undefined) {
      known.last = record;
      known.count += 1;
      return false;
    }
    if (this.#kinds.size >= KINDS_MAX) {
      this.#restCount += 1;
      return false;
    }
    this.#kinds.set(kind, { last: record, count: 0 });
    return true;
  }

  /** Ends the window: the last of each kind that came again, and how often it did; then how many others there were. */
  take(): readonly Repeated<Record>[] {
    const all = [...this.#kinds.values(), { last: undefined, count: this.#restCount }];
    this.#kinds.clear();
    this.#restCount = 0;
    return all.filter(({ count }) => count > 0);
  }

  get isEmpty(): boolean {
    return this.#kinds.size === 0;
  }
}
