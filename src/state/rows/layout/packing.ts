// Bytes for values: standard msgpack of positional arrays, so that nothing but the position and a
// format number says what a field is. Equal values give equal bytes, always and on every node. What
// the fields of an object are is record-codec.ts.

import { Packr } from 'msgpackr';
import { assert } from '../../../../cluster/base/assert.ts';

/** What may stand in a field. `null` stands for undefined. */
export type Field = null | boolean | number | bigint | string | Uint8Array | readonly Field[];
export type Fields = readonly Field[];

const packr = new Packr({ useRecords: false });

/** The bytes belong to the caller. */
export function pack(fields: Fields): Uint8Array {
  return packr.pack(fields);
}

/** Throws on bytes that are not msgpack. Byte strings inside are views of `bytes`. */
export function unpack(bytes: Uint8Array): Fields {
  const fields: unknown = packr.unpack(bytes);
  assert(Array.isArray(fields), 'stored bytes are an array of fields');
  return fields as Fields;
}

/** The fields in bytes that nobody vouches for; undefined when they are none. */
export function fieldsOrNone(bytes: Uint8Array): Fields | undefined {
  try {
    const fields: unknown = packr.unpack(bytes);
    return Array.isArray(fields) ? (fields as Fields) : undefined;
  } catch {
    return undefined;
  }
}

/** A record that this release cannot read: a newer one wrote it, or it is damaged. */
export function requireFormat(what: string, found: Field | undefined, known: number): void {
  assert(found === known, `the format of a stored ${what} is known here`, { found, known });
}

/** Text of JSON, for the values whose shape is not ours. Key order stays as it was given. */
export function jsonField(value: unknown): string {
  return JSON.stringify(value);
}

export function orNull<T extends Field>(value: T | undefined): T | null {
  return value ?? null;
}

export function orUndefined<T>(value: T | null): T | undefined {
  return value ?? undefined;
}

/** A row that is one number; a missing row is 0. */
export function encodeNumber(value: number): Uint8Array {
  return packr.pack(value);
}

export function decodeNumber(value: Uint8Array | undefined): number {
  return value === undefined ? 0 : (packr.unpack(value) as number);
}

/** The name that has the number. A number that is not known ends the process. */
export function keyOfNumber<Key extends string>(
  numbers: Readonly<Record<Key, number>>,
  number: Field | undefined,
): Key {
  for (const key in numbers) if (numbers[key] === number) return key;
  assert(false, 'a number of the log is known here', { number });
}
