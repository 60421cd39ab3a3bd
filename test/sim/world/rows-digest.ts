// A digest of a set of rows that follows its changes: the sum of the hashes of all rows. Equal sets have
// equal digests, in whatever order and however many batches they came to be.

import type { KvWrite } from '../../../cluster/platform/kv.ts';
import { textOf } from './key-text.ts';
import type { SortedRows } from './sorted-rows.ts';

export class RowsDigest {
  #sum = 0;
  #other = 0;

  get text(): string {
    return `${(this.#sum >>> 0).toString(16)}-${(this.#other >>> 0).toString(16)}`;
  }

  /** `before`: the rows before these writes. */
  follow(before: SortedRows, writes: readonly KvWrite[]): void {
    const written = new Map<string, Uint8Array | undefined>();
    for (const write of writes) {
      const key = textOf(write.key);
      const old = written.has(key) ? written.get(key) : before.get(key);
      const value = write.type === 'put' ? write.value : undefined;
      written.set(key, value);
      if (old !== undefined) this.#add(key, old, -1);
      if (value !== undefined) this.#add(key, value, 1);
    }
  }

  recount(rows: Iterable<{ readonly key: string; readonly value: Uint8Array }>): void {
    this.#sum = 0;
    this.#other = 0;
    for (const { key, value } of rows) this.#add(key, value, 1);
  }

  #add(key: string, value: Uint8Array, sign: 1 | -1): void {
    let hash = 0x811c9dc5;
    for (let at = 0; at < key.length; at += 1)
      hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193);
    let other = hash ^ value.length;
    for (let at = 0; at < value.length; at += 1) {
      hash = Math.imul(hash ^ value[at]!, 0x01000193);
      other = Math.imul(other ^ hash, 0x5bd1e995) ^ (other >>> 15);
    }
    this.#sum = (this.#sum + sign * hash) | 0;
    this.#other = (this.#other + sign * other) | 0;
  }
}
