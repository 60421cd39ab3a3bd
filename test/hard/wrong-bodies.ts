// Bodies that do not fit a schema, and bodies that may or may not, made from the schema alone: a field
// that is added to an endpoint is attacked without a word here.

import fc from 'fast-check';
import type { TSchema } from 'typebox';

/** What is read of a schema. */
interface Node {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Node>>;
  readonly patternProperties?: Readonly<Record<string, Node>>;
  readonly items?: Node;
  readonly readOnly?: boolean;
  readonly 'x-form'?: 'duration' | 'time' | 'free';
}

export interface WrongBody {
  /** The name that the refusal must contain. */
  readonly culprit: string;
  readonly body: unknown;
}

/** One body for each field and each type that the field must not have. */
export function* wrongBodies(schema: TSchema): Iterable<WrongBody> {
  yield* wrongValues(schema as Node, '', (value) => value);
}

/** `wrap` puts a value in the place of `node` in an otherwise good body. */
function* wrongValues(
  node: Node,
  name: string,
  wrap: (value: unknown) => unknown,
): Iterable<WrongBody> {
  for (const value of wrongFor(node)) yield { culprit: name, body: wrap(value) };
  if (node.items !== undefined) yield* wrongValues(node.items, name, (value) => wrap([value]));
  const mapped = Object.values(node.patternProperties ?? {})[0];
  if (mapped !== undefined) yield* wrongValues(mapped, name, (value) => wrap({ key: value }));
  if (node.properties === undefined) return;
  yield { culprit: 'NoSuchField', body: wrap({ NoSuchField: 1 }) };
  for (const [field, inner] of Object.entries(node.properties)) {
    if (inner.readOnly === true) continue;
    yield* wrongValues(inner, field, (value) => wrap({ [field]: value }));
  }
}

function wrongFor(node: Node): readonly unknown[] {
  switch (node['x-form']) {
    case 'duration':
      // Other types than these are left out in silence: deployed clients rely on it.
      return ['soon', '5', 1e300];
    case 'time':
      return ['tomorrow', 7, [], {}, '2026-13-01T00:00:00Z'];
    case 'free':
      return ['text', 7, true, [], nested(200)];
    default:
  }
  switch (node.type) {
    case 'string':
      return [7, true, [], {}, ['text']];
    case 'boolean':
      return ['true', 1, [], {}];
    case 'integer':
      return ['7', -1, 1.5, 2 ** 53, true, [], {}];
    case 'array':
      return ['text', 7, true, {}];
    default:
      return ['text', 7, true, []];
  }
}

/** `{"a":{"a":…}}`, so many levels. */
export function nested(levels: number): unknown {
  let value: unknown = 'bottom';
  for (let level = 0; level < levels; level += 1) value = { a: value };
  return value;
}

/** Texts that a parser, an index key or a renderer may choke on. */
export const HOSTILE_TEXTS: readonly string[] = [
  '\u0000',
  'a\u0000b',
  '\ud800 half a pair',
  '\u202e\u200b\ufeff',
  '__proto__',
  'constructor',
  '../../etc/passwd',
  '%00%ff%zz',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: what it is that must not be expanded
  '${value.name}${',
  '{{.Name}}',
  '\r\nX-Injected: 1',
  '<hidden>',
  '*',
  '("a" == "b"',
  'key "" { policy = "read"',
  '{"key":{"":{"policy":"write"}}',
];

const LONG_CHARS = 40_000;

/** Long ones, that tell whether the work grows faster than the text. */
export const LONG_TEXTS: readonly string[] = [
  'a',
  '(',
  '{',
  '[',
  'not ',
  '"a" == "b" and ',
  '${',
  '\\',
  '/*',
  'key "a" {',
  '{"key":',
  '\u0000',
  '9',
  'é',
].map((piece) => piece.repeat(LONG_CHARS / piece.length));

/** A body with `value` in each text field in turn, at every depth. */
export function* bodiesWithText(schema: TSchema, value: string): Iterable<WrongBody> {
  yield* placesOfText(schema as Node, '', (text) => text, value);
}

function* placesOfText(
  node: Node,
  name: string,
  wrap: (value: unknown) => unknown,
  text: string,
): Iterable<WrongBody> {
  if (node.type === 'string') yield { culprit: name, body: wrap(text) };
  if (node['x-form'] !== undefined) yield { culprit: name, body: wrap({ [text]: text }) };
  if (node.items !== undefined) yield* placesOfText(node.items, name, (each) => wrap([each]), text);
  const mapped = Object.values(node.patternProperties ?? {})[0];
  if (mapped !== undefined) {
    yield* placesOfText(mapped, name, (each) => wrap({ [text]: each }), text);
  }
  for (const [field, inner] of Object.entries(node.properties ?? {})) {
    if (inner.readOnly === true) continue;
    yield* placesOfText(inner, field, (each) => wrap({ [field]: each }), text);
  }
}

/** Bodies that mostly fit: right names, mostly right types, values of `known`, above all the first. */
export function anyBody(schema: TSchema, known: readonly string[]): fc.Arbitrary<unknown> {
  const [best, ...others] = known;
  const words = fc.constantFrom(...others, ...HOSTILE_TEXTS);
  return arbitraryOf(schema as Node, fc.oneof(fc.constant(best ?? ''), words));
}

function arbitraryOf(node: Node, known: fc.Arbitrary<string>): fc.Arbitrary<unknown> {
  const wrong = fc.jsonValue({ maxDepth: 3 });
  return fc.oneof(
    { weight: 30, arbitrary: rightOf(node, known) },
    { weight: 1, arbitrary: wrong },
    { weight: 1, arbitrary: fc.constant(null) },
  );
}

function rightOf(node: Node, known: fc.Arbitrary<string>): fc.Arbitrary<unknown> {
  const text = fc.oneof({ weight: 8, arbitrary: known }, fc.string({ unit: 'binary' }));
  if (node['x-form'] === 'duration') return fc.oneof(fc.constantFrom('5m', '1h', '0s'), fc.nat());
  if (node['x-form'] === 'time') return fc.constantFrom('', '2026-01-01T00:00:00Z', 'never');
  if (node['x-form'] === 'free') return fc.dictionary(text, fc.jsonValue({ maxDepth: 2 }));
  const mapped = Object.values(node.patternProperties ?? {})[0];
  if (mapped !== undefined) return fc.dictionary(text, arbitraryOf(mapped, known), { maxKeys: 3 });
  if (node.items !== undefined) return fc.array(arbitraryOf(node.items, known), { maxLength: 3 });
  if (node.properties !== undefined) {
    const fields = Object.entries(node.properties).map(
      ([name, inner]) => [name, arbitraryOf(inner, known)] as const,
    );
    // A few at a time: of bodies with everything in them, none would go through.
    return fc
      .subarray(fields, { maxLength: Math.min(5, fields.length) })
      .chain((some) => fc.record(Object.fromEntries(some), { requiredKeys: some.map(first) }));
  }
  if (node.type === 'integer') return fc.nat();
  return node.type === 'boolean' ? fc.boolean() : text;
}

function first<Item>([item]: readonly [Item, ...unknown[]]): Item {
  return item;
}
