// Assertions stay on in production: a broken invariant ends the process with the values in hand,
// because going on would be worse.

/** A broken invariant. Nothing catches it except the outermost handler that ends the process. */
export class AssertionError extends Error {
  override readonly name = 'AssertionError';
}

/** Throws AssertionError with `message` (and the values that it was given) unless `condition` holds. */
export function assert(condition: unknown, message: string, values?: object): asserts condition {
  if (condition) return;
  throw new AssertionError(values === undefined ? message : `${message} ${JSON.stringify(values)}`);
}

/** Returns `value`, or throws AssertionError naming what was expected. */
export function must<T>(value: T | undefined | null, what: string): T {
  assert(value !== undefined && value !== null, `expected ${what}`);
  return value;
}
