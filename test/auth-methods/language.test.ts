// The two little languages of auth methods, selectors and templates, and what logins make of them.

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: that is how templates look.

import fc from 'fast-check';
import t from 'tap';
import type { AuthMethod } from '../../src/acl/auth-method.ts';
import type { BindingRule } from '../../src/acl/binding-rule.ts';
import { AclError } from '../../src/acl/error.ts';
import type { BindingRuleId, NamespaceName, PolicyId, RoleId } from '../../src/acl/ids.ts';
import {
  bindingTargetOf,
  checkNamespaceRules,
} from '../../src/auth-methods/binding/binding-names.ts';
import type { AttributeNames, Attributes, Identity } from '../../src/auth-methods/identity.ts';
import {
  checkTemplate,
  interpolate,
  sampleOf,
} from '../../src/auth-methods/binding/interpolate.ts';
import { computeLogin, explainLogin, type LoginInput } from '../../src/auth-methods/login.ts';
import { compileSelector } from '../../src/auth-methods/binding/selector.ts';
import { parseXml, textAt } from '../../src/auth-methods/aws/xml.ts';

const NAMES: AttributeNames = {
  selectable: {
    strings: ['serviceaccount.name', 'serviceaccount.namespace'],
    stringMaps: ['value'],
    listMaps: ['list'],
  },
  interpolatable: ['value.name', 'value.team', 'serviceaccount.name'],
};
const FIELDS = NAMES.selectable;

const JEFF: Attributes = {
  strings: new Map([
    ['serviceaccount.name', 'web'],
    ['value.name', 'jeff2'],
    ['value.primary_org', 'engineering'],
    ['value.age', '42'],
    ['value.odd key', 'x'],
    ['value.empty', ''],
  ]),
  lists: new Map([
    ['list.groups', ['foo', 'bar']],
    ['list.none', []],
  ]),
};

const selects = (text: string) => compileSelector(text, FIELDS).matches(JEFF);

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
    ['serviceaccount.name == web', true],
    ['serviceaccount["name"] == web', true],
    ['value.name == not', false],
  ];
  for (const [text, expected] of table) t.equal(selects(text), expected, JSON.stringify(text));
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
    `value.name matches "${'a'.repeat(1025)}"`,
    'value.name matches "(a{500}){500}"',
    'value.name matches "(a?){1000}a{1000}"',
    `value.name == "${'a'.repeat(9000)}"`,
  ];
  for (const text of refused) {
    t.throws(() => compileSelector(text, FIELDS), { code: 'invalid' }, text.slice(0, 40));
  }
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

t.test('template: fills in attributes in lower case', (t) => {
  const attributes = new Map([
    ['value.name', 'JeFF'],
    ['value.kelvin', '\u212aate'],
    ['__proto__', 'P'],
  ]);
  const table: readonly (readonly [string, string])[] = [
    ['plain-Text', 'plain-Text'],
    ['a-${value.name}-${ value.name }', 'a-jeff-jeff'],
    ['$${value.name}', '${value.name}'],
    ['$5 ${value.name}', '$5 jeff'],
    ['${value.kelvin}', '\u212aate'],
    ['${__proto__}', 'p'],
  ];
  for (const [template, expected] of table) t.equal(interpolate(template, attributes), expected);
  for (const template of [
    '${value.other}',
    '${constructor}',
    '${value.name',
    '${}',
    '${a b}',
    '${${value.name}}',
  ]) {
    t.throws(
      () => interpolate(template, attributes),
      { code: 'login-refused', message: /^error interpreting template: / },
      template,
    );
  }
  t.throws(() => checkTemplate('x${value.nope}', ['value.name']), {
    code: 'invalid',
    message: '2: unknown variable "value.nope"',
  });
  t.equal(sampleOf('x-${value.name}', ['value.name']), 'x-sample');
  t.end();
});

