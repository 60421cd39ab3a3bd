// Tests of auth methods and binding rules: what a write of each may ask for, and in which words it is refused.

import t from 'tap';
import type { AuthMethod } from '../../src/acl/auth-method.ts';
import type { BindingRule } from '../../src/acl/binding-rule.ts';
import {
  type AuthMethodGiven,
  authMethodNameOf,
  buildAuthMethod,
} from '../../src/acl/checks/auth-method-checks.ts';
import {
  applyBindingRuleUpdate,
  type BindingTarget,
  buildNewBindingRule,
  requireBoundName,
} from '../../src/acl/checks/binding-rule-checks.ts';
import type { AuthMethodDraft, BindingRuleDraft } from '../../src/acl/checks/drafts.ts';
import { invalid } from '../../src/acl/error.ts';
import { type BindingRuleId, DEFAULT_NAMESPACE, type NamespaceName } from '../../src/acl/ids.ts';
import { unknownAuthMethod } from '../../src/acl/refusals.ts';
import { HOUR_NS, MINUTE_NS, SECOND_NS } from '../../src/acl/values/duration.ts';
import { TTL_LIMITS } from '../support/state-and-service/fixtures.ts';
import { refusalOf } from './refusal-of.ts';

const ID = '11111111-1111-1111-1111-11111111111a';
const OTHER_ID = '22222222-2222-2222-2222-222222222222';
const TEAM = 'team' as NamespaceName;

const methodGiven: AuthMethodGiven = {
  pathName: undefined,
  namespace: DEFAULT_NAMESPACE,
  limits: TTL_LIMITS,
};
const setMethod = (
  existing: AuthMethod | undefined,
  draft: AuthMethodDraft,
  changes: Partial<AuthMethodGiven> = {},
) => buildAuthMethod(existing, draft, { ...methodGiven, ...changes });

t.test('auth method: a write is an upsert that fills in the type', async (t) => {
  const created = setMethod(undefined, {
    name: 'Kube',
    type: 'jwt',
    config: { BoundIssuer: 'i' },
    maxTokenTtlNs: MINUTE_NS,
    namespaceRules: [{ bindNamespace: 'team' }],
  });
  t.same(created, {
    name: 'Kube',
    namespace: 'default',
    type: 'jwt',
    displayName: '',
    description: '',
    maxTokenTtlNs: MINUTE_NS,
    tokenLocality: '',
    config: { BoundIssuer: 'i' },
    namespaceRules: [{ selector: '', bindNamespace: 'team' }],
  });
  const stored = { ...created, createIndex: 1, modifyIndex: 1 };
  const replaced = setMethod(stored, { tokenLocality: 'global' }, { pathName: 'kube' });
  t.match(replaced, { name: 'Kube', type: 'jwt', tokenLocality: 'global', maxTokenTtlNs: 0n });
  t.same(replaced.config, {});
  t.equal(authMethodNameOf({ name: 'a' }, 'b'), 'b');
  t.equal(authMethodNameOf({ name: 'a' }, ''), 'a');
  t.equal(setMethod(stored, { name: 'kube' }).name, 'Kube', 'the name keeps its letter case');
});

