// Logging in through an auth method, and logging out again. Who somebody is decides the method's
// validator; what they may do, the binding rules; this file makes the token of it.

import type { AuthMethod } from '../../acl/auth-method.ts';
import type { TtlLimits } from '../../acl/checks/token-expiry.ts';
import { AclError, invalid } from '../../acl/error.ts';
import { withTokenHash } from '../../acl/hash.ts';
import { DEFAULT_NAMESPACE, type NamespaceName } from '../../acl/ids.ts';
import type { Unstamped } from '../../acl/stamped.ts';
import type { Token } from '../../acl/token.ts';
import { instantNs, instantOfMs, instantOfNs } from '../../acl/values/instant.ts';
import type { Identity } from '../../auth-methods/identity.ts';
import {
  computeLogin,
  type LoginGrant,
  type LoginInput,
  type LoginLookups,
} from '../../auth-methods/login.ts';
import { dependencyOf, methodDependency } from '../dependencies.ts';
import { freshToken } from '../objects/tokens.ts';
import type { OperationInput, OperationOutput } from '../operations.ts';
import { LinkRoom } from '../rights/link-room.ts';
import { namespaceOf } from '../rights/select-namespace.ts';
import type { Request, Service } from '../service.ts';
import type { TokenView, WriteResult } from '../views.ts';
import { commit } from '../writes/commit.ts';

/** Of the metadata of a login, names and values together, in UTF-16 units: all of it is in the token. */
const META_LENGTH_MAX = 8192;

export async function login(
  service: Service,
  { authMethod, bearerToken, meta, namespace }: OperationInput<'login'>,
  request: Request,
): Promise<OperationOutput<'login'>> {
  requireShortMeta(meta);
  const method = requireLoginMethod(service, request, { authMethod, namespace });
  const result = await countedLogin(service, method, async () => {
    const identity = await service.authMethods.types[method.type].validate(method, bearerToken);
    return mintToken(service, { method, identity, meta, flow: 'login' }, request);
  });
  return result;
}

/** Throws 'invalid' for more than a description is for. */
export function requireShortMeta(meta: Readonly<Record<string, string>>): void {
  const length = Object.entries(meta)
    .flat()
    .reduce((sum, text) => sum + text.length, 0);
  if (length <= META_LENGTH_MAX) return;
  throw invalid(`Meta may have at most ${META_LENGTH_MAX} characters, and has ${length}`);
}

/** The token that is presented is given back. Also an expired one, until it is deleted. */
export async function logout(
  service: Service,
  _input: OperationInput<'logout'>,
  request: Request,
): Promise<OperationOutput<'logout'>> {
  const { secret } = request.call;
  if (secret === undefined) throw new AclError('unauthenticated', 'Supplied token does not exist');
  const token = service.view.tokenBySecret(secret);
  if (token === undefined) throw new AclError('token-unknown', 'ACL not found');
  if (token.authMethod === undefined) {
    throw new AclError('permission-denied', "Permission denied: token wasn't created via login");
  }
  const change = { type: 'token.delete', accessorId: token.accessorId } as const;
  const result = await commit(service, request, change, 'deleted');
  service.metrics.count('acl.logout');
  return result;
}

/** The method of a login. Nobody's token counts here, so neither does a token's namespace. */
export function loginMethodOf(
  service: Service,
  request: Pick<Request, 'call'>,
  wanted: { readonly authMethod: string; readonly namespace: string | undefined },
): AuthMethod | undefined {
  const body = { kind: 'Login', namespace: wanted.namespace } as const;
  const { name } = namespaceOf(service, request, undefined, body);
  return service.view.authMethod(name, wanted.authMethod);
}

/** The same; refuses an unknown one. */
export function requireLoginMethod(
  service: Service,
  request: Pick<Request, 'call'>,
  wanted: { readonly authMethod: string; readonly namespace: string | undefined },
): AuthMethod {
  const method = loginMethodOf(service, request, wanted);
  if (method !== undefined) return method;
  throw new AclError(
    'permission-denied',
    `ACL not found: auth method "${wanted.authMethod}" not found`,
  );
}

/** Runs a login and counts how it went. */
export async function countedLogin<T>(
  { metrics }: Service,
  { name }: AuthMethod,
  action: () => Promise<T>,
): Promise<T> {
  try {
    const result = await action();
    metrics.count('acl.login', { method: name, result: 'granted' });
    return result;
  } catch (error) {
    const result = error instanceof AclError ? error.code : 'failed';
    metrics.count('acl.login', { method: name, result });
    throw error;
  }
}

