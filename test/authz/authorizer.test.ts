// What policies allow and what they do not: the decisions that deployed servers were seen to make, one
// table a subject.

import t from 'tap';
import { AclError } from '../../src/acl/error.ts';
import type { NamespaceName } from '../../src/acl/ids.ts';
import { AUTHORIZATIONS_MAX, parseAuthorizations } from '../../src/authz/parse-authorization.ts';
import { validInDatacenter } from '../../src/authz/policy-source.ts';
import { compileGroup } from '../../src/authz/rule-table.ts';
import { parseRules } from '../../src/rules/parse-rules.ts';
import { check } from './cases.ts';

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
      { policies: ['acl = "deny"', 'acl = "write"'], deny: ['acl:read'] },
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
      policies: [
        'service "x" { policy = "write" intentions = "write" }',
        'service "x" { policy = "write" intentions = "deny" }',
      ],
      allow: ['service:write x'],
      deny: ['intention:read x'],
    },
    {
      policies: [
        'service "x" { policy = "write" intentions = "deny" }',
        'service "x" { policy = "read" intentions = "write" }',
      ],
      allow: ['service:write x'],
      deny: ['intention:read x'],
    },
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
      policies: ['key_prefix "" { policy = "write" } key "ba" { policy = "deny" }'],
      allow: ['key:write-prefix a'],
      deny: ['key:write-prefix b'],
    },
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

t.test('authorizer: long policies decide together, as short ones do', async (t) => {
  const filler = Array.from({ length: 65 }, (_, place) => `key "z${place}" { policy = "read" } `);
  const long = (rules: string) => `${filler.join('')}${rules}`;
  const one = long(
    `key "a" { policy = "write" } key_prefix "b/c" { policy = "write" }
    key_prefix "d/" { policy = "write" } key "d/x" { policy = "write" }`,
  );
  const other = long(
    `key "a" { policy = "deny" } key_prefix "b" { policy = "deny" }
    key "d/x" { policy = "read" } key "d/y" { policy = "deny" }`,
  );
  const short = ['p', 'q'].map((name) => `key "${name}" { policy = "write" }`);
  const decisions = {
    allow: ['key:write b/c/d', 'key:write d/x'],
    deny: ['key:read a', 'key:read b/d', 'key:write-prefix d/'],
  };
  check(t, [
    { policies: [one, other], ...decisions },
    { policies: [other, one], ...decisions },
    { policies: [...short, one, other], ...decisions },
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