t.test('written rules: selectors and templates are tried against the names of the method', (t) => {
  const target = bindingTargetOf('m', NAMES);
  target.requireSelector('value.anything == x');
  t.throws(() => target.requireSelector('nope == x'), { code: 'invalid' });
  t.equal(target.sampleOf('svc-${value.team}'), 'svc-sample');
  t.throws(() => target.sampleOf('${value.unmapped}'), { code: 'invalid' });
  checkNamespaceRules([{ selector: '', bindNamespace: 'team-${value.team}' }], NAMES);
  t.throws(() => checkNamespaceRules([{ selector: 'x', bindNamespace: 'a' }], NAMES), {
    message: /^Invalid Auth Method: NamespaceRules\[0\]\.Selector is invalid: 1:2: /,
  });
  t.throws(() => checkNamespaceRules([{ selector: '', bindNamespace: 'A_b' }], NAMES), {
    message: /^Invalid Auth Method: NamespaceRules\[0\]\.BindNamespace is invalid: /,
  });
  t.end();
});

const ns = (name: string) => name as NamespaceName;

function rule(fields: Partial<BindingRule>): BindingRule {
  return {
    id: 'r' as BindingRuleId,
    namespace: ns('default'),
    description: '',
    authMethod: 'm',
    selector: '',
    bindType: 'service',
    bindName: 'web',
    bindVars: undefined,
    createIndex: 1,
    modifyIndex: 1,
    ...fields,
  };
}

const IDENTITY: Identity = { selectable: JEFF, interpolatable: JEFF.strings, summary: 'jeff' };

function login(fields: Partial<LoginInput>, rules: readonly Partial<BindingRule>[]): LoginInput {
  const ids: Readonly<Record<string, string>> = {
    'default/ops': 'id-default-ops',
    'eng/ops': 'id-eng-ops',
    'default/jeff2': 'id-default-jeff2',
  };
  const lookup = (name: string, namespace: NamespaceName) => ids[`${namespace}/${name}`];
  const method: Pick<AuthMethod, 'name' | 'namespace' | 'namespaceRules'> = {
    name: 'm',
    namespace: ns('default'),
    namespaceRules: [],
  };
  return {
    method,
    names: NAMES,
    identity: IDENTITY,
    rules: rules.map(rule),
    lookups: {
      policyId: (name, namespace) => lookup(name, namespace) as PolicyId | undefined,
      roleId: (name, namespace) => lookup(name, namespace) as RoleId | undefined,
      namespaceExists: (name) => ['default', 'eng', 'engineering'].includes(name),
    },
    datacenter: 'dc7',
    meta: {},
    flow: 'login',
    ...fields,
  };
}

const NOTHING = {
  namespace: 'default',
  description: 'token created via login',
  policies: [],
  roles: [],
  serviceIdentities: [],
  nodeIdentities: [],
  templatedPolicies: [],
};

t.test('login: grants what each bind type says', (t) => {
  const table: readonly (readonly [string, readonly Partial<BindingRule>[], object])[] = [
    [
      'service, computed',
      [{ bindName: 'test--${value.name}--${value.primary_org}' }],
      { serviceIdentities: [{ serviceName: 'test--jeff2--engineering', datacenters: [] }] },
    ],
    [
      'node, in the datacenter of the login',
      [{ bindType: 'node', bindName: 'n1' }],
      { nodeIdentities: [{ nodeName: 'n1', datacenter: 'dc7' }] },
    ],
    ['role, by id', [{ bindType: 'role', bindName: 'ops' }], { roles: ['id-default-ops'] }],
    [
      'policy, by id',
      [{ bindType: 'policy', bindName: '${value.name}' }],
      { policies: ['id-default-jeff2'] },
    ],
    [
      'templated policy with its variable',
      [
        {
          bindType: 'templated-policy',
          bindName: 'builtin/service',
          bindVars: { name: '${value.name}' },
        },
      ],
      {
        templatedPolicies: [
          {
            templateId: '00000000-0000-0000-0000-000000000003',
            templateName: 'builtin/service',
            variables: { name: 'jeff2' },
            datacenters: [],
          },
        ],
      },
    ],
    [
      'templated policy without variable',
      [{ bindType: 'templated-policy', bindName: 'builtin/dns' }],
      { templatedPolicies: [{ templateName: 'builtin/dns', variables: undefined }] },
    ],
    [
      'a missing role beside a service is skipped',
      [{ bindType: 'role', bindName: 'nobody' }, { bindName: 'web' }],
      { roles: [], serviceIdentities: [{ serviceName: 'web' }] },
    ],
    [
      'rules that do not match or do not compile bind nothing',
      [
        { selector: 'value.name == other', bindName: 'a' },
        { selector: 'gone == x', bindName: 'b' },
        { selector: 'value.name == jeff2', bindName: 'c' },
      ],
      { serviceIdentities: [{ serviceName: 'c' }] },
    ],
    [
      'one link and one identity for two rules that say the same',
      [{ bindType: 'role', bindName: 'ops' }, { bindType: 'role', bindName: 'ops' }, {}, {}],
      { roles: ['id-default-ops'], serviceIdentities: [{ serviceName: 'web', datacenters: [] }] },
    ],
  ];
  for (const [name, rules, expected] of table) {
    t.match(computeLogin(login({}, rules)), { ...NOTHING, ...expected }, name);
  }
  t.end();
});

