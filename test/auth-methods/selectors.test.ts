// biome-ignore-all lint/suspicious/noTemplateCurlyInString: that is how templates look.
// Selectors, the little language that says whom a binding rule is for, and a slow evaluator that must agree.

import fc from 'fast-check';
import t from 'tap';
import { AclError } from '../../src/acl/error.ts';
import { checkTemplate, interpolate } from '../../src/auth-methods/binding/interpolate.ts';
import { compileSelector } from '../../src/auth-methods/binding/selector.ts';
import type { Attributes } from '../../src/auth-methods/identity.ts';
import { FIELDS, JEFF, NAMES } from './attributes.ts';

const selects = (text: string) => compileSelector(text, FIELDS).matches(JEFF);

t.test('selector: reads each escape as the character that it stands for', (t) => {
  const written: readonly (readonly [string, string])[] = [
    ['\\a\\b\\f\\n\\r\\t\\v', '\x07\b\f\n\r\t\v'],
    ['\\\\', '\\'],
    ['\\"', '"'],
    ['a\\"b\\\\', 'a"b\\'],
    ['\\U0010ffff', '\u{10ffff}'],
    ['\\x7f\\ue000', '\x7f\ue000'],
  ];
  for (const [inside, meant] of written) {
    const attributes = { ...JEFF, strings: new Map([['value.name', meant]]) };
    const selector = compileSelector(`value.name == "${inside}"`, FIELDS);
    t.ok(selector.matches(attributes), inside);
  }
  t.end();
});

t.test('selector: decides by the table', (t) => {
  const table: readonly (readonly [string, boolean])[] = [
    ['', true],
    [' \n ', true],
    ['value.name == jeff2 and value.primary_org == engineering and foo in list.groups', true],
    ['value.name==jeff2', true],
    ['value.name == "jeff2"', true],
    ['value.name == `jeff2`', true],
    ['value["name"] == jeff2', true],
    ['value[ `odd key` ] == "x"', true],
    ['value.name == "\\x6aeff2"', true],
    ['value.name == "\\u006aeff2"', true],
    ['value.name == JEFF2', false],
    ['value.name != jeff2', false],
    ['value.name != other', true],
    ['value.age == 42', true],
    ['value.age == 42.0', false],
    ['jef in value.name', true],
    ['xef in value.name', false],
    ['jef not in value.name', false],
    ['value.name contains ef', true],
    ['value.name not contains ef', false],
    ['value.name matches "^jeff[0-9]$"', true],
    ['value.name matches `ef`', true],
    ['value.name not matches "^x"', true],
    ['foo in list.groups', true],
    ['fo in list.groups', false],
    ['fo not in list.groups', true],
    ['list.groups contains bar', true],
    ['list.groups is empty', false],
    ['list.groups is not empty', true],
    ['list.none is empty', true],
    ['name in value', true],
    ['nobody in value', false],
    ['value is not empty', true],
    ['groups in list', true],
    // A missing key: equality, in and "not empty" are false, the negative forms true.
    ['value.missing == ""', false],
    ['value.empty == ""', true],
    ['value.missing != x', true],
    ['x in value.missing', false],
    ['x not in value.missing', true],
    ['value.missing matches ""', false],
    ['value.missing not matches ""', true],
    ['x in list.missing', false],
    ['x not in list.missing', true],
    ['list.missing is empty', true],
    ['list.missing is not empty', false],
    // `and` binds tighter than `or`, `not` tighter than both.
    ['value.name == jeff2 or value.name == a and value.name == b', true],
    ['(value.name == jeff2 or value.name == a) and value.name == b', false],
    ['not value.name == a and value.name == b', false],
    ['not (value.name == a and value.name == b)', true],
    ['not not value.name == jeff2', true],
    [Array.from({ length: 40 }, () => '(value.name == jeff2)').join(' and '), true],
    ['serviceaccount.name == web', true],
    ['serviceaccount["name"] == web', true],
    ['value.name == not', false],
  ];
  for (const [text, expected] of table) t.equal(selects(text), expected, JSON.stringify(text));
  t.end();
});

t.test('selector: a map is empty where it has no key, whatever else the identity has', (t) => {
  const strings = new Map([['serviceaccount.name', 'web']]);
  const lists = new Map([['value.groups', ['foo']]]);
  for (const map of ['value', 'list']) {
    const isEmpty = compileSelector(`${map} is empty`, FIELDS);
    const isNotEmpty = compileSelector(`${map} is not empty`, FIELDS);
    t.same(
      [isEmpty.matches({ strings, lists }), isNotEmpty.matches({ strings, lists })],
      [true, false],
      map,
    );
    t.same([isEmpty.matches(JEFF), isNotEmpty.matches(JEFF)], [false, true], map);
  }
  t.end();
});

