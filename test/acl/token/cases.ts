// What tests of tokens share.

import {
  buildNewToken,
  type NewTokenGiven,
  type TokenUpdateGiven,
} from '../../../src/acl/checks/token-checks.ts';
import {
  type AccessorId,
  DEFAULT_NAMESPACE,
  type NamespaceName,
  type PolicyId,
  type RoleId,
  type SecretId,
} from '../../../src/acl/ids.ts';
import type { Token } from '../../../src/acl/token.ts';
import { TTL_LIMITS } from '../../support/state-and-service/fixtures.ts';

export const NOW = Date.parse('2026-11-21T06:00:00.500Z');

export const ACCESSOR = '11111111-1111-1111-1111-111111111111' as AccessorId;

export const SECRET = '22222222-2222-2222-2222-222222222222' as SecretId;

export const GIVEN_ID = '33333333-3333-3333-3333-33333333333A';

export const USED_ID = '44444444-4444-4444-4444-444444444444';

export const P1 = '55555555-5555-5555-5555-555555555555' as PolicyId;

export const R1 = '77777777-7777-7777-7777-777777777777' as RoleId;

export const TEAM = 'team' as NamespaceName;

export const IN_AN_HOUR = '2026-11-21T07:00:00.500Z';

export function givenForCreate(changes: Partial<NewTokenGiven> = {}): NewTokenGiven {
  return {
    nowMs: NOW,
    freshAccessorId: ACCESSOR,
    freshSecretId: SECRET,
    namespace: DEFAULT_NAMESPACE,
    limits: TTL_LIMITS,
    idInUse: (id) => id === USED_ID,
    resolveLinks: () => ({ policies: [], roles: [] }),
    ...changes,
  };
}

export function givenForUpdate(changes: Partial<TokenUpdateGiven> = {}): TokenUpdateGiven {
  return {
    pathId: ACCESSOR,
    nowMs: NOW,
    resolveLinks: () => ({ policies: [], roles: [] }),
    ...changes,
  };
}

export function storedToken(changes: Partial<Token> = {}): Token {
  const token = buildNewToken({ description: 'stored' }, givenForCreate());
  return { ...token, createIndex: 7, modifyIndex: 9, ...changes };
}
