// Finds the longest of many prefixes that a name begins with: binary search in sorted order, then
// steps from a prefix to the longest other one inside it. Built once, never changed.

/** An entry that matched. */
export interface PrefixMatch<T> {
  readonly prefix: string;
  readonly value: T;
}

export class PrefixIndex<T> {
  readonly #values: ReadonlyMap<string, T>;
  /** Ascending by UTF-16 code unit, so a prefix stands right before all that begin with it. */
  readonly #sorted: readonly string[];
  /** For each place in `#sorted` the place of its longest proper prefix there, or -1. */
  readonly #enclosing: readonly number[];

  constructor(values: ReadonlyMap<string, T>) {
    this.#values = values;
    this.#sorted = [...values.keys()].sort((a, b) => (a < b ? -1 : 1));
    this.#enclosing = enclosingPlaces(this.#sorted);
  }

  get entries(): ReadonlyMap<string, T> {
    return this.#values;
  }

  /** The longest prefix of `name`, in O(log n) comparisons and as many steps as prefixes nest. */
  longest(name: string): PrefixMatch<T> | undefined {
    const place = this.#longestPlace(name);
    const prefix = this.#sorted[place];
    return prefix === undefined ? undefined : { prefix, value: this.#values.get(prefix)! };
  }

  /**
   * Every prefix of `name` begins the last sorted one that is not above `name`, for nothing that
   * sorts between the two can leave the shared beginning. So only what encloses that one can match,
   * and what encloses it matches iff it is no longer than the two have in common.
   */
  #longestPlace(name: string): number {
    let place = countNotAbove(this.#sorted, name) - 1;
    const last = this.#sorted[place];
    if (last === undefined) return -1;
    const common = commonLength(last, name);
    while (place >= 0 && this.#sorted[place]!.length > common) place = this.#enclosing[place]!;
    return place;
  }
}

function enclosingPlaces(sorted: readonly string[]): readonly number[] {
  const open: number[] = [];
  return sorted.map((prefix, place) => {
    while (open.length > 0 && !prefix.startsWith(sorted[open.at(-1)!]!)) open.pop();
    const enclosing = open.at(-1) ?? -1;
    open.push(place);
    return enclosing;
  });
}

function countNotAbove(sorted: readonly string[], name: string): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle]! <= name) low = middle + 1;
    else high = middle;
  }
  return low;
}

function commonLength(a: string, b: string): number {
  const limit = Math.min(a.length, b.length);
  let length = 0;
  while (length < limit && a.charCodeAt(length) === b.charCodeAt(length)) length++;
  return length;
}
