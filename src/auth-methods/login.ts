// From a validated identity to what its token may do: the namespace by namespace rules, the links by
// binding rules (compatibility.md 7.4). Pure.

import { unreachable } from '../../cluster/base/unreachable.ts';
import type { AuthMethod } from '../acl/auth-method.ts';
import type { BindingRule, BindType } from '../acl/binding-rule.ts';
import { requireBoundName } from '../acl/checks/binding-rule-checks.ts';
import { identityLists } from '../acl/checks/identity-checks.ts';
import { uniqueIds } from '../acl/checks/links.ts';
import { AclError } from '../acl/error.ts';
import type { Identities } from '../acl/identities.ts';
import { DEFAULT_NAMESPACE, type NamespaceName, type PolicyId, type RoleId } from '../acl/ids.ts';
import { requireNamespaceName } from '../acl/values/names.ts';
import { interpolate } from './binding/interpolate.ts';
import { compileSelector } from './binding/selector.ts';
import type { AttributeNames, Identity } from './identity.ts';
import { refused } from './refused.ts';

/**
 * So much may the selectors of one login cost together, in the steps of `Selector`: about half a second at the
 * worst, in which the server does nothing else. Rules are written by administrators of single namespaces, too.
 */
const SELECTOR_STEPS_MAX = 10_000_000;
/** To read a character of a selector takes about as long as so many steps. */
const READING_STEPS = 4;

export interface LoginLookups {
  /** Names in any letter case, in that very namespace. */
  policyId(name: string, namespace: NamespaceName): PolicyId | undefined;
  roleId(name: string, namespace: NamespaceName): RoleId | undefined;
  namespaceExists(name: NamespaceName): boolean;
}

export interface LoginInput {
  readonly method: Pick<AuthMethod, 'name' | 'namespace' | 'namespaceRules'>;
  /** What the method's validator says about it. */
  readonly names: AttributeNames;
  readonly identity: Identity;
  /** The binding rules of the method, in the order of their ids; none is asked for behind one that refuses. */
  readonly rules: Iterable<BindingRule>;
  readonly lookups: LoginLookups;
  /** Where node identities are valid: the datacenter of the login. */
  readonly datacenter: string;
  readonly meta: Readonly<Record<string, string>>;
  readonly flow: 'login' | 'oidc';
}

/** What the new token will say. Ids, times and secrets are the caller's. */
export interface LoginGrant extends Identities {
  readonly namespace: NamespaceName;
  readonly description: string;
  readonly policies: readonly PolicyId[];
  readonly roles: readonly RoleId[];
}

/**
 * What a login grants. Throws AclError: 'login-refused' when a template cannot be filled in or gives
 * an invalid name, 'permission-denied' when nothing is bound.
 */
export function computeLogin(input: LoginInput): LoginGrant {
  const steps = loginSteps(input);
  const { namespace } = steps.place();
  const bound: Binding[] = [];
  for (const { outcome } of steps.judgedRules(namespace)) {
    if (outcome instanceof AclError) throw outcome;
    if (outcome.kind === 'bound') bound.push(outcome);
  }
  return grantOf(input, namespace, bound);
}

/** What one rule came to. An AclError refuses the login: no rule behind it is looked at. */
export interface JudgedRule {
  readonly rule: BindingRule;
  readonly outcome: RuleOutcome | AclError;
}

export type RuleOutcome =
  | Binding
  /** `target-missing`: there is no role or policy of that name, so it binds nothing. */
  | { readonly kind: 'target-missing'; readonly name: string }
  | { readonly kind: 'not-selected' | 'selector-invalid' };

/** What a rule binds. */
export interface Binding {
  readonly kind: 'bound';
  readonly name: string;
  readonly target: Target;
}

/** Where the token is to be, and the place of the namespace rule that says so; undefined where none does. */
export interface Place {
  readonly namespace: NamespaceName;
  readonly rule: number | undefined;
}

/** The steps of one login, to be taken in this order: what they may cost is counted together. */
export interface LoginSteps {
  /** Throws 'login-refused' for a namespace that there is not, and when the login costs too much. */
  place(): Place;
  /** Each rule as it is asked for, up to the one that refuses. */
  judgedRules(namespace: NamespaceName): Iterable<JudgedRule>;
}

export function loginSteps(input: LoginInput): LoginSteps {
  const effort = new Effort();
  return {
    place: () => bindNamespace(input, effort),
    *judgedRules(namespace) {
      const context = { ...input, namespace, effort };
      for (const rule of input.rules) {
        const outcome = attempt(() => bind(rule, context));
        yield { rule, outcome };
        if (outcome instanceof AclError) return;
      }
    },
  };
}

/** What the selectors of one login may still cost. */
class Effort {
  #leftSteps = SELECTOR_STEPS_MAX;

