// The policies, roles and identities of the histories, by number: what stays the same of each of them, and what they
// are as objects. Some share a name, so that one that is made anew is met by its name with another id.

import type { AuthMethod } from '../../../src/acl/auth-method.ts';
import type { BindingRule, BindType } from '../../../src/acl/binding-rule.ts';
import type { Policy } from '../../../src/acl/policy.ts';
import type { Role } from '../../../src/acl/role.ts';
import type { Unstamped } from '../../../src/acl/stamped.ts';
import type { Token } from '../../../src/acl/token.ts';
import {
  aBindingRule,
  aNamespaceName,
  anAuthMethod,
  aPolicy,
  aRole,
  policyIdNumbered,
  roleIdNumbered,
} from '../../support/state-and-service/fixtures.ts';

/** One of the datacenters. */
export type Place = 0 | 1 | 2;
export const PLACES: readonly Place[] = [0, 1, 2];
export const SPACES = ['default', 'team', 'other'] as const;
export type Space = (typeof SPACES)[number];

/** What a token may lead to, by number. */
export interface Links {
  readonly policies: readonly number[];
  readonly roles: readonly number[];
  readonly identities: readonly number[];
}

/** What a role may: there are none in a role. */
export type RoleLinks = Omit<Links, 'roles'>;
/** What a namespace may give. */
export type Defaults = Omit<Links, 'identities'>;

export const NO_LINKS: Links = { policies: [], roles: [], identities: [] };

/** Which keys may be written, and which not, whatever else says so. */
export interface Rules {
  readonly writes: readonly number[];
  readonly denies: readonly number[];
}

interface Named {
  readonly name: string;
  readonly space: Space;
}

export const POLICIES: Readonly<Record<number, Named>> = {
  1: { name: 'one', space: 'default' },
  2: { name: 'two', space: 'default' },
  3: { name: 'three', space: 'default' },
  4: { name: 'one', space: 'default' },
  5: { name: 'one', space: 'team' },
};
export const ROLES: Readonly<Record<number, Named>> = {
  1: { name: 'one', space: 'default' },
  2: { name: 'two', space: 'default' },
  3: { name: 'one', space: 'default' },
  4: { name: 'one', space: 'team' },
};
export const KEYS = [1, 2, 3];

export function inSpace(named: typeof POLICIES, space: Space): readonly number[] {
  return Object.keys(named)
    .map(Number)
    .filter((number) => named[number]!.space === space);
}

export type MethodName = 'login' | 'own';

/** The namespace of each auth method. */
export const SPACE_OF: Readonly<Record<MethodName, Space>> = { login: 'default', own: 'team' };

/** Who may log in: some are named as policies and roles are. */
export type Who = 'one' | 'two';

/** What an auth method says besides its name. */
export interface MethodSays {
  readonly doesExpire: boolean;
  /** Its tokens are of all. */
  readonly isGlobal: boolean;
  /** The namespaces of those who log in, where it is of `default`. */
  readonly sends: readonly { readonly who: Who; readonly to: Space }[];
}

/** What a binding rule gives to whom; to all where it says nobody. */
export interface RuleSays {
  readonly who: Who | undefined;
  readonly binds: {
    readonly kind: BindType;
    /** Of the policy or role; undefined: as who logs in. */
    readonly name: Who | undefined;
  };
}

/** The auth method of each binding rule, by number. */
export const METHOD_OF_RULE: Readonly<Record<number, MethodName>> = {
  1: 'login',
  2: 'own',
  3: 'login',
  4: 'own',
};

export function methodNamed(
  name: MethodName,
  { doesExpire, isGlobal, sends }: MethodSays,
  description: string,
): Unstamped<AuthMethod> {
  return anAuthMethod(name, {
    namespace: aNamespaceName(SPACE_OF[name]),
    description,
    maxTokenTtlNs: doesExpire ? BigInt(TTL_MS) * 1_000_000n : 0n,
    tokenLocality: isGlobal ? 'global' : '',
    namespaceRules: sends.map(({ who, to }) => ({ selector: selectorOf(who), bindNamespace: to })),
  });
}

