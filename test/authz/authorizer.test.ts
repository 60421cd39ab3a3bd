// What policies allow and what they do not: the decisions that deployed servers were seen to make,
// one table a subject, and explanations that name the rule behind a decision.

import t from 'tap';
import { AclError } from '../../src/acl/error.ts';
import {
  DEFAULT_NAMESPACE,
  type NamespaceName,
  type PolicyId,
  type RoleId,
} from '../../src/acl/ids.ts';
import type { AccessQuery } from '../../src/authz/access-query.ts';
import { compileAuthorizer } from '../../src/authz/authorizer.ts';
import { AUTHORIZATIONS_MAX, parseAuthorizations } from '../../src/authz/parse-authorization.ts';
import { type PolicySource, validInDatacenter } from '../../src/authz/policy-source.ts';
import { compileGroup } from '../../src/authz/rule-table.ts';
import { GLOBAL_MANAGEMENT_RULES, GLOBAL_READ_ONLY_RULES } from '../../src/rules/built-in-rules.ts';
import { parseRules } from '../../src/rules/parse-rules.ts';
import type { NamedRule } from '../../src/rules/rule-set.ts';
import { authorizerOf, type TestPolicy } from './tokens.ts';

/** `resource:access segment @namespace`; the last two may be missing. */
function ask(text: string): AccessQuery {
  const [, resource, access, segment, namespace] =
    /^([a-z]+):([a-z-]+)(?: ([^@ ]+))?(?: @(.+))?$/.exec(text) ?? [];
  return {
    resource,
    access,
    segment: segment ?? '',
    namespace: (namespace ?? 'default') as NamespaceName,
  } as AccessQuery;
}

interface Case {
  readonly policies?: readonly (string | TestPolicy)[];
  readonly namespaceDefaults?: readonly (string | TestPolicy)[];
  readonly defaultPolicy?: 'allow' | 'deny';
  readonly allow?: readonly string[];
  readonly deny?: readonly string[];
}

function check(
  t: { equal(found: unknown, wanted: unknown, about: string): unknown },
  cases: readonly Case[],
): void {
  for (const { allow = [], deny = [], ...token } of cases) {
    const authorizer = authorizerOf(token);
    const about = JSON.stringify(token);
    for (const query of allow) t.equal(authorizer.decide(ask(query)), 'allow', `${query} ${about}`);
    for (const query of deny) t.equal(authorizer.decide(ask(query)), 'deny', `${query} ${about}`);
  }
}

t.test('authorizer: a level grants what it says', async (t) => {
  check(t, [
    { policies: ['acl = "read"'], allow: ['acl:read'], deny: ['acl:write', 'snapshot:read'] },
    {
      policies: ['acl = "write"'],
      allow: ['acl:read', 'acl:write', 'snapshot:read', 'snapshot:write'],
    },
    { policies: ['acl = "deny"'], deny: ['acl:read', 'acl:write', 'snapshot:read'] },
    {
      policies: ['key "k" { policy = "list" }'],
      allow: ['key:read k', 'key:list k'],
      deny: ['key:write k'],
    },
    {
      policies: ['key "k" { policy = "read" }'],
      allow: ['key:read k'],
      deny: ['key:list k', 'key:write k', 'key:read kk', 'key:read K'],
    },
    {
      policies: ['key "k" { policy = "write" }'],
      allow: ['key:read k', 'key:list k', 'key:write k'],
    },
    ...['agent', 'event', 'node', 'query', 'service', 'session'].map((name) => ({
      policies: [`${name} "x" { policy = "read" } ${name}_prefix "y" { policy = "write" }`],
      allow: [`${name}:read x`, `${name}:write y`, `${name}:write yy`],
      deny: [`${name}:write x`, `${name}:read xx`, `${name}:read z`],
    })),
  ]);
});

