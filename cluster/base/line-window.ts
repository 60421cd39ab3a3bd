// Which lines are written of those that strangers can cause, so that they cannot fill the log: each once in a
// window, and only so many different ones; then one that says that there are more.

/** The same line is written once in so long. */
const WINDOW_MS = 60_000;
/** So many different ones are. */
const LINES_MAX = 60;

export class LineWindow {
  /** Of this window. */
  readonly #written = new Set<string>();
  #startMs = Number.NEGATIVE_INFINITY;

  /** `nowMs` is of a clock that never goes back. */
  admit(line: string, nowMs: number): 'line' | 'that there are more' | 'nothing' {
    if (nowMs - this.#startMs >= WINDOW_MS) {
      this.#startMs = nowMs;
      this.#written.clear();
    }
    if (this.#written.has(line) || this.#written.size > LINES_MAX) return 'nothing';
    this.#written.add(line);
    return this.#written.size <= LINES_MAX ? 'line' : 'that there are more';
  }
}
