// Tests of policies, roles, auth methods, binding rules and namespaces: what a write of each may ask
// for, and in which words it is refused.

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
import type {
  AuthMethodDraft,
  BindingRuleDraft,
  PolicyDraft,
  RoleDraft,
} from '../../src/acl/checks/drafts.ts';
import {
  buildNamespace,
  requireDeletableNamespace,
} from '../../src/acl/checks/namespace-checks.ts';
import {
  applyPolicyUpdate,
  buildNewPolicy,
  type NewPolicyGiven,
  type PolicyUpdateGiven,
  requireDeletablePolicy,
} from '../../src/acl/checks/policy-checks.ts';
import {
  applyRoleUpdate,
  buildNewRole,
  type RoleUpdateGiven,
} from '../../src/acl/checks/role-checks.ts';
import { invalid } from '../../src/acl/error.ts';
import {
  type BindingRuleId,
  DEFAULT_NAMESPACE,
  GLOBAL_MANAGEMENT_ID,
  GLOBAL_READ_ONLY_ID,
  type NamespaceName,
  type PolicyId,
  type RoleId,
} from '../../src/acl/ids.ts';
import type { Policy } from '../../src/acl/policy.ts';
import {
  objectMissing,
  tokenExpired,
  unknownAuthMethod,
  unknownPolicyIdOfRole,
} from '../../src/acl/refusals.ts';
import type { Role } from '../../src/acl/role.ts';
import { HOUR_NS, MINUTE_NS, SECOND_NS } from '../../src/acl/values/duration.ts';
import { TTL_LIMITS } from '../support/state-and-service/fixtures.ts';
import { refusalOf } from './refusal-of.ts';

const ID = '11111111-1111-1111-1111-11111111111a';
const OTHER_ID = '22222222-2222-2222-2222-222222222222';
const TEAM = 'team' as NamespaceName;

const policyLookups = {
  policyNamed: (name: string) =>
    name.toLowerCase() === 'taken' ? { id: OTHER_ID as PolicyId } : undefined,
  requireRules: (rules: string, namespace: NamespaceName) => {
    if (rules === 'bad') throw invalid(`bad rules in ${namespace}`);
  },
};

const createPolicy = (draft: PolicyDraft, changes: Partial<NewPolicyGiven> = {}) =>
  buildNewPolicy(draft, {
    ...policyLookups,
    freshId: ID as PolicyId,
    namespace: DEFAULT_NAMESPACE,
    ...changes,
  });

const updatePolicy = (
  existing: Policy | undefined,
  draft: PolicyDraft,
  changes: Partial<PolicyUpdateGiven> = {},
) =>
  applyPolicyUpdate(existing, draft, { ...policyLookups, pathId: existing?.id ?? ID, ...changes });

function storedPolicy(changes: Partial<Policy> = {}): Policy {
  const policy = createPolicy({ name: 'stored', rules: 'r', datacenters: ['dc1'] });
  return { ...policy, createIndex: 3, modifyIndex: 4, ...changes };
}

t.test('policy create: a policy of what was asked, or a refusal', async (t) => {
  t.match(createPolicy({ name: 'web' }), {
    id: ID,
    namespace: 'default',
    name: 'web',
    description: '',
    rules: '',
    datacenters: [],
    hash: /^[A-Za-z0-9+/]{43}=$/,
  });
  const cases: readonly (readonly [PolicyDraft, string])[] = [
    [{ name: 'web', id: ID }, 'id-mismatch: Cannot specify the ID when creating a new policy'],
    [{ name: 'web', id: '' }, 'accepted'],
    [{}, 'invalid: Invalid Policy: no Name is set'],
    [{ name: 'Taken' }, 'duplicate: Invalid Policy: A Policy with Name "Taken" already exists'],
    [{ name: 'web', rules: 'bad' }, 'invalid: bad rules in default'],
  ];
  for (const [draft, expected] of cases) {
    t.equal(
      refusalOf(() => createPolicy(draft)),
      expected,
    );
  }
});

