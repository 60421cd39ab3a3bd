// The operations on binding rules. What a valid rule is says src/acl; which attributes its selector
// and names may speak of, the type of its auth method.

import type { BindingRule } from '../../acl/binding-rule.ts';
import type { BindingRuleLookups } from '../../acl/checks/binding-rule-checks.ts';
import {
  applyBindingRuleUpdate,
  buildNewBindingRule,
} from '../../acl/checks/binding-rule-checks.ts';
import { invalid } from '../../acl/error.ts';
import { type BindingRuleId, type NamespaceName, requireLookupUuid } from '../../acl/ids.ts';
import { objectMissing, unknownAuthMethod } from '../../acl/refusals.ts';
import { bindingTargetOf } from '../../auth-methods/binding/binding-names.ts';
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

/** So many rules an auth method may have: each login goes through all of them, and its deletion deletes them. */
export const RULES_OF_METHOD_MAX = 4096;

export async function createBindingRule(
  service: Service,
  { draft }: OperationInput<'binding-rule.create'>,
  request: Request,
): Promise<OperationOutput<'binding-rule.create'>> {
  const caller = service.callers.resolve(request.call.secret);
  const body = { kind: 'BindingRule', namespace: draft.namespace } as const;
  const namespace = namespaceOf(service, request, caller, body).name;
  requireAcl(caller, 'write', namespace);
  requireNamespaceExists(service.view, namespace);
  const rule = buildNewBindingRule(draft, {
    ...lookupsIn(service, namespace),
    freshId: service.random.uuid() as BindingRuleId,
    namespace,
  });
  requireRoom(service, rule);
  const change = { type: 'binding-rule.set', presence: 'create', rule } as const;
  const result = await commit(service, request, change, 'binding-rule');
  service.metrics.count('acl.bindingrule.upsert');
  return result;
}

/** What is under way comes on top: those who ask at one moment do not count each other. */
function requireRoom(
  { view }: Service,
  { namespace, authMethod }: Pick<BindingRule, 'namespace' | 'authMethod'>,
): void {
  const count = view.bindingRuleCountOf(namespace, authMethod);
  if (count < RULES_OF_METHOD_MAX) return;
  throw invalid(
    `Invalid Binding Rule: an auth method may have at most ${RULES_OF_METHOD_MAX} binding rules, and "${authMethod}" has ${count}`,
  );
}

export async function readBindingRule(
  service: Service,
  { id }: OperationInput<'binding-rule.read'>,
  { call }: Request,
): Promise<OperationOutput<'binding-rule.read'>> {
  const meta = readMetaOf(service, 'binding-rules', watchKey({ id }));
  const caller = service.callers.resolve(call.secret);
  const found = service.view.bindingRule(id);
  const { namespace, object: rule } = addressed(service, { call }, caller, { found });
  requireAcl(caller, 'read', namespace.name);
  requireLookupUuid('binding rule', id);
  const shown = rule && ({ kind: 'binding-rule', rule } as const);
  return readResultOf(meta, shown, () => objectMissing('binding rule', namedNamespace(namespace)));
}

export async function updateBindingRule(
  service: Service,
  { id, draft }: OperationInput<'binding-rule.update'>,
  request: Request,
): Promise<OperationOutput<'binding-rule.update'>> {
  const caller = service.callers.resolve(request.call.secret);
  const body = { kind: 'BindingRule', namespace: draft.namespace } as const;
  const found = service.view.bindingRule(id);
  const { namespace, object: existing } = addressed(service, request, caller, { found, body });
  requireAcl(caller, 'write', namespace.name);
  const rule = applyBindingRuleUpdate(existing, draft, {
    ...lookupsIn(service, namespace.name),
    pathId: id,
  });
  const change = { type: 'binding-rule.set', presence: 'update', rule } as const;
  const result = await commit(service, request, change, 'binding-rule');
  service.metrics.count('acl.bindingrule.upsert');
  return result;
}

export async function deleteBindingRule(
  service: Service,
  { id }: OperationInput<'binding-rule.delete'>,
  request: Request,
): Promise<OperationOutput<'binding-rule.delete'>> {
  const caller = service.callers.resolve(request.call.secret);
  const found = service.view.bindingRule(id);
  const { namespace, object: rule, elsewhere } = addressed(service, request, caller, { found });
  requireAcl(caller, 'write', namespace.name);
  requireLookupUuid('binding rule', id);
  if (rule === undefined) {
    requireNotElsewhere(caller, namespace, 'binding rule', elsewhere);
    return nothingDeleted(service);
  }
  const change = { type: 'binding-rule.delete', id: rule.id } as const;
  const result = await commit(service, request, change, 'deleted');
  service.metrics.count('acl.bindingrule.delete');
  return result;
}

export async function listBindingRules(
  service: Service,
  { authMethod, page }: OperationInput<'binding-rule.list'>,
  request: Request,
): Promise<OperationOutput<'binding-rule.list'>> {
  const meta = readMetaOf(service, 'binding-rules');
  const { scope, shows } = await listScopeOf(service, request);
  const method = authMethod === '' ? undefined : authMethod;
  return listed({
    page,
    meta,
    fetch: (rest) => service.view.bindingRules(scope, method, rest),
    keyOf: (rule) => rule.id,
    keeps: (rule) => shows(rule.namespace),
    show: (rule) => ({ kind: 'binding-rule', rule }) as const,
  });
}

function lookupsIn({ view, authMethods }: Service, namespace: NamespaceName): BindingRuleLookups {
  return {
    requireMethod: (name) => {
      const method = view.authMethod(namespace, name);
      if (method === undefined) throw unknownAuthMethod(name);
      return bindingTargetOf(method.name, authMethods.types[method.type].attributeNames(method));
    },
  };
}
