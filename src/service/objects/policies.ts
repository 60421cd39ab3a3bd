// The operations on policies. What a valid policy is says src/acl, what valid rules are src/rules.

import {
  applyPolicyUpdate,
  buildNewPolicy,
  type PolicyLookups,
  requireDeletablePolicy,
} from '../../acl/checks/policy-checks.ts';
import { type NamespaceName, type PolicyId, requireLookupUuid } from '../../acl/ids.ts';
import { objectMissing } from '../../acl/refusals.ts';
import { checkForNamespace } from '../../rules/namespace-check.ts';
import { parseRules } from '../../rules/parse-rules.ts';
import { pageKeyOf } from '../../state/reads/lists.ts';
import { watchKey } from '../../state/watch.ts';
import type { OperationInput, OperationOutput } from '../operations.ts';
import { readMetaOf, readResultOf } from '../reading.ts';
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

export async function createPolicy(
  service: Service,
  { draft }: OperationInput<'policy.create'>,
  request: Request,
): Promise<OperationOutput<'policy.create'>> {
  const caller = service.callers.resolve(request.call.secret);
  const body = { kind: 'Policy', namespace: draft.namespace } as const;
  const namespace = namespaceOf(service, request, caller, body).name;
  requireAcl(caller, 'write', namespace);
  requireNamespaceExists(service.view, namespace);
  const policy = buildNewPolicy(draft, {
    ...lookupsIn(service, namespace),
    freshId: service.random.uuid() as PolicyId,
    namespace,
  });
  const change = { type: 'policy.set', presence: 'create', policy } as const;
  const result = await commit(service, request, change, 'policy');
  service.metrics.count('acl.policy.upsert');
  return result;
}

export async function readPolicy(
  service: Service,
  { id }: OperationInput<'policy.read'>,
  { call }: Request,
): Promise<OperationOutput<'policy.read'>> {
  const meta = readMetaOf(service, 'policies', watchKey({ id }));
  const caller = service.callers.resolve(call.secret);
  const found = service.view.policy(id);
  const { namespace, object: policy } = addressed(service, { call }, caller, { found });
  requireAcl(caller, 'read', namespace.name);
  requireLookupUuid('policy', id);
  const shown = policy && ({ kind: 'policy', policy } as const);
  return readResultOf(meta, shown, () => objectMissing('policy', namedNamespace(namespace)));
}

export async function readPolicyByName(
  service: Service,
  { name }: OperationInput<'policy.read-by-name'>,
  { call }: Request,
): Promise<OperationOutput<'policy.read-by-name'>> {
  const caller = service.callers.resolve(call.secret);
  const namespace = namespaceOf(service, { call }, caller);
  requireAcl(caller, 'read', namespace.name);
  const meta = readMetaOf(service, 'policies', watchKey({ namespace: namespace.name, name }));
  const policy = service.view.policyByName(namespace.name, name);
  const shown = policy && ({ kind: 'policy', policy } as const);
  return readResultOf(meta, shown, () => objectMissing('policy', namedNamespace(namespace)));
}

export async function updatePolicy(
  service: Service,
  { id, draft }: OperationInput<'policy.update'>,
  request: Request,
): Promise<OperationOutput<'policy.update'>> {
  const caller = service.callers.resolve(request.call.secret);
  const body = { kind: 'Policy', namespace: draft.namespace } as const;
  const found = service.view.policy(id);
  const { namespace, object: existing } = addressed(service, request, caller, { found, body });
  requireAcl(caller, 'write', namespace.name);
  const policy = applyPolicyUpdate(existing, draft, {
    ...lookupsIn(service, namespace.name),
    pathId: id,
  });
  const change = { type: 'policy.set', presence: 'update', policy } as const;
  const result = await commit(service, request, change, 'policy');
  service.metrics.count('acl.policy.upsert');
  return result;
}

export async function deletePolicy(
  service: Service,
  { id }: OperationInput<'policy.delete'>,
  request: Request,
): Promise<OperationOutput<'policy.delete'>> {
  const caller = service.callers.resolve(request.call.secret);
  const found = service.view.policy(id);
  const { namespace, object: policy, elsewhere } = addressed(service, request, caller, { found });
  requireAcl(caller, 'write', namespace.name);
  requireLookupUuid('policy', id);
  if (policy === undefined) {
    requireNotElsewhere(caller, namespace, 'policy', elsewhere);
    return nothingDeleted(service);
  }
  requireDeletablePolicy(policy);
  const change = { type: 'policy.delete', id: policy.id } as const;
  const result = await commit(service, request, change, 'deleted');
  service.metrics.count('acl.policy.delete');
  return result;
}

export async function listPolicies(
  service: Service,
  { page }: OperationInput<'policy.list'>,
  request: Request,
): Promise<OperationOutput<'policy.list'>> {
  const meta = readMetaOf(service, 'policies');
  const { scope, shows } = await listScopeOf(service, request);
  return listed({
    page,
    meta,
    fetch: (rest) => service.view.policies(scope, rest),
    keyOf: (policy) => pageKeyOf(policy),
    keeps: (policy) => shows(policy.namespace),
    show: (policy) => ({ kind: 'policy', policy }) as const,
  });
}

function lookupsIn({ view }: Service, namespace: NamespaceName): PolicyLookups {
  return {
    policyNamed: (name) => view.policyByName(namespace, name),
    requireRules: (rules, home) => checkForNamespace(parseRules(rules), home),
  };
}
