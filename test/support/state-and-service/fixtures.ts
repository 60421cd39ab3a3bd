// Objects of the domain with every field filled in, so that a test names only what matters to it.

import type { AuthMethod } from '../../../src/acl/auth-method.ts';
import type { BindingRule } from '../../../src/acl/binding-rule.ts';
import type { TtlLimits } from '../../../src/acl/checks/token-expiry.ts';
import {
  type AccessorId,
  type BindingRuleId,
  DEFAULT_NAMESPACE,
  type NamespaceName,
  type PolicyId,
  type RoleId,
  type SecretId,
} from '../../../src/acl/ids.ts';
import type { Namespace } from '../../../src/acl/namespace.ts';
import type { Policy } from '../../../src/acl/policy.ts';
import type { Role } from '../../../src/acl/role.ts';
import type { Unstamped } from '../../../src/acl/stamped.ts';
import type { Token } from '../../../src/acl/token.ts';
import { HOUR_NS, MINUTE_NS } from '../../../src/acl/values/duration.ts';
import type { Instant } from '../../../src/acl/values/instant.ts';
import type { Change, Command } from '../../../src/state/commands/commands.ts';
import { uuidNumbered } from '../fake-random.ts';

export const FIXTURE_TIME_MS = Date.parse('2026-01-01T00:00:00Z');

/** As a server has them whose settings say nothing else. */
export const TTL_LIMITS: TtlLimits = { minTtlNs: MINUTE_NS, maxTtlNs: 24n * HOUR_NS };

export function aNamespaceName(name: string): NamespaceName {
  return name as NamespaceName;
}

/** Ids by number; the accessor and the secret of one number differ. */
export const accessorNumbered = (number: number): AccessorId => uuidNumbered(number) as AccessorId;
export const secretNumbered = (number: number): SecretId =>
  uuidNumbered(0x5ec0_0000_0000 + number) as SecretId;
export const policyIdNumbered = (number: number): PolicyId =>
  uuidNumbered(0x9011_0000_0000 + number) as PolicyId;
export const roleIdNumbered = (number: number): RoleId =>
  uuidNumbered(0x401e_0000_0000 + number) as RoleId;
export const ruleIdNumbered = (number: number): BindingRuleId =>
  uuidNumbered(0x4a1e_0000_0000 + number) as BindingRuleId;

export function aToken(number: number, given: Partial<Unstamped<Token>> = {}): Unstamped<Token> {
  return {
    accessorId: accessorNumbered(number),
    secretId: secretNumbered(number),
    namespace: DEFAULT_NAMESPACE,
    description: `token ${number}`,
    policies: [],
    roles: [],
    serviceIdentities: [],
    nodeIdentities: [],
    templatedPolicies: [],
    local: false,
    authMethod: undefined,
    createTime: '2026-01-01T00:00:00.000Z' as Instant,
    expirationTime: undefined,
    hash: 'X2AgaFhnQGRhSSF/h0m6qpX1wj/HJWbyXcxkEM/5GrY=',
    ...given,
  };
}

export function aPolicy(number: number, given: Partial<Unstamped<Policy>> = {}): Unstamped<Policy> {
  return {
    id: policyIdNumbered(number),
    name: `policy-${number}`,
    namespace: DEFAULT_NAMESPACE,
    description: `policy ${number}`,
    rules: 'acl = "read"',
    datacenters: [],
    hash: 'X2AgaFhnQGRhSSF/h0m6qpX1wj/HJWbyXcxkEM/5GrY=',
    ...given,
  };
}

export function aRole(number: number, given: Partial<Unstamped<Role>> = {}): Unstamped<Role> {
  return {
    id: roleIdNumbered(number),
    name: `role-${number}`,
    namespace: DEFAULT_NAMESPACE,
    description: `role ${number}`,
    policies: [],
    serviceIdentities: [],
    nodeIdentities: [],
    templatedPolicies: [],
    hash: 'X2AgaFhnQGRhSSF/h0m6qpX1wj/HJWbyXcxkEM/5GrY=',
    ...given,
  };
}

export function anAuthMethod(
  name: string,
  given: Partial<Unstamped<AuthMethod>> = {},
): Unstamped<AuthMethod> {
  return {
    name,
    namespace: DEFAULT_NAMESPACE,
    type: 'jwt',
    displayName: '',
    description: `method ${name}`,
    maxTokenTtlNs: 0n,
    tokenLocality: '',
    config: { JWKSURL: 'https://keys.test' },
    namespaceRules: [],
    ...given,
  };
}

export function aBindingRule(
  number: number,
  given: Partial<Unstamped<BindingRule>> = {},
): Unstamped<BindingRule> {
  return {
    id: ruleIdNumbered(number),
    namespace: DEFAULT_NAMESPACE,
    description: `rule ${number}`,
    authMethod: 'login',
    selector: '',
    bindType: 'service',
    bindName: 'web',
    bindVars: undefined,
    ...given,
  };
}

export function aNamespace(
  name: string,
  given: Partial<Unstamped<Namespace>> = {},
): Unstamped<Namespace> {
  return {
    name: aNamespaceName(name),
    description: `namespace ${name}`,
    policyDefaults: [],
    roleDefaults: [],
    meta: {},
    ...given,
  };
}

export function aCommand(change: Change, given: Partial<Omit<Command, 'change'>> = {}): Command {
  return { change, timeMs: FIXTURE_TIME_MS, cas: undefined, request: undefined, ...given };
}