  spend(steps: number): void {
    this.#leftSteps -= steps;
    if (this.#leftSteps >= 0) return;
    throw refused('the selectors in the rules of the auth method take too long');
  }
}

/**
 * What the method maps an identity to decides, or the first namespace rule that matches; without one the token is
 * where its method is.
 */
function bindNamespace({ method, names, identity, lookups }: LoginInput, effort: Effort): Place {
  const home = { namespace: method.namespace, rule: undefined };
  const { mappedNamespace } = identity;
  if (method.namespace !== DEFAULT_NAMESPACE) return home;
  if (mappedNamespace !== undefined) {
    return { namespace: placeNamed(mappedNamespace, lookups), rule: undefined };
  }
  const rule = method.namespaceRules.findIndex(
    ({ selector }) => selects(selector, { names, identity, effort }) === 'yes',
  );
  const template = method.namespaceRules[rule]?.bindNamespace;
  if (template === undefined) return home;
  return { namespace: placeNamed(interpolate(template, identity.interpolatable), lookups), rule };
}

function placeNamed(name: string, lookups: LoginLookups): NamespaceName {
  const namespace = asRefusal(
    () => requireNamespaceName(name),
    `invalid bind namespace: "${name}"`,
  );
  if (!lookups.namespaceExists(namespace)) throw refused(`namespace "${name}" does not exist`);
  return namespace;
}

/** A selector that does not compile is `invalid`: it selects nobody. Throws when the login costs too much. */
function selects(
  selector: string,
  { names, identity, effort }: Pick<BindContext, 'names' | 'identity' | 'effort'>,
): 'yes' | 'no' | 'invalid' {
  effort.spend(selector.length * READING_STEPS);
  const compiled = attempt(() => compileSelector(selector, names.selectable));
  if (compiled instanceof AclError) return 'invalid';
  effort.spend(compiled.stepsFor(identity.selectable));
  return compiled.matches(identity.selectable) ? 'yes' : 'no';
}

type Target =
  | { readonly kind: 'policy'; readonly id: PolicyId }
  | { readonly kind: 'role'; readonly id: RoleId }
  | { readonly kind: 'service' | 'node' }
  | { readonly kind: 'templated-policy'; readonly variable: string | undefined };

type BindContext = LoginInput & Pick<LoginGrant, 'namespace'> & { readonly effort: Effort };

/** Throws 'login-refused' when the name cannot be computed, or the login costs too much. */
function bind(rule: BindingRule, context: BindContext): RuleOutcome {
  const selected = selects(rule.selector, context);
  if (selected === 'invalid') return { kind: 'selector-invalid' };
  if (selected === 'no') return { kind: 'not-selected' };
  const names = boundNames(rule, context.identity);
  const target = targetOf(rule.bindType, names, context);
  const { name } = names;
  return target === undefined ? { kind: 'target-missing', name } : { kind: 'bound', name, target };
}

interface BoundNames {
  readonly name: string;
  readonly variable: string | undefined;
}

function boundNames({ bindType, bindName, bindVars }: BindingRule, identity: Identity): BoundNames {
  const name = interpolate(bindName, identity.interpolatable);
  const variable =
    bindVars === undefined ? undefined : interpolate(bindVars.name, identity.interpolatable);
  asRefusal(
    () => requireBoundName(bindType, name, variable),
    `invalid bind name: ${JSON.stringify(variable ?? name)}`,
  );
  return { name, variable };
}

/** Undefined where there is no role or policy of that name. */
function targetOf(
  bindType: BindType,
  { name, variable }: BoundNames,
  { lookups, namespace }: BindContext,
): Target | undefined {
  switch (bindType) {
    case 'service':
    case 'node':
      return { kind: bindType };
    case 'templated-policy':
      return { kind: bindType, variable };
    case 'role': {
      const id = linked(namespace, (place) => lookups.roleId(name, place));
      return id === undefined ? undefined : { kind: bindType, id };
    }
    case 'policy': {
      const id = linked(namespace, (place) => lookups.policyId(name, place));
      return id === undefined ? undefined : { kind: bindType, id };
    }
    default:
      return unreachable(bindType);
  }
}

/** A link resolves in the token's own namespace, then in `default` (decisions.md 4). */
function linked<Id>(
  namespace: NamespaceName,
  lookup: (namespace: NamespaceName) => Id | undefined,
): Id | undefined {
  return (
    lookup(namespace) ?? (namespace === DEFAULT_NAMESPACE ? undefined : lookup(DEFAULT_NAMESPACE))
  );
}

/** Throws 'permission-denied' when nothing is bound. */
export function grantOf(
  input: LoginInput,
  namespace: NamespaceName,
  bound: readonly Binding[],
): LoginGrant {
  if (bound.length === 0) throw new AclError('permission-denied', 'Permission denied');
  const namesOf = (kind: Target['kind']) =>
    bound.filter(({ target }) => target.kind === kind).map(({ name }) => name);
  const identities = identityLists(
    {
      serviceIdentities: namesOf('service').map((serviceName) => ({ serviceName })),
      nodeIdentities: namesOf('node').map((nodeName) => ({
        nodeName,
        datacenter: input.datacenter,
      })),
      templatedPolicies: bound.flatMap(({ name, target }) =>
        target.kind === 'templated-policy'
          ? [{ templateName: name, variables: { name: target.variable } }]
          : [],
      ),
    },
    'global token',
  );
  const targets = bound.map(({ target }) => target);
  return {
    namespace,
    description: descriptionOf(input),
    policies: uniqueIds(targets.flatMap((target) => (target.kind === 'policy' ? [target.id] : []))),
    roles: uniqueIds(targets.flatMap((target) => (target.kind === 'role' ? [target.id] : []))),
    ...identities,
  };
}

function descriptionOf({ flow, meta }: LoginInput): string {
  const text = flow === 'oidc' ? 'token created via OIDC login' : 'token created via login';
  const keys = Object.keys(meta).sort((left, right) => (left < right ? -1 : 1));
  if (keys.length === 0) return text;
  const pairs = keys.map((key) => `${JSON.stringify(key)}:${JSON.stringify(meta[key])}`);
  return `${text}: {${pairs.join(',')}}`;
}

/** The value, or the AclError that `action` threw; other errors pass. */
export function attempt<T>(action: () => T): T | AclError {
  try {
    return action();
  } catch (error) {
    if (error instanceof AclError) return error;
    throw error;
  }
}

/** Turns a refusal of a check into a refused login with `message`. */
function asRefusal<T>(action: () => T, message: string): T {
  const value = attempt(action);
  if (value instanceof AclError) throw refused(message, value);
  return value;
}
