// Reads positional values of unknown origin. Whatever does not fit is a WireError.

import { WireError } from './wire-error.ts';

export class Fields {
  readonly #values: readonly unknown[];
  #next = 0;

  constructor(value: unknown) {
    if (!Array.isArray(value)) throw new WireError('malformed', 'expected an array');
    this.#values = value;
  }

  any(): unknown {
    if (this.#next >= this.#values.length) throw new WireError('malformed', 'a field is missing');
    this.#next += 1;
    return this.#values[this.#next - 1];
  }

  /** A whole number from 0 that is exact. */
  count(): number {
    const value = this.any();
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
    throw new WireError('malformed', 'expected a count');
  }

  text(): string {
    const value = this.any();
    if (typeof value === 'string') return value;
    throw new WireError('malformed', 'expected text');
  }

  flag(): boolean {
    const value = this.any();
    if (typeof value === 'boolean') return value;
    throw new WireError('malformed', 'expected a flag');
  }

  /** A copy, because the frame's buffer is used again. */
  bytes(): Uint8Array {
    const value = this.any();
    if (value instanceof Uint8Array) return new Uint8Array(value);
    throw new WireError('malformed', 'expected bytes');
  }

  list<T>(read: (item: unknown) => T): readonly T[] {
    const value = this.any();
    if (Array.isArray(value)) return value.map((item: unknown) => read(item));
    throw new WireError('malformed', 'expected a list');
  }

  end(): void {
    if (this.#next !== this.#values.length) throw new WireError('malformed', 'too many fields');
  }
}