interface Refusal {
  readonly code: string;
  readonly message?: string | RegExp;
}

t.test('login: refuses as prescribed', (t) => {
  const table: readonly (readonly [string, readonly Partial<BindingRule>[], Refusal])[] = [
    ['no rules', [], { code: 'permission-denied', message: 'Permission denied' }],
    ['nothing selected', [{ selector: 'value.name == x' }], { code: 'permission-denied' }],
    [
      'only a missing role',
      [{ bindType: 'role', bindName: 'nobody' }],
      { code: 'permission-denied' },
    ],
    [
      'only a missing policy',
      [{ bindType: 'policy', bindName: 'nobody' }],
      { code: 'permission-denied' },
    ],
    [
      'an unknown attribute, although another rule binds',
      [{}, { bindName: '${value.team}' }],
      {
        code: 'login-refused',
        message: /^error interpreting template: unknown variable "value.team"/,
      },
    ],
    [
      'an invalid computed name',
      [{}, { bindName: '-${value.name}' }],
      { code: 'login-refused', message: 'invalid bind name: "-jeff2"' },
    ],
    [
      'a policy name with a slash',
      [{ bindType: 'policy', bindName: 'builtin/global-read-only' }],
      { code: 'login-refused', message: 'invalid bind name: "builtin/global-read-only"' },
    ],
    [
      'a variable that would leave its quotes',
      [{ bindType: 'templated-policy', bindName: 'builtin/service', bindVars: { name: 'a" {' } }],
      { code: 'login-refused', message: /^invalid bind name: / },
    ],
    [
      'an unselected rule is not computed',
      [{ selector: 'value.name == x', bindName: '${value.team}' }],
      { code: 'permission-denied' },
    ],
  ];
  for (const [name, rules, expected] of table) {
    t.throws(() => computeLogin(login({}, rules)), expected, name);
  }
  t.end();
});

