// The policies, roles and identities of the histories, by number: what stays the same of each of them, and what they
// are as objects. Some share a name, so that one that is made anew is met by its name with another id.

import type { PolicyId, RoleId } from '../../src/acl/ids.ts';
import type { Policy } from '../../src/acl/policy.ts';
import type { Role } from '../../src/acl/role.ts';
import type { Unstamped } from '../../src/acl/stamped.ts';
import {
  aNamespaceName,
  aPolicy,
  aRole,
  policyIdNumbered,
  roleIdNumbered,
} from '../support/fixtures.ts';

/** One of the datacenters. */
export type Place = 0 | 1 | 2;
export const PLACES: readonly Place[] = [0, 1, 2];
export const SPACES = ['default', 'team', 'other'] as const;
export type Space = (typeof SPACES)[number];

/** By number. */
export interface Links {
  readonly policies: readonly number[];
  readonly roles: readonly number[];
}

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

export function policyNumbered(number: number, { writes, denies }: Rules): Unstamped<Policy> {
  const { name, space } = POLICIES[number]!;
  const levelOf = (key: number): string =>
    denies.includes(key) ? 'deny' : writes.includes(key) ? 'write' : '';
  const rules = KEYS.filter((key) => levelOf(key) !== '')
    .map((key) => `key "${key}" { policy = "${levelOf(key)}" }`)
    .join('\n');
  return aPolicy(number, { name, namespace: aNamespaceName(space), rules });
}

export function roleNumbered(number: number, links: Omit<Links, 'roles'>): Unstamped<Role> {
  const { name, space } = ROLES[number]!;
  const policies = links.policies.map(policyIdNumbered);
  return aRole(number, { name, namespace: aNamespaceName(space), policies });
}

/** The links of a token. */
export function linkIds({ policies, roles }: Links): {
  readonly policies: readonly PolicyId[];
  readonly roles: readonly RoleId[];
} {
  return { policies: policies.map(policyIdNumbered), roles: roles.map(roleIdNumbered) };
}
