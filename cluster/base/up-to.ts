// How many a cache keeps, for those of lru-cache. By that package's own `max` it makes lists of full length at
// once, and those of all caches of a server take it a good part of a tenth of a second at each start.

export interface CountBound {
  readonly maxSize: number;
  readonly sizeCalculation: () => number;
}

/** Options of a cache that keeps at most `count` values. */
export function upTo(count: number): CountBound {
  return { maxSize: count, sizeCalculation: () => 1 };
}
