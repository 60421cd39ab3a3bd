// Roles. A delete leaves links to it behind; they are skipped by whoever reads them.

import {
  roleNameTaken,
  roleToUpdateMissing,
  unknownPolicyIdOfRole,
  unknownRoleId,
} from '../../acl/refusals.ts';
import type { Role } from '../../acl/role.ts';
import type { Unstamped } from '../../acl/stamped.ts';
import { nameKey } from '../../acl/values/names.ts';
import type { ChangeOf } from '../commands/commands.ts';
import type { Answer } from '../commands/outcome.ts';
import { readRole, readRoleByName } from '../reads/reads.ts';
import { ROLES } from '../rows/objects/objects.ts';
import {
  type ApplyContext,
  requireCas,
  requireFreshId,
  requireLinks,
  requireNamespace,
} from './checks.ts';

export function applyRoleSet(
  context: ApplyContext,
  { presence, role }: ChangeOf<'role.set'>,
): Answer {
  const made = presence === 'create' ? created(context, role) : updated(context, role);
  context.changes.put(ROLES, made);
  return { type: 'role', role: made };
}

function created(context: ApplyContext, role: Unstamped<Role>): Role {
  const { changes } = context;
  requireNamespace(context, role.namespace);
  requireFreshId('Role', role.id, readRole(changes, role.id));
  requireCas(context, undefined);
  requireFreeName(context, role, 'create');
  requirePolicies(context, role);
  return { ...role, createIndex: changes.nextIndex, modifyIndex: changes.nextIndex };
}

function updated(context: ApplyContext, role: Unstamped<Role>): Role {
  const { changes } = context;
  const existing = readRole(changes, role.id);
  if (existing?.namespace !== role.namespace) throw roleToUpdateMissing(role.id);
  requireCas(context, existing);
  requireFreeName(context, role, 'update');
  requirePolicies(context, role);
  const { id, createIndex } = existing;
  return { ...role, id, createIndex, modifyIndex: changes.nextIndex };
}

function requireFreeName(
  { changes }: ApplyContext,
  role: Unstamped<Role>,
  on: 'create' | 'update',
): void {
  const bearer = readRoleByName(changes, role.namespace, role.name);
  if (bearer === undefined || nameKey(bearer.id) === nameKey(role.id)) return;
  throw roleNameTaken(role.name, on);
}

function requirePolicies(context: ApplyContext, role: Unstamped<Role>): void {
  const links = { policies: role.policies, roles: [] };
  const refusals = { policy: unknownPolicyIdOfRole, role: unknownRoleId };
  requireLinks(context, role.namespace, links, refusals);
}

export function applyRoleDelete(context: ApplyContext, { id }: ChangeOf<'role.delete'>): Answer {
  const role = readRole(context.changes, id);
  requireCas(context, role);
  if (role !== undefined) context.changes.delete(ROLES, role);
  return { type: 'deleted', existed: role !== undefined };
}