t.test('policy update: a full replacement, or a refusal', async (t) => {
  const stored = storedPolicy({ namespace: TEAM });
  t.match(updatePolicy(stored, { name: 'STORED' }), {
    id: ID,
    namespace: 'team',
    name: 'STORED',
    description: '',
    rules: '',
    datacenters: [],
  });
  const cases: readonly (readonly [Policy | undefined, PolicyDraft, string])[] = [
    [stored, { name: 'x', id: OTHER_ID }, 'id-mismatch: Policy ID in URL and payload do not match'],
    [
      stored,
      { name: 'x', id: ID.toUpperCase() },
      'id-mismatch: Policy ID in URL and payload do not match',
    ],
    [undefined, { name: 'x' }, `update-target-missing: cannot find policy ${ID}`],
    [stored, {}, 'invalid: Invalid Policy: no Name is set'],
    [
      stored,
      { name: 'taken' },
      'duplicate: Invalid Policy: A policy with name "taken" already exists',
    ],
    [stored, { name: 'x', rules: 'bad' }, 'invalid: bad rules in team'],
  ];
  for (const [existing, draft, expected] of cases) {
    t.equal(
      refusalOf(() => updatePolicy(existing, draft)),
      expected,
    );
  }
  t.equal(
    refusalOf(() => updatePolicy(undefined, { name: 'x' }, { pathId: 'x' })),
    'invalid: Policy ID invalid UUID',
  );
  const itself = { policyNamed: () => ({ id: ID as PolicyId }) };
  t.equal(
    refusalOf(() => updatePolicy(stored, { name: 'Stored' }, itself)),
    'accepted',
  );
});

t.test('policy update: of a built-in only name and description change', async (t) => {
  const management = storedPolicy({ id: GLOBAL_MANAGEMENT_ID, name: 'global-management' });
  const readOnly = storedPolicy({ id: GLOBAL_READ_ONLY_ID, name: 'builtin/global-read-only' });
  const cases: readonly (readonly [Policy, PolicyDraft, string])[] = [
    [management, { name: 'boss', description: 'd', rules: 'r' }, 'accepted'],
    [management, { name: 'boss' }, 'accepted'],
    [readOnly, { name: 'builtin/global-read-only', description: 'd' }, 'accepted'],
    [readOnly, { name: 'reader' }, 'accepted'],
    [
      readOnly,
      { name: 'builtin/reader' },
      "invalid: Invalid Policy: invalid Name. Names cannot be prefixed with '/' or 'builtin/'",
    ],
    [
      management,
      { name: 'global-management', rules: '' },
      'invalid: Changing the Rules for the builtin global-management policy is not permitted',
    ],
    [
      management,
      { name: 'boss', datacenters: [] },
      'invalid: Changing the Datacenters of the global-management policy is not permitted',
    ],
  ];
  for (const [existing, draft, expected] of cases) {
    t.equal(
      refusalOf(() => updatePolicy(existing, draft)),
      expected,
    );
  }
  t.equal(updatePolicy(management, { name: 'boss' }).rules, 'r', 'absent rules stay');
  t.equal(
    refusalOf(() => requireDeletablePolicy(management)),
    'invalid: Delete operation not permitted on the builtin global-management policy',
  );
  t.equal(
    refusalOf(() => requireDeletablePolicy(storedPolicy())),
    'accepted',
  );
});

const P1 = '33333333-3333-3333-3333-333333333333' as PolicyId;
const roleLookups = {
  roleNamed: (name: string) =>
    name.toLowerCase() === 'taken' ? { id: OTHER_ID as RoleId } : undefined,
  resolvePolicies: () => [P1, P1],
};
const createRole = (draft: RoleDraft) =>
  buildNewRole(draft, { ...roleLookups, freshId: ID as RoleId, namespace: TEAM });

