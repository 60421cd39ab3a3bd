// A link from one namespace to a policy or role of another lends rights that the administrators of
// the first may not have themselves: whoever may write tokens of `team` could otherwise link
// `global-management` and own the system. So a link that is new needs `acl:write` where its target
// lives. Links that an object had before stay as they are: keeping one lends nothing, as long as it is
// there when the write is applied.

import type { Links } from '../../acl/checks/links.ts';
import type { NamespaceName, PolicyId, RoleId } from '../../acl/ids.ts';
import type { StateView } from '../../state/view.ts';
import type { Caller } from './caller.ts';
import { mayAcl, permissionDenied } from './permissions.ts';

export const NO_LINKS: Links = { policies: [], roles: [] };

type LinkTargets = Pick<StateView, 'policy' | 'role'>;

/** Throws 'permission-denied', naming the namespace, for the first link that the caller may not lend. */
export function requireMayLend(view: LinkTargets, caller: Caller, links: Links): void {
  for (const namespace of homesOf(view, links)) {
    if (!mayAcl(caller, 'write', namespace)) {
      throw permissionDenied(caller, 'acl:write', { name: `namespace ${namespace}` });
    }
  }
}

/**
 * Throws the same for what an update adds. Gives what else the update is checked against, by `dependencyOf`: the
 * object itself, where it keeps what its caller could not lend.
 */
export function requireMayAdd(
  view: LinkTargets,
  caller: Caller,
  { after, before, key }: { readonly after: Links; readonly before: Links; readonly key: string },
): readonly string[] {
  const old = { policies: new Set(before.policies), roles: new Set(before.roles) };
  const isOld = {
    policies: (id: PolicyId) => old.policies.has(id),
    roles: (id: RoleId) => old.roles.has(id),
  };
  requireMayLend(view, caller, {
    policies: after.policies.filter((id) => !isOld.policies(id)),
    roles: after.roles.filter((id) => !isOld.roles(id)),
  });
  const kept = {
    policies: after.policies.filter(isOld.policies),
    roles: after.roles.filter(isOld.roles),
  };
  const isLent = (namespace: NamespaceName): boolean => !mayAcl(caller, 'write', namespace);
  return homesOf(view, kept).some(isLent) ? [key] : [];
}

/** Where the targets live; a link to nothing lends nothing. */
function homesOf(view: LinkTargets, { policies, roles }: Links): readonly NamespaceName[] {
  const targets = [...policies.map((id) => view.policy(id)), ...roles.map((id) => view.role(id))];
  return targets.flatMap((target) => (target === undefined ? [] : [target.namespace]));
}
