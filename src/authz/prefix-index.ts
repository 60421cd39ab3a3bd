// Finds the longest of many prefixes that a name begins with: binary search in sorted order, then
// steps from a prefix to the longest other one inside it. Its entries never change.

/** An entry that matched. */
export interface PrefixMatch<T> {
  readonly prefix: string;
  readonly value: T;
}

interface Order {
  /** Ascending by UTF-16 code unit, so a prefix stands right before all that begin with it. */
  readonly sorted: readonly string[];
  /** For each place in `sorted` the place of its longest proper prefix there, or -1. */
  readonly enclosing: readonly number[];
}

export class PrefixIndex<T> {
  readonly #values: ReadonlyMap<string, T>;
  /** Made when it is first asked for: what is only walked needs no order. */
  #orderMemo: Order | undefined;

  constructor(values: ReadonlyMap<string, T>) {
    this.#values = values;
  }

  get entries(): ReadonlyMap<string, T> {
    return this.#values;
  }

  /** The longest prefix of `name`, in O(log n) comparisons and as many steps as prefixes nest. */
  longest(name: string): PrefixMatch<T> | undefined {
    const prefix = this.#order().sorted[this.#longestPlace(name)];
    return prefix === undefined ? undefined : { prefix, value: this.#values.get(prefix)! };
  }

  /** Every prefix of `name`, the longest first. */
  *all(name: string): Generator<PrefixMatch<T>> {
    const { sorted, enclosing } = this.#order();
    for (let place = this.#longestPlace(name); place >= 0; place = enclosing[place]!) {
      const prefix = sorted[place]!;
      yield { prefix, value: this.#values.get(prefix)! };
    }
  }

  /**
   * Every prefix of `name` begins the last sorted one that is not above `name`, for nothing that
   * sorts between the two can leave the shared beginning. So only what encloses that one can match,
   * and what encloses it matches iff it is no longer than the two have in common.
   */
  #longestPlace(name: string): number {
    const { sorted, enclosing } = this.#order();
    let place = atOrAfter(sorted, name);
    if (sorted[place] === name) return place;
    place--;
    const last = sorted[place];
    if (last === undefined) return -1;
    const common = commonLength(last, name);
    while (place >= 0 && sorted[place]!.length > common) place = enclosing[place]!;
    return place;
  }

  #order(): Order {
    if (this.#orderMemo === undefined) {
      const sorted = ascending(this.#values.keys());
      this.#orderMemo = { sorted, enclosing: enclosingPlaces(sorted) };
    }
    return this.#orderMemo;
  }
}

/** By UTF-16 code unit. */
export function ascending(names: Iterable<string>): readonly string[] {
  return [...names].sort();
}

/** The place of the first name that is not below this one; the length of the list if there is none. */
export function atOrAfter(sorted: readonly string[], name: string): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle]! < name) low = middle + 1;
    else high = middle;
  }
  return low;
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

function commonLength(a: string, b: string): number {
  const limit = Math.min(a.length, b.length);
  let length = 0;
  while (length < limit && a.charCodeAt(length) === b.charCodeAt(length)) length++;
  return length;
}
