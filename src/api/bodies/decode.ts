// From the bytes of a body to a value of its schema. Names are matched in any letter case, null
// counts as absent, what the service itself sends is dropped, everything else is refused by name.
// The schema is the only description: there is no second list of fields anywhere.

import { isUtf8 } from 'node:buffer';
import type { Static, TSchema } from 'typebox';
import { bufferOver, excessOf } from '../../../cluster/base/json-bounds.ts';
import { AclError } from '../../acl/error.ts';
import { durationNsOf } from '../../acl/values/duration.ts';
import { parseInstant, ZERO_INSTANT } from '../../acl/values/instant.ts';
import { JsonTextError, parseFirstValue, repeatsName } from './json-text.ts';
import type { Form } from './schema.ts';

/** Values of free form may nest so deep. */
export const FREE_DEPTH_MAX = 32;
/** So much of a name or a value of the caller is repeated in a refusal. */
const QUOTED_MAX = 64;

export interface DecodeOptions {
  /** What the refusal begins with, such as `Policy decoding failed`. */
  readonly label: string;
  /** False: the field `Namespace` is refused. */
  readonly namespaces: boolean;
}

/**
 * Decodes a body. Fields that were absent, null or read-only are absent in the result; durations are
 * bigints of nanoseconds. Throws AclError 'malformed': `‹label›: ‹what is wrong and where›`.
 */
export function decodeBody<Schema extends TSchema>(
  schema: Schema,
  bytes: Uint8Array,
  options: DecodeOptions,
): Static<Schema> {
  try {
    const text = boundedTextOf(bytes);
    const body = { ...options, text };
    const walked = walk(schema, parseFirstValue(text), { within: undefined, step: '', body });
    return (walked ?? emptyOf(schema)) as Static<Schema>;
  } catch (error) {
    if (error instanceof JsonTextError || error instanceof ShapeError) {
      throw new AclError('malformed', `${options.label}: ${error.message}`);
    }
    throw error;
  }
}

/** The value is JSON, but not of this shape. */
class ShapeError extends Error {
  override readonly name = 'ShapeError';
}

/** Where a value stands in a body: told in words only when it is refused. */
interface Place {
  /** Undefined for the body itself. */
  readonly within: Place | undefined;
  /** The name of a field; in brackets, the number of an item or the key of an entry. */
  readonly step: string | number | { readonly key: string };
  readonly body: Body;
}

interface Body extends DecodeOptions {
  readonly text: string;
  /** Whether a name stands twice in an object of it; undefined: nobody had to know. */
  repeats?: boolean;
}

/** `Policies[0].Name`; empty for the body itself. */
function pathOf({ within, step }: Place): string {
  if (within === undefined) return '';
  const path = pathOf(within);
  if (typeof step === 'number') return `${path}[${step}]`;
  if (typeof step === 'object') return `${path}[${JSON.stringify(clip(step.key))}]`;
  return path === '' ? clip(step) : `${path}.${clip(step)}`;
}

function inside(within: Place, step: Place['step']): Place {
  return { within, step, body: within.body };
}

/** What the walk reads of a schema. */
interface SchemaNode {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly patternProperties?: Readonly<Record<string, SchemaNode>>;
  readonly items?: SchemaNode;
  readonly readOnly?: boolean;
  readonly 'x-form'?: Form;
}

/** Throws where to read it would keep everybody else waiting. */
function boundedTextOf(bytes: Uint8Array): string {
  if (!isUtf8(bytes)) throw new JsonTextError('invalid UTF-8 in the body', 0);
  const excess = excessOf(bytes);
  if (excess !== undefined) throw new ShapeError(`json: ${excess}`);
  return bufferOver(bytes).toString('utf8');
}

/** Gives undefined for null: the caller leaves the field out. */
function walk(node: SchemaNode, value: unknown, place: Place): unknown {
  if (value === null) return undefined;
  const form = node['x-form'];
  if (form === 'duration') return durationOf(value, place);
  if (form === 'time') return timeOf(value, place);
  if (form === 'free') return freeObjectOf(value, place);
  switch (node.type) {
    case 'object':
      return objectOf(node, value, place);
    case 'array':
      return arrayOf(node, value, place);
    case 'string':
      if (typeof value !== 'string') throw wrongType(value, 'string', place);
      return wellFormed(value);
    case 'boolean':
      if (typeof value !== 'boolean') throw wrongType(value, 'bool', place);
      return value;
    case 'integer':
      return wholeNumberOf(value, place);
    default:
      throw new Error(`the schema of "${pathOf(place)}" has no type that a body may have`);
  }
}

function objectOf(node: SchemaNode, value: unknown, place: Place): unknown {
  if (!isObject(value)) throw wrongType(value, 'object', place);
  const mapped = mapValueOf(node);
  return mapped === undefined ? fieldsOf(node, value, place) : mapOf(mapped, value, place);
}

function fieldsOf(node: SchemaNode, value: object, place: Place): unknown {
  const names = namesOf(node);
  const result: Record<string, unknown> = {};
  for (const given of Object.keys(value)) {
    const item: unknown = value[given as keyof typeof value];
    const name = names.get(given) ?? names.get(given.toLowerCase());
    const field = name === undefined ? undefined : node.properties?.[name];
    if (name === undefined || field === undefined) throw unknownField(given, place);
    if (name === 'Namespace' && !place.body.namespaces && item !== null && item !== '') {
      throw new ShapeError('json: unknown field "Namespace" - Namespaces are not enabled');
    }
    if (field.readOnly === true) continue;
    const walked = walk(field, item, inside(place, name));
    if (walked === undefined) continue;
    if (Object.hasOwn(result, name)) requireInOrder(name, place);
    result[name] = walked;
  }
  return result;
}

