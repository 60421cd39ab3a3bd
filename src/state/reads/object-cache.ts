// Decoded objects of one table, kept for readers: policies and roles, which very many requests name, and
// tokens, of which there may be far more than can be kept. What is not there is not remembered. Whoever
// owns the state drops an object the moment its change is on disk; applying never looks here.

import { LRUCache } from 'lru-cache';
import { AskedBefore } from './asked-before.ts';

const COUNT_MAX = 20_000;
/** No object counts for less text, in characters: so no more are kept than that (see `upTo`). */
const LEAST = 840;
/** Text of the objects kept, in characters; their other fields are small beside it. */
const SIZE_MAX = COUNT_MAX * LEAST;

/**
 * What puts others out of a full cache. Keeping what is read once costs more than reading it, where it gets
 * old in memory before it goes.
 */
export type KeptWhenFull = 'each-read' | 'second-reads';

export class ObjectCache<T extends object> {
  readonly #asked: AskedBefore | undefined;
  readonly #objects = new LRUCache<string, T>({
    maxSize: SIZE_MAX,
    sizeCalculation: sizeOf,
  });

  constructor(keptWhenFull: KeptWhenFull) {
    this.#asked = keptWhenFull === 'second-reads' ? new AskedBefore(COUNT_MAX) : undefined;
  }

  /** The object of a watch key: as it is kept, or as `load` finds it now. */
  get(watchKey: string, load: () => T | undefined): T | undefined {
    const known = this.#objects.get(watchKey);
    if (known !== undefined) return known;
    const found = load();
    if (found !== undefined && this.#isWorthKeeping(watchKey, found)) {
      this.#objects.set(watchKey, found);
    }
    return found;
  }

  #isWorthKeeping(watchKey: string, found: T): boolean {
    if (this.#asked === undefined) return true;
    const isFull = this.#objects.calculatedSize + sizeOf(found) > SIZE_MAX;
    return !isFull || this.#asked.note(watchKey);
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

function sizeOf(object: object): number {
  return Math.max(charactersIn(object), LEAST);
}

/** In all texts of the object, however deep. */
function charactersIn(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 0;
  let count = 0;
  for (const key in value) count += charactersIn(value[key as keyof typeof value]);
  return count;
}
