// The objects that the service makes itself: the two policies, the anonymous token, the first
// management tokens and the namespace that always exists. Their ids and texts are fixed; their rule
// texts, moments and random ids are given. Making and refreshing them is the leader's duty.

import { policyHash, withTokenHash } from '../hash.ts';
import {
  type AccessorId,
  ANONYMOUS_ACCESSOR,
  ANONYMOUS_SECRET,
  DEFAULT_NAMESPACE,
  GLOBAL_MANAGEMENT_ID,
  GLOBAL_READ_ONLY_ID,
  type PolicyId,
  type SecretId,
} from '../ids.ts';
import type { Namespace } from '../namespace.ts';
import type { Policy } from '../policy.ts';
import type { Unstamped } from '../stamped.ts';
import type { Token } from '../token.ts';
import { instantOfMs } from '../values/instant.ts';
import { GLOBAL_READ_ONLY_NAME } from '../values/names.ts';

const GLOBAL_MANAGEMENT_NAME = 'global-management';

/** Whether the policy is one of the service's own: its rules and datacenters do not change. */
export function isBuiltinPolicy(id: string): boolean {
  return id === GLOBAL_MANAGEMENT_ID || id === GLOBAL_READ_ONLY_ID;
}

/** The built-in policies, from their rule texts. */
export function builtinPolicies(rules: {
  readonly globalManagement: string;
  readonly globalReadOnly: string;
}): readonly Unstamped<Policy>[] {
  return [
    builtinPolicy(GLOBAL_MANAGEMENT_ID, {
      name: GLOBAL_MANAGEMENT_NAME,
      description: 'A built-in policy that grants read and write access to all Consul features',
      rules: rules.globalManagement,
    }),
    builtinPolicy(GLOBAL_READ_ONLY_ID, {
      name: GLOBAL_READ_ONLY_NAME,
      description: 'A built-in policy that grants read-only access to all Consul features',
      rules: rules.globalReadOnly,
    }),
  ];
}

function builtinPolicy(
  id: PolicyId,
  texts: Pick<Policy, 'name' | 'description' | 'rules'>,
): Unstamped<Policy> {
  const content = { ...texts, datacenters: [] };
  return { id, namespace: DEFAULT_NAMESPACE, ...content, hash: policyHash(content) };
}

/** The token of every request that brings none. */
export function anonymousToken(nowMs: number): Unstamped<Token> {
  return builtinToken({
    accessorId: ANONYMOUS_ACCESSOR,
    secretId: ANONYMOUS_SECRET,
    description: 'Anonymous Token',
    policies: [],
    nowMs,
  });
}

interface ManagementTokenGiven {
  readonly accessorId: AccessorId;
  readonly secretId: SecretId;
  readonly nowMs: number;
}

/** The token that a bootstrap gives to the first caller. */
export function bootstrapToken(given: ManagementTokenGiven): Unstamped<Token> {
  const description = 'Bootstrap Token (Global Management)';
  return builtinToken({ ...given, description, policies: [GLOBAL_MANAGEMENT_ID] });
}

/** The token whose secret the configuration gives (`requireConfiguredSecret`). */
export function initialManagementToken(given: ManagementTokenGiven): Unstamped<Token> {
  const description = 'Initial Management Token';
  return builtinToken({ ...given, description, policies: [GLOBAL_MANAGEMENT_ID] });
}

function builtinToken(
  given: ManagementTokenGiven & Pick<Token, 'description' | 'policies'>,
): Unstamped<Token> {
  return withTokenHash({
    accessorId: given.accessorId,
    secretId: given.secretId,
    namespace: DEFAULT_NAMESPACE,
    description: given.description,
    policies: given.policies,
    roles: [],
    serviceIdentities: [],
    nodeIdentities: [],
    templatedPolicies: [],
    local: false,
    authMethod: undefined,
    createTime: instantOfMs(given.nowMs),
    expirationTime: undefined,
  });
}

/** The namespace of everything that names no other. It cannot be deleted. */
export function defaultNamespace(): Unstamped<Namespace> {
  return {
    name: DEFAULT_NAMESPACE,
    description: 'The namespace that always exists',
    policyDefaults: [],
    roleDefaults: [],
    meta: {},
  };
}
