// The newest entries that this primary wrote, in memory: a follower that is close behind gets them at once,
// and nothing is read from the disk, unpacked or hashed again for it.

import { type GlobalCursor, isSameCursor } from './cursor.ts';

/** An entry as it stands in its row, with its place. */
export interface WrittenEntry extends GlobalCursor {
  /** Of the entry before. */
  readonly prevHash: Uint8Array;
  readonly bytes: Uint8Array;
}

/** Of the entries that are held; a larger one is held alone. Some hundred milliseconds of a full load. */
const HELD_BYTES = 1024 * 1024;

export class RecentEntries {
  /** Each follows the one before it, in hash and in number. */
  #entries: WrittenEntry[] = [];
  #sizeBytes = 0;

  /** They are on disk now, in this order. */
  add(entries: readonly WrittenEntry[]): void {
    for (const entry of entries) {
      const last = this.#entries.at(-1);
      if (last !== undefined && !follows(entry, last)) this.#forgetAll();
      this.#entries.push(entry);
      this.#sizeBytes += entry.bytes.length;
    }
    if (this.#sizeBytes > HELD_BYTES) this.#forgetOldest();
  }

  /**
   * What follows `afterSeq` on the chain that ends at `head`: as many as have `limitBytes` together, one at
   * least. Undefined where that is not held, whoever else may have it.
   */
  after(
    afterSeq: number,
    head: GlobalCursor,
    limitBytes: number,
  ): readonly WrittenEntry[] | undefined {
    const [first] = this.#entries;
    const last = this.#entries.at(-1);
    // Entries name what is before them: whatever happened meanwhile, these lead to that head or not.
    if (first === undefined || last === undefined || !isSameCursor(last, head)) return undefined;
    if (afterSeq < first.seq - 1 || afterSeq >= last.seq) return undefined;
    const from = afterSeq + 1 - first.seq;
    let sizeBytes = 0;
    let to = from;
    for (; to < this.#entries.length; to += 1) {
      sizeBytes += this.#entries[to]!.bytes.length;
      if (to > from && sizeBytes > limitBytes) break;
    }
    return this.#entries.slice(from, to);
  }

  /** Half of it at once, so that it does not happen with every entry. */
  #forgetOldest(): void {
    let count = 0;
    while (this.#sizeBytes > HELD_BYTES / 2 && count < this.#entries.length - 1) {
      this.#sizeBytes -= this.#entries[count]!.bytes.length;
      count += 1;
    }
    this.#entries = this.#entries.slice(count);
  }

  #forgetAll(): void {
    this.#entries = [];
    this.#sizeBytes = 0;
  }
}

function follows({ seq, prevHash }: WrittenEntry, last: WrittenEntry): boolean {
  return seq === last.seq + 1 && Buffer.compare(prevHash, last.hash) === 0;
}