t.test('authorizer: the closest rule decides, whichever way it goes', async (t) => {
  check(t, [
    {
      policies: ['key "a" { policy = "deny" } key_prefix "" { policy = "write" }'],
      allow: ['key:write ab', 'key:write b'],
      deny: ['key:read a'],
    },
    {
      policies: ['key "a" { policy = "read" } key_prefix "a" { policy = "deny" }'],
      allow: ['key:read a'],
      deny: ['key:read ab', 'key:write a'],
    },
    {
      policies: ['key_prefix "" { policy = "write" } key_prefix "foo/" { policy = "read" }'],
      allow: ['key:write foo', 'key:read foo/bar'],
      deny: ['key:write foo/bar', 'key:write foo/'],
    },
    {
      policies: [
        'key_prefix "a" { policy = "deny" } key_prefix "abc" { policy = "write" } key_prefix "ab" { policy = "read" }',
      ],
      allow: ['key:write abcd', 'key:read abb'],
      deny: ['key:write abb', 'key:read ac', 'key:read b'],
    },
  ]);
});

t.test(
  'authorizer: policies merge by label, deny before write before list before read',
  async (t) => {
    const write = 'key "foo" { policy = "write" }';
    const deny = 'key "foo" { policy = "deny" }';
    check(t, [
      { policies: [write, deny], deny: ['key:read foo', 'key:write foo'] },
      { policies: [deny, write], deny: ['key:read foo', 'key:write foo'] },
      { policies: [`${write} ${deny}`], deny: ['key:read foo'] },
      {
        policies: ['key "foo" { policy = "read" }', 'key "foo" { policy = "list" }'],
        allow: ['key:list foo'],
        deny: ['key:write foo'],
      },
      {
        policies: ['key_prefix "" { policy = "deny" }', write],
        allow: ['key:write foo'],
        deny: ['key:read fo'],
      },
      { policies: ['acl = "write"', 'acl = "deny"'], deny: ['acl:read'] },
      { policies: ['operator = "read"', 'operator = "write"'], allow: ['operator:write'] },
    ]);
  },
);

t.test('authorizer: intentions follow the service rule unless it names them', async (t) => {
  check(t, [
    {
      policies: ['service "x" { policy = "write" }'],
      allow: ['intention:read x'],
      deny: ['intention:write x'],
    },
    {
      policies: ['service "x" { policy = "read" }'],
      allow: ['intention:read x'],
      deny: ['intention:write x'],
    },
    { policies: ['service "x" { policy = "deny" }'], deny: ['intention:read x'] },
    {
      policies: ['service "x" { policy = "deny" intentions = "write" }'],
      allow: ['intention:write x'],
      deny: ['service:read x'],
    },
    {
      policies: ['service "x" { policy = "write" intentions = "deny" }'],
      allow: ['service:write x'],
      deny: ['intention:read x'],
    },
    {
      policies: [
        'service "x" { policy = "write" }',
        'service "x" { policy = "read" intentions = "write" }',
      ],
      allow: ['intention:write x', 'service:write x'],
    },
    {
      policies: ['service "x" { policy = "deny" }', 'service "x" { policy = "write" }'],
      deny: ['intention:read x', 'service:read x'],
    },
    {
      policies: [
        'service "x" { policy = "read" intentions = "deny" } service_prefix "" { policy = "write" intentions = "write" }',
      ],
      allow: ['intention:write y', 'intention:read *'],
      deny: ['intention:read x', 'intention:write *'],
    },
    {
      policies: ['service "x" { policy = "deny" intentions = "read" }'],
      allow: ['intention:read *'],
      deny: ['intention:write *'],
    },
    { policies: ['service "x" { policy = "deny" }'], deny: ['intention:read *'] },
    {
      policies: ['service "x" { policy = "read" intentions = "write" }'],
      deny: ['intention:write *'],
    },
    {
      policies: ['service_prefix "" { policy = "read" intentions = "write" }'],
      allow: ['intention:write *', 'intention:read *'],
    },
    {
      policies: ['service_prefix "a" { policy = "read" intentions = "write" }'],
      defaultPolicy: 'allow',
      allow: ['intention:write *'],
    },
    {
      policies: ['service "a" { policy = "deny" }'],
      defaultPolicy: 'allow',
      allow: ['intention:read *', 'service:write-any'],
    },
    {
      policies: ['service "a" { policy = "deny" }'],
      deny: ['intention:read *', 'service:write-any'],
    },
    {
      policies: ['service_prefix "" { policy = "deny" }'],
      defaultPolicy: 'allow',
      deny: ['intention:read *', 'service:write-any'],
    },
    {
      policies: ['service_prefix "" { policy = "deny" }\nservice "a" { policy = "write" }'],
      allow: ['intention:read *', 'service:write-any'],
    },
    {
      policies: ['service "a" { policy = "read" }'],
      defaultPolicy: 'allow',
      deny: ['intention:write *'],
    },
    {
      policies: ['service "*" { policy = "write" intentions = "write" }'],
      deny: ['intention:write *'],
    },
  ]);
});

