// What each command refuses and with which words, and that a refusal changes nothing at all.

import t from 'tap';
import {
  ANONYMOUS_ACCESSOR,
  DEFAULT_NAMESPACE,
  GLOBAL_MANAGEMENT_ID,
  type SecretId,
} from '../../../src/acl/ids.ts';
import type { Instant } from '../../../src/acl/values/instant.ts';
import type { Change, Command } from '../../../src/state/commands/commands.ts';
import {
  aBindingRule,
  aCommand,
  accessorNumbered,
  aNamespace,
  aNamespaceName,
  anAuthMethod,
  aPolicy,
  aRole,
  aToken,
  policyIdNumbered,
  roleIdNumbered,
  ruleIdNumbered,
  secretNumbered,
} from '../../support/state-and-service/fixtures.ts';
import { startedMachine } from '../../support/state-and-service/machine-harness.ts';
import {
  create,
  createDrawn,
  furnished,
  LATER,
  MISSING,
  methodSet,
  namespaceSet,
  policySet,
  roleSet,
  ruleSet,
  TEAM,
  update,
} from './cases.ts';

interface Refusal {
  readonly change: Change;
  readonly says: string;
  readonly given?: Partial<Command>;
}

const REFUSALS: Readonly<Record<string, Refusal>> = {
  'token in a missing namespace': {
    change: create(aToken(9, { namespace: aNamespaceName('gone') })),
    says: 'invalid: Namespace "gone" does not exist',
  },
  'token whose accessor id is taken': {
    change: create(aToken(9, { accessorId: accessorNumbered(1) })),
    says: 'duplicate: Invalid Token: AccessorID is already in use',
  },
  'token whose accessor id is taken in other letters': {
    change: create(aToken(9, { accessorId: aToken(1).accessorId.toUpperCase() as never })),
    says: 'duplicate: Invalid Token: AccessorID is already in use',
  },
  'token whose accessor id is a secret': {
    change: create(aToken(9, { accessorId: secretNumbered(1) as string as never })),
    says: 'duplicate: Invalid Token: AccessorID is already in use',
  },
  'token whose accessor id is a secret in other letters': {
    change: create(aToken(9, { accessorId: secretNumbered(1).toUpperCase() as never })),
    says: 'duplicate: Invalid Token: AccessorID is already in use',
  },
  'token whose secret is taken': {
    change: create(aToken(9, { secretId: secretNumbered(1) })),
    says: 'duplicate: Invalid Token: SecretID is already in use',
  },
  'token whose secret is an accessor id': {
    change: create(aToken(9, { secretId: accessorNumbered(1).toUpperCase() as SecretId })),
    says: 'duplicate: Invalid Token: SecretID is already in use',
  },
  'token whose secret is its own accessor id': {
    change: create(aToken(9, { secretId: accessorNumbered(9) as string as SecretId })),
    says: 'duplicate: Invalid Token: SecretID is already in use',
  },
  'token whose accessor id is no UUID': {
    change: create(aToken(9, { accessorId: 'no-uuid' as never })),
    says: 'invalid: Invalid Token: AccessorID - not a valid UUID',
  },
  'drawn token that is there already': {
    change: createDrawn(aToken(1)),
    says: 'duplicate: Invalid Token: AccessorID is already in use',
  },
  'drawn token in a missing namespace': {
    change: createDrawn(aToken(9, { namespace: aNamespaceName('gone') })),
    says: 'invalid: Namespace "gone" does not exist',
  },
  'drawn token with an unknown policy': {
    change: createDrawn(aToken(9, { policies: [MISSING] })),
    says: `invalid: No such ACL policy with ID "${MISSING}"`,
  },
  'token with an unknown policy': {
    change: create(aToken(9, { policies: [MISSING] })),
    says: `invalid: No such ACL policy with ID "${MISSING}"`,
  },
  "token with another namespace's policy": {
    change: create(aToken(9, { policies: [policyIdNumbered(2)] })),
    says: `invalid: No such ACL policy with ID "${policyIdNumbered(2)}"`,
  },
  'token with an unknown role': {
    change: create(aToken(9, { roles: [roleIdNumbered(99)] })),
    says: `invalid: No such ACL role with ID "${roleIdNumbered(99)}"`,
  },
  'token of a method that is gone': {
    change: create(
      aToken(9, { authMethod: { name: 'nope', namespace: DEFAULT_NAMESPACE, createIndex: 3 } }),
    ),
    says: 'invalid: Failed to apply token write request: No such auth method with Name: nope',
  },
  'token of an earlier method of the name': {
    change: create(
      aToken(9, { authMethod: { name: 'login', namespace: DEFAULT_NAMESPACE, createIndex: 1 } }),
    ),
    says: 'invalid: Failed to apply token write request: No such auth method with Name: login',
  },
  'update of a missing token': {
    change: update(aToken(9)),
    says: `update-target-missing: Cannot find token "${accessorNumbered(9)}"`,
  },
  'update of an expired token': {
    change: update(aToken(4, { expirationTime: LATER })),
    given: { timeMs: Date.parse(LATER) + 1 },
    says: `update-target-missing: Cannot find token "${accessorNumbered(4)}"`,
  },
  "update of another namespace's token": {
    change: update(aToken(2)),
    says: `update-target-missing: Cannot find token "${accessorNumbered(2)}"`,
  },
  'update of a secret': {
    change: update(aToken(1, { secretId: secretNumbered(9) })),
    says: "invalid: Changing a token's SecretID is not permitted",
  },
  'update of locality': {
    change: update(aToken(3)),
    says: `invalid: Cannot toggle local mode of ${accessorNumbered(3)}`,
  },
  'update of the auth method': {
    change: update(aToken(5)),
    says: `invalid: Cannot change AuthMethod of ${accessorNumbered(5)}`,
  },
  'update of which method of the name': {
    change: update(
      aToken(5, { authMethod: { name: 'login', namespace: DEFAULT_NAMESPACE, createIndex: 1 } }),
    ),
    says: `invalid: Cannot change AuthMethod of ${accessorNumbered(5)}`,
  },
  'update that gives an expiration time': {
    change: update(aToken(1, { expirationTime: LATER })),
    says: `invalid: Cannot change expiration time of ${accessorNumbered(1)}`,
  },
  'update that takes the expiration time': {
    change: update(aToken(4)),
    says: `invalid: Cannot change expiration time of ${accessorNumbered(4)}`,
  },
  'update of the expiration time': {
    change: update(aToken(4, { expirationTime: '2026-01-01T02:00:00Z' as Instant })),
    says: `invalid: Cannot change expiration time of ${accessorNumbered(4)}`,
  },
  'update with cas of another index': {
    change: update(aToken(1)),
    given: { cas: 3 },
    says: 'cas-mismatch: The object is not as cas=3 expects: its ModifyIndex is 12',
  },
  'create with cas of an index': {
    change: create(aToken(9)),
    given: { cas: 3 },
    says: 'cas-mismatch: The object is not as cas=3 expects: it does not exist',
  },
  'delete with cas 0 of what is there': {
    change: { type: 'token.delete', accessorId: accessorNumbered(1) },
    given: { cas: 0 },
    says: 'cas-mismatch: The object is not as cas=0 expects: its ModifyIndex is 12',
  },
  'delete of the anonymous token': {
    change: { type: 'token.delete', accessorId: ANONYMOUS_ACCESSOR },
    says: 'invalid: Delete operation not permitted on the anonymous token',
  },
  'policy of a taken name, in any letter case': {
    change: policySet('create', aPolicy(9, { name: 'oPS' })),
    says: 'duplicate: Invalid Policy: A Policy with Name "oPS" already exists',
  },
  'policy renamed to a taken name': {
    change: policySet('update', aPolicy(1, { name: 'GLOBAL-management' })),
    says: 'duplicate: Invalid Policy: A policy with name "GLOBAL-management" already exists',
  },
  'policy of a taken id': {
    change: policySet('create', aPolicy(1)),
    says: 'duplicate: Invalid Policy: ID is already in use',
  },
  'policy whose id is no UUID': {
    change: policySet('create', aPolicy(9, { id: 'no-uuid' as never })),
    says: 'invalid: Policy ID invalid UUID',
  },
  'update of a missing policy': {
    change: policySet('update', aPolicy(9)),
    says: `update-target-missing: cannot find policy ${policyIdNumbered(9)}`,
  },
  "update of another namespace's policy": {
    change: policySet('update', aPolicy(2)),
    says: `update-target-missing: cannot find policy ${policyIdNumbered(2)}`,
  },
  'update of built-in rules': {
    change: policySet(
      'update',
      aPolicy(1, { id: GLOBAL_MANAGEMENT_ID, name: 'global-management', rules: 'acl = "read"' }),
    ),
    says: 'invalid: Changing the Rules for the builtin global-management policy is not permitted',
  },
  'update of built-in datacenters': {
    change: policySet(
      'update',
      aPolicy(1, {
        id: GLOBAL_MANAGEMENT_ID,
        name: 'global-management',
        rules: 'acl = "write"',
        datacenters: ['dc2'],
      }),
    ),
    says: 'invalid: Changing the Datacenters of the global-management policy is not permitted',
  },
  'delete of a built-in policy': {
    change: { type: 'policy.delete', id: GLOBAL_MANAGEMENT_ID },
    says: 'invalid: Delete operation not permitted on the builtin global-management policy',
  },
  'role of a taken name': {
    change: roleSet('create', aRole(9, { name: 'ROLE-1' })),
    says: 'duplicate: Invalid Role: A Role with Name "ROLE-1" already exists',
  },
  'role with an unknown policy': {
    change: roleSet('create', aRole(9, { policies: [MISSING] })),
    says: `invalid: Failed to apply role upsert request: No such policy with ID: ${MISSING}`,
  },
  'role changed to an unknown policy': {
    change: roleSet('update', aRole(1, { policies: [MISSING] })),
    says: `invalid: Failed to apply role upsert request: No such policy with ID: ${MISSING}`,
  },
  'token with a role of another namespace': {
    change: create(aToken(9, { roles: [roleIdNumbered(2)] })),
    says: `invalid: No such ACL role with ID "${roleIdNumbered(2)}"`,
  },
  "update of another namespace's rule": {
    change: ruleSet('update', aBindingRule(1, { namespace: TEAM })),
    says: `update-target-missing: cannot find binding rule ${ruleIdNumbered(1)}`,
  },
  'update of a missing role': {
    change: roleSet('update', aRole(9)),
    says: `update-target-missing: cannot find role ${roleIdNumbered(9)}`,
  },
  'method in a missing namespace': {
    change: methodSet(anAuthMethod('login', { namespace: aNamespaceName('gone') })),
    says: 'invalid: Namespace "gone" does not exist',
  },
  'method of another type': {
    change: methodSet(anAuthMethod('LOGIN', { type: 'oidc' })),
    says: 'invalid: the Type field of an Auth Method is immutable',
  },
  'method with cas 0 of what is there': {
    change: methodSet(anAuthMethod('login')),
    given: { cas: 0 },
    says: 'cas-mismatch: The object is not as cas=0 expects: its ModifyIndex is 9',
  },
  'rule of an unknown method': {
    change: ruleSet('create', aBindingRule(9, { authMethod: 'nope' })),
    says: 'invalid: cannot find auth method with name "nope"',
  },
  'rule moved to another method': {
    change: ruleSet('update', aBindingRule(1, { authMethod: 'kept' })),
    says: 'invalid: the AuthMethod field of an Binding Rule is immutable',
  },
  'update of a missing rule': {
    change: ruleSet('update', aBindingRule(9)),
    says: `update-target-missing: cannot find binding rule ${ruleIdNumbered(9)}`,
  },
  'namespace that exists': {
    change: namespaceSet('create', aNamespace('team')),
    says: 'duplicate: Namespace "team" already exists',
  },
  'update of a missing namespace': {
    change: namespaceSet('update', aNamespace('gone')),
    says: 'update-target-missing: cannot find namespace gone',
  },
  'namespace with unknown defaults': {
    change: namespaceSet('either', aNamespace('team', { policyDefaults: [policyIdNumbered(3)] })),
    says: `invalid: No such ACL policy with ID "${policyIdNumbered(3)}"`,
  },
  'delete of a namespace that holds something': {
    change: { type: 'namespace.delete', name: TEAM },
    says: 'invalid: Namespace "team" is not empty: it holds 1 token, 1 policy, 1 role',
  },
  'delete of the default namespace': {
    change: { type: 'namespace.delete', name: DEFAULT_NAMESPACE },
    says: 'invalid: Delete operation not permitted on the default namespace',
  },
};

