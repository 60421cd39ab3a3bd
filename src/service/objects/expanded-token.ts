// The expanded form of a token: every policy and role that affects it, wherever they come from, and
// what the answering node would add.

import { invalid } from '../../acl/error.ts';
import type { Policy } from '../../acl/policy.ts';
import type { Role } from '../../acl/role.ts';
import type { Token } from '../../acl/token.ts';
import { linkedPolicies, TOO_MUCH_LINKED } from '../rights/linked-policies.ts';
import type { Service } from '../service.ts';
import type { ExpandedToken, NamedLink } from '../views.ts';
import { roleViewOf } from './make-views.ts';

/**
 * Policies that are not valid in this datacenter are shown too: they say so themselves. Throws 'invalid' for a
 * token whose links lead to more than may be looked at.
 */
export function expandedTokenOf({ view, names, settings }: Service, token: Token): ExpandedToken {
  const { own, defaults, roles, isTooMuch } = linkedPolicies(view, token);
  if (isTooMuch) throw invalid(`it cannot be expanded: ${TOO_MUCH_LINKED}`);
  const namespace = view.namespace(token.namespace);
  return {
    policies: distinct([...own, ...defaults].map(({ policy }) => policy)),
    roles: distinctRoles(roles).map((role) => roleViewOf(role, names)),
    namespaceDefaultPolicies: unlessEmpty(names.policies(namespace?.policyDefaults ?? [])),
    namespaceDefaultRoles: unlessEmpty(names.roles(namespace?.roleDefaults ?? [])),
    defaultPolicy: settings.defaultPolicy,
    downPolicy: settings.downPolicy,
    resolvedByNode: settings.nodeName,
  };
}

/** Synthetic policies of one id may differ in where they are valid. */
function distinct(policies: readonly Policy[]): readonly Policy[] {
  const byKey = new Map(
    policies.map((policy) => [
      JSON.stringify([policy.id, policy.namespace, policy.datacenters]),
      policy,
    ]),
  );
  return [...byKey.values()];
}

function distinctRoles(roles: readonly Role[]): readonly Role[] {
  return [...new Map(roles.map((role) => [role.id, role])).values()];
}

function unlessEmpty(links: readonly NamedLink[]): readonly NamedLink[] | undefined {
  return links.length === 0 ? undefined : links;
}
