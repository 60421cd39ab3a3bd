// Makes starting a node cheap: its caches make arrays of a hundred thousand empty places each, one by
// one, and a run starts dozens of nodes. While a run lasts such arrays have holes instead, which read
// the same.

const EMPTY_PLACES_MIN = 4096;

/** Gives what undoes it. */
export function makeArraysCheap(): () => void {
  const { from } = Array;
  const { fill } = Array.prototype;
  Array.from = function cheapFrom(this: unknown, source: unknown, ...rest: unknown[]): unknown[] {
    if (rest.length === 0 && isEmptyPlaces(source)) return new Array<unknown>(source.length);
    return Reflect.apply(from, this, [source, ...rest]) as unknown[];
  } as typeof Array.from;
  Array.prototype.fill = function cheapFill(this: unknown[], ...values: unknown[]): unknown[] {
    const isPointless = values.length === 1 && values[0] === undefined && !(0 in this);
    if (isPointless && this.length >= EMPTY_PLACES_MIN) return this;
    return Reflect.apply(fill, this, values) as unknown[];
  } as typeof Array.prototype.fill;
  return () => {
    Array.from = from;
    Array.prototype.fill = fill;
  };
}

/** `{ length: 100000 }` and nothing else. */
function isEmptyPlaces(source: unknown): source is { readonly length: number } {
  if (typeof source !== 'object' || source === null || Symbol.iterator in source) return false;
  const { length } = source as { readonly length?: unknown };
  return typeof length === 'number' && length >= EMPTY_PLACES_MIN && !(0 in source);
}
