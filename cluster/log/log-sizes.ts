// How large the entries of a log are that are kept, so that their bytes can be bounded without reading them.

/** So many that are gone are put away at once. */
const PUT_AWAY_MIN = 1024;

export class LogSizes {
  /** Where each entry ends in the bytes of all, from the one before the first that is kept on. */
  #ends: number[] = [0];
  /** Of the first one of `#ends`. */
  #fromIndex: number;
  /** The entry before the first one that is kept. */
  #startIndex: number;

  constructor(startIndex: number) {
    this.#fromIndex = startIndex;
    this.#startIndex = startIndex;
  }

  /** Of the entry behind the last one. */
  add(bytes: number): void {
    this.#ends.push(this.#ends.at(-1)! + bytes);
  }

  /** That entry is replaced, and all behind it are gone. */
  cut(index: number): void {
    this.#ends.length = index - this.#fromIndex;
  }

  /** All up to that entry are gone. */
  trim(index: number): void {
    this.#startIndex = index;
    const count = index - this.#fromIndex;
    if (count < PUT_AWAY_MIN) return;
    this.#ends = this.#ends.slice(count);
    this.#fromIndex = index;
  }

  /** Of the entries behind `index`, which is kept, or stands before the first one that is. */
  behind(index: number): number {
    const at = Math.max(index, this.#startIndex) - this.#fromIndex;
    return this.#ends.at(-1)! - (this.#ends[at] ?? this.#ends.at(-1)!);
  }

  /** Up to there all must go, so that what is left has at most `bytes`. */
  lastBeyond(bytes: number): number {
    let [low, high] = [this.#startIndex, this.#fromIndex + this.#ends.length - 1];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (this.behind(middle) <= bytes) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
