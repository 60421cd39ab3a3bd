// What tests of commands share: how each change is written down, and a state with one of everything.

import { DEFAULT_NAMESPACE } from '../../../src/acl/ids.ts';
import type { AuthMethodOrigin } from '../../../src/acl/token.ts';
import type { Instant } from '../../../src/acl/values/instant.ts';
import type { Change } from '../../../src/state/commands/commands.ts';
import {
  aBindingRule,
  aNamespace,
  aNamespaceName,
  anAuthMethod,
  aPolicy,
  aRole,
  aToken,
  policyIdNumbered,
  roleIdNumbered,
} from '../../support/state-and-service/fixtures.ts';
import {
  type MachineHarness,
  startedMachine,
} from '../../support/state-and-service/machine-harness.ts';

export const create = (token: ReturnType<typeof aToken>): Change => ({
  type: 'token.set',
  presence: 'create',
  token,
});

export const createDrawn = (token: ReturnType<typeof aToken>): Change => ({
  type: 'token.set',
  presence: 'create-drawn',
  token,
});

export const update = (token: ReturnType<typeof aToken>): Change => ({
  type: 'token.set',
  presence: 'update',
  token,
});

export const policySet = (
  presence: 'create' | 'update',
  policy: ReturnType<typeof aPolicy>,
): Change => ({
  type: 'policy.set',
  presence,
  policy,
});

export const roleSet = (presence: 'create' | 'update', role: ReturnType<typeof aRole>): Change => ({
  type: 'role.set',
  presence,
  role,
});

export const methodSet = (method: ReturnType<typeof anAuthMethod>): Change => ({
  type: 'auth-method.set',
  presence: 'either',
  method,
});

export const ruleSet = (
  presence: 'create' | 'update',
  rule: ReturnType<typeof aBindingRule>,
): Change => ({
  type: 'binding-rule.set',
  presence,
  rule,
});

export const namespaceSet = (
  presence: 'create' | 'update' | 'either',
  namespace: ReturnType<typeof aNamespace>,
): Change => ({ type: 'namespace.set', presence, namespace });

export const TEAM = aNamespaceName('team');

export const OTHER = aNamespaceName('other');

export const LATER = '2026-01-01T01:00:00Z' as Instant;

export const MISSING = policyIdNumbered(99);

/**
 * The state that refusals are tried on: policies 1 (default), 2 (team), 3 (other); roles 1 (default)
 * and 2 (team); methods `login` and `Kept` with rule 1; tokens 1 (plain, linked), 2 (team), 3 (local),
 * 4 (expires in an hour), 5 (of method `login`).
 */
export async function furnished(): Promise<MachineHarness> {
  const harness = await startedMachine();
  const setUp: Change[] = [
    namespaceSet('create', aNamespace('team')),
    namespaceSet('create', aNamespace('other')),
    policySet('create', aPolicy(1, { name: 'Ops' })),
    policySet('create', aPolicy(2, { namespace: TEAM })),
    policySet('create', aPolicy(3, { namespace: OTHER })),
    roleSet('create', aRole(1, { policies: [policyIdNumbered(1)] })),
    roleSet('create', aRole(2, { namespace: TEAM })),
    methodSet(anAuthMethod('login')),
    methodSet(anAuthMethod('Kept')),
    ruleSet('create', aBindingRule(1)),
    create(aToken(1, { policies: [policyIdNumbered(1)], roles: [roleIdNumbered(1)] })),
    create(aToken(2, { namespace: TEAM, policies: [policyIdNumbered(2)] })),
    create(aToken(3, { local: true })),
    create(aToken(4, { expirationTime: LATER })),
  ];
  for (const change of setUp) {
    const said = await harness.tell(change);
    if (said !== 'ok') throw new Error(said);
  }
  await harness.one(create(aToken(5, { authMethod: originOf(harness, 'login') })));
  return harness;
}

export function originOf({ machine }: MachineHarness, name: string): AuthMethodOrigin {
  const { createIndex } = machine.authMethod(DEFAULT_NAMESPACE, name)!;
  return { name, namespace: DEFAULT_NAMESPACE, createIndex };
}