t.test('role create and update: a role of what was asked, or a refusal', async (t) => {
  const created = createRole({
    name: 'ops',
    serviceIdentities: [{ serviceName: 'web', datacenters: ['dc1'] }],
  });
  t.match(created, {
    id: ID,
    namespace: 'team',
    name: 'ops',
    description: '',
    policies: [P1],
    serviceIdentities: [{ serviceName: 'web', datacenters: ['dc1'] }],
    nodeIdentities: [],
    templatedPolicies: [],
    hash: /^[A-Za-z0-9+/]{43}=$/,
  });
  const stored: Role = { ...created, createIndex: 1, modifyIndex: 2 };
  const update = (
    existing: Role | undefined,
    draft: RoleDraft,
    changes: Partial<RoleUpdateGiven> = {},
  ) => applyRoleUpdate(existing, draft, { ...roleLookups, pathId: ID, ...changes });
  const replaced = update(stored, {
    name: 'ops',
    nodeIdentities: [{ nodeName: 'n', datacenter: 'a' }],
  });
  t.same(replaced.serviceIdentities, []);
  t.equal(replaced.namespace, 'team');
  t.not(replaced.hash, stored.hash);

  const cases: readonly (readonly [string, () => unknown, string])[] = [
    [
      'id',
      () => createRole({ name: 'x', id: ID }),
      'id-mismatch: Role ID in URL and payload do not match',
    ],
    ['no name', () => createRole({}), 'invalid: Invalid Role: no Name is set'],
    [
      'taken',
      () => createRole({ name: 'Taken' }),
      'duplicate: Invalid Role: A Role with Name "Taken" already exists',
    ],
    [
      'other id',
      () => update(stored, { id: OTHER_ID }),
      'id-mismatch: Role ID in URL and payload do not match',
    ],
    [
      'bad id',
      () => update(stored, { name: 'x' }, { pathId: 'x' }),
      'invalid: Role ID invalid UUID',
    ],
    [
      'missing',
      () => update(undefined, { name: 'x' }),
      `update-target-missing: cannot find role ${ID}`,
    ],
    ['update without name', () => update(stored, {}), 'invalid: Invalid Role: no Name is set'],
    [
      'update taken',
      () => update(stored, { name: 'taken' }),
      'duplicate: Invalid Role: A role with name "taken" already exists',
    ],
    [
      'own name in another letter case',
      () => update(stored, { name: 'OPS' }, { roleNamed: () => ({ id: ID as RoleId }) }),
      'accepted',
    ],
  ];
  for (const [title, work, expected] of cases) t.equal(refusalOf(work), expected, title);
  t.equal(
    unknownPolicyIdOfRole(P1).message,
    `Failed to apply role upsert request: No such policy with ID: ${P1}`,
  );
});

t.test('role: identities are refused in the words for roles', async (t) => {
  const cases: readonly (readonly [RoleDraft, string])[] = [
    [
      { serviceIdentities: [{}] },
      'Service identity is missing the service name field on this role',
    ],
    [
      { serviceIdentities: [{ serviceName: 'X' }] },
      `Service identity "X" has an invalid name. Only lowercase alphanumeric characters, '-' and '_' are allowed`,
    ],
    [{ nodeIdentities: [{}] }, 'Node identity is missing the node name field on this role'],
    [
      { nodeIdentities: [{ nodeName: 'n' }] },
      'Node identity is missing the datacenter field on this role',
    ],
    [
      { templatedPolicies: [{}] },
      'templated policy is missing the template name field on this role',
    ],
    [
      { templatedPolicies: [{ templateName: 'x' }] },
      'templated policy with an invalid templated name: x for this role',
    ],
    [
      { templatedPolicies: [{ templateName: 'builtin/api-gateway', variables: { name: '' } }] },
      'encountered role with invalid templated policy: 1 error occurred:\n\t* name is required\n\n',
    ],
  ];
  for (const [draft, expected] of cases) {
    t.equal(
      refusalOf(() => createRole({ name: 'r', ...draft })),
      `invalid: ${expected}`,
    );
  }
});

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

t.test('namespace: a label with defaults, or a refusal', async (t) => {
  const given = {
    pathName: undefined,
    resolveLinks: () => ({ policies: [P1, P1], roles: [OTHER_ID as RoleId] }),
  };
  t.same(buildNamespace({ name: 'team', meta: { owner: 'x' } }, given), {
    name: 'team',
    description: '',
    policyDefaults: [P1],
    roleDefaults: [OTHER_ID],
    meta: { owner: 'x' },
  });
  t.equal(buildNamespace({}, { ...given, pathName: 'team' }).name, 'team');
  t.equal(
    refusalOf(() => buildNamespace({ name: 'a' }, { ...given, pathName: 'b' })),
    'id-mismatch: Namespace Name in URL and payload do not match',
  );
  t.equal(
    refusalOf(() => buildNamespace({}, given)),
    'invalid: Invalid Namespace: no Name is set',
  );
  t.equal(
    refusalOf(() => requireDeletableNamespace('default')),
    'invalid: Delete operation not permitted on the default namespace',
  );
  t.equal(
    refusalOf(() => requireDeletableNamespace('team')),
    'accepted',
  );
});

t.test('reads: what is missing is named', async (t) => {
  t.equal(
    objectMissing('auth method', undefined).message,
    'Requested auth method does not exist: ACL not found',
  );
  t.equal(
    objectMissing('role', 'team').message,
    'Requested role not found in namespace team: ACL not found',
  );
  t.equal(tokenExpired('read').message, 'token has expired: ACL not found');
});
