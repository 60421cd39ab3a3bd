// A link from one namespace to a policy or role of another lends rights that the administrators of
// the first may not have themselves: whoever may write tokens of `team` could otherwise link
// `global-management` and own the system. So a link that is new needs `acl:write` where its target
// lives. Links that an object had before stay as they are: keeping one lends nothing.

import type { NamespaceName, PolicyId, RoleId } from '../acl/ids.ts';
import type { StateView } from '../state/view.ts';
import type { Caller } from './caller.ts';
import { mayAcl, permissionDenied } from './permissions.ts';

export interface Links {
  readonly policies: readonly PolicyId[];
  readonly roles: readonly RoleId[];
}

export const NO_LINKS: Links = { policies: [], roles: [] };

/** Throws 'permission-denied', naming the namespace, for the first link that the caller may not lend. */
export function requireMayLend(
  view: Pick<StateView, 'policy' | 'role'>,
  caller: Caller,
  { after, before }: { readonly after: Links; readonly before: Links },
): void {
  for (const id of after.policies) {
    if (!before.policies.includes(id)) requireMayLendFrom(caller, view.policy(id)?.namespace);
  }
  for (const id of after.roles) {
    if (!before.roles.includes(id)) requireMayLendFrom(caller, view.role(id)?.namespace);
  }
}

/** `namespace` is undefined for a target that is gone: a link to nothing lends nothing. */
function requireMayLendFrom(caller: Caller, namespace: NamespaceName | undefined): void {
  if (namespace !== undefined && !mayAcl(caller, 'write', namespace)) {
    throw permissionDenied(caller, 'acl:write', `namespace ${namespace}`);
  }
}
