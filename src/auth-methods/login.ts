// From a validated identity to what its token may do: the namespace by namespace rules, the links by
// binding rules (compatibility.md 7.4). Pure.

import { unreachable } from '../../cluster/base/unreachable.ts';
import type { AuthMethod } from '../acl/auth-method.ts';
import type { BindingRule, BindType } from '../acl/binding-rule.ts';
import { requireBoundName } from '../acl/binding-rule-checks.ts';
import { AclError } from '../acl/error.ts';
import type { NodeIdentity, ServiceIdentity, TemplatedPolicy } from '../acl/identities.ts';
import { identityLists } from '../acl/identity-checks.ts';
import { DEFAULT_NAMESPACE, type NamespaceName, type PolicyId, type RoleId } from '../acl/ids.ts';
import { requireNamespaceName } from '../acl/names.ts';
import { interpolate } from './binding/interpolate.ts';
import { compileSelector } from './binding/selector.ts';
import type { AttributeNames, Identity } from './identity.ts';
import { refused } from './jwt/jws.ts';

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
export interface LoginGrant {
  readonly namespace: NamespaceName;
  readonly description: string;
  readonly policies: readonly PolicyId[];
  readonly roles: readonly RoleId[];
  readonly serviceIdentities: readonly ServiceIdentity[];
  readonly nodeIdentities: readonly NodeIdentity[];
  readonly templatedPolicies: readonly TemplatedPolicy[];
}

/**
 * What a login grants. Throws AclError: 'login-refused' when a template cannot be filled in or gives
 * an invalid name, 'permission-denied' when nothing is bound.
 */
export function computeLogin(input: LoginInput): LoginGrant {
  const effort = new Effort();
  const namespace = bindNamespace(input, effort);
  const context = { ...input, namespace, effort };
  const bound: Binding[] = [];
  for (const rule of input.rules) {
    const binding = bind(rule, context);
    if (binding !== undefined) bound.push(binding);
  }
  return grantOf(input, namespace, bound);
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
function bindNamespace(
  { method, names, identity, lookups }: LoginInput,
  effort: Effort,
): NamespaceName {
  const { mappedNamespace } = identity;
  if (method.namespace !== DEFAULT_NAMESPACE) return method.namespace;
  if (mappedNamespace !== undefined) return placeNamed(mappedNamespace, lookups);
  const rule = method.namespaceRules.find(({ selector }) =>
    selects(selector, { names, identity, effort }),
  );
  if (rule === undefined) return method.namespace;
  return placeNamed(interpolate(rule.bindNamespace, identity.interpolatable), lookups);
}

function placeNamed(name: string, lookups: LoginLookups): NamespaceName {
  const namespace = asRefusal(
    () => requireNamespaceName(name),
    `invalid bind namespace: "${name}"`,
  );
  if (!lookups.namespaceExists(namespace)) throw refused(`namespace "${name}" does not exist`);
  return namespace;
}

/** A selector that does not compile (any more) selects nobody. Throws when the login costs too much. */
function selects(
  selector: string,
  { names, identity, effort }: Pick<BindContext, 'names' | 'identity' | 'effort'>,
): boolean {
  effort.spend(selector.length * READING_STEPS);
  const compiled = attempt(() => compileSelector(selector, names.selectable));
  if (compiled instanceof AclError) return false;
  effort.spend(compiled.stepsFor(identity.selectable));
  return compiled.matches(identity.selectable);
}

type Target =
  | { readonly kind: 'policy'; readonly id: PolicyId }
  | { readonly kind: 'role'; readonly id: RoleId }
  | { readonly kind: 'service' | 'node' }
  | { readonly kind: 'templated-policy'; readonly variable: string | undefined };

/** What a rule binds. */
interface Binding {
  readonly name: string;
  readonly target: Target;
}

type BindContext = LoginInput & Pick<LoginGrant, 'namespace'> & { readonly effort: Effort };

/** Undefined: nothing. Throws 'login-refused' when the name cannot be computed, or the login costs too much. */
function bind(rule: BindingRule, context: BindContext): Binding | undefined {
  if (!selects(rule.selector, context)) return undefined;
  const names = boundNames(rule, context.identity);
  const target = targetOf(rule.bindType, names, context);
  return target && { name: names.name, target };
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

function grantOf(
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
    policies: unique(targets.flatMap((target) => (target.kind === 'policy' ? [target.id] : []))),
    roles: unique(targets.flatMap((target) => (target.kind === 'role' ? [target.id] : []))),
    ...identities,
  };
}

function unique<T>(items: readonly T[]): readonly T[] {
  return [...new Set(items)];
}

function descriptionOf({ flow, meta }: LoginInput): string {
  const text = flow === 'oidc' ? 'token created via OIDC login' : 'token created via login';
  const keys = Object.keys(meta).sort((left, right) => (left < right ? -1 : 1));
  if (keys.length === 0) return text;
  const pairs = keys.map((key) => `${JSON.stringify(key)}:${JSON.stringify(meta[key])}`);
  return `${text}: {${pairs.join(',')}}`;
}

/** The value, or the AclError that `action` threw; other errors pass. */
function attempt<T>(action: () => T): T | AclError {
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
