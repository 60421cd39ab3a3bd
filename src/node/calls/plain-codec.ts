// Plain values as bytes and back, for what servers ask each other: null, undefined, booleans, numbers,
// bigints of 64 bits, texts, bytes, lists and objects. What comes out is what went in, whatever its
// keys and texts are. Anything else is a fault of whoever encodes it.

import { Packr } from 'msgpackr';
import { assert } from '../../../cluster/base/assert.ts';

const packr = new Packr({ useRecords: false });

/** What the first item of a packed list says of the others. For ever: other releases read it. */
const SORT = {
  list: 0,
  /** Names and values in turns. */
  object: 1,
  /** A text with halves of surrogate pairs, which UTF-8 cannot hold, as UTF-16. */
  utf16: 2,
  undefined: 3,
} as const;

/** Deeper values are refused on both sides. */
export const PLAIN_DEPTH_MAX = 100;

/** The bytes belong to the caller. */
export function encodePlain(value: unknown): Uint8Array {
  return packr.pack(packed(value, 0));
}

/** Throws on bytes that `encodePlain` did not make. */
export function decodePlain(bytes: Uint8Array): unknown {
  return unpacked(packr.unpack(bytes), 0);
}

function packed(value: unknown, depth: number): unknown {
  assert(depth <= PLAIN_DEPTH_MAX, 'a value for another server is not endless', { depth });
  switch (typeof value) {
    case 'undefined':
      return [SORT.undefined];
    case 'boolean':
    case 'number':
    case 'bigint':
      return value;
    case 'string':
      return isWellFormed(value) ? value : [SORT.utf16, Buffer.from(value, 'utf16le')];
    case 'object':
      return packedObject(value, depth);
    default:
      throw new TypeError(`a ${typeof value} cannot be sent to another server`);
  }
}

function packedObject(value: object | null, depth: number): unknown {
  if (value === null || value instanceof Uint8Array) return value;
  const fields: unknown[] = [Array.isArray(value) ? SORT.list : SORT.object];
  if (Array.isArray(value)) {
    for (const item of value as readonly unknown[]) fields.push(packed(item, depth + 1));
    return fields;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  assert(prototype === Object.prototype || prototype === null, 'only plain objects are sent');
  for (const [name, field] of Object.entries(value)) {
    fields.push(packed(name, depth + 1), packed(field, depth + 1));
  }
  return fields;
}

function unpacked(value: unknown, depth: number): unknown {
  if (!Array.isArray(value)) return value;
  if (depth > PLAIN_DEPTH_MAX) throw new TypeError('the value is nested too deep');
  const [sort, ...fields] = value as readonly unknown[];
  switch (sort) {
    case SORT.undefined:
      return undefined;
    case SORT.utf16:
      return Buffer.from(fields[0] as Uint8Array).toString('utf16le');
    case SORT.list:
      return fields.map((field) => unpacked(field, depth + 1));
    case SORT.object:
      return unpackedObject(fields, depth);
    default:
      throw new TypeError('the value is of a sort that is not known here');
  }
}

function unpackedObject(fields: readonly unknown[], depth: number): object {
  const object = {};
  for (let place = 0; place < fields.length; place += 2) {
    const name = String(unpacked(fields[place], depth + 1));
    const field = unpacked(fields[place + 1], depth + 1);
    // A plain assignment would set the prototype.
    if (name === '__proto__') {
      const own = { value: field, enumerable: true, configurable: true, writable: true };
      Object.defineProperty(object, name, own);
    } else (object as Record<string, unknown>)[name] = field;
  }
  return object;
}

function isWellFormed(text: string): boolean {
  return (text as string & { isWellFormed(): boolean }).isWellFormed();
}
