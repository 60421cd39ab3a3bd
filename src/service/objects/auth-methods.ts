// The operations on auth methods. A write is an upsert: the name is the address. What a Config may
// hold is known to the method's own type, which may have to ask the outside before it is stored.

import type { AuthMethod } from '../../acl/auth-method.ts';
import { authMethodNameOf, buildAuthMethod } from '../../acl/checks/auth-method-checks.ts';
import type { AuthMethodDraft } from '../../acl/checks/drafts.ts';
import type { Unstamped } from '../../acl/stamped.ts';
import { pageKeyOf } from '../../state/reads/lists.ts';
import { methodDependency } from '../dependencies.ts';
import type { OperationInput, OperationOutput } from '../operations.ts';
import { readMetaOf } from '../reading.ts';
import { requireAcl } from '../rights/permissions.ts';
import { namespaceOf, type PlacingRules, requireRulesEnabled } from '../rights/select-namespace.ts';
import type { Request, Service } from '../service.ts';
import type { AuthMethodView, WriteResult } from '../views.ts';
import { commit, nothingDeleted } from '../writes/commit.ts';
import { Overtaken } from '../writes/under-way.ts';
import { type KindByName, placeOfNew, readByName } from './alike.ts';
import { listScopeOf } from './list-scope.ts';
import { listed } from './listing.ts';

const AUTH_METHODS: KindByName<AuthMethod> = {
  noun: 'auth method',
  table: 'auth-methods',
  named: (view, namespace, name) => view.authMethod(namespace, name),
};

export function createAuthMethod(
  service: Service,
  { draft }: OperationInput<'auth-method.create'>,
  request: Request,
): Promise<OperationOutput<'auth-method.create'>> {
  return writeAuthMethod(service, { draft, pathName: undefined }, request);
}

export function updateAuthMethod(
  service: Service,
  { name, draft }: OperationInput<'auth-method.update'>,
  request: Request,
): Promise<OperationOutput<'auth-method.update'>> {
  return writeAuthMethod(service, { draft, pathName: name }, request);
}

async function writeAuthMethod(
  service: Service,
  { draft, pathName }: { readonly draft: AuthMethodDraft; readonly pathName: string | undefined },
  request: Request,
): Promise<WriteResult<AuthMethodView>> {
  const wanted = { draft, pathName };
  const seen = allowedMethod(service, wanted, request);
  const { types } = service.authMethods;
  await types[seen.type].checkConfig({ ...seen, createIndex: 0, modifyIndex: 0 });
  // Whoever is asked may take long on purpose: what counts is what the caller may do now.
  const method = allowedMethod(service, wanted, request);
  if (method.type !== seen.type) throw new Overtaken(Promise.resolve());
  const change = { type: 'auth-method.set', presence: 'either', method } as const;
  // What a draft leaves out is taken from the method as it is: of one that is being deleted it would be made anew.
  const checkedAgainst = [methodDependency(method.namespace, method.name)];
  const result = await commit(service, { ...request, checkedAgainst }, change, 'auth-method');
  service.metrics.count('acl.authmethod.upsert');
  return result;
}

/** The method as it is to be stored, by somebody who may. Throws the refusal. */
function allowedMethod(
  service: Service,
  { draft, pathName }: { readonly draft: AuthMethodDraft; readonly pathName: string | undefined },
  request: Request,
): Unstamped<AuthMethod> {
  const body = { kind: 'AuthMethod', namespace: draft.namespace } as const;
  const { namespace } = placeOfNew(service, request, body);
  const existing = service.view.authMethod(namespace, authMethodNameOf(draft, pathName));
  const limits = service.settings.tokenLimits;
  const method = buildAuthMethod(existing, draft, { pathName, namespace, limits });
  const before = existing && placingRulesOf(service, existing);
  requireRulesEnabled(service, placingRulesOf(service, method), before);
  return method;
}

function placingRulesOf(
  { authMethods }: Service,
  method: Pick<AuthMethod, 'type' | 'namespaceRules' | 'config'>,
): PlacingRules {
  const { namespaceRules, type } = method;
  return { namespaceRules, mapping: () => authMethods.types[type].mappingText?.(method) ?? '' };
}

export function readAuthMethod(
  service: Service,
  { name }: OperationInput<'auth-method.read'>,
  { call }: Request,
): Promise<OperationOutput<'auth-method.read'>> {
  return readByName(service, AUTH_METHODS, name, { call, show: methodViewOf });
}

export async function deleteAuthMethod(
  service: Service,
  { name }: OperationInput<'auth-method.delete'>,
  request: Request,
): Promise<OperationOutput<'auth-method.delete'>> {
  const caller = service.callers.resolve(request.call.secret);
  const namespace = namespaceOf(service, request, caller).name;
  requireAcl(caller, 'write', namespace);
  const method = service.view.authMethod(namespace, name);
  if (method === undefined) return nothingDeleted(service);
  const change = { type: 'auth-method.delete', namespace, name: method.name } as const;
  const result = await commit(service, request, change, 'deleted');
  service.metrics.count('acl.authmethod.delete');
  return result;
}

export async function listAuthMethods(
  service: Service,
  { page }: OperationInput<'auth-method.list'>,
  request: Request,
): Promise<OperationOutput<'auth-method.list'>> {
  const meta = readMetaOf(service, 'auth-methods');
  const { scope, shows } = await listScopeOf(service, request);
  return listed({
    page,
    meta,
    fetch: (rest) => service.view.authMethods(scope, rest),
    keyOf: (method) => pageKeyOf(method),
    keeps: (method) => shows(method.namespace),
    show: methodViewOf,
  });
}

function methodViewOf(method: AuthMethod): AuthMethodView {
  return { kind: 'auth-method', method };
}
