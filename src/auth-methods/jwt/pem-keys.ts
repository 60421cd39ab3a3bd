// Public keys that were read from PEM, by their very text: a login needs those of its auth method, and to read one
// takes longer than to check a signature by it.

import { LRUCache } from 'lru-cache';
import { type PublicKey, publicKeyOfPem } from './signing-keys.ts';

/** Of the texts of all keys that are kept, in UTF-16 units. */
const TEXT_MAX = 4 * 1024 * 1024;

export class PemKeys {
  readonly #keys = new LRUCache<string, Promise<PublicKey>>({
    maxSize: TEXT_MAX,
    sizeCalculation: (_key, pem) => pem.length + 1,
  });

  /** Rejects as `publicKeyOfPem` does. */
  keyOf(pem: string): Promise<PublicKey> {
    const known = this.#keys.get(pem);
    if (known !== undefined) return known;
    const read = publicKeyOfPem(pem);
    this.#keys.set(pem, read);
    read.catch(() => this.#keys.delete(pem));
    return read;
  }
}
