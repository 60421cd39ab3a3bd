// The operations on tokens. Each reads from top to bottom: who asks, in which namespace, may they, is
// it right, into the log, the answer. What a valid token is says src/acl.

import {
  applyTokenUpdate,
  cloneToken as buildClone,
  buildNewToken,
  type FreshToken,
  requireDeletableToken,
} from '../../acl/checks/token-checks.ts';
import { isExpired } from '../../acl/checks/token-expiry.ts';
import { AclError } from '../../acl/error.ts';
import { type AccessorId, requireLookupUuid, secretIdOf } from '../../acl/ids.ts';
import { authMethodGone, tokenExpired, tokenMissing } from '../../acl/refusals.ts';
import type { Token } from '../../acl/token.ts';
import { hasLostNamespace, isOrphaned } from '../../state/reads/standing.ts';
import { watchKey } from '../../state/watch.ts';
import { dependencyOf } from '../dependencies.ts';
import type { OperationInput, OperationOutput } from '../operations.ts';
import { readMetaOf, readResultOf } from '../reading.ts';
import { NO_LINKS, requireMayAdd, requireMayLend } from '../rights/lent-rights.ts';
import { LinkRoom } from '../rights/link-room.ts';
import { mayAcl, requireAcl } from '../rights/permissions.ts';
import { addressed, requireNotElsewhere } from '../rights/select-namespace.ts';
import type { Request, Service } from '../service.ts';
import type { TokenView } from '../views.ts';
import { commit, nothingDeleted } from '../writes/commit.ts';
import { placeOfNew } from './alike.ts';
import { expandedTokenOf } from './expanded-token.ts';
import { tokenViewOf } from './make-views.ts';
import { tokenLinksOf } from './resolve-links.ts';

export async function createToken(
  service: Service,
  { draft }: OperationInput<'token.create'>,
  request: Request,
): Promise<OperationOutput<'token.create'>> {
  const { view } = service;
  const body = { kind: 'Token', namespace: draft.namespace } as const;
  const { caller, namespace } = placeOfNew(service, request, body);
  const { nowMs, freshAccessorId, freshSecretId, limits } = freshToken(service);
  // Field by field: spreading objects takes longer than making them, and this is the busiest write.
  const token = buildNewToken(draft, {
    nowMs,
    freshAccessorId,
    freshSecretId,
    limits,
    namespace,
    idInUse: (id) => view.idInUse(id),
    resolveLinks: () => tokenLinksOf(view, draft, namespace),
  });
  requireMayLend(view, caller, token);
  const isDrawn = token.accessorId === freshAccessorId && token.secretId === freshSecretId;
  const presence = isDrawn ? 'create-drawn' : 'create';
  const result = await commit(service, request, { type: 'token.set', presence, token }, 'token');
  service.metrics.count('acl.token.upsert');
  return result;
}

export function readToken(
  service: Service,
  { accessorId, expanded }: OperationInput<'token.read'>,
  { call }: Request,
): OperationOutput<'token.read'> {
  const meta = readMetaOf(service, 'tokens', watchKey({ id: accessorId }));
  const caller = service.callers.resolve(call.secret);
  const found = service.view.token(accessorId);
  const { namespace, object: token } = addressed(service, { call }, caller, { found });
  requireAcl(caller, 'read', namespace.name);
  if (token === undefined) requireLookupUuid('token', accessorId);
  else if (token.expirationTime !== undefined && isExpired(token, service.clock.wallMs())) {
    return readResultOf<TokenView>(meta, undefined, () => tokenExpired('read'));
  }
  if (token === undefined || service.callers.isVoid(token)) {
    return readResultOf<TokenView>(meta, undefined, () => tokenMissing());
  }
  const shown = tokenViewOf(token, service.names, {
    secretHidden: !mayAcl(caller, 'write', token.namespace),
    expanded: expanded ? expandedTokenOf(service, token) : undefined,
  });
  return readResultOf(meta, shown, () => tokenMissing());
}

/** The caller's own token, by the presented secret alone; nobody needs a right to see what they hold. */
export function readSelfToken(
  service: Service,
  _input: OperationInput<'token.read-self'>,
  { call }: Request,
): OperationOutput<'token.read-self'> {
  const { secret } = call;
  const token = secret === undefined ? undefined : service.callers.tokenOf(secret);
  if (token !== undefined && isExpired(token, service.clock.wallMs())) {
    throw unknownSelf(tokenExpired('read'));
  }
  if (token === undefined || service.callers.isVoid(token)) throw unknownSelf(tokenMissing());
  const meta = readMetaOf(service, 'tokens', token.accessorId);
  const shown = tokenViewOf(token, service.names, { secretHidden: false });
  return readResultOf(meta, shown, () => tokenMissing());
}

