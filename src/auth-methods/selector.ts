// Selectors: boolean expressions over the attributes of an identity, in the language that deployed
// clients write (compatibility.md 7.4). Compiling checks every name, operator and regular
// expression, so that evaluating cannot fail. Regular expressions run in linear time.

import { RE2JS, RE2JSException } from 're2js';
import { unreachable } from '../../cluster/base/unreachable.ts';
import type { Attributes, FieldTable } from './identity.ts';
import {
  type Comparison,
  type Expression,
  type Field,
  type Operator,
  parseSelector,
  syntaxError,
} from './selector-syntax.ts';

export const PATTERN_LENGTH_MAX = 1024;
/** Instructions of a compiled regular expression; time is this times the length of the value. */
export const PATTERN_SIZE_MAX = 1000;

export interface Selector {
  /** True when the identity is one that the selector means. Never throws. */
  matches(attributes: Attributes): boolean;
}

/**
 * Compiles a selector. Text without anything but white space matches every identity. Throws
 * AclError('invalid') with line and column for bad syntax, unknown fields, operators that do not fit
 * the field, bad regular expressions and exceeded limits.
 */
export function compileSelector(text: string, fields: FieldTable): Selector {
  if (text.trim() === '') return { matches: () => true };
  return { matches: compile(parseSelector(text), { text, fields }) };
}

type Predicate = (attributes: Attributes) => boolean;
type FieldKind = 'string' | 'list' | 'string-map' | 'list-map';

interface Context {
  readonly text: string;
  readonly fields: FieldTable;
}

function compile(expression: Expression, context: Context): Predicate {
  switch (expression.kind) {
    case 'comparison':
      return compileComparison(expression, context);
    case 'not': {
      const term = compile(expression.term, context);
      return (attributes) => !term(attributes);
    }
    case 'and': {
      const terms = expression.terms.map((term) => compile(term, context));
      return (attributes) => terms.every((term) => term(attributes));
    }
    case 'or': {
      const terms = expression.terms.map((term) => compile(term, context));
      return (attributes) => terms.some((term) => term(attributes));
    }
    default:
      return unreachable(expression);
  }
}

const ALLOWED: Readonly<Record<FieldKind, ReadonlySet<Operator>>> = {
  string: new Set<Operator>(['equal', 'in', 'matches']),
  list: new Set<Operator>(['in', 'empty']),
  'string-map': new Set<Operator>(['in', 'empty']),
  'list-map': new Set<Operator>(['in', 'empty']),
};
const SHOWN: Readonly<Record<Operator, string>> = {
  equal: '==',
  in: 'in',
  matches: 'matches',
  empty: 'is empty',
};

function compileComparison(comparison: Comparison, context: Context): Predicate {
  const { field, operator, negated } = comparison;
  const kind = kindOf(field, context);
  const name = field.segments.join('.');
  if (!ALLOWED[kind].has(operator)) {
    const what = kind === 'string' ? 'a text' : kind === 'list' ? 'a list' : 'a map';
    const message = `"${SHOWN[operator]}" cannot be used on "${name}", which is ${what}`;
    throw syntaxError(context.text, field.offset, message);
  }
  const positive =
    kind === 'string'
      ? stringPredicate(name, comparison, context)
      : listPredicate(listReader(kind, name), comparison);
  return negated ? (attributes) => !positive(attributes) : positive;
}

function kindOf(field: Field, { text, fields }: Context): FieldKind {
  const name = field.segments.join('.');
  if (fields.strings.includes(name)) return 'string';
  const [root = '', , ...deeper] = field.segments;
  const isWhole = field.segments.length === 1;
  // Nothing is below a key; one with a dot in it is written in brackets.
  if (deeper.length === 0) {
    if (fields.stringMaps.includes(root)) return isWhole ? 'string-map' : 'string';
    if (fields.listMaps.includes(root)) return isWhole ? 'list-map' : 'list';
  }
  throw syntaxError(text, field.offset, `there is no attribute "${name}"`);
}

/** A missing attribute equals nothing, contains nothing and matches nothing. */
function stringPredicate(name: string, comparison: Comparison, context: Context): Predicate {
  const { operator, value } = comparison;
  const test = stringTest(operator, value, comparison.valueOffset, context);
  return ({ strings }) => {
    const actual = strings.get(name);
    return actual !== undefined && test(actual);
  };
}

function stringTest(
  operator: Operator,
  value: string,
  valueOffset: number,
  { text }: Context,
): (actual: string) => boolean {
  if (operator === 'equal') return (actual) => actual === value;
  if (operator === 'in') return (actual) => actual.includes(value);
  const pattern = compilePattern(value, (message) => syntaxError(text, valueOffset, message));
  return (actual) => pattern.test(actual);
}

function compilePattern(source: string, errorOf: (message: string) => Error): RE2JS {
  if (source.length > PATTERN_LENGTH_MAX) {
    throw errorOf(`a regular expression may have at most ${PATTERN_LENGTH_MAX} characters`);
  }
  const pattern = parsePattern(source, errorOf);
  if (pattern.programSize() > PATTERN_SIZE_MAX) {
    throw errorOf('the regular expression repeats too much');
  }
  return pattern;
}

function parsePattern(source: string, errorOf: (message: string) => Error): RE2JS {
  try {
    return RE2JS.compile(source);
  } catch (error) {
    if (error instanceof RE2JSException) throw errorOf(error.message);
    throw error;
  }
}

type ListReader = (attributes: Attributes) => readonly string[];

function listPredicate(read: ListReader, { operator, value }: Comparison): Predicate {
  return operator === 'empty'
    ? (attributes) => read(attributes).length === 0
    : (attributes) => read(attributes).includes(value);
}

/** A map stands for the list of its keys, as `name in value` asks. */
function listReader(kind: Exclude<FieldKind, 'string'>, name: string): ListReader {
  switch (kind) {
    case 'list':
      return ({ lists }) => lists.get(name) ?? [];
    case 'string-map':
      return ({ strings }) => keysBelow(name, strings);
    case 'list-map':
      return ({ lists }) => keysBelow(name, lists);
    default:
      return unreachable(kind);
  }
}

function keysBelow(root: string, attributes: ReadonlyMap<string, unknown>): string[] {
  const prefix = `${root}.`;
  return [...attributes.keys()]
    .filter((name) => name.startsWith(prefix))
    .map((name) => name.slice(prefix.length));
}