export interface Login {
  readonly method: AuthMethod;
  readonly identity: Identity;
  readonly meta: Readonly<Record<string, string>>;
  readonly flow: 'login' | 'oidc';
}

/**
 * What the binding rules of a method may bind to. Rules outside `default` are written by
 * administrators of one namespace, who cannot lend what is not theirs: they reach that one alone.
 */
function lookupsFrom(view: Service['view'], home: NamespaceName): LoginLookups {
  const reaches = (namespace: NamespaceName): boolean =>
    home === DEFAULT_NAMESPACE || namespace === home;
  const room = new LinkRoom('login-refused');
  const idOf = <Id extends string>(target: { readonly id: Id } | undefined): Id | undefined => {
    if (target !== undefined) room.take(target);
    return target?.id;
  };
  return {
    policyId: (name, place) => (reaches(place) ? idOf(view.policyByName(place, name)) : undefined),
    roleId: (name, place) => (reaches(place) ? idOf(view.roleByName(place, name)) : undefined),
    namespaceExists: (name: NamespaceName) => view.namespace(name) !== undefined,
  };
}

/**
 * Asking a provider may take long, and the method may be changed meanwhile: who was judged by what it said
 * before, and perhaps by a key that was taken out of it, is not let in. Of one that is gone the log refuses
 * the token.
 */
export function requireUnchanged({ view }: Service, method: AuthMethod): void {
  const { namespace, name, modifyIndex } = method;
  const now = view.authMethod(namespace, name);
  if (now === undefined || now.modifyIndex === modifyIndex) return;
  const text = `auth method "${name}" was changed during the login, log in again`;
  throw new AclError('login-refused', text);
}

/**
 * Makes the token of a validated identity. Rejects with 'permission-denied' when nothing is bound, with
 * 'login-refused' when the method is not any more what the identity was validated by.
 */
export function mintToken(
  service: Service,
  given: Login,
  request: Request,
): Promise<WriteResult<TokenView>> {
  const { method } = given;
  requireUnchanged(service, method);
  const grant = computeLogin(inputOf(service, given, request));
  const token = tokenOf(service, method, grant);
  const change = { type: 'token.set', presence: 'create', token } as const;
  // A role or policy that is being deleted binds nothing, and must not refuse what else is bound.
  const checkedAgainst = [
    methodDependency(method.namespace, method.name),
    ...grant.policies.map((id) => dependencyOf('policies', id)),
    ...grant.roles.map((id) => dependencyOf('roles', id)),
  ];
  return commit(service, { ...request, checkedAgainst }, change, 'token');
}

/** What a login is computed from, as of now. */
export function inputOf(
  { view, settings, authMethods }: Service,
  given: Login,
  { call }: Pick<Request, 'call'>,
): LoginInput {
  const { method } = given;
  return {
    ...given,
    names: authMethods.types[method.type].attributeNames(method),
    rules: view.bindingRulesOf(method.namespace, method.name),
    lookups: lookupsFrom(view, method.namespace),
    datacenter: call.askedIn ?? settings.datacenter,
  };
}

/** How long the tokens of a method live here, in nanoseconds, where they expire at all. */
export function tokenTtlNs({ maxTokenTtlNs }: AuthMethod, { maxTtlNs }: TtlLimits): bigint {
  // The bound of this datacenter may be lower than the one that the method was checked by.
  return maxTokenTtlNs < maxTtlNs ? maxTokenTtlNs : maxTtlNs;
}

function tokenOf(service: Service, method: AuthMethod, grant: LoginGrant): Unstamped<Token> {
  const { nowMs, freshAccessorId, freshSecretId, limits } = freshToken(service);
  const { name, namespace, createIndex } = method;
  const createTime = instantOfMs(nowMs);
  const ttlNs = tokenTtlNs(method, limits);
  const expirationTime =
    method.maxTokenTtlNs === 0n ? undefined : instantOfNs(instantNs(createTime) + ttlNs);
  return withTokenHash({
    ...grant,
    accessorId: freshAccessorId,
    secretId: freshSecretId,
    local: method.tokenLocality !== 'global',
    authMethod: { name, namespace, createIndex },
    createTime,
    expirationTime,
  });
}