t.test('selector: says where and why it does not compile', (t) => {
  const table: readonly (readonly [string, string])[] = [
    ['nobody == x', '1:1: there is no attribute "nobody"'],
    ['value.name == x and\n  foo.bar == x', '2:3: there is no attribute "foo.bar"'],
    ['serviceaccount.uid == x', '1:1: there is no attribute "serviceaccount.uid"'],
    ['serviceaccount == x', '1:1: there is no attribute "serviceaccount"'],
    ['value.name.first != x', '1:1: there is no attribute "value.name.first"'],
    [
      'value.name == x and x not in list.groups.all',
      '1:30: there is no attribute "list.groups.all"',
    ],
    ['__proto__ == x', '1:1: unexpected character "_"'],
    ['value.name is empty', '1:1: "is empty" cannot be used on "value.name", which is a text'],
    ['list.groups == foo', '1:1: "==" cannot be used on "list.groups", which is a list'],
    ['list.groups matches foo', '1:1: "matches" cannot be used on "list.groups", which is a list'],
    ['value == x', '1:1: "==" cannot be used on "value", which is a map'],
    ['value.name', '1:11: expected an operator: ==, !=, in, contains, matches, is empty'],
    ['value.name = x', '1:12: unexpected character "="'],
    ['value.name ==', '1:14: expected a value'],
    ['"x" == value.name', '1:1: expected the name of an attribute'],
    ['x in "y"', '1:6: expected the name of an attribute'],
    ['value.name is full', '1:15: expected "empty"'],
    ['value.name == x y', '1:17: expected "and", "or" or the end'],
    ['(value.name == x', '1:17: expected ")"'],
    ['value.name == x)', '1:16: expected "and", "or" or the end'],
    ['value.name == "x', '1:15: string is not closed'],
    ['value.name == "x\ny"', '1:15: string is not closed'],
    ['value.name == "\\q"', '1:16: unknown escape in string'],
    ['value.name == "\\ud800"', '1:16: unknown escape in string'],
    ['value.name == "\\udfff"', '1:16: unknown escape in string'],
    ['value.name == "\\U00110000"', '1:16: unknown escape in string'],
    ['value. == x', '1:7: expected a name after "."'],
    ['value["a" == x', '1:11: expected "]"'],
    ['value[a] == x', '1:7: expected a quoted string'],
    ['value.name == web-api', '1:18: unexpected character "-"'],
    ['value.age == 12abc', '1:14: unexpected character "1"'],
  ];
  for (const [text, message] of table) {
    t.throws(() => compileSelector(text, FIELDS), { code: 'invalid', message }, text);
  }
  t.throws(() => compileSelector('value.name matches "(?=x)"', FIELDS), { code: 'invalid' });
  t.end();
});

t.test('selector: refuses what is too large, and matches in linear time', (t) => {
  const refused = [
    `${'('.repeat(33)}value.name == x${')'.repeat(33)}`,
    `${'not '.repeat(33)}value.name == x`,
    `${'('.repeat(9000)}`,
    Array.from({ length: 257 }, () => 'value.a==b').join(' or '),
    `value.name matches "[${'a'.repeat(1023)}]"`,
    'value.name matches "(a{500}){500}"',
    'value.name matches "(a?){1000}a{1000}"',
    `value.name == "${'a'.repeat(8192 - 15)}"`,
  ];
  for (const text of refused) {
    t.throws(() => compileSelector(text, FIELDS), { code: 'invalid' }, text.slice(0, 40));
  }
  const taken = [
    `${'('.repeat(32)}value.name == x${')'.repeat(32)}`,
    `${'not '.repeat(32)}value.name == x`,
    Array.from({ length: 256 }, () => 'value.a==b').join(' or '),
    `value.name matches "[${'a'.repeat(1022)}]"`,
    `value.name == "${'a'.repeat(8192 - 16)}"`,
  ];
  for (const text of taken) t.doesNotThrow(() => compileSelector(text, FIELDS), text.slice(0, 40));
  const evil = compileSelector('value.name matches "^(a+)+$"', FIELDS);
  const strings = new Map([['value.name', `${'a'.repeat(50_000)}b`]]);
  t.equal(evil.matches({ strings, lists: new Map() }), false);
  t.end();
});

