// Whether something was asked for before, a short while ago, in 64 KiB: each place holds the hash of what
// fell to it last. It tells what is worth keeping from what is asked for once, as when all is read in turn.

const PLACES = 16_384;

export class AskedBefore {
  readonly #hashes = new Uint32Array(PLACES);

  /** True when the text was asked for lately, and seldom when it was not. From now on it was. */
  note(text: string): boolean {
    const hash = hashOf(text);
    const place = hash % PLACES;
    const wasAsked = this.#hashes[place] === hash;
    this.#hashes[place] = hash;
    return wasAsked;
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
