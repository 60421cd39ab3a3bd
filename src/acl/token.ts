// A token: the bearer of rights. This file says what a token is; checks/token-checks.ts says what a
// valid one is. Links hold ids only; their names are filled in when a token is shown.

import type { NodeIdentity, ServiceIdentity, TemplatedPolicy } from './identities.ts';
import type { AccessorId, NamespaceName, PolicyId, RoleId, SecretId } from './ids.ts';
import type { Instant } from './values/instant.ts';

export interface Token {
  readonly accessorId: AccessorId;
  readonly secretId: SecretId;
  readonly namespace: NamespaceName;
  readonly description: string;
  readonly policies: readonly PolicyId[];
  readonly roles: readonly RoleId[];
  readonly serviceIdentities: readonly ServiceIdentity[];
  readonly nodeIdentities: readonly NodeIdentity[];
  readonly templatedPolicies: readonly TemplatedPolicy[];
  /** True: lives in its datacenter alone. Immutable. */
  readonly local: boolean;
  /** Set by a login, never by a caller. Immutable. */
  readonly authMethod: AuthMethodOrigin | undefined;
  readonly createTime: Instant;
  /** The token is void for every reader once this has passed. Immutable. */
  readonly expirationTime: Instant | undefined;
  /** BLAKE2b-256 of what the token says, base64. */
  readonly hash: string;
  readonly createIndex: number;
  readonly modifyIndex: number;
}

/** The auth method that a login went through. The token is void once that very method is gone. */
export interface AuthMethodOrigin {
  readonly name: string;
  readonly namespace: NamespaceName;
  /** CreateIndex of the method: a later method of the same name is another method. */
  readonly createIndex: number;
}
