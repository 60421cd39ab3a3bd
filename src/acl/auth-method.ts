// An auth method: a trusted outside login. Its Config is opaque here; src/auth-methods reads it.

import type { NamespaceName } from './ids.ts';

export const AUTH_METHOD_TYPES = ['aws-iam', 'jwt', 'kubernetes', 'oidc'] as const;
export type AuthMethodType = (typeof AUTH_METHOD_TYPES)[number];

export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };

export interface AuthMethod {
  readonly name: string;
  readonly namespace: NamespaceName;
  readonly type: AuthMethodType;
  readonly displayName: string;
  readonly description: string;
  /** Nanoseconds; 0 means that its tokens do not expire. */
  readonly maxTokenTtlNs: bigint;
  /** '' means local. */
  readonly tokenLocality: '' | 'local' | 'global';
  readonly config: { readonly [key: string]: JsonValue };
  /** The first whose selector matches decides the namespace of the token. */
  readonly namespaceRules: readonly NamespaceRule[];
  readonly createIndex: number;
  readonly modifyIndex: number;
}

export interface NamespaceRule {
  readonly selector: string;
  readonly bindNamespace: string;
}