t.test('auth method: refusals', async (t) => {
  const stored = {
    ...setMethod(undefined, { name: 'm', type: 'jwt' }),
    createIndex: 1,
    modifyIndex: 1,
  };
  const typeList =
    'invalid: Invalid Auth Method: Type should be one of: [aws-iam jwt kubernetes oidc]';
  const jwt = { name: 'm', type: 'jwt' };
  const cases: readonly (readonly [string, () => unknown, string])[] = [
    [
      'other name',
      () => setMethod(undefined, { ...jwt, name: 'test' }, { pathName: 'not-test' }),
      'id-mismatch: AuthMethod Name in URL and payload do not match',
    ],
    [
      'no name',
      () => setMethod(undefined, { type: 'jwt' }),
      'invalid: Invalid Auth Method: no Name is set',
    ],
    ['no type', () => setMethod(undefined, { name: 'm' }), typeList],
    ['unknown type', () => setMethod(undefined, { name: 'm', type: 'JWT' }), typeList],
    ['same type', () => setMethod(stored, jwt), 'accepted'],
    [
      'other type',
      () => setMethod(stored, { name: 'm', type: 'kubernetes' }),
      'invalid: the Type field of an Auth Method is immutable',
    ],
    [
      'other unknown type',
      () => setMethod(stored, { name: 'm', type: 'x' }),
      'invalid: the Type field of an Auth Method is immutable',
    ],
    [
      'ttl too long',
      () => setMethod(undefined, { ...jwt, maxTokenTtlNs: 24n * HOUR_NS + 1n }),
      'invalid: MaxTokenTTL 24h0m0.000000001s cannot be more than 24h0m0s',
    ],
    [
      'ttl longest',
      () => setMethod(undefined, { ...jwt, maxTokenTtlNs: 24n * HOUR_NS }),
      'accepted',
    ],
    [
      'ttl too short',
      () => setMethod(undefined, { ...jwt, maxTokenTtlNs: 59n * SECOND_NS }),
      'invalid: MaxTokenTTL 59s cannot be less than 1m0s',
    ],
    [
      'ttl negative',
      () => setMethod(undefined, { ...jwt, maxTokenTtlNs: -SECOND_NS }),
      'invalid: MaxTokenTTL -1s cannot be less than 1m0s',
    ],
    [
      'oidc without ttl',
      () => setMethod(undefined, { name: 'm', type: 'oidc' }),
      'invalid: Invalid Auth Method: MaxTokenTTL must be set for type "oidc"',
    ],
    [
      'oidc',
      () => setMethod(undefined, { name: 'm', type: 'oidc', maxTokenTtlNs: MINUTE_NS }),
      'accepted',
    ],
    [
      'locality',
      () => setMethod(undefined, { ...jwt, tokenLocality: 'Global' }),
      "invalid: Invalid Auth Method: TokenLocality should be one of 'local' or 'global'",
    ],
    ['locality local', () => setMethod(undefined, { ...jwt, tokenLocality: 'local' }), 'accepted'],
    [
      'namespace rules elsewhere',
      () =>
        setMethod(
          undefined,
          { ...jwt, namespaceRules: [{ bindNamespace: 'a' }] },
          { namespace: TEAM },
        ),
      'invalid: Invalid Auth Method: NamespaceRules can only be used in the default namespace',
    ],
    [
      'no namespace rules elsewhere',
      () => setMethod(undefined, { ...jwt, namespaceRules: [] }, { namespace: TEAM }),
      'accepted',
    ],
    [
      'namespace rule without namespace',
      () =>
        setMethod(undefined, {
          ...jwt,
          namespaceRules: [{ bindNamespace: 'a' }, { selector: 's' }],
        }),
      'invalid: Invalid Auth Method: NamespaceRules[1] has no BindNamespace set',
    ],
  ];
  for (const [title, work, expected] of cases) t.equal(refusalOf(work), expected, title);
});

const target: BindingTarget = {
  name: 'Kube',
  requireSelector: (selector) => {
    if (selector === 'bad') throw invalid('unknown selector "bad"');
    if (selector === 'fault') throw new TypeError('a fault of the program');
  },
  sampleOf: (template) => {
    if (template.includes(`\${unknown}`)) throw invalid('unknown variable "unknown"');
    return template.replaceAll(`\${name}`, 'sample');
  },
};
const ruleLookups = {
  requireMethod: (name: string) => {
    if (name.toLowerCase() !== 'kube') throw unknownAuthMethod(name);
    return target;
  },
};
const SERVICE_RULE: BindingRuleDraft = {
  authMethod: 'kube',
  bindType: 'service',
  bindName: `web-\${name}`,
};
const createRule = (draft: BindingRuleDraft) =>
  buildNewBindingRule(draft, { ...ruleLookups, freshId: ID as BindingRuleId, namespace: TEAM });

