// Binding rules. A rule belongs to one auth method for its whole life, and goes with it.

import type { BindingRule } from '../../acl/binding-rule.ts';
import {
  bindingRuleMethodChanged,
  bindingRuleToUpdateMissing,
  unknownAuthMethod,
} from '../../acl/refusals.ts';
import type { Unstamped } from '../../acl/stamped.ts';
import { nameKey } from '../../acl/values/names.ts';
import type { ChangeOf } from '../commands/commands.ts';
import type { Answer } from '../commands/outcome.ts';
import { readAuthMethod, readBindingRule } from '../reads/reads.ts';
import { BINDING_RULES } from '../rows/objects/objects.ts';
import { type ApplyContext, requireCas, requireFreshId, requireNamespace } from './checks.ts';

export function applyBindingRuleSet(
  context: ApplyContext,
  { presence, rule }: ChangeOf<'binding-rule.set'>,
): Answer {
  const made = presence === 'create' ? created(context, rule) : updated(context, rule);
  context.changes.put(BINDING_RULES, made);
  return { type: 'binding-rule', rule: made };
}

function created(context: ApplyContext, rule: Unstamped<BindingRule>): BindingRule {
  const { changes } = context;
  requireNamespace(context, rule.namespace);
  requireFreshId('Binding Rule', rule.id, readBindingRule(changes, rule.id));
  requireCas(context, undefined);
  requireMethod(context, rule);
  return { ...rule, createIndex: changes.nextIndex, modifyIndex: changes.nextIndex };
}

function updated(context: ApplyContext, rule: Unstamped<BindingRule>): BindingRule {
  const { changes } = context;
  const existing = readBindingRule(changes, rule.id);
  if (existing?.namespace !== rule.namespace) throw bindingRuleToUpdateMissing(rule.id);
  requireCas(context, existing);
  if (nameKey(existing.authMethod) !== nameKey(rule.authMethod)) {
    throw bindingRuleMethodChanged();
  }
  requireMethod(context, rule);
  const { id, authMethod, createIndex } = existing;
  return { ...rule, id, authMethod, createIndex, modifyIndex: changes.nextIndex };
}

function requireMethod({ changes }: ApplyContext, rule: Unstamped<BindingRule>): void {
  const method = readAuthMethod(changes, rule.namespace, rule.authMethod);
  if (method === undefined) throw unknownAuthMethod(rule.authMethod);
}

export function applyBindingRuleDelete(
  context: ApplyContext,
  { id }: ChangeOf<'binding-rule.delete'>,
): Answer {
  const rule = readBindingRule(context.changes, id);
  requireCas(context, rule);
  if (rule !== undefined) context.changes.delete(BINDING_RULES, rule);
  return { type: 'deleted', existed: rule !== undefined };
}
