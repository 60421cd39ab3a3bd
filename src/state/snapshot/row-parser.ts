// Rows out of a stream of bytes that was cut anywhere. Each row is: length of the key, length of the value
// (as base-128 numbers, low end first), key, value. Lengths that no row has are refused.

import type { KvRow } from '../../../cluster/platform/kv.ts';
import { NO_BYTES } from '../rows/tables.ts';

/** No row is larger: what one command carries fits. */
const ROW_MAX_BYTES = 16 * 1024 * 1024;

interface Lengths {
  readonly keyAt: number;
  readonly valueAt: number;
  readonly end: number;
}

export class RowParser {
  readonly #refusalOf: (says: string) => Error;
  /** The beginning of a row whose end is still to come. */
  #begun: Uint8Array = NO_BYTES;
  #rowCount = 0;

  /** `refusalOf` makes the error that is thrown for a row that cannot be one. */
  constructor(refusalOf: (says: string) => Error) {
    this.#refusalOf = refusalOf;
  }

  /** Whole rows so far. */
  get rowCount(): number {
    return this.#rowCount;
  }

  /** Bytes of a row that is not whole yet. */
  get begunBytes(): number {
    return this.#begun.length;
  }

  /** The rows that are whole with this piece: views of it, or of what was kept. */
  take(piece: Uint8Array): readonly KvRow[] {
    const bytes = this.#begun.length === 0 ? piece : Buffer.concat([this.#begun, piece]);
    const rows: KvRow[] = [];
    let at = 0;
    for (;;) {
      const lengths = this.#lengthsAt(bytes, at);
      if (lengths === undefined || lengths.end > bytes.length) break;
      const { keyAt, valueAt, end } = lengths;
      rows.push({ key: bytes.subarray(keyAt, valueAt), value: bytes.subarray(valueAt, end) });
      this.#rowCount += 1;
      at = end;
    }
    this.#begun = bytes.subarray(at);
    return rows;
  }

  /** Undefined when even the lengths are not all there. */
  #lengthsAt(bytes: Uint8Array, at: number): Lengths | undefined {
    const key = this.#numberAt(bytes, at);
    const value = key === undefined ? undefined : this.#numberAt(bytes, key.next);
    if (key === undefined || value === undefined) return undefined;
    if (key.number === 0 || key.number + value.number > ROW_MAX_BYTES) {
      const says = `has a key of ${key.number} and a value of ${value.number} bytes`;
      throw this.#refusalOf(`row ${this.#rowCount + 1} ${says}`);
    }
    const valueAt = value.next + key.number;
    return { keyAt: value.next, valueAt, end: valueAt + value.number };
  }

  #numberAt(
    bytes: Uint8Array,
    at: number,
  ): { readonly number: number; readonly next: number } | undefined {
    let number = 0;
    let weight = 1;
    for (let place = at; place < bytes.length; place += 1) {
      const byte = bytes[place]!;
      number += (byte & 0x7f) * weight;
      if (byte < 0x80) return { number, next: place + 1 };
      weight *= 0x80;
      if (weight > ROW_MAX_BYTES) throw this.#refusalOf(`row ${this.#rowCount + 1} has no length`);
    }
    return undefined;
  }
}