t.test('binding rule create: a rule of what was asked, or a refusal', async (t) => {
  t.same(createRule({ ...SERVICE_RULE, selector: 'ok' }), {
    id: ID,
    namespace: 'team',
    description: '',
    authMethod: 'Kube',
    selector: 'ok',
    bindType: 'service',
    bindName: `web-\${name}`,
    bindVars: undefined,
  });
  const badName = 'invalid: Invalid Binding Rule: invalid BindName or BindVars';
  const templated = { ...SERVICE_RULE, bindType: 'templated-policy', bindName: 'builtin/service' };
  const cases: readonly (readonly [string, BindingRuleDraft, string])[] = [
    [
      'id',
      { ...SERVICE_RULE, id: ID },
      'id-mismatch: BindingRule ID in URL and payload do not match',
    ],
    [
      'no method',
      { ...SERVICE_RULE, authMethod: '' },
      'invalid: Invalid Binding Rule: no AuthMethod is set',
    ],
    [
      'unknown method',
      { ...SERVICE_RULE, authMethod: 'x' },
      'invalid: cannot find auth method with name "x"',
    ],
    [
      'selector',
      { ...SERVICE_RULE, selector: 'bad' },
      'invalid: invalid Binding Rule: Selector is invalid: unknown selector "bad"',
    ],
    [
      'description',
      { ...SERVICE_RULE, description: 'x'.repeat(4097) },
      'invalid: Invalid Binding Rule: Description may have at most 4096 characters',
    ],
    ['long description', { ...SERVICE_RULE, description: 'x'.repeat(4096) }, 'accepted'],
    [
      'no type',
      { ...SERVICE_RULE, bindType: '' },
      'invalid: Invalid Binding Rule: no BindType is set',
    ],
    [
      'no name',
      { ...SERVICE_RULE, bindName: '' },
      'invalid: Invalid Binding Rule: no BindName is set',
    ],
    [
      'variables',
      { ...SERVICE_RULE, bindVars: { name: 'x' } },
      'invalid: invalid Binding Rule: BindVars cannot be set when bind type is not templated-policy.',
    ],
    ['no variables', { ...SERVICE_RULE, bindVars: {} }, 'accepted'],
    [
      'unknown type',
      { ...SERVICE_RULE, bindType: 'x' },
      `${badName}: invalid Binding Rule: unknown BindType "x"`,
    ],
    [
      'unknown attribute',
      { ...SERVICE_RULE, bindName: `\${unknown}` },
      `${badName}: unknown variable "unknown"`,
    ],
    [
      'service name',
      { ...SERVICE_RULE, bindName: 'WEB' },
      `${badName}: failed to validate bindType "service": invalid bind name: "WEB"`,
    ],
    [
      'node name',
      { ...SERVICE_RULE, bindType: 'node', bindName: '-n' },
      `${badName}: failed to validate bindType "node": invalid bind name: "-n"`,
    ],
    [
      'role name',
      { ...SERVICE_RULE, bindType: 'role', bindName: 'a b' },
      `${badName}: failed to validate bindType "role": invalid bind name: "a b"`,
    ],
    ['role', { ...SERVICE_RULE, bindType: 'role', bindName: `Ops_\${name}` }, 'accepted'],
    [
      'policy name',
      { ...SERVICE_RULE, bindType: 'policy', bindName: 'builtin/global-read-only' },
      `${badName}: failed to validate bindType "policy": invalid bind name: "builtin/global-read-only"`,
    ],
    ['template', { ...templated, bindVars: { name: `\${name}` } }, 'accepted'],
    [
      'unknown template',
      { ...templated, bindName: 'x' },
      `${badName}: failed to validate bindType "templated-policy": invalid bind name: "x"`,
    ],
    [
      'template variable',
      { ...templated, bindVars: { name: 'A' } },
      `${badName}: failed to validate bindType "templated-policy": service identity "A" has an invalid name. ` +
        "Only lowercase alphanumeric characters, '-' and '_' are allowed",
    ],
    [
      'template without variables',
      templated,
      `${badName}: failed to validate bindType "templated-policy": ` +
        '1 error occurred:\n\t* Invalid type. Expected: object, given: null\n\n',
    ],
  ];
  for (const [title, draft, expected] of cases) {
    t.equal(
      refusalOf(() => createRule(draft)),
      expected,
      title,
    );
  }
  t.throws(() => createRule({ ...SERVICE_RULE, selector: 'fault' }), TypeError);
  t.equal(
    refusalOf(() => requireBoundName('node', 'N', undefined)),
    'invalid: invalid bind name: "N"',
    'the text of a login',
  );
});

t.test('binding rule update: the auth method stays, the rest is replaced', async (t) => {
  const stored: BindingRule = {
    ...createRule({ ...SERVICE_RULE, description: 'd', selector: 's' }),
    createIndex: 1,
    modifyIndex: 1,
  };
  const update = (existing: BindingRule | undefined, draft: BindingRuleDraft, pathId = ID) =>
    applyBindingRuleUpdate(existing, draft, { ...ruleLookups, pathId });
  t.match(update(stored, { bindType: 'role', bindName: 'r' }), {
    id: ID,
    namespace: 'team',
    authMethod: 'Kube',
    description: '',
    selector: '',
    bindType: 'role',
    bindName: 'r',
  });
  const cases: readonly (readonly [string, () => unknown, string])[] = [
    ['same method', () => update(stored, { ...SERVICE_RULE, authMethod: 'KUBE' }), 'accepted'],
    [
      'other method',
      () => update(stored, { ...SERVICE_RULE, authMethod: 'x' }),
      'invalid: the AuthMethod field of an Binding Rule is immutable',
    ],
    [
      'other id',
      () => update(stored, { ...SERVICE_RULE, id: OTHER_ID }),
      'id-mismatch: BindingRule ID in URL and payload do not match',
    ],
    ['bad id', () => update(stored, SERVICE_RULE, 'x'), 'invalid: Binding Rule ID invalid UUID'],
    [
      'missing',
      () => update(undefined, SERVICE_RULE),
      `update-target-missing: cannot find binding rule ${ID}`,
    ],
  ];
  for (const [title, work, expected] of cases) t.equal(refusalOf(work), expected, title);
});