t.test('login: selectors cost so much together and no more', (t) => {
  const attributes = {
    strings: new Map([['value.name', 'jeff2'.padEnd(20_000, 'x')]]),
    lists: new Map(),
  };
  const identity = { ...IDENTITY, selectable: attributes };
  const selector = 'value.name matches `^jeff2(x{300})*$`';
  t.equal(compileSelector(selector, FIELDS).matches(attributes), false);
  const anybody = { bindName: 'web' };
  const refusal = {
    code: 'login-refused',
    message: 'the selectors in the rules of the auth method take too long',
  };

  const one = login({ identity }, [{ selector }, anybody]);
  t.match(computeLogin(one), { serviceIdentities: [{ serviceName: 'web' }] });
  const many = login({ identity }, [{ selector }, { selector }, anybody]);
  t.throws(() => computeLogin(many), refusal, 'in several rules');
  const long = login({ identity }, [{ selector: `${selector} or ${selector}` }, anybody]);
  t.throws(() => computeLogin(long), refusal, 'in one');
  t.match(explainLogin(many).rules, [{ result: 'not-selected' }, { result: 'failed' }, {}]);

  const search = `"${'x'.repeat(8_000)}y" in value.name`;
  const searches = Array.from({ length: 3 }, () => ({ selector: search }));
  t.throws(() => computeLogin(login({ identity }, [...searches, anybody])), refusal, 'searches');

  const groups = Array.from({ length: 30_000 }, (_, place) => `g${place % 10}`);
  const member: Attributes = { strings: new Map(), lists: new Map([['list.groups', groups]]) };
  const lookup = Array.from({ length: 250 }, () => 'x in list.groups').join(' or ');
  const lookups = (count: number) =>
    login({ identity: { ...IDENTITY, selectable: member } }, [
      ...Array.from({ length: count }, () => ({ selector: lookup })),
      anybody,
    ]);
  t.match(computeLogin(lookups(10)).serviceIdentities, [{ serviceName: 'web' }]);
  t.throws(() => computeLogin(lookups(12)), refusal, 'items of lists');

  const namespaceRules = [selector, selector].map((text) => ({
    selector: text,
    bindNamespace: 'eng',
  }));
  const method = { name: 'm', namespace: ns('default'), namespaceRules };
  const placed = login({ identity, method }, [anybody]);
  t.throws(() => computeLogin(placed), refusal, 'in namespace rules');
  t.match(explainLogin(placed).outcome, { kind: 'refused', code: 'login-refused' });

  const short = login(
    {},
    Array.from({ length: 200 }, () => ({ ...anybody, selector })),
  );
  t.match(computeLogin(short).serviceIdentities, [{ serviceName: 'web' }], 'a short text');

  const equals = Array.from({ length: 200 }, (_, place) => `value.name == "${place}"`).join(' or ');
  const withRules = (count: number) =>
    login({}, [...Array.from({ length: count }, () => ({ selector: equals })), anybody]);
  t.match(computeLogin(withRules(100)).serviceIdentities, [{ serviceName: 'web' }]);
  t.throws(() => computeLogin(withRules(1_000)), refusal, 'reading them counts, too');
  t.end();
});

t.test('login: a name is filled in so far and no further', (t) => {
  const named = (length: number) => {
    const strings = new Map([['value.name', 'N'.repeat(length)]]);
    return { ...IDENTITY, selectable: { ...JEFF, strings }, interpolatable: strings };
  };
  const often = '${value.name}'.repeat(300);
  const rules = Array.from({ length: 50 }, () => ({ bindName: often }));
  const tooLong = {
    code: 'login-refused',
    message: 'error interpreting template: it becomes longer than 4096 characters',
  };
  const long = login({ identity: named(48_000) }, rules);
  t.throws(() => computeLogin(long), tooLong);
  const length = JSON.stringify(explainLogin(long)).length;
  t.ok(length < 100_000, `of 50 names of 14 million characters ${length} are held`);
  const variable = { bindName: 'builtin/service', bindVars: { name: often } };
  const inVariable = login({ identity: named(14) }, [
    { ...variable, bindType: 'templated-policy' },
  ]);
  t.throws(() => computeLogin(inVariable), tooLong, 'of a variable, too');
  const namespaceRules = [{ selector: '', bindNamespace: often }];
  const method = { name: 'm', namespace: ns('default'), namespaceRules };
  const placed = login({ identity: named(14), method }, [{ bindName: 'web' }]);
  t.throws(() => computeLogin(placed), tooLong, 'and of a namespace');
  const full = login({ identity: named(13) }, rules);
  const message = /^invalid bind name: "nnnn/;
  t.throws(() => computeLogin(full), { code: 'login-refused', message });
  t.end();
});

