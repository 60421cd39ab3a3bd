// Bodies that come again and again: whoever guards a service asks the same few questions for each of its callers.
// What a short one was decoded to when it came for the second time is kept under its bytes, and not decoded again. It
// depends on nothing else.

import { LRUCache } from 'lru-cache';
import { upTo } from '../../../cluster/base/up-to.ts';
import { AskedBefore } from '../../state/reads/asked-before.ts';

/** Longer ones take their time anyway, and would have to be bounded together. */
const BODY_BYTES_MAX = 512;
const BODIES_MAX = 1_000;

export class RepeatedBodies {
  /** By their bytes, each as one character. */
  readonly #kept = new LRUCache<string, object>(upTo(BODIES_MAX));
  readonly #asked = new AskedBefore(BODIES_MAX);

  /**
   * What the body was decoded to before, or `decode()`: that gives the same for the same bytes, and what nobody
   * changes. What it throws is thrown, and not kept.
   */
  decoded(bytes: Buffer, decode: () => object): object {
    if (bytes.length > BODY_BYTES_MAX) return decode();
    const text = bytes.toString('latin1');
    const known = this.#kept.get(text);
    if (known !== undefined) return known;
    const fresh = decode();
    // Those that come once would put out the others, and to clear them up is dearer than to decode them.
    if (this.#asked.note(text)) this.#kept.set(text, fresh);
    return fresh;
  }
}
