// Explanations: they name the rule behind a decision, and the way to it.

import t from 'tap';
import { DEFAULT_NAMESPACE, type PolicyId, type RoleId } from '../../src/acl/ids.ts';
import { compileAuthorizer } from '../../src/authz/authorizer.ts';
import type { PolicySource } from '../../src/authz/policy-source.ts';
import { parseRules } from '../../src/rules/parse-rules.ts';
import type { NamedRule } from '../../src/rules/rule-set.ts';
import { ask } from './cases.ts';
import { authorizerOf } from './tokens.ts';

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
    isImplied: false,
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
