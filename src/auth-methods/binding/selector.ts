// Selectors: boolean expressions over the attributes of an identity, in the language that deployed
// clients write (compatibility.md 7.4). Compiling checks every name, operator and regular
// expression, so that evaluating cannot fail. Regular expressions run in linear time.

import { RE2JS, RE2JSException } from 're2js';
import { unreachable } from '../../../cluster/base/unreachable.ts';
import type { Attributes, FieldTable } from '../identity.ts';
import {
  type Comparison,
  type Expression,
  type Field,
  type Operator,
  parseSelector,
  syntaxError,
} from './selector-syntax.ts';

const PATTERN_LENGTH_MAX = 1024;
/** Instructions of a compiled regular expression; time is this times the length of the value. */
const PATTERN_SIZE_MAX = 1000;

export interface Selector {
  /** True when the identity is one that the selector means. Never throws. */
  matches(attributes: Attributes): boolean;
  /** No less than what compiling and matching costs, in instructions run on one character. */
  stepsFor(attributes: Attributes): number;
}

/** Compiling a regular expression takes about as long as running it on so many characters. */
const COMPILING_CHARACTERS = 100;
/** A search for a text takes at the worst as long as an expression of one instruction for so many characters of it. */
const SEARCHED_CHARACTERS = 32;
/** To compare so many items of a list takes about as long as one step. */
const COMPARED_ITEMS = 8;

/**
 * Compiles a selector. Text without anything but white space matches every identity. Throws
 * AclError('invalid') with line and column for bad syntax, unknown fields, operators that do not fit
 * the field, bad regular expressions and exceeded limits.
 */
export function compileSelector(text: string, fields: FieldTable): Selector {
  if (text.trim() === '') return { matches: () => true, stepsFor: () => 0 };
  const costs: Cost[] = [];
  const matches = compile(parseSelector(text), { text, fields, costs });
  return { matches, stepsFor: (attributes) => stepsOf(costs, attributes) };
}

function stepsOf(costs: readonly Cost[], { strings, lists }: Attributes): number {
  return costs.reduce((steps, { kind, field, fixed, perUnit }) => {
    const { length } = (kind === 'string' ? strings : lists).get(field) ?? '';
    return steps + fixed + perUnit * length;
  }, 0);
}

type Predicate = (attributes: Attributes) => boolean;
type FieldKind = 'string' | 'list' | 'string-map' | 'list-map';

/** The steps of a comparison that looks at all of a text or list; the others take next to nothing. */
interface Cost {
  readonly kind: 'string' | 'list';
  readonly field: string;
  readonly fixed: number;
  /** For each character, or each item. */
  readonly perUnit: number;
}

interface Context {
  readonly text: string;
  readonly fields: FieldTable;
  /** Filled while compiling. */
  readonly costs: Cost[];
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
  if (operator === 'matches' && context.fields.refusesPatterns === true) {
    throw syntaxError(context.text, field.offset, '"matches" cannot be used here');
  }
  const positive =
    kind === 'string'
      ? stringPredicate(name, comparison, context)
      : listPredicate({ kind, name }, comparison, context);
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

/** A missing attribute equals nothing, contains nothing and matches nothing, unless it reads as empty. */
function stringPredicate(name: string, comparison: Comparison, context: Context): Predicate {
  const test = stringTest(name, comparison, context);
  const absent = context.fields.emptyWhenAbsent?.has(name) === true ? '' : undefined;
  return ({ strings }) => {
    const actual = strings.get(name) ?? absent;
    return actual !== undefined && test(actual);
  };
}

function stringTest(
  field: string,
  { operator, value, valueOffset }: Comparison,
  { text, costs }: Context,
): (actual: string) => boolean {
  if (operator === 'equal') return (actual) => actual === value;
  if (operator === 'in') {
    const perUnit = value.length / SEARCHED_CHARACTERS;
    costs.push({ kind: 'string', field, fixed: 0, perUnit });
    return (actual) => actual.includes(value);
  }
  const pattern = compilePattern(value, (message) => syntaxError(text, valueOffset, message));
  const size = pattern.programSize();
  costs.push({ kind: 'string', field, fixed: size * COMPILING_CHARACTERS, perUnit: size });
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

function listPredicate(
  { kind, name }: { readonly kind: Exclude<FieldKind, 'string'>; readonly name: string },
  { operator, value }: Comparison,
  { costs }: Context,
): Predicate {
  const isEmpty = operator === 'empty';
  switch (kind) {
    case 'list':
      if (isEmpty) return ({ lists }) => (lists.get(name) ?? []).length === 0;
      costs.push({ kind, field: name, fixed: 0, perUnit: 1 / COMPARED_ITEMS });
      return ({ lists }) => (lists.get(name) ?? []).includes(value);
    case 'string-map':
      return ({ strings }) =>
        isEmpty ? !hasBelow(name, strings) : strings.has(`${name}.${value}`);
    case 'list-map':
      return ({ lists }) => (isEmpty ? !hasBelow(name, lists) : lists.has(`${name}.${value}`));
    default:
      return unreachable(kind);
  }
}

/** Whether a map, which stands for the list of its keys, has one. */
function hasBelow(root: string, attributes: ReadonlyMap<string, unknown>): boolean {
  for (const name of attributes.keys()) if (name.startsWith(`${root}.`)) return true;
  return false;
}