t.test('authorizer: mesh and peering fall back on operator', async (t) => {
  check(t, [
    { policies: ['operator = "write"'], allow: ['mesh:write', 'peering:write'] },
    {
      policies: ['operator = "read"'],
      allow: ['mesh:read', 'peering:read'],
      deny: ['mesh:write', 'peering:write'],
    },
    {
      policies: ['operator = "write" mesh = "deny"'],
      allow: ['peering:write', 'operator:write'],
      deny: ['mesh:read'],
    },
    {
      policies: ['operator = "deny" mesh = "write" peering = "read"'],
      allow: ['mesh:write', 'peering:read'],
      deny: ['peering:write', 'operator:read'],
    },
    { policies: ['mesh = "write"'], deny: ['operator:read', 'peering:read'] },
  ]);
});

t.test('authorizer: a recursive write needs every rule below to grant it', async (t) => {
  check(t, [
    {
      policies: ['key_prefix "a" { policy = "write" }'],
      allow: ['key:write-prefix a', 'key:write-prefix ab'],
      deny: ['key:write-prefix b', 'key:write-prefix'],
    },
    {
      policies: ['key_prefix "a" { policy = "write" } key "a/b/c" { policy = "read" }'],
      allow: ['key:write-prefix a/c'],
      deny: ['key:write-prefix a', 'key:write-prefix a/b'],
    },
    {
      policies: ['key_prefix "a" { policy = "write" } key_prefix "a/b" { policy = "list" }'],
      allow: ['key:write-prefix a/c'],
      deny: ['key:write-prefix a', 'key:write-prefix a/b', 'key:write-prefix a/bc'],
    },
    { policies: ['key "a" { policy = "write" }'], deny: ['key:write-prefix a'] },
    {
      policies: ['key "a" { policy = "write" }'],
      defaultPolicy: 'allow',
      allow: ['key:write-prefix a'],
    },
    {
      policies: ['key "ab" { policy = "read" }'],
      defaultPolicy: 'allow',
      deny: ['key:write-prefix a'],
    },
  ]);
});

t.test('authorizer: read-all and write-any look at all rules', async (t) => {
  check(t, [
    {
      policies: ['node_prefix "" { policy = "read" }'],
      allow: ['node:read-all'],
      deny: ['service:read-all'],
    },
    {
      policies: ['node_prefix "" { policy = "read" } node "x" { policy = "deny" }'],
      deny: ['node:read-all'],
    },
    { policies: ['node_prefix "a" { policy = "read" }'], deny: ['node:read-all'] },
    {
      policies: ['service "x" { policy = "write" }'],
      allow: ['service:write-any'],
      deny: ['service:read-all'],
    },
    // Another service is left to the default.
    {
      policies: ['service "x" { policy = "read" }'],
      defaultPolicy: 'allow',
      allow: ['service:write-any'],
    },
    { policies: ['service "x" { policy = "read" }'], deny: ['service:write-any'] },
    {
      policies: ['service "x" { policy = "write" }', 'service "x" { policy = "deny" }'],
      deny: ['service:write-any'],
    },
  ]);
});

