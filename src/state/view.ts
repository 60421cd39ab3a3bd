// What may be asked of the state. Single reads are synchronous and cost microseconds; lists come in
// slices of bounded size, as of the moment of the call, in the order that the wire promises.
// A view shows what is stored: whether a token is void at this moment is `standing.ts`'s question.

import type { AuthMethod } from '../acl/auth-method.ts';
import type { BindingRule } from '../acl/binding-rule.ts';
import type { AccessorId, NamespaceName, PolicyId, RoleId, SecretId } from '../acl/ids.ts';
import type { Namespace } from '../acl/namespace.ts';
import type { NamespaceScope } from '../acl/namespace-selection.ts';
import type { Policy } from '../acl/policy.ts';
import type { Role } from '../acl/role.ts';
import type { Token } from '../acl/token.ts';
import type { Outcome } from './commands/outcome.ts';
import type { GlobalCursor, Position } from './global-log/cursor.ts';
import type { GlobalEntry } from './global-log/global-entry.ts';
import type { KeptRange } from './global-log/kept-entries.ts';
import type { Replication } from './global-log/replication.ts';
import type { FoundRequests, RequestSearch } from './reads/request-search.ts';
import type {
  ExpiryPlace,
  FoundTokens,
  OrphanPlace,
  VoidTokenSearch,
} from './reads/void-tokens.ts';

/** The five tables whose index clients see, and namespaces. */
export type TableName =
  | 'tokens'
  | 'policies'
  | 'roles'
  | 'auth-methods'
  | 'binding-rules'
  | 'namespaces';

/** At most one filter a list, as on the wire. */
export type TokenFilter =
  | { readonly by: 'policy'; readonly id: PolicyId }
  | { readonly by: 'role'; readonly id: RoleId }
  /** Service identities and `builtin/service` templated policies of the token itself; any letter case. */
  | { readonly by: 'service-name'; readonly name: string }
  | { readonly by: 'auth-method'; readonly name: string; readonly namespace: NamespaceName };

export interface Page<Key extends string = string> {
  /** Start behind this key (exclusive), as the last object of the page before gave it. */
  readonly after?: Key | undefined;
  /** At most so many objects. Default: all. */
  readonly limit?: number | undefined;
  /** About so many will be taken of them: slices need not be larger. Default: as large as suits. */
  readonly sliceRows?: number | undefined;
}

export interface ObjectCounts {
  readonly tokens: number;
  readonly policies: number;
  readonly roles: number;
  readonly authMethods: number;
  readonly bindingRules: number;
}

/** How far a snapshot of another datacenter is on its way in. */
export interface ImportUnderWay {
  readonly id: string;
  /** When its last command was made. */
  readonly timeMs: number;
  /** What it is of. */
  readonly cursor: GlobalCursor;
  /** Pieces that came. */
  readonly chunkCount: number;
  /** Batches of local rows. */
  readonly carryCount: number;
  readonly isCarried: boolean;
}

export interface StateView {
  token(accessorId: string): Token | undefined;
  tokenBySecret(secretId: SecretId): Token | undefined;
  /** Whether the text is in use as an accessor id or as a secret of any stored token. */
  idInUse(id: string): boolean;
  policy(id: string): Policy | undefined;
  policyByName(namespace: NamespaceName, name: string): Policy | undefined;
  role(id: string): Role | undefined;
  roleByName(namespace: NamespaceName, name: string): Role | undefined;
  authMethod(namespace: NamespaceName, name: string): AuthMethod | undefined;
  bindingRule(id: string): BindingRule | undefined;
  namespace(name: string): Namespace | undefined;
  /** Local tokens of the namespace with a CreateIndex up to this one lost it; 0 when none did. */
  namespaceLostUpTo(name: NamespaceName): number;
  pendingLogin(key: string): { readonly value: Uint8Array; readonly expiresMs: number } | undefined;
  /** The remembered outcome of a request key, with its fingerprint and time, if it is still there. */
  request(
    key: Uint8Array,
  ):
    | { readonly fingerprint: Uint8Array; readonly timeMs: number; readonly outcome: Outcome }
    | undefined;

