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
import { objectMissing } from '../../acl/refusals.ts';
import type { Role } from '../../acl/role.ts';
import { isGiven } from '../../acl/values/given.ts';
import { pageKeyOf } from '../../state/reads/lists.ts';
import { watchKey } from '../../state/watch.ts';
import { dependencyOf } from '../dependencies.ts';
import type { OperationInput, OperationOutput } from '../operations.ts';
import { readMetaOf, readResultOf } from '../reading.ts';
import { NO_LINKS, requireMayAdd, requireMayLend } from '../rights/lent-rights.ts';
import { requireAcl } from '../rights/permissions.ts';
import {
  addressed,
  namedNamespace,
  namespaceOf,
  requireNamespaceExists,
  requireNotElsewhere,
} from '../rights/select-namespace.ts';
import type { Request, Service } from '../service.ts';
import { commit, nothingDeleted } from '../writes/commit.ts';
import { listScopeOf } from './list-scope.ts';
import { listed } from './listing.ts';
import { roleViewOf } from './make-views.ts';
import { policyIdsOf } from './resolve-links.ts';

export async function createRole(
  service: Service,
  { draft }: OperationInput<'role.create'>,
  request: Request,
): Promise<OperationOutput<'role.create'>> {
  const caller = service.callers.resolve(request.call.secret);
  const body = { kind: 'Role', namespace: draft.namespace } as const;
  const namespace = namespaceOf(service, request, caller, body).name;
  requireAcl(caller, 'write', namespace);
  requireNamespaceExists(service.view, namespace);
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

export async function readRole(
  service: Service,
  { id }: OperationInput<'role.read'>,
  { call }: Request,
): Promise<OperationOutput<'role.read'>> {
  const meta = readMetaOf(service, 'roles', watchKey({ id }));
  const caller = service.callers.resolve(call.secret);
  const found = service.view.role(id);
  const { namespace, object: role } = addressed(service, { call }, caller, { found });
  requireAcl(caller, 'read', namespace.name);
  requireLookupUuid('role', id);
  const shown = role && roleViewOf(role, service.names);
  return readResultOf(meta, shown, () => objectMissing('role', namedNamespace(namespace)));
}

export async function readRoleByName(
  service: Service,
  { name }: OperationInput<'role.read-by-name'>,
  { call }: Request,
): Promise<OperationOutput<'role.read-by-name'>> {
  const caller = service.callers.resolve(call.secret);
  const namespace = namespaceOf(service, { call }, caller);
  requireAcl(caller, 'read', namespace.name);
  const meta = readMetaOf(service, 'roles', watchKey({ namespace: namespace.name, name }));
  const role = service.view.roleByName(namespace.name, name);
  const shown = role && roleViewOf(role, service.names);
  return readResultOf(meta, shown, () => objectMissing('role', namedNamespace(namespace)));
}

export async function updateRole(
  service: Service,
  { id, draft }: OperationInput<'role.update'>,
  request: Request,
): Promise<OperationOutput<'role.update'>> {
  const caller = service.callers.resolve(request.call.secret);
  const body = { kind: 'Role', namespace: draft.namespace } as const;
  const found = service.view.role(id);
  const { namespace, object: existing } = addressed(service, request, caller, { found, body });
  requireAcl(caller, 'write', namespace.name);
  const role = applyRoleUpdate(existing, draft, {
    ...lookupsIn(service, draft, namespace.name),
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
  const caller = service.callers.resolve(request.call.secret);
  const found = service.view.role(id);
  const { namespace, object: role, elsewhere } = addressed(service, request, caller, { found });
  requireAcl(caller, 'write', namespace.name);
  requireLookupUuid('role', id);
  if (role === undefined) {
    requireNotElsewhere(caller, namespace, 'role', elsewhere);
    return nothingDeleted(service);
  }
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
