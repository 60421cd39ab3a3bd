// Turns the links of a draft, by id or by name, into ids. A link resolves in the namespace of whoever
// holds it, then in `default`: an object of any other namespace counts as unknown.

import type { LinkDraft } from '../../acl/checks/drafts.ts';
import type { Links } from '../../acl/checks/links.ts';
import type { AclError } from '../../acl/error.ts';
import {
  DEFAULT_NAMESPACE,
  type NamespaceName,
  type PolicyId,
  type RoleId,
} from '../../acl/ids.ts';
import {
  unknownPolicyId,
  unknownPolicyIdOfRole,
  unknownPolicyName,
  unknownRoleId,
  unknownRoleName,
} from '../../acl/refusals.ts';
import type { StateView } from '../../state/view.ts';
import { LinkRoom } from '../rights/link-room.ts';

/** Whose links they are: a role's unknown ids are refused in other words. */
export type LinkHolder = 'token' | 'role';

/** Throws 'invalid' for the first link that names no policy, or that leads to too much with those before it. */
export function policyIdsOf(
  view: StateView,
  links: readonly LinkDraft[] | undefined,
  at: { readonly namespace: NamespaceName; readonly holder: LinkHolder; readonly room?: LinkRoom },
): readonly PolicyId[] {
  const { namespace, room = new LinkRoom() } = at;
  return idsOf(
    links,
    { namespace, room },
    {
      byId: (id) => view.policy(id),
      byName: (namespace, name) => view.policyByName(namespace, name),
      unknownId: at.holder === 'role' ? unknownPolicyIdOfRole : unknownPolicyId,
      unknownName: unknownPolicyName,
    },
  );
}

/** As `policyIdsOf`. */
function roleIdsOf(
  view: StateView,
  links: readonly LinkDraft[] | undefined,
  at: Place,
): readonly RoleId[] {
  return idsOf(links, at, {
    byId: (id) => view.role(id),
    byName: (namespace, name) => view.roleByName(namespace, name),
    unknownId: unknownRoleId,
    unknownName: unknownRoleName,
  });
}

/** Roles first, then policies: the order in which unknown ones are refused. */
export function tokenLinksOf(
  view: StateView,
  draft: {
    readonly policies?: readonly LinkDraft[] | undefined;
    readonly roles?: readonly LinkDraft[] | undefined;
  },
  namespace: NamespaceName,
): Links {
  const room = new LinkRoom();
  const roles = roleIdsOf(view, draft.roles, { namespace, room });
  const policies = policyIdsOf(view, draft.policies, { namespace, holder: 'token', room });
  return { policies, roles };
}

interface Place {
  readonly namespace: NamespaceName;
  readonly room: LinkRoom;
}

interface Target<Id extends string> {
  readonly id: Id;
  readonly namespace: NamespaceName;
}

interface Lookups<Id extends string> {
  byId(id: string): Target<Id> | undefined;
  byName(namespace: NamespaceName, name: string): Target<Id> | undefined;
  unknownId(id: string): AclError;
  unknownName(name: string): AclError;
}

function idsOf<Id extends string>(
  links: readonly LinkDraft[] | undefined,
  { namespace, room }: Place,
  lookups: Lookups<Id>,
): readonly Id[] {
  return (links ?? []).map((link) => {
    const target = targetOf(link, namespace, lookups);
    room.take(target);
    return target.id;
  });
}

function targetOf<Id extends string>(
  { id = '', name = '' }: LinkDraft,
  namespace: NamespaceName,
  lookups: Lookups<Id>,
): Target<Id> {
  if (id !== '') {
    const target = lookups.byId(id);
    if (target === undefined || !isVisible(target, namespace)) throw lookups.unknownId(id);
    return target;
  }
  const target = lookups.byName(namespace, name) ?? lookups.byName(DEFAULT_NAMESPACE, name);
  if (target === undefined) throw lookups.unknownName(name);
  return target;
}

function isVisible(target: { readonly namespace: NamespaceName }, from: NamespaceName): boolean {
  return target.namespace === from || target.namespace === DEFAULT_NAMESPACE;
}
