// What happened in a run, as one running hash and as counts: two runs of one seed must come to the same
// hash, and the counts say which corners a run has been in. Keeps lines of text only when asked to.

/** Of a run that is to be read by people. */
const LINES_MAX = 200_000;

export class Trace {
  #hash = 0x811c9dc5;
  #other = 0x9e3779b9;
  readonly #nowMs: () => number;
  readonly #lines: string[] | undefined;
  /** How often each mark was hit. */
  readonly marks = new Map<string, number>();

  constructor(nowMs: () => number, { keepsLines }: { readonly keepsLines: boolean }) {
    this.#nowMs = nowMs;
    this.#lines = keepsLines ? [] : undefined;
  }

  get hash(): string {
    return [this.#hash, this.#other].map((half) => (half >>> 0).toString(16)).join('-');
  }

  get lines(): readonly string[] {
    return this.#lines ?? [];
  }

  /** Something happened; `text` is made only when somebody reads it. */
  note(kind: string, who: string, number: number, text?: () => string): void {
    this.#mixText(kind);
    this.#mixText(who);
    this.#mixNumber(number);
    this.#mixNumber(this.#nowMs() * 1000);
    if (this.#lines === undefined || this.#lines.length >= LINES_MAX) return;
    const shown = text?.() ?? String(number);
    this.#lines.push(`${this.#nowMs().toFixed(3).padStart(11)} ${who.padEnd(4)} ${kind} ${shown}`);
  }

  bytes(kind: string, who: string, bytes: Uint8Array, text?: () => string): void {
    for (let place = 0; place < bytes.length; place += 1) {
      this.#hash = Math.imul(this.#hash ^ bytes[place]!, 0x01000193);
    }
    this.note(kind, who, bytes.length, text);
  }

  mark(name: string): void {
    this.marks.set(name, (this.marks.get(name) ?? 0) + 1);
  }

  #mixText(text: string): void {
    for (let place = 0; place < text.length; place += 1) this.#mixNumber(text.charCodeAt(place));
  }

  #mixNumber(number: number): void {
    this.#hash = Math.imul(this.#hash ^ (number | 0), 0x01000193);
    this.#other = Math.imul(this.#other ^ this.#hash ^ (this.#hash >>> 13), 0x5bd1e995);
  }
}
