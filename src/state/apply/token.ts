// Tokens: made, changed, deleted, and reaped once they are void.

import { isExpired } from '../../acl/checks/token-expiry.ts';
import { invalid } from '../../acl/error.ts';
import { ANONYMOUS_ACCESSOR, lookupBytes } from '../../acl/ids.ts';
import {
  anonymousTokenDeleted,
  authMethodGone,
  tokenExpirationChanged,
  tokenIdInUse,
  tokenLocalityChanged,
  tokenMethodChanged,
  tokenSecretChanged,
  tokenToUpdateMissing,
  unknownPolicyId,
  unknownRoleId,
} from '../../acl/refusals.ts';
import type { Unstamped } from '../../acl/stamped.ts';
import type { Token } from '../../acl/token.ts';
import { compareInstants } from '../../acl/values/instant.ts';
import type { ChangeSet } from '../change-set.ts';
import type { ChangeOf } from '../commands/commands.ts';
import { tellsLocalDeletions } from '../commands/feature-levels.ts';
import type { Answer } from '../commands/outcome.ts';
import { isIdInUse, readAuthMethod, readToken } from '../reads/reads.ts';
import { isVoid, type StandingLookup } from '../reads/standing.ts';
import { TOKENS } from '../rows/objects/objects.ts';
import { readRetiredNamespace } from '../rows/objects/retired-namespace.ts';
import { forgetOrigin } from '../rows/objects/token-origin.ts';
import { type ApplyContext, requireCas, requireLinks, requireNamespace } from './checks.ts';

export function applyTokenSet(context: ApplyContext, change: ChangeOf<'token.set'>): Answer {
  const { presence, token } = change;
  const made =
    presence === 'update' ? updatedToken(context, token) : createdToken(context, token, presence);
  context.changes.put(TOKENS, made);
  return { type: 'token', token: made };
}

function createdToken(
  context: ApplyContext,
  token: Unstamped<Token>,
  presence: 'create' | 'create-drawn',
): Token {
  requireNamespace(context, token.namespace);
  if (presence === 'create') requireFreshIds(context, token);
  else requireDrawnIds(context, token);
  requireCas(context, undefined);
  requireRights(context, token);
  const { nextIndex } = context.changes;
  return { ...token, createIndex: nextIndex, modifyIndex: nextIndex };
}

/** An id is free when no token has it, neither as its accessor id nor as its secret. */
export function requireFreshIds({ changes }: ApplyContext, token: Unstamped<Token>): void {
  const { accessorId, secretId } = token;
  if (lookupBytes(accessorId) === undefined) {
    throw invalid('Invalid Token: AccessorID - not a valid UUID');
  }
  if (isIdInUse(changes, accessorId)) throw tokenIdInUse('AccessorID');
  const isSame = accessorId.toLowerCase() === secretId.toLowerCase();
  if (isSame || isIdInUse(changes, secretId)) throw tokenIdInUse('SecretID');
}

/**
 * Nobody can have chosen ids that were drawn at random, so they are not searched for. The row that is
 * written is looked at all the same: it shows a command that comes a second time.
 */
function requireDrawnIds({ changes }: ApplyContext, token: Unstamped<Token>): void {
  const { accessorId } = token;
  if (readToken(changes, accessorId) !== undefined) throw tokenIdInUse('AccessorID');
}

/** What the token's rights come from must be there: its auth method, roles and policies. */
export function requireRights(context: ApplyContext, token: Unstamped<Token>): void {
  const origin = token.authMethod;
  if (origin !== undefined) {
    const method = readAuthMethod(context.changes, origin.namespace, origin.name);
    if (method?.createIndex !== origin.createIndex) throw authMethodGone(origin.name);
  }
  const refusals = { policy: unknownPolicyId, role: unknownRoleId };
  requireLinks(context, token.namespace, token, refusals);
}

function updatedToken(context: ApplyContext, token: Unstamped<Token>): Token {
  const { changes, timeMs } = context;
  const existing = readToken(changes, token.accessorId);
  if (existing === undefined || isExpired(existing, timeMs)) {
    throw tokenToUpdateMissing(token.accessorId);
  }
  if (existing.namespace !== token.namespace) throw tokenToUpdateMissing(token.accessorId);
  requireCas(context, existing);
  requireSameIdentity(existing, token);
  requireRights(context, token);
  const { accessorId, authMethod, createTime, expirationTime, createIndex } = existing;
  const kept = { accessorId, authMethod, createTime, expirationTime };
  return { ...token, ...kept, createIndex, modifyIndex: changes.nextIndex };
}

function requireSameIdentity(existing: Token, token: Unstamped<Token>): void {
  const id = token.accessorId;
  if (existing.secretId !== token.secretId) throw tokenSecretChanged();
  if (existing.local !== token.local) throw tokenLocalityChanged(id);
  if (!isSameOrigin(existing, token)) throw tokenMethodChanged(id);
  if (!isSameExpiration(existing, token)) throw tokenExpirationChanged(id);
}

function isSameOrigin(one: Pick<Token, 'authMethod'>, other: Pick<Token, 'authMethod'>): boolean {
  return (
    one.authMethod?.name === other.authMethod?.name &&
    one.authMethod?.namespace === other.authMethod?.namespace &&
    one.authMethod?.createIndex === other.authMethod?.createIndex
  );
}

function isSameExpiration(
  { expirationTime: one }: Pick<Token, 'expirationTime'>,
  { expirationTime: other }: Pick<Token, 'expirationTime'>,
): boolean {
  if (one === undefined || other === undefined) return one === other;
  return compareInstants(one, other) === 0;
}

export function applyTokenDelete(
  context: ApplyContext,
  { accessorId }: ChangeOf<'token.delete'>,
): Answer {
  if (accessorId === ANONYMOUS_ACCESSOR) throw anonymousTokenDeleted();
  const token = readToken(context.changes, accessorId);
  requireCas(context, token);
  if (token !== undefined) deleteToken(context.changes, token);
  const isLocal = token?.local === true && tellsLocalDeletions(context.changes.level);
  return { type: 'deleted', existed: token !== undefined, ...(isLocal && { isLocal }) };
}

/** Deletes those that are void at the command's time; what was renewed or never was there stays so. */
export function applyTokenReap(
  { changes, timeMs }: ApplyContext,
  { accessorIds }: ChangeOf<'token.reap'>,
): Answer {
  const state: StandingLookup = {
    authMethod: (namespace, name) => readAuthMethod(changes, namespace, name),
    namespaceLostUpTo: (name) => readRetiredNamespace(changes, name)?.upTo ?? 0,
  };
  for (const accessorId of accessorIds) {
    const token = readToken(changes, accessorId);
    if (token === undefined || !isVoid(token, state, timeMs)) continue;
    if (token.local || changes.mayWriteGlobal) deleteToken(changes, token);
  }
  return { type: 'done' };
}

function deleteToken(changes: ChangeSet, token: Token): void {
  changes.delete(TOKENS, token);
  forgetOrigin(changes, token, changes.level);
}
