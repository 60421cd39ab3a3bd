// The namespace that a request means: the first that is present of the body's field, the `ns`
// parameter, the header, the namespace of the caller's own token, and `default`.

import type { NamespaceRule } from '../../acl/auth-method.ts';
import { AclError } from '../../acl/error.ts';
import { DEFAULT_NAMESPACE, type NamespaceName } from '../../acl/ids.ts';
import type { NamespaceScope } from '../../acl/namespace-selection.ts';
import { unknownNamespace } from '../../acl/refusals.ts';
import type { Token } from '../../acl/token.ts';
import { isNamespaceName } from '../../acl/values/names.ts';
import { quoted } from '../../rules/source-text.ts';
import type { StateView } from '../../state/view.ts';
import type { Call } from '../call.ts';
import type { Request, Service } from '../service.ts';
import type { Caller } from './caller.ts';
import { mayAcl } from './permissions.ts';

/** `ns=*`, in lists alone. */
export const ALL_NAMESPACES = '*';

export interface SelectedNamespace {
  readonly name: NamespaceName;
  /** Whether the request named it, rather than the caller's token or nothing at all. */
  readonly isExplicit: boolean;
}

export interface NamespaceSources {
  readonly call: Pick<Call, 'namespaceParameter' | 'namespaceHeader'>;
  /** The token of the caller; undefined where there is none (login). */
  readonly token: Pick<Token, 'namespace'> | undefined;
  readonly isEnabled: boolean;
}

/** The `Namespace` field of a body, which is called by its kind when it cannot be decoded. */
export interface NamespaceField {
  readonly kind: 'Policy' | 'Token' | 'Role' | 'BindingRule' | 'AuthMethod' | 'Login';
  readonly namespace: string | undefined;
}

/**
 * The one namespace of a request. Throws 'malformed' when the feature is off and the request uses it,
 * or when it asks for all of them.
 */
export function selectNamespace(
  sources: NamespaceSources,
  body?: NamespaceField,
): SelectedNamespace {
  requireEnabled(sources, body);
  const named = namespaceNamed(given(body?.namespace) ?? namedByCall(sources));
  if (named !== undefined) return { name: named, isExplicit: true };
  return { name: sources.token?.namespace ?? DEFAULT_NAMESPACE, isExplicit: false };
}

/**
 * The namespace of that name, whether there is one or not; undefined where none is named. Throws 'malformed' for
 * all of them, and for what no namespace can be called.
 */
export function namespaceNamed(text: string | undefined): NamespaceName | undefined {
  const named = given(text);
  if (named === undefined) return undefined;
  if (named === ALL_NAMESPACES) {
    throw new AclError('malformed', 'Only lists can be asked for all namespaces');
  }
  return namespaceCalled(named);
}

/** Throws 'malformed' for what no namespace can be called. */
export function namespaceCalled(text: string): NamespaceName {
  if (isNamespaceName(text)) return text;
  throw new AclError(
    'malformed',
    `Invalid namespace ${quoted(text)}: no namespace has such a name`,
  );
}

/** The namespaces that a list shows. Throws as `selectNamespace` does. */
export function selectScope(sources: NamespaceSources): NamespaceScope {
  requireEnabled(sources);
  if (namedByCall(sources) === ALL_NAMESPACES) return { kind: 'all' };
  return { kind: 'one', name: selectNamespace(sources).name };
}

/** `selectNamespace` for a caller of the service. */
export function namespaceOf(
  { settings }: Pick<Service, 'settings'>,
  { call }: Pick<Request, 'call'>,
  caller: Pick<Caller, 'token'> | undefined,
  body?: NamespaceField,
): SelectedNamespace {
  const isEnabled = settings.namespacesEnabled;
  return selectNamespace({ call, token: caller?.token, isEnabled }, body);
}

/** What a request for an object by its id comes to. */
export interface Addressed<T> {
  /** Whose rights count. */
  readonly namespace: SelectedNamespace;
  /** Undefined where there is none in that namespace. */
  readonly object: T | undefined;
  /** The one that has the id and lives in another namespace. */
  readonly elsewhere: T | undefined;
}

/**
 * `found` by its id, which is unique in all namespaces: in a request for another namespace than its own there is no
 * such object. While namespaces are off nobody can name one: then it is its own that the request means, so that what
 * was made before can still be seen and revoked. Throws as `selectNamespace` does.
 */
