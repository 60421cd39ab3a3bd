// The operations on binding rules. What a valid rule is says src/acl; which attributes its selector
// and names may speak of, the type of its auth method.

import type { BindingRule } from '../../acl/binding-rule.ts';
import type { BindingRuleLookups } from '../../acl/checks/binding-rule-checks.ts';
import {
  applyBindingRuleUpdate,
  buildNewBindingRule,
} from '../../acl/checks/binding-rule-checks.ts';
import { invalid } from '../../acl/error.ts';
import type { BindingRuleId, NamespaceName } from '../../acl/ids.ts';
import { unknownAuthMethod } from '../../acl/refusals.ts';
import { bindingTargetOf } from '../../auth-methods/binding/binding-names.ts';
import type { OperationInput, OperationOutput } from '../operations.ts';
import { readMetaOf } from '../reading.ts';
import type { Request, Service } from '../service.ts';
import type { BindingRuleView } from '../views.ts';
import { commit, nothingDeleted } from '../writes/commit.ts';
import { type KindById, placeOfNew, readById, toDelete, toUpdate } from './alike.ts';
import { listScopeOf } from './list-scope.ts';
import { listed } from './listing.ts';

/** So many rules an auth method may have: each login goes through all of them, and its deletion deletes them. */
export const RULES_OF_METHOD_MAX = 4096;

const BINDING_RULES: KindById<BindingRule> = {
  noun: 'binding rule',
  table: 'binding-rules',
  find: (view, id) => view.bindingRule(id),
};

export async function createBindingRule(
  service: Service,
  { draft }: OperationInput<'binding-rule.create'>,
  request: Request,
): Promise<OperationOutput<'binding-rule.create'>> {
  const body = { kind: 'BindingRule', namespace: draft.namespace } as const;
  const { namespace } = placeOfNew(service, request, body);
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

export function readBindingRule(
  service: Service,
  { id }: OperationInput<'binding-rule.read'>,
  { call }: Request,
): Promise<OperationOutput<'binding-rule.read'>> {
  return readById(service, BINDING_RULES, id, { call, show: bindingRuleViewOf });
}

export async function updateBindingRule(
  service: Service,
  { id, draft }: OperationInput<'binding-rule.update'>,
  request: Request,
): Promise<OperationOutput<'binding-rule.update'>> {
  const body = { kind: 'BindingRule', namespace: draft.namespace } as const;
  const { namespace, existing } = toUpdate(service, BINDING_RULES, id, { request, body });
  const rule = applyBindingRuleUpdate(existing, draft, {
    ...lookupsIn(service, namespace),
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
  const rule = toDelete(service, BINDING_RULES, id, request);
  if (rule === undefined) return nothingDeleted(service);
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
    show: bindingRuleViewOf,
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

function bindingRuleViewOf(rule: BindingRule): BindingRuleView {
  return { kind: 'binding-rule', rule };
}