t.test('authorizer: the default policy never gives rights over ACLs or snapshots', async (t) => {
  check(t, [
    {
      defaultPolicy: 'allow',
      allow: [
        'key:write k',
        'operator:write',
        'mesh:write',
        'intention:write *',
        'key:write-prefix k',
        'namespace:write team',
      ],
      deny: ['acl:read', 'acl:write', 'snapshot:read', 'acl:read @team'],
    },
    {
      defaultPolicy: 'deny',
      deny: [
        'key:read k',
        'operator:read',
        'acl:read',
        'snapshot:read',
        'intention:read *',
        'node:read-all',
      ],
    },
    {
      policies: ['acl = "read"'],
      defaultPolicy: 'allow',
      allow: ['acl:read'],
      deny: ['acl:write', 'acl:read @team'],
    },
  ]);
});

t.test('authorizer: a policy governs its own namespace only', async (t) => {
  const all =
    'acl = "write" key_prefix "" { policy = "write" } node_prefix "" { policy = "write" } agent_prefix "" { policy = "write" } event_prefix "" { policy = "write" } query_prefix "" { policy = "write" } operator = "write" keyring = "write" mesh = "write" peering = "write" namespace_prefix "" { policy = "write" acl = "write" }';
  const global = [
    'operator:read',
    'keyring:read',
    'mesh:read',
    'peering:read',
    'agent:read x',
    'event:read x',
    'query:read x',
    'namespace:read team',
    'snapshot:read',
  ];
  check(t, [
    {
      policies: [{ rules: all, namespace: 'team' }],
      allow: ['acl:write @team', 'key:write k @team'],
      deny: [
        ...global,
        ...global.map((query) => `${query} @team`),
        'acl:read',
        'key:read k',
        'acl:read @other',
        'key:read k @team2',
      ],
    },
    {
      policies: ['acl = "write" key_prefix "" { policy = "write" }'],
      allow: ['acl:write', 'key:write k'],
      deny: ['acl:read @team', 'key:read k @team'],
    },
    {
      policies: ['operator = "write" agent "x" { policy = "write" }'],
      allow: ['operator:write @team', 'agent:write x @team', 'mesh:write @team'],
    },
  ]);
});

t.test('authorizer: namespace blocks of default policies reach other namespaces', async (t) => {
  const acl = (level: string) => `acl = "${level}"`;
  check(t, [
    {
      policies: [`namespace "team" { ${acl('write')} }`],
      allow: ['acl:write @team'],
      deny: ['acl:read', 'acl:read @team2', 'snapshot:read @team'],
    },
    {
      policies: [`namespace_prefix "te" { ${acl('write')} }`],
      allow: ['acl:write @team', 'acl:write @te'],
      deny: ['acl:read', 'acl:read @t'],
    },
    {
      policies: [`namespace_prefix "" { ${acl('write')} }`],
      allow: ['acl:write @team'],
      deny: ['acl:read'],
    },
    {
      policies: [
        `namespace_prefix "" { ${acl('write')} } namespace_prefix "te" { ${acl('read')} }`,
      ],
      allow: ['acl:write @x', 'acl:read @team'],
      deny: ['acl:write @team'],
    },
    {
      policies: [`namespace_prefix "" { ${acl('write')} }`, 'namespace "team" { }'],
      allow: ['acl:write @x'],
      deny: ['acl:read @team'],
    },
    {
      policies: [`namespace "team" { ${acl('write')} }`, `namespace "team" { ${acl('deny')} }`],
      deny: ['acl:read @team'],
    },
    {
      policies: [acl('write'), `namespace "default" { ${acl('deny')} }`],
      deny: ['acl:read', 'snapshot:read'],
    },
    {
      policies: [
        { rules: 'key_prefix "" { policy = "write" }', namespace: 'team' },
        'namespace_prefix "" { key_prefix "" { policy = "deny" } }',
      ],
      deny: ['key:read k @team'],
    },
    {
      policies: [
        { rules: 'key_prefix "" { policy = "write" }', namespace: 'team' },
        'namespace_prefix "" { key "k" { policy = "deny" } }',
      ],
      allow: ['key:write j @team'],
      deny: ['key:read k @team'],
    },
    {
      policies: [
        'namespace "team" { operator = "write" mesh = "write" agent_prefix "" { policy = "write" } }',
      ],
      deny: ['operator:read @team', 'mesh:read @team', 'agent:read x @team'],
    },
  ]);
});

