// Whether a token still stands. A token is void the moment its time passes, and from the deletion of
// the very auth method that made it; deleting void tokens is housekeeping that comes later.

import type { AuthMethod } from '../acl/auth-method.ts';
import type { NamespaceName } from '../acl/ids.ts';
import type { Token } from '../acl/token.ts';
import { isExpired } from '../acl/token-expiry.ts';

/** The part of the state that the question needs. */
export interface AuthMethodLookup {
  authMethod(namespace: NamespaceName, name: string): Pick<AuthMethod, 'createIndex'> | undefined;
}

/** Whether the token is void for every reader at `nowMs`. */
export function isVoid(
  token: Pick<Token, 'expirationTime' | 'authMethod'>,
  methods: AuthMethodLookup,
  nowMs: number,
): boolean {
  return isExpired(token, nowMs) || isOrphaned(token, methods);
}

/** Whether the auth method that made the token is gone. A later one of its name is another one. */
export function isOrphaned(token: Pick<Token, 'authMethod'>, methods: AuthMethodLookup): boolean {
  const origin = token.authMethod;
  if (origin === undefined) return false;
  return methods.authMethod(origin.namespace, origin.name)?.createIndex !== origin.createIndex;
}
