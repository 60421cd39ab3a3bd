// What a valid token is, and what may change about one: a draft goes in, a token ready for the log
// comes out, or the first refusal in the order of compatibility 3.4. What depends on the state is asked
// through functions, each called once at its place in that order; applying asks it again.

import { AclError, invalid } from '../error.ts';
import { withTokenHash } from '../hash.ts';
import {
  type AccessorId,
  ANONYMOUS_ACCESSOR,
  isUuid,
  type NamespaceName,
  ROOT_SECRETS,
  requireUnreservedId,
  type SecretId,
} from '../ids.ts';
import {
  anonymousTokenDeleted,
  requireSameAddress,
  tokenExpirationChanged,
  tokenExpired,
  tokenIdInUse,
  tokenLocalityChanged,
  tokenMethodChanged,
  tokenMissing,
  tokenSecretChanged,
  tokenToUpdateMissing,
} from '../refusals.ts';
import type { Unstamped } from '../stamped.ts';
import type { Token } from '../token.ts';
import { isGiven } from '../values/given.ts';
import { instantNs, instantOfMs } from '../values/instant.ts';
import type { TokenDraft } from './drafts.ts';
import { identityLists } from './identity-checks.ts';
import { type Links, uniqueIds } from './links.ts';
import {
  expirationOfNewToken,
  isExpired,
  readExpirationTime,
  requireExpirationWithin,
  type TtlLimits,
} from './token-expiry.ts';

/** What is taken on the proposing leader for a token that did not exist before. */
export interface FreshToken {
  readonly nowMs: number;
  readonly freshAccessorId: AccessorId;
  readonly freshSecretId: SecretId;
  readonly limits: TtlLimits;
}

export interface NewTokenGiven extends FreshToken {
  readonly namespace: NamespaceName;
  /** Whether any token, void ones included, has this as its accessor id or its secret. */
  idInUse(id: string): boolean;
  /** The draft's links as ids: roles first, then policies. Throws the refusal of an unknown link. */
  resolveLinks(): Links;
}

export interface TokenUpdateGiven {
  /** The accessor id of the path. */
  readonly pathId: string;
  readonly nowMs: number;
  resolveLinks(): Links;
}

/** The token that a create asks for. Throws 'invalid', 'duplicate' or 'malformed'. */
export function buildNewToken(draft: TokenDraft, given: NewTokenGiven): Unstamped<Token> {
  const accessorId = chosenId('AccessorID', draft.accessorId, given) ?? given.freshAccessorId;
  const secretId = chosenId('SecretID', draft.secretId, given) ?? given.freshSecretId;
  // The accessor id is public: a secret equal to it would be public as well.
  if (secretId.toLowerCase() === accessorId.toLowerCase()) throw tokenIdInUse('SecretID');
  const expirationTime = expirationOfNewToken(draft, given);
  if (isGiven(draft.authMethod)) {
    throw invalid('AuthMethod field is disallowed outside of login');
  }
  const local = draft.local ?? false;
  const links = given.resolveLinks();
  const identities = identityLists(draft, local ? 'local token' : 'global token');
  return withTokenHash({
    accessorId: accessorId as AccessorId,
    secretId: secretId as SecretId,
    namespace: given.namespace,
    description: draft.description ?? '',
    policies: uniqueIds(links.policies),
    roles: uniqueIds(links.roles),
    serviceIdentities: identities.serviceIdentities,
    nodeIdentities: identities.nodeIdentities,
    templatedPolicies: identities.templatedPolicies,
    local,
    authMethod: undefined,
    createTime: instantOfMs(given.nowMs),
    expirationTime,
  });
}

/** An id that the caller chose, checked; undefined when it is for the service to choose. */
function chosenId(
  field: 'AccessorID' | 'SecretID',
  id: string | undefined,
  given: NewTokenGiven,
): string | undefined {
  if (!isGiven(id)) return undefined;
  requireUnreservedId(field, id);
  if (!isUuid(id)) throw invalid(`Invalid Token: ${field} - not a valid UUID`);
  if (given.idInUse(id)) throw tokenIdInUse(field);
  return id;
}