t.test('authorizer: a namespace object is governed by its block, else by operator', async (t) => {
  check(t, [
    {
      policies: ['namespace "team" { policy = "read" }'],
      allow: ['namespace:read team'],
      deny: ['namespace:write team', 'namespace:read other', 'acl:read @team'],
    },
    { policies: ['operator = "write"'], allow: ['namespace:write team'] },
    {
      policies: ['operator = "write" namespace "team" { policy = "deny" }'],
      allow: ['namespace:write other'],
      deny: ['namespace:read team'],
    },
    {
      policies: [
        'namespace_prefix "" { policy = "write" } namespace_prefix "te" { policy = "read" }',
      ],
      allow: ['namespace:write x'],
      deny: ['namespace:write team'],
    },
    {
      policies: ['namespace "team" { policy = "write" }', 'namespace "team" { policy = "deny" }'],
      deny: ['namespace:read team'],
    },
    {
      policies: ['namespace_prefix "" { policy = "write" } namespace "team" { acl = "read" }'],
      allow: ['namespace:write team'],
    },
  ]);
});

t.test('authorizer: namespace defaults speak only where the own policies are silent', async (t) => {
  check(t, [
    {
      policies: ['key "a" { policy = "deny" }'],
      namespaceDefaults: ['key_prefix "" { policy = "write" }'],
      allow: ['key:write b'],
      deny: ['key:read a'],
    },
    {
      policies: ['key "a" { policy = "write" }'],
      namespaceDefaults: ['key_prefix "" { policy = "deny" } acl = "read"'],
      defaultPolicy: 'allow',
      allow: ['key:write a', 'acl:read'],
      deny: ['key:read b', 'acl:write'],
    },
    {
      policies: ['operator = "write"'],
      namespaceDefaults: ['mesh = "deny"'],
      allow: ['mesh:write'],
    },
    {
      namespaceDefaults: [{ rules: 'acl = "write"', namespace: 'team' }],
      allow: ['acl:write @team'],
      deny: ['acl:write', 'snapshot:read'],
    },
  ]);
});

t.test('authorizer: the built-in policies reach everything everywhere', async (t) => {
  const read = [
    'acl:read',
    'acl:read @team',
    'keyring:read',
    'operator:read',
    'mesh:read',
    'peering:read',
    'agent:read x',
    'event:read x',
    'key:read x',
    'key:read x @team',
    'node:read-all @team',
    'query:read x',
    'service:read-all',
    'intention:read * @team',
    'session:read x @team',
    'namespace:read team',
  ];
  const write = [
    'acl:write',
    'acl:write @team',
    'keyring:write',
    'operator:write',
    'mesh:write',
    'peering:write',
    'agent:write x',
    'event:write x',
    'key:write-prefix',
    'key:list x @team',
    'node:write x @team',
    'query:write x',
    'service:write-any @team',
    'intention:write *',
    'intention:write * @team',
    'session:write x @team',
    'namespace:write team',
    'snapshot:write',
  ];
  check(t, [
    { policies: [GLOBAL_MANAGEMENT_RULES], allow: [...read, ...write] },
    { policies: [GLOBAL_READ_ONLY_RULES], allow: read, deny: write },
  ]);
});

