// Whether a token still stands. A token is void the moment its time passes, from the deletion of the
// very auth method that made it, and, where it lives in one datacenter alone, from the arrival of the
// deletion of its namespace there. Deleting void tokens is housekeeping that comes later.

import type { AuthMethod } from '../../acl/auth-method.ts';
import { isExpired } from '../../acl/checks/token-expiry.ts';
import type { NamespaceName } from '../../acl/ids.ts';
import type { Token } from '../../acl/token.ts';

export interface AuthMethodLookup {
  authMethod(namespace: NamespaceName, name: string): Pick<AuthMethod, 'createIndex'> | undefined;
}

/** The part of the state that the question needs. */
export interface StandingLookup extends AuthMethodLookup {
  /** Local tokens of the namespace with a CreateIndex up to this one lost it; 0 when none did. */
  namespaceLostUpTo(name: NamespaceName): number;
}

/** What a token's standing hangs on. */
export type Standing = Pick<
  Token,
  'expirationTime' | 'authMethod' | 'local' | 'namespace' | 'createIndex'
>;

/** Whether the token is void for every reader at `nowMs`. */
export function isVoid(token: Standing, state: StandingLookup, nowMs: number): boolean {
  return isExpired(token, nowMs) || isOrphaned(token, state) || hasLostNamespace(token, state);
}

/** Whether the auth method that made the token is gone. A later one of its name is another one. */
export function isOrphaned(token: Pick<Token, 'authMethod'>, methods: AuthMethodLookup): boolean {
  const origin = token.authMethod;
  if (origin === undefined) return false;
  return methods.authMethod(origin.namespace, origin.name)?.createIndex !== origin.createIndex;
}

/** Whether the namespace that the token was made in is gone. A later one of its name is another one. */
export function hasLostNamespace(
  { local, namespace, createIndex }: Pick<Token, 'local' | 'namespace' | 'createIndex'>,
  state: Pick<StandingLookup, 'namespaceLostUpTo'>,
): boolean {
  // A namespace with global tokens in it is not deleted.
  return local && createIndex <= state.namespaceLostUpTo(namespace);
}
