// Tests of policies, roles and namespaces: what a write of each may ask for, and in which words it is refused.

import t from 'tap';
import type { PolicyDraft, RoleDraft } from '../../src/acl/checks/drafts.ts';
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
  DEFAULT_NAMESPACE,
  GLOBAL_MANAGEMENT_ID,
  GLOBAL_READ_ONLY_ID,
  type NamespaceName,
  type PolicyId,
  type RoleId,
} from '../../src/acl/ids.ts';
import type { Policy } from '../../src/acl/policy.ts';
import { objectMissing, tokenExpired, unknownPolicyIdOfRole } from '../../src/acl/refusals.ts';
import type { Role } from '../../src/acl/role.ts';
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