t.test('authorizer: the answers of a deployed server to a mixed token', async (t) => {
  check(t, [
    {
      policies: [
        'acl = "read" operator = "write" service_prefix "" { policy = "read" } node_prefix "" { policy = "read" } key_prefix "/foo" { policy = "write" }',
        'node_prefix "" { policy = "write" }',
      ],
      allow: [
        'acl:read',
        'intention:read foo',
        'node:read foo',
        'node:write foo',
        'operator:read',
        'operator:write',
        'mesh:read',
        'mesh:write',
        'peering:read',
        'peering:write',
        'service:read foo',
        'key:write /foo/x',
      ],
      deny: [
        'acl:write',
        'agent:read foo',
        'agent:write foo',
        'event:read foo',
        'event:write foo',
        'intention:write foo',
        'key:read foo',
        'key:write foo',
        'key:list foo',
        'keyring:read',
        'keyring:write',
        'query:read foo',
        'query:write foo',
        'service:write foo',
        'session:read foo',
        'session:write foo',
      ],
    },
  ]);
});

t.test('compileGroup: a policy that several tokens share is compiled once', async (t) => {
  const rules = parseRules('key "a" { policy = "read" }');
  t.equal(compileGroup(rules), compileGroup(rules));
});

t.test('validInDatacenter: no list means everywhere, names compare exactly', async (t) => {
  t.equal(validInDatacenter([], 'dc1'), true);
  t.equal(validInDatacenter(['dc1', 'dc2'], 'dc2'), true);
  t.equal(validInDatacenter(['dc1'], 'dc2'), false);
  t.equal(validInDatacenter(['DC1'], 'dc1'), false);
});

t.test('explain: names the rule, the policy and the way to it, and what lost', async (t) => {
  const role = { id: 'r1' as RoleId, name: 'readers' };
  const authorizer = authorizerOf({
    policies: [
      { name: 'wide', rules: '\nkey_prefix "" { policy = "write" }' },
      { name: 'write-a', rules: 'key_prefix "a" { policy = "write" }' },
      {
        name: 'no-a',
        rules: '# no\n  key_prefix "a" { policy = "deny" }',
        via: { kind: 'role', role },
      },
    ],
  });
  const policy = (name: string) => ({
    id: `id-of-${name}` as PolicyId,
    name,
    namespace: 'default',
  });
  t.same(authorizer.explain(ask('key:read abc')), {
    decision: 'deny',
    reason: 'rule',
    rule: {
      text: 'key_prefix "a" { policy = "deny" }',
      level: 'deny',
      line: 2,
      column: 3,
      policy: policy('no-a'),
      via: { kind: 'role', role },
    },
    overruled: [
      {
        because: 'precedence',
        witness: {
          text: 'key_prefix "a" { policy = "write" }',
          level: 'write',
          line: 1,
          column: 1,
          policy: policy('write-a'),
          via: { kind: 'direct' },
        },
      },
      {
        because: 'less-specific',
        witness: {
          text: 'key_prefix "" { policy = "write" }',
          level: 'write',
          line: 2,
          column: 1,
          policy: policy('wide'),
          via: { kind: 'direct' },
        },
      },
    ],
    consideredCount: 3,
  });
});

t.test('explain: a policy that says nothing new costs a look', async (t) => {
  let looks = 0;
  const watched = (rule: NamedRule): NamedRule =>
    new Proxy(rule, {
      get: (of, name) => {
        looks += 1;
        return Reflect.get(of, name) as unknown;
      },
    });
  const COUNT = 500;
  const sources = Array.from({ length: COUNT }, (_, place): PolicySource => {
    const rules = `service "a${place}" { policy = "write" } service_prefix "" { policy = "read" }`;
    const { named, ...rest } = parseRules(rules);
    const policy = { id: `${place}` as PolicyId, name: `p${place}`, namespace: DEFAULT_NAMESPACE };
    return { ruleSet: { ...rest, named: named.map(watched) }, policy, via: { kind: 'direct' } };
  });
  const authorizer = compileAuthorizer({
    ...{ sources, namespaceDefaults: [], defaultPolicy: 'deny' },
    homeNamespace: DEFAULT_NAMESPACE,
  });
  authorizer.explain(ask('service:read z'));
  for (const [query, count, decided] of [
    ['service:read y', COUNT, 'p0'],
    ['service:write a7', COUNT + 1, 'p7'],
    ['intention:read *', COUNT, 'p0'],
  ] as const) {
    looks = 0;
    const { consideredCount, rule } = authorizer.explain(ask(query));
    t.same([consideredCount, rule?.policy.name], [count, decided], query);
    // And a few properties of each of those that are shown.
    t.ok(looks < COUNT + 1_000, `${query}: ${looks} looks`);
  }
});