export function ruleNumbered(number: number, { who, binds }: RuleSays): Unstamped<BindingRule> {
  const authMethod = METHOD_OF_RULE[number]!;
  const isTemplate = binds.kind === 'templated-policy';
  const isLink = binds.kind === 'policy' || binds.kind === 'role';
  const named = isTemplate ? 'builtin/api-gateway' : 'web';
  return aBindingRule(number, {
    namespace: aNamespaceName(SPACE_OF[authMethod]),
    authMethod,
    selector: who === undefined ? '' : selectorOf(who),
    bindType: binds.kind,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the language of binding rules
    bindName: isLink ? (binds.name ?? '${value.name}') : named,
    bindVars: isTemplate ? { name: 'api' } : undefined,
  });
}

function selectorOf(who: Who): string {
  return `value.name == "${who}"`;
}

interface Identity {
  readonly kind: 'service' | 'node' | 'template';
  /** What it may write: a service or a node of that name. */
  readonly writes: string;
  /** Where it counts; undefined: everywhere. */
  readonly at: Place | undefined;
}

export const IDENTITIES: Readonly<Record<number, Identity>> = {
  1: { kind: 'service', writes: 'service web', at: undefined },
  2: { kind: 'service', writes: 'service api', at: 1 },
  3: { kind: 'node', writes: 'node web', at: 0 },
  4: { kind: 'node', writes: 'node web', at: 1 },
  5: { kind: 'template', writes: 'service api', at: undefined },
  6: { kind: 'template', writes: 'service web', at: 2 },
  7: { kind: 'node', writes: 'node web', at: 2 },
};

/** Of the identity of a node for who logs in there. */
export const NODE_AT: Readonly<Record<Place, number>> = { 0: 3, 1: 4, 2: 7 };

/** How long tokens live that expire. */
export const TTL_MS = 60_000;

export function policyNumbered(number: number, { writes, denies }: Rules): Unstamped<Policy> {
  const { name, space } = POLICIES[number]!;
  const levelOf = (key: number): string =>
    denies.includes(key) ? 'deny' : writes.includes(key) ? 'write' : '';
  const rules = KEYS.filter((key) => levelOf(key) !== '')
    .map((key) => `key "${key}" { policy = "${levelOf(key)}" }`)
    .join('\n');
  return aPolicy(number, { name, namespace: aNamespaceName(space), rules });
}

export function roleNumbered(number: number, links: RoleLinks): Unstamped<Role> {
  const { name, space } = ROLES[number]!;
  const { roles: _none, ...ids } = linkIds({ ...links, roles: [] });
  return aRole(number, { name, namespace: aNamespaceName(space), ...ids });
}

/** What a token or a role holds. */
export function linkIds({
  policies,
  roles,
  identities,
}: Links): Pick<
  Token,
  'policies' | 'roles' | 'serviceIdentities' | 'nodeIdentities' | 'templatedPolicies'
> {
  const of = (kind: Identity['kind']): readonly { name: string; datacenters: string[] }[] =>
    identities
      .map((each) => IDENTITIES[each]!)
      .filter((each) => each.kind === kind)
      .map(({ writes, at }) => ({
        name: writes.split(' ')[1]!,
        datacenters: at === undefined ? [] : [nameOf(at)],
      }));
  return {
    policies: policies.map(policyIdNumbered),
    roles: roles.map(roleIdNumbered),
    serviceIdentities: of('service').map(({ name, ...rest }) => ({ serviceName: name, ...rest })),
    nodeIdentities: of('node').map(({ name, datacenters: [datacenter = ''] }) => ({
      nodeName: name,
      datacenter,
    })),
    templatedPolicies: of('template').map(({ name, ...rest }) => ({
      templateId: '00000000-0000-0000-0000-000000000008',
      templateName: 'builtin/api-gateway',
      variables: { name },
      ...rest,
    })),
  };
}

export function nameOf(place: Place): string {
  return `dc${place + 1}`;
}
