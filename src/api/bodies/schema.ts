// The words that the wire's schemas are made of. Plain JSON Schema for OpenAPI and static types; an
// `x-form` keyword marks what the decoder reads in a way of its own. decode.ts gives them meaning.

import { type TProperties, type TSchema, Type } from 'typebox';
import type { JsonValue } from '../../acl/auth-method.ts';

/** How the decoder reads a value that JSON Schema alone does not describe. */
export type Form = 'duration' | 'time' | 'free';

/** Text such as `1h30m`, or integer nanoseconds. The decoder gives nanoseconds as a bigint. */
export function duration(description: string) {
  return Type.Unsafe<string | number | bigint>({
    type: ['string', 'integer'],
    description,
    examples: ['5m', '1h30m'],
    'x-form': 'duration',
  });
}

/** RFC 3339 text; empty text and the zero time count as absent. */
export function time(description: string) {
  return Type.Unsafe<string>({ type: 'string', description, 'x-form': 'time' });
}

/** An object of any JSON values, as deep as the decoder allows. */
export function freeObject(description: string) {
  return Type.Unsafe<{ readonly [key: string]: JsonValue }>({
    type: 'object',
    description,
    additionalProperties: true,
    'x-form': 'free',
  });
}

/** A field that the service sends: accepted from callers in any shape, and dropped. */
export function readOnly(description: string) {
  return Type.Optional(Type.Unsafe<unknown>({ description, readOnly: true }));
}

export function text(description: string) {
  return Type.String({ description });
}

export function flag(description: string) {
  return Type.Boolean({ description });
}

/** A whole number, not below zero. */
export function count(description: string) {
  return Type.Integer({ description, minimum: 0 });
}

/** Says that something was done: always true. */
export function done(description: string) {
  return Type.Literal(true, { description });
}

/** Bytes that are no JSON: an archive of the state. */
export function archive(description: string) {
  return Type.Unsafe<Uint8Array>({
    type: 'string',
    contentMediaType: ARCHIVE_TYPE,
    description,
  });
}

/** The content type of an archive of the state. */
export const ARCHIVE_TYPE = 'application/x-gzip';

export function nullable<Schema extends TSchema>(schema: Schema) {
  return Type.Union([schema, Type.Null()]);
}

/** A body: every field may be absent or null, fields beyond these are refused, case is ignored. */
export function body<Properties extends TProperties>(title: string, properties: Properties) {
  return Type.Partial(Type.Object(properties), { title, additionalProperties: false });
}

/** An object of an answer; its title becomes its name among the document's components. */
export function answer<Properties extends TProperties>(title: string, properties: Properties) {
  return Type.Object(properties, { title });
}
