// The operations on policies. What a valid policy is says src/acl, what valid rules are src/rules.

import {
  applyPolicyUpdate,
  buildNewPolicy,
  type PolicyLookups,
  requireDeletablePolicy,
} from '../../acl/checks/policy-checks.ts';
import type { NamespaceName, PolicyId } from '../../acl/ids.ts';
import type { Policy } from '../../acl/policy.ts';
import { checkForNamespace } from '../../rules/namespace-check.ts';
import { parseRules } from '../../rules/parse-rules.ts';
import { pageKeyOf } from '../../state/reads/lists.ts';
import type { OperationInput, OperationOutput } from '../operations.ts';
import { readMetaOf } from '../reading.ts';
import type { Request, Service } from '../service.ts';
import type { PolicyView } from '../views.ts';
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

const POLICIES: KindById<Policy> & KindByName<Policy> = {
  noun: 'policy',
  table: 'policies',
  find: (view, id) => view.policy(id),
  named: (view, namespace, name) => view.policyByName(namespace, name),
};

export async function createPolicy(
  service: Service,
  { draft }: OperationInput<'policy.create'>,
  request: Request,
): Promise<OperationOutput<'policy.create'>> {
  const body = { kind: 'Policy', namespace: draft.namespace } as const;
  const { namespace } = placeOfNew(service, request, body);
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

export function readPolicy(
  service: Service,
  { id }: OperationInput<'policy.read'>,
  { call }: Request,
): Promise<OperationOutput<'policy.read'>> {
  return readById(service, POLICIES, id, { call, show: policyViewOf });
}

export function readPolicyByName(
  service: Service,
  { name }: OperationInput<'policy.read-by-name'>,
  { call }: Request,
): Promise<OperationOutput<'policy.read-by-name'>> {
  return readByName(service, POLICIES, name, { call, show: policyViewOf });
}

export async function updatePolicy(
  service: Service,
  { id, draft }: OperationInput<'policy.update'>,
  request: Request,
): Promise<OperationOutput<'policy.update'>> {
  const body = { kind: 'Policy', namespace: draft.namespace } as const;
  const { namespace, existing } = toUpdate(service, POLICIES, id, { request, body });
  const policy = applyPolicyUpdate(existing, draft, {
    ...lookupsIn(service, namespace),
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
  const policy = toDelete(service, POLICIES, id, request);
  if (policy === undefined) return nothingDeleted(service);
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
    show: policyViewOf,
  });
}

function lookupsIn({ view }: Service, namespace: NamespaceName): PolicyLookups {
  return {
    policyNamed: (name) => view.policyByName(namespace, name),
    requireRules: (rules, home) => checkForNamespace(parseRules(rules), home),
  };
}

function policyViewOf(policy: Policy): PolicyView {
  return { kind: 'policy', policy };
}
