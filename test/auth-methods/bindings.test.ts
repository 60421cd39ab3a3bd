// biome-ignore-all lint/suspicious/noTemplateCurlyInString: that is how templates look.
// What logins make of binding rules: what they grant and refuse, and what that may cost.

import t from 'tap';
import type { AuthMethod } from '../../src/acl/auth-method.ts';
import type { BindingRule } from '../../src/acl/binding-rule.ts';
import { AclError } from '../../src/acl/error.ts';
import type { BindingRuleId, NamespaceName, PolicyId, RoleId } from '../../src/acl/ids.ts';
import { compileSelector } from '../../src/auth-methods/binding/selector.ts';
import type { Attributes, Identity } from '../../src/auth-methods/identity.ts';
import { computeLogin, type LoginInput } from '../../src/auth-methods/login.ts';
import { FIELDS, JEFF, NAMES } from './attributes.ts';

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

const IDENTITY: Identity = { selectable: JEFF, interpolatable: JEFF.strings };

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
      {
        templatedPolicies: [
          {
            templateId: '00000000-0000-0000-0000-000000000005',
            templateName: 'builtin/dns',
            variables: undefined,
            datacenters: [],
          },
        ],
      },
    ],
    [
      'a missing role beside a service is skipped',
      [{ bindType: 'role', bindName: 'nobody' }, { bindName: 'web' }],
      { serviceIdentities: [{ serviceName: 'web', datacenters: [] }] },
    ],
    [
      'rules that do not match or do not compile bind nothing',
      [
        { selector: 'value.name == other', bindName: 'a' },
        { selector: 'gone == x', bindName: 'b' },
        { selector: 'value.name == jeff2', bindName: 'c' },
      ],
      { serviceIdentities: [{ serviceName: 'c', datacenters: [] }] },
    ],
    [
      'one link and one identity for two rules that say the same',
      [{ bindType: 'role', bindName: 'ops' }, { bindType: 'role', bindName: 'ops' }, {}, {}],
      { roles: ['id-default-ops'], serviceIdentities: [{ serviceName: 'web', datacenters: [] }] },
    ],
    [
      'one policy for two rules that come to the same',
      [
        { bindType: 'policy', bindName: 'jeff2' },
        { bindType: 'policy', bindName: '${value.name}' },
      ],
      { policies: ['id-default-jeff2'] },
    ],
  ];
  for (const [name, rules, expected] of table) {
    t.strictSame(computeLogin(login({}, rules)), { ...NOTHING, ...expected }, name);
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

  const short = (count: number) =>
    login(
      {},
      Array.from({ length: count }, () => ({ ...anybody, selector })),
    );
  t.match(computeLogin(short(200)).serviceIdentities, [{ serviceName: 'web' }], 'a short text');
  t.throws(() => computeLogin(short(400)), refusal, 'compiling them counts, too');

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

t.test('login: what the method maps an identity to is where its token is, or it has none', (t) => {
  const mapped = (mappedNamespace: string, namespace = 'default') =>
    login(
      {
        method: { name: 'm', namespace: ns(namespace), namespaceRules: [] },
        identity: { ...IDENTITY, mappedNamespace },
      },
      [{ bindType: 'role', bindName: 'ops' }],
    );
  t.match(computeLogin(mapped('eng')), { namespace: 'eng', roles: ['id-eng-ops'] });
  t.match(
    computeLogin(mapped('engineering')),
    { namespace: 'engineering', roles: ['id-default-ops'] },
    'links fall back to default',
  );
  t.match(computeLogin(mapped('default')), { namespace: 'default', roles: ['id-default-ops'] });
  const refusals: readonly (readonly [string, string])[] = [
    ['nowhere', 'namespace "nowhere" does not exist'],
    ['a.b', 'invalid bind namespace: "a.b"'],
    ['a'.repeat(64), `invalid bind namespace: "${'a'.repeat(64)}"`],
  ];
  for (const [name, message] of refusals) {
    t.throws(() => computeLogin(mapped(name)), { code: 'login-refused', message });
  }
  t.equal(computeLogin(mapped('default', 'eng')).namespace, 'eng', 'not out of a namespace');
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

t.test(
  'login: a rule that selects nobody, does not compile or has no target binds nothing',
  (t) => {
    const rules: readonly Partial<BindingRule>[] = [
      { bindName: 'web' },
      { selector: 'value.name == x', bindName: 'other' },
      { selector: 'gone == x', bindName: 'other' },
      { bindType: 'role', bindName: 'nobody' },
    ];
    const grant = computeLogin(login({}, rules));
    const serviceIdentities = [{ serviceName: 'web', datacenters: [] }];
    t.strictSame(grant, { ...NOTHING, serviceIdentities });
    t.throws(() => computeLogin(login({}, rules.slice(1))), { code: 'permission-denied' });
    t.end();
  },
);

t.test('login: a rule is read when it is its turn, and none behind one that refuses', (t) => {
  let read = 0;
  function* counted(rules: Iterable<BindingRule>): Generator<BindingRule> {
    for (const each of rules) {
      read += 1;
      yield each;
    }
  }
  const refused = (rules: readonly Partial<BindingRule>[], fields: Partial<LoginInput> = {}) => {
    const input = login(fields, [...rules, {}, {}]);
    read = 0;
    t.throws(() => computeLogin({ ...input, rules: counted(input.rules) }), {
      code: 'login-refused',
    });
    return read;
  };
  t.equal(refused([{}, { bindName: '${value.team}' }]), 2, 'a name that cannot be filled in');
  const equals = Array.from({ length: 200 }, (_, place) => `value.name == "${place}"`).join(' or ');
  const costly = Array.from({ length: 1_000 }, () => ({ selector: equals }));
  t.ok(refused(costly) < 900, 'selectors that cost too much');
  const { lookups } = login({}, []);
  const roleId = (): never => {
    throw new AclError('login-refused', 'too much');
  };
  const role = { bindType: 'role', bindName: 'ops' } as const;
  t.equal(refused([role], { lookups: { ...lookups, roleId } }), 1, 'what leads to too much');
  t.end();
});