export function addressed<T extends { readonly namespace: NamespaceName }>(
  service: Pick<Service, 'settings'>,
  request: Pick<Request, 'call'>,
  caller: Pick<Caller, 'token'>,
  { found, body }: { readonly found: T | undefined; readonly body?: NamespaceField },
): Addressed<T> {
  const selected = namespaceOf(service, request, caller, body);
  if (found === undefined || found.namespace === selected.name) {
    return { namespace: selected, object: found, elsewhere: undefined };
  }
  if (service.settings.namespacesEnabled) {
    return { namespace: selected, object: undefined, elsewhere: found };
  }
  const namespace = { ...selected, name: found.namespace };
  return { namespace, object: found, elsewhere: undefined };
}

/**
 * Throws 'malformed' where a request that names no namespace means one in which there is nothing to delete, to whoever
 * may delete the object where it lives: clients that look at the status alone take a `false` for done, and what was to
 * be revoked would live on.
 */
export function requireNotElsewhere(
  caller: Caller,
  { isExplicit }: SelectedNamespace,
  kind: 'policy' | 'role' | 'binding rule' | 'token',
  elsewhere: { readonly namespace: NamespaceName } | undefined,
): void {
  if (isExplicit || elsewhere === undefined || !mayAcl(caller, 'write', elsewhere.namespace))
    return;
  const home = quoted(elsewhere.namespace);
  throw new AclError(
    'malformed',
    `the ${kind} lives in namespace ${home}: name it (ns) to delete it`,
  );
}

/** The namespace for the words of a refusal: only one that the request named. */
export function namedNamespace({ name, isExplicit }: SelectedNamespace): string | undefined {
  return isExplicit ? name : undefined;
}

/** Throws 'invalid' unless the namespace exists. Ask for the caller's rights first. */
export function requireNamespaceExists(view: Pick<StateView, 'namespace'>, name: string): void {
  if (name === DEFAULT_NAMESPACE || view.namespace(name) !== undefined) return;
  throw unknownNamespace(name);
}

/** Throws 'malformed' for a query parameter of the feature while it is off. */
export function requireParameterEnabled(
  parameter: string,
  value: string | undefined,
  isEnabled: boolean,
): void {
  if (isEnabled || given(value) === undefined) return;
  throw notEnabled(`Invalid query parameter: "${parameter}"`);
}

/** What of an auth method says in which namespaces its tokens are made. */
export interface PlacingRules {
  readonly namespaceRules: readonly NamespaceRule[];
  /** What its Config says of that, as one text; '' where it says nothing. Asked while the feature is off. */
  readonly mapping: () => string;
}

/**
 * Throws 'malformed' for rules that an auth method is given while the feature is off. Those that it had before stay:
 * whoever changes something else of it, a key perhaps, sends them along.
 */
export function requireRulesEnabled(
  { settings }: Pick<Service, 'settings'>,
  after: PlacingRules,
  before: PlacingRules | undefined,
): void {
  if (settings.namespacesEnabled) return;
  if (!areKept(after.namespaceRules, before?.namespaceRules ?? [])) {
    throw notEnabled('AuthMethod decoding failed: json: unknown field "NamespaceRules"');
  }
  const mapping = after.mapping();
  if (mapping === '' || mapping === before?.mapping()) return;
  throw notEnabled('Invalid Auth Method: Config.MapNamespaces');
}

/** Whether there are none, or all of those before, in their order, and no others. */
function areKept(rules: readonly NamespaceRule[], before: readonly NamespaceRule[]): boolean {
  if (rules.length === 0) return true;
  const isKept = ({ selector, bindNamespace }: NamespaceRule, place: number): boolean =>
    selector === before[place]?.selector && bindNamespace === before[place].bindNamespace;
  return rules.length === before.length && rules.every(isKept);
}

function namedByCall({ call }: NamespaceSources): string | undefined {
  return given(call.namespaceParameter) ?? given(call.namespaceHeader);
}

/** The empty text counts as absent. */
function given(text: string | undefined): string | undefined {
  return text === '' ? undefined : text;
}

function requireEnabled({ call, isEnabled }: NamespaceSources, body?: NamespaceField): void {
  if (isEnabled) return;
  if (given(body?.namespace) !== undefined) {
    const what =
      body?.kind === 'Login' ? 'Failed to decode request body' : `${body?.kind} decoding failed`;
    throw notEnabled(`${what}: json: unknown field "Namespace"`);
  }
  requireParameterEnabled('ns', call.namespaceParameter, isEnabled);
  if (given(call.namespaceHeader) !== undefined) {
    throw notEnabled('Invalid header: "X-Service-Namespace"');
  }
}

function notEnabled(what: string): AclError {
  return new AclError('malformed', `${what} - Namespaces are not enabled`);
}