t.test('explain: names the link of the chain that decided', async (t) => {
  const authorizer = authorizerOf({
    policies: [
      'operator = "read"',
      'namespace_prefix "t" { policy = "read" acl = "read" }',
      'service "x" { policy = "write" }',
    ],
    namespaceDefaults: ['key "k" { policy = "read" }'],
    defaultPolicy: 'allow',
  });
  const cases = [
    ['key:read k', 'allow', 'namespace-default', 'key "k" { policy = "read" }'],
    ['key:write k', 'deny', 'namespace-default', 'key "k" { policy = "read" }'],
    ['key:write j', 'allow', 'default-policy', undefined],
    ['acl:read', 'deny', 'default-policy', undefined],
    ['mesh:write', 'deny', 'rule', 'operator = "read"'],
    ['acl:read @team', 'allow', 'rule', 'namespace_prefix "t" { acl = "read" }'],
    ['namespace:write team', 'deny', 'rule', 'namespace_prefix "t" { policy = "read" }'],
    ['intention:write x', 'deny', 'rule', 'service "x" { policy = "write" }'],
    ['intention:write *', 'deny', 'rule', 'service "x" { policy = "write" }'],
  ] as const;
  for (const [query, decision, reason, text] of cases) {
    const explanation = authorizer.explain(ask(query));
    t.same(
      [explanation.decision, explanation.reason, explanation.rule?.text],
      [decision, reason, text],
      query,
    );
  }
});

t.test(
  'parseAuthorization: reads what may be asked and refuses the rest in the known words',
  async (t) => {
    const namespace = 'team' as NamespaceName;
    const item = (resource: string, access: string, segment: string) => ({
      ...{ resource, access, segment },
      namespace: undefined,
    });
    const parse = (resource: string, access: string) =>
      parseAuthorizations([item(resource, access, 's')], () => namespace)[0];
    t.same(parse('key', 'Write-Prefix'), {
      resource: 'key',
      access: 'write-prefix',
      segment: 's',
      namespace,
    });
    t.same(parse('mesh', 'READ'), { resource: 'mesh', access: 'read', segment: 's', namespace });
    const refused = [
      ['x', 'read', 'Invalid ACL resource requested: "x"'],
      ['', 'read', 'Invalid ACL resource requested: ""'],
      ['ACL', 'read', 'Invalid ACL resource requested: "ACL"'],
      ['snapshot', 'read', 'Invalid ACL resource requested: "snapshot"'],
      ['acl', 'list', 'Invalid access level for acl resource: list'],
      ['node', 'read-all', 'Invalid access level for node resource: read-all'],
      ['key', 'Bogus', 'Invalid access level for key resource: Bogus'],
    ] as const;
    for (const [resource, access, message] of refused) {
      t.throws(() => parse(resource, access), new AclError('malformed', message), message);
    }
    const many = (count: number) =>
      parseAuthorizations(Array(count).fill(item('acl', 'read', '')), () => namespace);
    t.equal(many(AUTHORIZATIONS_MAX).length, 64);
    t.throws(
      () => many(AUTHORIZATIONS_MAX + 1),
      new AclError('malformed', 'Refusing to process more than 64 authorizations at once'),
    );
  },
);
