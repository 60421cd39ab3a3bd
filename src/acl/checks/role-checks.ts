// What a valid role is: a draft goes in, a role ready for the log comes out, or a refusal in the words
// of compatibility 3.2, 3.4 and 4.2. Whether a name is taken and what the links mean is asked through
// functions.

import { invalid } from '../error.ts';
import { roleHash } from '../hash.ts';
import { isUuid, type NamespaceName, type PolicyId, type RoleId } from '../ids.ts';
import { requireSameAddress, roleNameTaken, roleToUpdateMissing } from '../refusals.ts';
import type { Role } from '../role.ts';
import type { Unstamped } from '../stamped.ts';
import { requireRoleName } from '../values/names.ts';
import type { RoleDraft } from './drafts.ts';
import { identityLists } from './identity-checks.ts';
import { uniqueIds } from './links.ts';

export interface RoleLookups {
  /** The role that bears the name in the role's namespace, in any letter case. */
  roleNamed(name: string): Pick<Role, 'id'> | undefined;
  /** The draft's policy links as ids. Throws the refusal of an unknown link. */
  resolvePolicies(): readonly PolicyId[];
}

export interface NewRoleGiven extends RoleLookups {
  readonly freshId: RoleId;
  readonly namespace: NamespaceName;
}

export interface RoleUpdateGiven extends RoleLookups {
  /** The id of the path. */
  readonly pathId: string;
}

/** The role that a create asks for. Throws 'id-mismatch', 'invalid' or 'duplicate'. */
export function buildNewRole(draft: RoleDraft, given: NewRoleGiven): Unstamped<Role> {
  requireSameAddress('Role ID', { path: '', body: draft.id });
  const name = draft.name ?? '';
  requireRoleName(name);
  if (given.roleNamed(name) !== undefined) throw roleNameTaken(name, 'create');
  return roleOf(draft, { id: given.freshId, namespace: given.namespace }, given);
}

/** The role that an update leaves behind: a full replacement. `existing` as the path names it. */
export function applyRoleUpdate(
  existing: Role | undefined,
  draft: RoleDraft,
  given: RoleUpdateGiven,
): Unstamped<Role> {
  requireSameAddress('Role ID', { path: given.pathId, body: draft.id });
  if (!isUuid(given.pathId)) throw invalid('Role ID invalid UUID');
  if (existing === undefined) throw roleToUpdateMissing(given.pathId);
  const name = draft.name ?? '';
  requireRoleName(name);
  const bearer = given.roleNamed(name);
  if (bearer !== undefined && bearer.id !== existing.id) throw roleNameTaken(name, 'update');
  return roleOf(draft, { id: existing.id, namespace: existing.namespace }, given);
}

function roleOf(
  draft: RoleDraft,
  fixed: Pick<Role, 'id' | 'namespace'>,
  given: RoleLookups,
): Unstamped<Role> {
  const { name = '', description = '' } = draft;
  const policies = uniqueIds(given.resolvePolicies());
  const role = { ...fixed, name, description, policies, ...identityLists(draft, 'role') };
  return { ...role, hash: roleHash(role) };
}
