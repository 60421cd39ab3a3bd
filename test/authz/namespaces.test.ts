// What policies reach from their own namespace: their own alone, but for blocks of policies in `default`, the defaults
// of namespaces, and the built-in ones.

import t from 'tap';
import type { NamespaceName } from '../../src/acl/ids.ts';
import { RuleLayer } from '../../src/authz/rule-layer.ts';
import { GLOBAL_MANAGEMENT_RULES, GLOBAL_READ_ONLY_RULES } from '../../src/rules/built-in-rules.ts';
import { check } from './cases.ts';
import { sourceOf } from './tokens.ts';

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
    {
      policies: ['namespace_prefix "" { policy = "write" } namespace_prefix "te" { acl = "read" }'],
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

t.test(
  'namespaces that no rule tells apart share what is merged: anybody may name as many',
  (t) => {
    const inDefault =
      'acl = "read" namespace_prefix "te" { acl = "read" } namespace "b" { acl = "read" }';
    const layer = new RuleLayer([
      sourceOf({ rules: inDefault }),
      sourceOf({ rules: 'acl = "write"', namespace: 'team' }),
    ]);
    const scopeOf = (name: string) => layer.scope(name as NamespaceName);
    t.equal(scopeOf('tea'), scopeOf('tel'), 'below one prefix');
    t.equal(scopeOf('x'), scopeOf('y'), 'nowhere');
    const apart = ['default', 'team', 'tea', 'b', 'x'].map(scopeOf);
    t.equal(new Set(apart).size, apart.length);
    t.end();
  },
);