  /** By accessor id. */
  tokens(
    scope: NamespaceScope,
    filter: TokenFilter | undefined,
    page: Page,
  ): AsyncIterable<readonly Token[]>;
  /** By lower-cased name (within `all`: by namespace, then name). */
  policies(scope: NamespaceScope, page: Page): AsyncIterable<readonly Policy[]>;
  /** By lower-cased name; filtered by a policy: by id. */
  roles(
    scope: NamespaceScope,
    policyId: PolicyId | undefined,
    page: Page,
  ): AsyncIterable<readonly Role[]>;
  /** By lower-cased name. */
  authMethods(scope: NamespaceScope, page: Page): AsyncIterable<readonly AuthMethod[]>;
  /** By id. `authMethod` keeps those of one method. */
  bindingRules(
    scope: NamespaceScope,
    authMethod: string | undefined,
    page: Page,
  ): AsyncIterable<readonly BindingRule[]>;
  /** By name. */
  namespaces(page: Page): AsyncIterable<readonly Namespace[]>;
  /** The binding rules of one method, by id; each is read when it is its turn, so all in one go. */
  bindingRulesOf(namespace: NamespaceName, authMethod: string): Iterable<BindingRule>;
  /** Their number; reads none of them. */
  bindingRuleCountOf(namespace: NamespaceName, authMethod: string): number;

  /** Of the tokens whose time lies before `nowMs`: see void-tokens.ts. */
  expiredTokens(
    search: VoidTokenSearch<ExpiryPlace> & { readonly nowMs: number },
  ): Promise<FoundTokens<ExpiryPlace>>;
  /** How long the row of a token is; 0 where there is none. */
  tokenBytes(accessorId: AccessorId): number;
  /** Of the tokens whose auth method or namespace is gone. */
  orphanedTokens(search: VoidTokenSearch<OrphanPlace>): Promise<FoundTokens<OrphanPlace>>;
  /** Keys of remembered requests older than `beforeMs`, and of pending logins. */
  oldRequests(beforeMs: number, limit: number): Promise<readonly Uint8Array[]>;
  /** Of remembered requests, by the index of their answers: see due.ts. */
  requestsBelow(search: RequestSearch): Promise<FoundRequests>;
  oldPendingLogins(nowMs: number, limit: number): Promise<readonly string[]>;

  /** The datacenter's Lamport index. At least 1. */
  index(): number;
  /** The index of a table's last change. At least 1. */
  tableIndex(table: TableName): number;
  position(): Position;
  /** How the datacenter stands in the global log; undefined before it began one. */
  replication(): Replication | undefined;
  /** The level of what the log may say: what all servers of the datacenter read. */
  readonly usesLevel: number;
  /** The last entry of the global log that the objects have in them, as `replication` says. */
  cursor(): GlobalCursor | undefined;
  /** Which entries can be sent to others; undefined before the log was begun, and where they are not the chain's. */
  keptEntries(): KeptRange | undefined;
  /**
   * The bytes of the entries behind a seq, in order: at least one where there is one, no more than fit in
   * `limitBytes`. Undefined where they are not kept: a snapshot leads on.
   */
  globalEntries(afterSeq: number, limitBytes: number): Promise<readonly Uint8Array[] | undefined>;
  /** The hash after the entry of a seq; undefined where it is not known. */
  globalHashAt(seq: number): Uint8Array | undefined;
  /** When the entry of a seq was made, by the primary's clock; undefined where it is not kept. */
  entryTimeMs(seq: number): number | undefined;
  /** What this datacenter wrote and no later epoch has, oldest first. */
  divergentEntries(limit: number): Promise<readonly GlobalEntry[]>;
  /** The one of them at a place, if it is one. */
  divergentEntry(place: Position): GlobalEntry | undefined;
  /** Index of the last bootstrap, or undefined when there was none. */
  bootstrapIndex(): number | undefined;
  /** A snapshot of another datacenter that was begun and neither ended nor dropped. */
  importUnderWay(): ImportUnderWay | undefined;
  /**
   * Keys of rows that live in this datacenter alone, behind a key, in order, and no more than are read in one
   * piece; none when there are no more.
   */
  localRows(after: Uint8Array | undefined, limit: number): Promise<readonly Uint8Array[]>;
  /** A restore, or a snapshot of another datacenter, that was begun and neither ended nor dropped. */
  restoreUnderWay(): { readonly id: string; readonly timeMs: number } | undefined;
  appliedIndex(): number;
  counts(namespace: NamespaceName): ObjectCounts;
  totals(): ObjectCounts & { readonly localTokens: number; readonly namespaces: number };
  /** Multiset hashes of the state: global objects, and all; hex. */
  digests(): { readonly global: string; readonly all: string };
}