/**
 * Of two spellings of a name the last one counts. The parser has a name that stands twice where it stood first: then
 * nobody knows which one is the last.
 */
function requireInOrder(name: string, place: Place): void {
  const { body } = place;
  body.repeats ??= repeatsName(body.text);
  if (body.repeats) throw givenTooOften(name, place);
}

function mapOf(item: SchemaNode, value: object, place: Place): unknown {
  return mapEntries(
    value,
    (key, entry) => walk(item, entry, inside(place, { key })) ?? emptyOf(item),
  );
}

function arrayOf(node: SchemaNode, value: unknown, place: Place): unknown {
  if (!Array.isArray(value)) throw wrongType(value, 'array', place);
  const items = node.items ?? {};
  return value.map(
    (item: unknown, index) => walk(items, item, inside(place, index)) ?? emptyOf(items),
  );
}

/** Every whole number of a body counts something. */
function wholeNumberOf(value: unknown, place: Place): number {
  if (typeof value !== 'number') throw wrongType(value, 'uint', place);
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw new ShapeError(`json: ${pathOf(place)} must be a whole number from 0 to 2^53-1`);
}

/**
 * Kinds other than text and number are left out in silence, as deployed clients expect. An empty text
 * is refused, as they expect, too: whoever meant to bound a life would else have given one without end.
 */
function durationOf(value: unknown, place: Place): bigint | undefined {
  if (typeof value !== 'string' && typeof value !== 'number') return undefined;
  const ns = durationNsOf(value);
  if (ns !== undefined) return ns;
  if (typeof value === 'number') throw wrongType(value, 'duration', place);
  throw new ShapeError(`time: invalid duration ${JSON.stringify(clip(value))} at ${pathOf(place)}`);
}

function timeOf(value: unknown, place: Place): string | undefined {
  if (typeof value !== 'string') throw wrongType(value, 'time', place);
  if (value === '' || value === ZERO_INSTANT) return undefined;
  if (parseInstant(value) !== undefined) return value;
  throw new ShapeError(
    `parsing time ${JSON.stringify(clip(value))} at ${pathOf(place)}: not an RFC 3339 time`,
  );
}

function freeObjectOf(value: unknown, place: Place): unknown {
  if (!isObject(value)) throw wrongType(value, 'object', place);
  return freeValueOf(value, place, 0);
}

function freeValueOf(value: unknown, place: Place, depth: number): unknown {
  if (typeof value === 'string') return wellFormed(value);
  if (value === null || typeof value !== 'object') return value;
  if (depth === FREE_DEPTH_MAX) {
    throw new ShapeError(`json: more than ${FREE_DEPTH_MAX} levels at ${clip(pathOf(place))}`);
  }
  if (Array.isArray(value)) {
    return value.map((item: unknown, index) => freeValueOf(item, inside(place, index), depth + 1));
  }
  return mapEntries(value, (key, item) => freeValueOf(item, inside(place, key), depth + 1));
}

/** A copy whose keys are all its own: `__proto__` is a key like any other here. */
function mapEntries(value: object, mapped: (key: string, item: unknown) => unknown): unknown {
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [wellFormed(key), mapped(key, item)]),
  );
}

/** The schema of a map's values, or undefined for an object with named fields. */
function mapValueOf(node: SchemaNode): SchemaNode | undefined {
  return node.patternProperties === undefined
    ? undefined
    : Object.values(node.patternProperties)[0];
}

const namesByNode = new WeakMap<SchemaNode, ReadonlyMap<string, string>>();

/** Each field by its exact and by its lower-case name. */
function namesOf(node: SchemaNode): ReadonlyMap<string, string> {
  const known = namesByNode.get(node);
  if (known !== undefined) return known;
  const names = new Map<string, string>();
  for (const name of Object.keys(node.properties ?? {})) {
    names.set(name, name);
    names.set(name.toLowerCase(), name);
  }
  namesByNode.set(node, names);
  return names;
}

/** What null stands for where a value cannot be left out. */
function emptyOf(node: SchemaNode): unknown {
  if (node.type === 'array') return [];
  return node.type === 'string' ? '' : {};
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Half of a surrogate pair has no UTF-8 form; it becomes the replacement character. */
function wellFormed(text: string): string {
  return text.toWellFormed();
}

function clip(text: string): string {
  return text.length <= QUOTED_MAX ? text : `${text.slice(0, QUOTED_MAX)}…`;
}

function unknownField(name: string, place: Place): ShapeError {
  return new ShapeError(`json: unknown field ${JSON.stringify(clip(name))}${whereOf(place)}`);
}

function givenTooOften(name: string, place: Place): ShapeError {
  const what = `field "${name}"${whereOf(place)}`;
  return new ShapeError(`json: ${what} is given in two spellings, and a name of the body twice`);
}

function whereOf(place: Place): string {
  const path = pathOf(place);
  return path === '' ? '' : ` at ${path}`;
}

function wrongType(value: unknown, type: string, place: Place): ShapeError {
  const kind = Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value;
  const path = pathOf(place);
  const where = path === '' ? 'the body' : `field ${path}`;
  return new ShapeError(`json: cannot unmarshal ${kind} into ${where} of type ${type}`);
}
