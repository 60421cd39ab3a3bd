// What a valid binding rule is, and what a computed name must look like to be bound: at login the
// same check decides. Selectors and name templates are read by the auth method's own checkers, which
// come as functions. The texts are compatibility 4.3 and 7.4.

import { unreachable } from '../../../cluster/base/unreachable.ts';
import { BIND_TYPES, type BindingRule, type BindType } from '../binding-rule.ts';
import { templateNamed, templateProblem } from '../built-in/templates.ts';
import { AclError, invalid } from '../error.ts';
import { type BindingRuleId, isUuid, type NamespaceName } from '../ids.ts';
import {
  bindingRuleMethodChanged,
  bindingRuleToUpdateMissing,
  requireSameAddress,
} from '../refusals.ts';
import type { Unstamped } from '../stamped.ts';
import { isIdentityName, isRoleName, nameKey } from '../values/names.ts';
import type { BindingRuleDraft } from './drafts.ts';

/** All rules of an auth method are read by each login, and by its deletion at once. */
const DESCRIPTION_LENGTH_MAX = 4096;

/** What the auth method of a rule knows: its own name and the attributes of its identities. */
export interface BindingTarget {
  readonly name: string;
  /** Throws AclError with the reason when a selector cannot be read or names an unknown attribute. */
  requireSelector(selector: string): void;
  /** The text with some value for each attribute. Throws AclError when an attribute is unknown. */
  sampleOf(template: string): string;
}

export interface BindingRuleLookups {
  /** The auth method in the rule's namespace. Throws the refusal of an unknown one. */
  requireMethod(name: string): BindingTarget;
}

export interface NewBindingRuleGiven extends BindingRuleLookups {
  readonly freshId: BindingRuleId;
  readonly namespace: NamespaceName;
}

export interface BindingRuleUpdateGiven extends BindingRuleLookups {
  /** The id of the path. */
  readonly pathId: string;
}

/** The binding rule that a create asks for. Throws 'id-mismatch' or 'invalid'. */
export function buildNewBindingRule(
  draft: BindingRuleDraft,
  given: NewBindingRuleGiven,
): Unstamped<BindingRule> {
  requireSameAddress('BindingRule ID', { path: '', body: draft.id });
  const authMethod = draft.authMethod ?? '';
  if (authMethod === '') throw invalid('Invalid Binding Rule: no AuthMethod is set');
  const target = given.requireMethod(authMethod);
  return ruleOf(draft, { id: given.freshId, namespace: given.namespace }, target);
}

/**
 * The binding rule that an update leaves behind: an absent auth method is filled in, the rest is
 * replaced. `existing` is undefined when the path names no rule.
 */
export function applyBindingRuleUpdate(
  existing: BindingRule | undefined,
  draft: BindingRuleDraft,
  given: BindingRuleUpdateGiven,
): Unstamped<BindingRule> {
  requireSameAddress('BindingRule ID', { path: given.pathId, body: draft.id });
  if (!isUuid(given.pathId)) throw invalid('Binding Rule ID invalid UUID');
  if (existing === undefined) throw bindingRuleToUpdateMissing(given.pathId);
  const wanted = draft.authMethod ?? '';
  if (wanted !== '' && nameKey(wanted) !== nameKey(existing.authMethod)) {
    throw bindingRuleMethodChanged();
  }
  const target = given.requireMethod(existing.authMethod);
  return ruleOf(draft, { id: existing.id, namespace: existing.namespace }, target);
}

function ruleOf(
  draft: BindingRuleDraft,
  fixed: Pick<BindingRule, 'id' | 'namespace'>,
  target: BindingTarget,
): Unstamped<BindingRule> {
  const { description = '', selector = '', bindType = '', bindName = '' } = draft;
  if (description.length > DESCRIPTION_LENGTH_MAX) {
    throw invalid(
      `Invalid Binding Rule: Description may have at most ${DESCRIPTION_LENGTH_MAX} characters`,
    );
  }
  if (selector !== '') requireSelector(selector, target);
  if (bindType === '') throw invalid('Invalid Binding Rule: no BindType is set');
  if (bindName === '') throw invalid('Invalid Binding Rule: no BindName is set');
  const variable = draft.bindVars?.name ?? '';
  if (variable !== '' && bindType !== 'templated-policy') {
    throw invalid(
      'invalid Binding Rule: BindVars cannot be set when bind type is not templated-policy.',
    );
  }
  const bindVars = variable === '' ? undefined : { name: variable };
  return {
    ...fixed,
    description,
    authMethod: target.name,
    selector,
    bindType: requireBinding({ bindType, bindName, bindVars }, target),
    bindName,
    bindVars,
  };
}

function requireSelector(selector: string, target: BindingTarget): void {
  try {
    target.requireSelector(selector);
  } catch (error) {
    throw wrapped('invalid Binding Rule: Selector is invalid', error);
  }
}

/** Tries the names with sample values, so that a rule that can never bind is refused when written. */
function requireBinding(
  binding: {
    readonly bindType: string;
    readonly bindName: string;
    readonly bindVars: { readonly name: string } | undefined;
  },
  target: BindingTarget,
): BindType {
  const bindType = BIND_TYPES.find((known) => known === binding.bindType);
  try {
    if (bindType === undefined) {
      throw invalid(`invalid Binding Rule: unknown BindType "${binding.bindType}"`);
    }
    const { bindName, bindVars } = binding;
    const variable = bindVars === undefined ? undefined : target.sampleOf(bindVars.name);
    requireSampleBound(bindType, target.sampleOf(bindName), variable);
    return bindType;
  } catch (error) {
    throw wrapped('Invalid Binding Rule: invalid BindName or BindVars', error);
  }
}

function requireSampleBound(bindType: BindType, name: string, variable: string | undefined): void {
  try {
    requireBoundName(bindType, name, variable);
  } catch (error) {
    throw wrapped(`failed to validate bindType "${bindType}"`, error);
  }
}

/** Refuses ('invalid') a computed name (and variable of a template) that cannot be bound. */
export function requireBoundName(
  bindType: BindType,
  name: string,
  variable: string | undefined,
): void {
  switch (bindType) {
    case 'service':
    case 'node':
      if (!isIdentityName(name)) throw invalidBindName(name);
      return;
    case 'role':
    case 'policy':
      if (!isRoleName(name)) throw invalidBindName(name);
      return;
    case 'templated-policy': {
      const template = templateNamed(name);
      if (template === undefined) throw invalidBindName(name);
      const variables = variable === undefined ? undefined : { name: variable };
      const problem = templateProblem(template.templateName, variables);
      if (problem !== undefined) throw invalid(problem);
      return;
    }
    default:
      unreachable(bindType);
  }
}

function invalidBindName(name: string): AclError {
  return invalid(`invalid bind name: "${name}"`);
}

/** A refusal with what was tried in front. A fault of the program itself is passed on as it is. */
function wrapped(what: string, cause: unknown): unknown {
  if (!(cause instanceof AclError)) return cause;
  return new AclError('invalid', `${what}: ${cause.message}`, { cause });
}