t.test(
  'apply: refuses with these words, and a refusal changes nothing but the applied entry',
  async (test) => {
    const harness = await furnished();
    const { machine, kv } = harness;
    const stateRows = (): readonly string[] => kv.dump().filter((row) => !row.startsWith('01 '));
    const before = stateRows();
    const facts = (): unknown => [machine.index(), machine.position(), machine.digests()];
    const factsBefore = facts();
    for (const [what, { change, says, given }] of Object.entries(REFUSALS)) {
      const appliedIndex = machine.appliedIndex();
      test.equal(await harness.tell(change, given), says, what);
      test.equal(machine.appliedIndex(), appliedIndex + 1, `${what}: the log moves on`);
      if (stateRows().join() !== before.join()) test.fail(`${what}: changed rows`);
    }
    test.same(facts(), factsBefore);
  },
);

t.test(
  'apply: the same refusals hold within one batch, against what the batch made',
  async (test) => {
    const harness = await startedMachine();
    const outcomes = await harness.run(
      aCommand(policySet('create', aPolicy(1))),
      aCommand(policySet('create', aPolicy(2, { name: 'POLICY-1' }))),
      aCommand(create(aToken(1, { policies: [policyIdNumbered(1)] }))),
      aCommand(create(aToken(2, { secretId: secretNumbered(1) }))),
      aCommand({ type: 'policy.delete', id: policyIdNumbered(1) }),
      aCommand(policySet('update', aPolicy(1, { description: 'lost against the delete' }))),
      aCommand(create(aToken(3, { policies: [policyIdNumbered(1)] }))),
      aCommand(policySet('create', aPolicy(2, { name: 'POLICY-1' }))),
    );
    test.same(
      outcomes.map((outcome) => (outcome.kind === 'applied' ? 'ok' : outcome.code)),
      ['ok', 'duplicate', 'ok', 'duplicate', 'ok', 'update-target-missing', 'invalid', 'ok'],
    );
    test.equal(harness.machine.policy(policyIdNumbered(1)), undefined, 'nothing is re-created');
  },
);
