// Decoded objects of one table, kept for readers: few objects (policies, roles) that very many requests
// name. What is not there is not remembered. Whoever owns the state drops an object the moment its
// change is on disk; applying never looks here.

import { LRUCache } from 'lru-cache';

/** Text of the objects kept, in characters; their other fields are small beside it. */
const SIZE_MAX = 16 * 1024 * 1024;
const COUNT_MAX = 20_000;

export class ObjectCache<T extends object> {
  readonly #objects: LRUCache<string, T>;

  constructor(sizeOf: (object: T) => number) {
    this.#objects = new LRUCache({
      max: COUNT_MAX,
      maxSize: SIZE_MAX,
      sizeCalculation: (object) => 1 + sizeOf(object),
    });
  }

  /** The object of a watch key: as it is kept, or as `load` finds it now. */
  get(watchKey: string, load: () => T | undefined): T | undefined {
    const known = this.#objects.get(watchKey);
    if (known !== undefined) return known;
    const found = load();
    if (found !== undefined) this.#objects.set(watchKey, found);
    return found;
  }

  /** Drops all. */
  clear(): void {
    this.#objects.clear();
  }

  /** Drops the objects of these watch keys. */
  forget(watchKeys: readonly string[]): void {
    for (const key of watchKeys) this.#objects.delete(key);
  }
}
