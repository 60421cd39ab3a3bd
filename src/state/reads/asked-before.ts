// Whether something was asked for before, a short while ago, in four bytes for each: places hold the hashes
// of what fell to them last. It tells what is worth keeping from what is asked for once, as when all is read
// in turn.

/** Hashes in one group; each text has its group. One alone would forget half of a set that is read in turn. */
const WAYS = 4;
const WAY_SHIFT = 30;

export class AskedBefore {
  readonly #hashes: Uint32Array;
  readonly #groups: number;
  /** Its top bits say who makes room: drawn by lot, so that no order of reads hits a gap for ever. */
  #lot = 0;

  /** Remembers about the `count` texts that were asked for last. */
  constructor(count: number) {
    this.#groups = Math.ceil(count / WAYS);
    this.#hashes = new Uint32Array(this.#groups * WAYS);
  }

  /** True when the text was asked for lately, and seldom when it was not. From now on it was. */
  note(text: string): boolean {
    const hash = hashOf(text);
    const first = (hash % this.#groups) * WAYS;
    for (let place = first; place < first + WAYS; place += 1) {
      if (this.#hashes[place] === hash) return true;
    }
    this.#lot = (Math.imul(this.#lot, 1_664_525) + 1_013_904_223) >>> 0;
    this.#hashes[first + (this.#lot >>> WAY_SHIFT)] = hash;
    return false;
  }
}

/** FNV-1a over the characters. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let place = 0; place < text.length; place += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(place), 0x01000193);
  }
  return hash >>> 0;
}
