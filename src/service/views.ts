// What operations give back: objects of the domain with the names that their links resolve to.
// src/api turns a view into the wire's JSON; nothing else does.

import type { AuthMethod } from '../acl/auth-method.ts';
import type { BindingRule } from '../acl/binding-rule.ts';
import type { AclErrorCode } from '../acl/error.ts';
import type { Namespace } from '../acl/namespace.ts';
import type { Policy } from '../acl/policy.ts';
import type { Role } from '../acl/role.ts';
import type { Token } from '../acl/token.ts';
import type { Position } from '../state/global-log/cursor.ts';
import type { TableName } from '../state/view.ts';
import type { AckLevel } from './call.ts';

/** A link with its name as of now; links to what no longer exists are left out. */
export interface NamedLink {
  readonly id: string;
  readonly name: string;
}

export interface TokenView {
  readonly kind: 'token';
  readonly token: Token;
  readonly policies: readonly NamedLink[];
  readonly roles: readonly NamedLink[];
  /** The caller has only `acl:read`: the secret is shown as `<hidden>`. */
  readonly secretHidden: boolean;
  readonly expanded: ExpandedToken | undefined;
}

export interface ExpandedToken {
  /** Every policy that affects the token, synthetic ones (indexes 0) included. */
  readonly policies: readonly Policy[];
  readonly roles: readonly RoleView[];
  /** Ids; undefined shows as null. */
  readonly namespaceDefaultPolicies: readonly NamedLink[] | undefined;
  readonly namespaceDefaultRoles: readonly NamedLink[] | undefined;
  readonly defaultPolicy: 'allow' | 'deny';
  readonly downPolicy: string;
  readonly resolvedByNode: string;
}

export interface RoleView {
  readonly kind: 'role';
  readonly role: Role;
  readonly policies: readonly NamedLink[];
}

export interface PolicyView {
  readonly kind: 'policy';
  readonly policy: Policy;
}

export interface AuthMethodView {
  readonly kind: 'auth-method';
  readonly method: AuthMethod;
}

export interface BindingRuleView {
  readonly kind: 'binding-rule';
  readonly rule: BindingRule;
}

export interface NamespaceView {
  readonly kind: 'namespace';
  readonly namespace: Namespace;
  readonly policyDefaults: readonly NamedLink[];
  readonly roleDefaults: readonly NamedLink[];
}

/** One object of any kind. */
export type ObjectView =
  | TokenView
  | PolicyView
  | RoleView
  | AuthMethodView
  | BindingRuleView
  | NamespaceView;

/** What every read carries for its headers. */
export interface ReadMeta {
  /** The table's index, at least 1. */
  readonly index: number;
  readonly knownLeader: boolean;
  readonly lastContactMs: number;
  readonly position: Position;
  /** What a blocking query that got this answer waits on, in `Operations.waitForChange`. */
  readonly watch: WatchTarget;
}

/** What a blocking query watches while it waits: a whole table, or one object of it. */
export interface WatchTarget {
  readonly table: TableName;
  /** Store key of one object as src/state's watch names it; undefined for the whole table. */
  readonly object: string | undefined;
  /** Where it is watched; undefined: here. */
  readonly datacenter?: string;
}

/**
 * A read's answer. A read of a missing object resolves with a refusal (`not-found` or
 * `token-not-found`) instead of rejecting: its headers and a blocking query need the meta.
 */
export type ReadResult<T> =
  | { readonly value: T; readonly refusal?: undefined; readonly meta: ReadMeta }
  | { readonly value?: undefined; readonly refusal: Refusal; readonly meta: ReadMeta };

/** A refusal as plain data. */
export interface Refusal {
  readonly code: AclErrorCode;
  readonly message: string;
}

/** A list's answer: slices of bounded size, and the key to go on from when `limit` ended it. */
export interface ListResult<T> {
  readonly slices: AsyncIterable<readonly T[]>;
  /** The key of the last object of the slices that were consumed, when there may be more behind it. */
  next(): string | undefined;
  readonly meta: ReadMeta;
}

export interface WriteMeta {
  /** The datacenter's index after the write. */
  readonly index: number;
  readonly position: Position;
  /** The acknowledgement level reached; undefined for local writes. */
  readonly ack: AckLevel | undefined;
  /** True when a remembered request id answered. */
  readonly replayed: boolean;
  /**
   * Of a write that was carried out at another server: whether a read at the server that was asked finds it by
   * now. Undefined where it does for certain.
   */
  readonly isVisible?: boolean;
}

export interface WriteResult<T> {
  readonly value: T;
  readonly meta: WriteMeta;
}