/** A secret that is not accepted, in the words of a token that is not found. */
function unknownSelf({ message }: AclError): AclError {
  return new AclError('token-unknown', message);
}

export async function updateToken(
  service: Service,
  { accessorId, draft }: OperationInput<'token.update'>,
  request: Request,
): Promise<OperationOutput<'token.update'>> {
  const { view } = service;
  const caller = service.callers.resolve(request.call.secret);
  const body = { kind: 'Token', namespace: draft.namespace } as const;
  const found = inItsNamespace(view, view.token(accessorId));
  const { namespace, object: existing } = addressed(service, request, caller, { found, body });
  requireAcl(caller, 'write', namespace.name);
  const token = applyTokenUpdate(existing, draft, {
    pathId: accessorId,
    nowMs: service.clock.wallMs(),
    resolveLinks: () => tokenLinksOf(view, draft, namespace.name),
  });
  const links = { after: token, before: existing ?? NO_LINKS };
  const key = dependencyOf('tokens', accessorId);
  const checkedAgainst = requireMayAdd(view, caller, { ...links, key });
  if (token.authMethod !== undefined && isOrphaned(token, view)) {
    throw authMethodGone(token.authMethod.name);
  }
  const change = { type: 'token.set', presence: 'update', token } as const;
  const result = await commit(service, { ...request, checkedAgainst }, change, 'token');
  service.metrics.count('acl.token.upsert');
  return result;
}

export async function cloneToken(
  service: Service,
  { accessorId, description, namespace: wanted }: OperationInput<'token.clone'>,
  request: Request,
): Promise<OperationOutput<'token.clone'>> {
  const { view } = service;
  const caller = service.callers.resolve(request.call.secret);
  const body = { kind: 'Token', namespace: wanted } as const;
  const found = inItsNamespace(view, view.token(accessorId));
  const { namespace, object: source } = addressed(service, request, caller, { found, body });
  requireAcl(caller, 'write', namespace.name);
  requireLookupUuid('token', accessorId);
  const living = source && withLivingLinks(service, source);
  const token = buildClone(living, description, freshToken(service));
  // A copy is a token of its own: it would go on when what was lent to its source is taken back.
  requireMayLend(view, caller, token);
  const change = { type: 'token.set', presence: 'create-drawn', token } as const;
  // As its changes name it, wherever the caller put the hyphens.
  const checkedAgainst = source === undefined ? [] : [dependencyOf('tokens', source.accessorId)];
  const result = await commit(service, { ...request, checkedAgainst }, change, 'token');
  service.metrics.count('acl.token.clone');
  return result;
}

export async function deleteToken(
  service: Service,
  { accessorId }: OperationInput<'token.delete'>,
  request: Request,
): Promise<OperationOutput<'token.delete'>> {
  const caller = service.callers.resolve(request.call.secret);
  const found = service.view.token(accessorId);
  const { namespace, object: token, elsewhere } = addressed(service, request, caller, { found });
  requireAcl(caller, 'write', namespace.name);
  requireDeletableToken({ accessorId, callerAccessorId: caller.token.accessorId });
  if (token === undefined) {
    requireNotElsewhere(caller, namespace, 'token', elsewhere);
    return nothingDeleted(service);
  }
  const change = { type: 'token.delete', accessorId: token.accessorId } as const;
  const result = await commit(service, request, change, 'deleted');
  service.metrics.count('acl.token.delete');
  return result;
}

/** Nothing for a token whose namespace is gone: it is void, and neither changed nor copied until it is deleted. */
function inItsNamespace(view: Service['view'], token: Token | undefined): Token | undefined {
  return token !== undefined && hasLostNamespace(token, view) ? undefined : token;
}

/** A link to what was deleted in the meantime gave nothing, and is not copied. Throws as `LinkRoom.take`. */
function withLivingLinks({ view }: Service, token: Token): Token {
  const room = new LinkRoom();
  const isLiving = (target: { readonly id: string } | undefined): boolean => {
    if (target !== undefined) room.take(target);
    return target !== undefined;
  };
  return {
    ...token,
    policies: token.policies.filter((id) => isLiving(view.policy(id))),
    roles: token.roles.filter((id) => isLiving(view.role(id))),
  };
}

/** What is taken anew for each token that did not exist before. */
export function freshToken({ random, clock, settings }: Service): FreshToken {
  return {
    nowMs: clock.wallMs(),
    freshAccessorId: random.uuid() as AccessorId,
    freshSecretId: secretIdOf(random.uuid()),
    limits: settings.tokenLimits,
  };
}