t.test('login: the first matching namespace rule names the namespace', (t) => {
  const inNamespace = (namespaceRules: AuthMethod['namespaceRules'], namespace = 'default') =>
    login({ method: { name: 'm', namespace: ns(namespace), namespaceRules } }, [
      { bindType: 'role', bindName: 'ops' },
    ]);
  const eng = { selector: 'value.name == jeff2', bindNamespace: 'eng' };
  const computed = { selector: '', bindNamespace: '${value.primary_org}' };
  t.match(computeLogin(inNamespace([eng, computed])), { namespace: 'eng', roles: ['id-eng-ops'] });
  t.match(
    computeLogin(inNamespace([{ ...eng, selector: 'value.name == x' }, computed])),
    { namespace: 'engineering', roles: ['id-default-ops'] },
    'links fall back to default',
  );
  t.match(computeLogin(inNamespace([{ ...eng, selector: 'gone == 1' }])), { namespace: 'default' });
  t.throws(() => computeLogin(inNamespace([{ selector: '', bindNamespace: 'nowhere' }])), {
    code: 'login-refused',
    message: 'namespace "nowhere" does not exist',
  });
  t.throws(() => computeLogin(inNamespace([{ selector: '', bindNamespace: 'A B' }])), {
    message: 'invalid bind namespace: "A B"',
  });
  t.equal(
    computeLogin(inNamespace([computed], 'eng')).namespace,
    'eng',
    'a method outside default has no say',
  );
  t.end();
});

t.test('login: the description holds the meta with sorted keys', (t) => {
  const describe = (fields: Partial<LoginInput>) => computeLogin(login(fields, [{}])).description;
  t.equal(describe({ meta: { foo: 'bar' } }), 'token created via login: {"foo":"bar"}');
  t.equal(
    describe({ meta: { b: '1', 10: 'x', a: '"' } }),
    'token created via login: {"10":"x","a":"\\"","b":"1"}',
  );
  t.equal(describe({ flow: 'oidc' }), 'token created via OIDC login');
  t.end();
});

t.test('dry run: tells each rule and agrees with the login', (t) => {
  const rules: readonly Partial<BindingRule>[] = [
    { bindName: 'web' },
    { selector: 'value.name == x' },
    { selector: 'gone == x' },
    { bindType: 'role', bindName: 'nobody' },
  ];
  const explained = explainLogin(login({}, rules));
  t.same(
    explained.rules.map(({ result }) => result),
    ['bound', 'not-selected', 'selector-invalid', 'target-missing'],
  );
  t.same(explained.outcome, { kind: 'granted', grant: computeLogin(login({}, rules)) });
  t.equal(explained.strings['value.name'], 'jeff2');
  const failed = explainLogin(login({}, [{}, { bindName: '${value.team}' }]));
  t.match(failed.rules, [{ result: 'bound' }, { result: 'failed', reason: /unknown variable/ }]);
  t.match(failed.outcome, { kind: 'refused', code: 'login-refused' });
  const lost = {
    name: 'm',
    namespace: ns('default'),
    namespaceRules: [{ selector: '', bindNamespace: 'nowhere' }],
  };
  t.match(explainLogin(login({ method: lost }, [{}])).outcome, { kind: 'refused' });
  t.end();
});

t.test('xml: reads elements and refuses all else', (t) => {
  const root = parseXml(
    '<?xml version="1.0"?>\n<a:R xmlns="u"><B> x&amp;&#x41; </B><C/><D>1</D><D>2</D></a:R>\n',
  );
  t.equal(root.name, 'R');
  t.equal(textAt(root, 'B'), 'x&A');
  t.equal(textAt(root, 'C'), '');
  t.equal(textAt(root, 'D'), undefined, 'an element that stands twice is no answer');
  for (const text of [
    ...[
      '',
      'x',
      '{"a":"<R/>"}',
      '<R>',
      '</R>',
      '<R></S>',
      '<R/><R/>',
      'x<R/>',
      '<R/>x',
      '<R>&foo;</R>',
    ],
    ...[
      '<!DOCTYPE a [<!ENTITY x "y">]><R>&x;</R>',
      '<R><!-- c --></R>',
      '<R><![CDATA[x]]></R>',
      '<R>&amp</R>',
    ],
    ...['<a>'.repeat(100) + '</a>'.repeat(100), `<R>${'<b/>'.repeat(10_001)}</R>`],
  ]) {
    t.throws(() => parseXml(text), /expected XML/, text.slice(0, 30));
  }
  t.end();
});
