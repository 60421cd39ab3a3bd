// The operations on roles. What a valid role is says src/acl.

import type { RoleDraft } from '../../acl/checks/drafts.ts';
import type { Links } from '../../acl/checks/links.ts';
import { applyRoleUpdate, buildNewRole, type RoleLookups } from '../../acl/checks/role-checks.ts';
import {
  type NamespaceName,
  type PolicyId,
  type RoleId,
  requireLookupUuid,
} from '../../acl/ids.ts';
import type { Role } from '../../acl/role.ts';
import { isGiven } from '../../acl/values/given.ts';
import { pageKeyOf } from '../../state/reads/lists.ts';
import { dependencyOf } from '../dependencies.ts';
import type { OperationInput, OperationOutput } from '../operations.ts';
import { readMetaOf } from '../reading.ts';
import { NO_LINKS, requireMayAdd, requireMayLend } from '../rights/lent-rights.ts';
import type { Request, Service } from '../service.ts';
import { commit, nothingDeleted } from '../writes/commit.ts';
import {
  type KindById,
  type KindByName,
  placeOfNew,
  readById,
  readByName,
  toDelete,
  toUpdate,
} from './alike.ts';
import { listScopeOf } from './list-scope.ts';
import { listed } from './listing.ts';
import { roleViewOf } from './make-views.ts';
import { policyIdsOf } from './resolve-links.ts';

const ROLES: KindById<Role> & KindByName<Role> = {
  noun: 'role',
  table: 'roles',
  find: (view, id) => view.role(id),
  named: (view, namespace, name) => view.roleByName(namespace, name),
};

export async function createRole(
  service: Service,
  { draft }: OperationInput<'role.create'>,
  request: Request,
): Promise<OperationOutput<'role.create'>> {
  const body = { kind: 'Role', namespace: draft.namespace } as const;
  const { caller, namespace } = placeOfNew(service, request, body);
  const role = buildNewRole(draft, {
    ...lookupsIn(service, draft, namespace),
    freshId: service.random.uuid() as RoleId,
    namespace,
  });
  const { view } = service;
  requireMayLend(view, caller, linksOf(role));
  const change = { type: 'role.set', presence: 'create', role } as const;
  const result = await commit(service, request, change, 'role');
  service.metrics.count('acl.role.upsert');
  return result;
}

export function readRole(
  service: Service,
  { id }: OperationInput<'role.read'>,
  { call }: Request,
): Promise<OperationOutput<'role.read'>> {
  const show = (role: Role) => roleViewOf(role, service.names);
  return readById(service, ROLES, id, { call, show });
}

export function readRoleByName(
  service: Service,
  { name }: OperationInput<'role.read-by-name'>,
  { call }: Request,
): Promise<OperationOutput<'role.read-by-name'>> {
  const show = (role: Role) => roleViewOf(role, service.names);
  return readByName(service, ROLES, name, { call, show });
}

export async function updateRole(
  service: Service,
  { id, draft }: OperationInput<'role.update'>,
  request: Request,
): Promise<OperationOutput<'role.update'>> {
  const body = { kind: 'Role', namespace: draft.namespace } as const;
  const { caller, namespace, existing } = toUpdate(service, ROLES, id, { request, body });
  const role = applyRoleUpdate(existing, draft, {
    ...lookupsIn(service, draft, namespace),
    pathId: id,
  });
  const before = existing === undefined ? NO_LINKS : linksOf(existing);
  const links = { after: linksOf(role), before, key: dependencyOf('roles', id) };
  const checkedAgainst = requireMayAdd(service.view, caller, links);
  const change = { type: 'role.set', presence: 'update', role } as const;
  const result = await commit(service, { ...request, checkedAgainst }, change, 'role');
  service.metrics.count('acl.role.upsert');
  return result;
}

export async function deleteRole(
  service: Service,
  { id }: OperationInput<'role.delete'>,
  request: Request,
): Promise<OperationOutput<'role.delete'>> {
  const role = toDelete(service, ROLES, id, request);
  if (role === undefined) return nothingDeleted(service);
  const result = await commit(service, request, { type: 'role.delete', id: role.id }, 'deleted');
  service.metrics.count('acl.role.delete');
  return result;
}

export async function listRoles(
  service: Service,
  { policy, page }: OperationInput<'role.list'>,
  request: Request,
): Promise<OperationOutput<'role.list'>> {
  const meta = readMetaOf(service, 'roles');
  const { scope, shows } = await listScopeOf(service, request);
  const policyId = isGiven(policy) ? (policy as PolicyId) : undefined;
  if (policyId !== undefined) requireLookupUuid('role', policyId);
  const { names } = service;
  return listed({
    page,
    meta,
    fetch: (rest) => service.view.roles(scope, policyId, rest),
    keyOf: (role) => (policyId === undefined ? pageKeyOf(role) : role.id),
    keeps: (role) => shows(role.namespace),
    show: (role) => roleViewOf(role, names),
  });
}

function linksOf({ policies }: Pick<Role, 'policies'>): Links {
  return { policies, roles: [] };
}

function lookupsIn({ view }: Service, draft: RoleDraft, namespace: NamespaceName): RoleLookups {
  return {
    roleNamed: (name) => view.roleByName(namespace, name),
    resolvePolicies: () => policyIdsOf(view, draft.policies, { namespace, holder: 'role' }),
  };
}
