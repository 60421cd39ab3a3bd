// Decoded objects of one table, kept for readers: policies and roles, which very many requests name, and
// the tokens that were read last. What is not there is not remembered. Whoever owns the state drops an
// object the moment its change is on disk; applying never looks here.

import { LRUCache } from 'lru-cache';

/** Text of the objects kept, in characters; their other fields are small beside it. */
const SIZE_MAX = 16 * 1024 * 1024;
const COUNT_MAX = 20_000;

export class ObjectCache<T extends object> {
  readonly #objects = new LRUCache<string, T>({
    max: COUNT_MAX,
    maxSize: SIZE_MAX,
    sizeCalculation: (object) => 1 + charactersIn(object),
  });

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

/** In all texts of the object, however deep. */
function charactersIn(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 0;
  let count = 0;
  for (const key in value) count += charactersIn(value[key as keyof typeof value]);
  return count;
}