// A second, slow reading of the same language: the tree is generated, printed, compiled and compared
// with a direct evaluation of the tree.
type Tree =
  | { kind: 'test'; field: string; operator: string; value: string }
  | { kind: 'not'; term: Tree }
  | { kind: 'and'; left: Tree; right: Tree }
  | { kind: 'or'; left: Tree; right: Tree };

const word = fc.constantFrom('a', 'b', 'ab', 'and', 'not', 'in', 'x1');
const test = fc.record({
  kind: fc.constant('test' as const),
  field: fc.constantFrom('value.s', 'value.t', 'list.l', 'list.m'),
  operator: fc.constantFrom(
    '==',
    '!=',
    'in',
    'not in',
    'contains',
    'not contains',
    'is empty',
    'is not empty',
    'matches',
    'not matches',
  ),
  value: word,
});
const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4 },
    test.filter(({ field, operator }) =>
      field.startsWith('value.') ? !operator.includes('empty') : !/=|matches/.test(operator),
    ),
    fc.record({ kind: fc.constant('not' as const), term: tie('tree') }),
    fc.record({
      kind: fc.constantFrom('and', 'or'),
      left: tie('tree'),
      right: tie('tree'),
    }),
  ),
}));

function printed(tree: Tree): string {
  if (tree.kind === 'not') return `not (${printed(tree.term)})`;
  if (tree.kind !== 'test') return `(${printed(tree.left)}) ${tree.kind} (${printed(tree.right)})`;
  const { field, operator, value } = tree;
  if (operator.startsWith('is')) return `${field} ${operator}`;
  return /^(not )?in$/.test(operator)
    ? `"${value}" ${operator} ${field}`
    : `${field} ${operator} ${value}`;
}

function evaluated(tree: Tree, { strings, lists }: Attributes): boolean {
  if (tree.kind === 'not') return !evaluated(tree.term, { strings, lists });
  if (tree.kind === 'and')
    return [tree.left, tree.right].every((side) => evaluated(side, { strings, lists }));
  if (tree.kind === 'or')
    return [tree.left, tree.right].some((side) => evaluated(side, { strings, lists }));
  const { field, operator, value } = tree;
  const negative = operator.includes('not') || operator === '!=';
  const held = strings.get(field);
  const members = lists.get(field) ?? [];
  let positive: boolean;
  if (operator.includes('empty')) positive = members.length === 0;
  else if (field.startsWith('list.')) positive = members.some((member) => member === value);
  else if (held === undefined) positive = false;
  else if (operator.includes('=')) positive = held === value;
  else positive = held.split(value).length > 1;
  return negative ? !positive : positive;
}

t.test('selector: agrees with a slow evaluator on random trees', (t) => {
  const strings = fc.dictionary(fc.constantFrom('value.s', 'value.t'), word);
  const lists = fc.dictionary(
    fc.constantFrom('list.l', 'list.m'),
    fc.array(word, { maxLength: 3 }),
  );
  fc.assert(
    fc.property(tree, strings, lists, (tree, strings, lists) => {
      const attributes = {
        strings: new Map(Object.entries(strings)),
        lists: new Map(Object.entries(lists)),
      };
      const actual = compileSelector(printed(tree), FIELDS).matches(attributes);
      return actual === evaluated(tree, attributes);
    }),
    { numRuns: 400 },
  );
  t.end();
});

t.test('selector and template: throw nothing but AclError, whatever the text', (t) => {
  const pieces = fc.constantFrom(
    ...[
      'value',
      '.',
      'name',
      '[',
      ']',
      '"',
      '`',
      '(',
      ')',
      'not',
      'and',
      'or',
      'in',
      'is',
      'empty',
    ],
    ...[
      '==',
      '!=',
      'matches',
      ' ',
      '\\',
      '${',
      '$',
      '}',
      '1',
      '-',
      '*',
      '{',
      '\n',
      'list',
      '\u212a',
    ],
  );
  const soup = fc.array(pieces, { maxLength: 25 }).map((parts) => parts.join(''));
  fc.assert(
    fc.property(fc.oneof(soup, fc.string({ unit: 'binary' })), (text) => {
      for (const action of [
        () => compileSelector(text, FIELDS).matches(JEFF),
        () => checkTemplate(text, NAMES.interpolatable),
        () => interpolate(text, JEFF.strings),
      ]) {
        try {
          action();
        } catch (error) {
          if (!(error instanceof AclError)) throw error;
        }
      }
    }),
    { numRuns: 2000 },
  );
  t.end();
});