/**
 * The token that an update leaves behind: description, links and identities are replaced as a whole,
 * everything else must be absent or agree with what is. `Local` has a default, so a local token's
 * update must say it. `existing` is undefined when the path names no token.
 */
export function applyTokenUpdate(
  existing: Token | undefined,
  draft: TokenDraft,
  given: TokenUpdateGiven,
): Unstamped<Token> {
  const { pathId } = given;
  requireSameAddress('Token Accessor ID', { path: pathId, body: draft.accessorId });
  if (!isUuid(pathId)) throw invalid('AccessorID is not a valid UUID');
  if (existing === undefined || isExpired(existing, given.nowMs)) {
    throw tokenToUpdateMissing(pathId);
  }
  requireUnchanged(existing, draft, pathId);
  const links = given.resolveLinks();
  const identities = identityLists(draft, existing.local ? 'local token' : 'global token');
  return withTokenHash({
    accessorId: existing.accessorId,
    secretId: existing.secretId,
    namespace: existing.namespace,
    description: draft.description ?? '',
    policies: uniqueIds(links.policies),
    roles: uniqueIds(links.roles),
    ...identities,
    local: existing.local,
    authMethod: existing.authMethod,
    createTime: existing.createTime,
    expirationTime: existing.expirationTime,
  });
}

function requireUnchanged(existing: Token, draft: TokenDraft, id: string): void {
  if (isGiven(draft.secretId)) {
    if (ROOT_SECRETS.has(draft.secretId)) {
      throw new AclError('permission-denied', 'Permission denied: Cannot modify root ACL');
    }
    if (draft.secretId !== existing.secretId) throw tokenSecretChanged();
  }
  if ((draft.local ?? false) !== existing.local) throw tokenLocalityChanged(id);
  if (isGiven(draft.authMethod) && draft.authMethod !== existing.authMethod?.name) {
    throw tokenMethodChanged(id);
  }
  if (changesExpiration(existing, draft)) throw tokenExpirationChanged(id);
}

/** The same moment at another offset is no change; a TTL always is one. */
function changesExpiration(existing: Token, draft: TokenDraft): boolean {
  if ((draft.expirationTtlNs ?? 0n) !== 0n) return true;
  const moment = readExpirationTime(draft.expirationTime);
  if (moment === undefined) return false;
  return existing.expirationTime === undefined || moment.ns !== instantNs(existing.expirationTime);
}

/**
 * A new token with the rights of another (compatibility 6.3). `source` is undefined when the path
 * names no token. An empty description keeps the source's; its expiration time must still be far
 * enough away for a new token.
 */
export function cloneToken(
  source: Token | undefined,
  description: string | undefined,
  given: FreshToken,
): Unstamped<Token> {
  if (source === undefined) throw tokenMissing();
  if (isExpired(source, given.nowMs)) throw tokenExpired('clone');
  if (source.authMethod !== undefined) {
    throw invalid('Cannot clone a token created from an auth method');
  }
  if (source.expirationTime !== undefined) {
    requireExpirationWithin(instantNs(source.expirationTime), given);
  }
  const { createIndex: _created, modifyIndex: _modified, hash: _hash, ...copied } = source;
  return withTokenHash({
    ...copied,
    accessorId: given.freshAccessorId,
    secretId: given.freshSecretId,
    description: isGiven(description) ? description : source.description,
    createTime: instantOfMs(given.nowMs),
  });
}

/** Refuses ('invalid') a delete that no permission can make right. */
export function requireDeletableToken(ids: {
  readonly accessorId: string;
  readonly callerAccessorId: string;
}): void {
  if (!isUuid(ids.accessorId)) throw invalid('Accessor ID is missing or an invalid UUID');
  if (ids.accessorId === ANONYMOUS_ACCESSOR) throw anonymousTokenDeleted();
  if (ids.accessorId.toLowerCase() === ids.callerAccessorId.toLowerCase()) {
    throw invalid("Deletion of the request's authorization token is not permitted");
  }
}
