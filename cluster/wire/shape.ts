// Readers of fields that came over the wire: each gives the value when it has the shape that it should
// have, and throws WireDamage, naming the field, when it has not. Nothing outside is trusted before.

import { WireDamage } from './wire-damage.ts';

export type Fields = readonly unknown[];

export function arrayOf(value: unknown, what: string, countMax: number): Fields {
  if (!Array.isArray(value)) throw new WireDamage(`${what} is no array`);
  if (value.length > countMax) {
    throw new WireDamage(`${what} has ${value.length} items, at most ${countMax} are taken`);
  }
  return value as Fields;
}

/** An array of exactly so many fields. */
export function fieldsOf(value: unknown, what: string, count: number): Fields {
  if (!Array.isArray(value)) throw new WireDamage(`${what} is no array`);
  if (value.length !== count) {
    throw new WireDamage(`${what} has ${value.length} fields instead of ${count}`);
  }
  return value as Fields;
}

/** An array of fields, of which later layouts have more than the first one. */
export function fieldsFromTo(value: unknown, what: string, from: number, to: number): Fields {
  const fields = arrayOf(value, what, to);
  if (fields.length >= from) return fields;
  throw new WireDamage(`${what} has ${fields.length} fields instead of ${from} to ${to}`);
}

/** A whole number from 0 to 2^53 - 1. */
export function countOf(value: unknown, what: string): number {
  if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number;
  throw new WireDamage(`${what} is no whole number`);
}

/** The number of a member: never 0, which stands for no node. */
export function nodeOf(value: unknown, what: string): number {
  const node = countOf(value, what);
  if (node === 0) throw new WireDamage(`${what} is 0, which is no node`);
  return node;
}

export function textOf(value: unknown, what: string, lengthMax: number): string {
  if (typeof value !== 'string') throw new WireDamage(`${what} is no text`);
  if (value.length > lengthMax) throw new WireDamage(`${what} is longer than ${lengthMax}`);
  return value;
}

export function flagOf(value: unknown, what: string): boolean {
  if (typeof value !== 'boolean') throw new WireDamage(`${what} is neither true nor false`);
  return value;
}

/** A view of the bytes that were unpacked. */
export function bytesOf(value: unknown, what: string): Uint8Array {
  if (value instanceof Uint8Array) return value;
  throw new WireDamage(`${what} is no byte string`);
}

/** A byte string of exactly so many bytes. */
export function exactBytesOf(value: unknown, what: string, count: number): Uint8Array {
  const bytes = bytesOf(value, what);
  if (bytes.length === count) return bytes;
  throw new WireDamage(`${what} has ${bytes.length} bytes instead of ${count}`);
}

/** One of a closed set, by the number that it has on the wire. */
export function namedBy<Name extends string>(
  value: unknown,
  what: string,
  nameByNumber: ReadonlyMap<unknown, Name>,
): Name {
  const name = nameByNumber.get(value);
  if (name === undefined) throw new WireDamage(`${what} is unknown: ${said(value)}`);
  return name;
}

/** The other direction of a table of numbers. */
export function namesByNumber<Name extends string>(
  numberByName: Readonly<Record<Name, number>>,
): ReadonlyMap<unknown, Name> {
  return new Map(Object.entries(numberByName).map(([name, number]) => [number, name as Name]));
}

function said(value: unknown): string {
  return typeof value === 'number' ? String(value) : typeof value;
}
