// The state as it is on disk, for its readers: single objects at once, lists in slices, and how far it
// is without reading anything. Policies and roles, which very many requests name, are kept decoded, and so
// are tokens: the first, and of more than can be kept those that are read again and again. Who changes it,
// and when, is machine.ts.

import type { AuthMethod } from '../acl/auth-method.ts';
import type { BindingRule } from '../acl/binding-rule.ts';
import type { AccessorId, NamespaceName, PolicyId, SecretId } from '../acl/ids.ts';
import type { Namespace } from '../acl/namespace.ts';
import type { NamespaceScope } from '../acl/namespace-selection.ts';
import type { Policy } from '../acl/policy.ts';
import type { Role } from '../acl/role.ts';
import type { Token } from '../acl/token.ts';
import type { Finished } from './change-set.ts';
import { type GlobalCursor, isSameCursor, type Position } from './global-log/cursor.ts';
import type { GlobalEntry } from './global-log/global-entry.ts';
import { decodeImport } from './global-log/import-progress.ts';
import {
  divergentEntries,
  divergentEntryAt,
  entriesAfter,
  entryDigestAt,
  entryTimeMs,
  hashAt,
  isRestoreAt,
  type KeptRange,
  keptSizeAfter,
  trimmableTo,
  unusedTimeMs,
} from './global-log/kept-entries.ts';
import { type Replication, readReplication } from './global-log/replication.ts';
import { oldPendingLogins, oldRequests, requestsBelow } from './reads/due.ts';
import {
  listAuthMethods,
  listBindingRules,
  listNamespaces,
  listPolicies,
  listRoles,
  listTokens,
  listTokensOfMost,
} from './reads/lists.ts';
import { ObjectCache } from './reads/object-cache.ts';
import {
  isIdInUse,
  readAuthMethod,
  readBindingRule,
  readNamespace,
  readPolicy,
  readPolicyByName,
  readRole,
  readRoleByName,
  readToken,
  readTokenBySecret,
  ruleIdsOfMethod,
  rulesOfMethod,
} from './reads/reads.ts';
import type { FoundRequests, RequestSearch } from './reads/request-search.ts';
import {
  type ExpiryPlace,
  expiredTokens,
  type FoundTokens,
  type OrphanPlace,
  orphanedTokens,
  type VoidTokenSearch,
} from './reads/void-tokens.ts';
import { type PendingLogin, readPendingLogin, readRequest } from './rows/bookkeeping.ts';
import { Digest } from './rows/digest.ts';
import { decodeCounts, type Meta, type Totals } from './rows/meta.ts';
import { localRows } from './rows/objects/local-rows.ts';
import { idBytes, idKey, namedObjectKey, storedIdKey } from './rows/objects/objects.ts';
import { isNeverLost, readRetiredNamespace } from './rows/objects/retired-namespace.ts';
import type { RememberedRequest } from './rows/request-row.ts';
import { decodeRestore, RESTORE_KEY, type RestoreProgress } from './rows/restore-progress.ts';
import type { StateStore } from './rows/store/state-store.ts';
import { ROW, rowKey } from './rows/tables.ts';
import type {
  ImportUnderWay,
  ObjectCounts,
  Page,
  StateView,
  TableName,
  TokenFilter,
} from './view.ts';

export class StoredState implements StateView {
  readonly #tokens = new ObjectCache<Token>('second-reads');
  readonly #policies = new ObjectCache<Policy>('each-read');
  readonly #roles = new ObjectCache<Role>('each-read');
  #store: StateStore;
  /** As it is on disk. */
  #meta: Meta;
  /** As it is on disk, once somebody asked. */
  #replication: { readonly known: Replication | undefined } | undefined;
  /** The row of a state that comes in, as it is on disk, once somebody asked. */
  #restore: { readonly row: Uint8Array | undefined } | undefined;

  constructor(store: StateStore, meta: Meta) {
    this.#store = store;
    this.#meta = meta;
  }

  protected get store(): StateStore {
    return this.#store;
  }

  protected get meta(): Meta {
    return this.#meta;
  }

  /** A batch is on disk. */
  protected moveOn({ meta, replication, changes, writes }: Finished): void {
    this.#meta = meta;
    this.#replication = { known: replication };
    if (writes.some(({ key }) => key[0] === ROW.restore)) this.#restore = undefined;
    for (const { table, watchKeys } of changes) {
      if (table === 'tokens') this.#tokens.forget(watchKeys);
      else if (table === 'policies') this.#policies.forget(watchKeys);
      else if (table === 'roles') this.#roles.forget(watchKeys);
    }
  }

  /** From now on another store has the state. */
  protected replace(store: StateStore, meta: Meta): void {
    this.#store = store;
    this.#meta = meta;
    this.#replication = undefined;
    this.#restore = undefined;
    this.#tokens.clear();
    this.#policies.clear();
    this.#roles.clear();
  }

  token(accessorId: string): Token | undefined {
    return this.#tokens.get(idKey(accessorId), () => readToken(this.#store, accessorId));
  }

  tokenBySecret(secretId: SecretId): Token | undefined {
    return readTokenBySecret(this.#store, secretId);
  }

  idInUse(id: string): boolean {
    return isIdInUse(this.#store, id);
  }

  policy(id: string): Policy | undefined {
    const key = storedIdKey(id);
    if (key === undefined) return undefined;
    return this.#policies.get(key, () => readPolicy(this.#store, id));
  }

  policyByName(namespace: NamespaceName, name: string): Policy | undefined {
    const key = namedObjectKey({ namespace, name });
    return this.#policies.get(key, () => readPolicyByName(this.#store, namespace, name));
  }

  role(id: string): Role | undefined {
    const key = storedIdKey(id);
    if (key === undefined) return undefined;
    return this.#roles.get(key, () => readRole(this.#store, id));
  }

  roleByName(namespace: NamespaceName, name: string): Role | undefined {
    const key = namedObjectKey({ namespace, name });
    return this.#roles.get(key, () => readRoleByName(this.#store, namespace, name));
  }

  authMethod(namespace: NamespaceName, name: string): AuthMethod | undefined {
    return readAuthMethod(this.#store, namespace, name);
  }

  bindingRule(id: string): BindingRule | undefined {
    return readBindingRule(this.#store, id);
  }

  namespace(name: string): Namespace | undefined {
    return readNamespace(this.#store, name);
  }

  namespaceLostUpTo(name: NamespaceName): number {
    if (isNeverLost(name)) return 0;
    return readRetiredNamespace(this.#store, name)?.upTo ?? 0;
  }

  pendingLogin(key: string): PendingLogin | undefined {
    return readPendingLogin(this.#store, key);
  }

  request(key: Uint8Array): RememberedRequest | undefined {
    return readRequest(this.#store, key);
  }

  tokens(
    scope: NamespaceScope,
    filter: TokenFilter | undefined,
    page: Page,
  ): AsyncIterable<readonly Token[]> {
    if (filter === undefined && scope.kind === 'one' && this.#hasAllTokens(scope.name)) {
      return listTokensOfMost(this.#store, scope.name, page);
    }
    return listTokens(this.#store, scope, filter, page);
  }

  /** As of the last batch that was shown: what is on disk may have others already. */
  #hasAllTokens(namespace: NamespaceName): boolean {
    return this.counts(namespace).tokens === this.#meta.totals.tokens;
  }

  policies(scope: NamespaceScope, page: Page): AsyncIterable<readonly Policy[]> {
    return listPolicies(this.#store, scope, page);
  }

  roles(
    scope: NamespaceScope,
    policyId: PolicyId | undefined,
    page: Page,
  ): AsyncIterable<readonly Role[]> {
    return listRoles(this.#store, scope, policyId, page);
  }

  authMethods(scope: NamespaceScope, page: Page): AsyncIterable<readonly AuthMethod[]> {
    return listAuthMethods(this.#store, scope, page);
  }

  bindingRules(
    scope: NamespaceScope,
    authMethod: string | undefined,
    page: Page,
  ): AsyncIterable<readonly BindingRule[]> {
    return listBindingRules(this.#store, scope, authMethod, page);
  }

  namespaces(page: Page): AsyncIterable<readonly Namespace[]> {
    return listNamespaces(this.#store, page);
  }

  bindingRulesOf(namespace: NamespaceName, authMethod: string): Iterable<BindingRule> {
    return rulesOfMethod(this.#store, namespace, authMethod);
  }

  bindingRuleCountOf(namespace: NamespaceName, authMethod: string): number {
    return ruleIdsOfMethod(this.#store, namespace, authMethod).length;
  }

  expiredTokens(
    search: VoidTokenSearch<ExpiryPlace> & { readonly nowMs: number },
  ): Promise<FoundTokens<ExpiryPlace>> {
    return expiredTokens(this.#store, search);
  }

  tokenBytes(accessorId: AccessorId): number {
    return this.rowBytes(rowKey('token', idBytes(accessorId)));
  }

  /** How long a row is; 0 where there is none. */
  rowBytes(key: Uint8Array): number {
    return this.#store.get(key)?.length ?? 0;
  }

  orphanedTokens(search: VoidTokenSearch<OrphanPlace>): Promise<FoundTokens<OrphanPlace>> {
    return orphanedTokens(this.#store, search);
  }

  oldRequests(beforeMs: number, limit: number): Promise<readonly Uint8Array[]> {
    return oldRequests(this.#store, beforeMs, limit);
  }

  requestsBelow(search: RequestSearch): Promise<FoundRequests> {
    return requestsBelow(this.#store, search);
  }

  oldPendingLogins(nowMs: number, limit: number): Promise<readonly string[]> {
    return oldPendingLogins(this.#store, nowMs, limit);
  }

  index(): number {
    return Math.max(1, this.#meta.index);
  }

  tableIndex(table: TableName): number {
    return Math.max(1, this.#meta.tableIndexes[table]);
  }

  position(): Position {
    return this.#meta.position;
  }

  get usesLevel(): number {
    return this.meta.level;
  }

  replication(): Replication | undefined {
    this.#replication ??= { known: readReplication(this.#store) };
    return this.#replication.known;
  }

  cursor(): GlobalCursor | undefined {
    return this.replication()?.cursor;
  }

  keptEntries(): KeptRange | undefined {
    const replication = this.replication();
    if (replication === undefined || replication.isDiverged) return undefined;
    const { first, cursor, keptBytes } = replication;
    return { first, head: cursor, bytes: keptBytes };
  }

  async globalEntries(
    afterSeq: number,
    limitBytes: number,
  ): Promise<readonly Uint8Array[] | undefined> {
    const replication = this.replication();
    if (replication === undefined) return undefined;
    return await entriesAfter(this.#store, replication, afterSeq, limitBytes);
  }

  globalHashAt(seq: number): Uint8Array | undefined {
    const replication = this.replication();
    return replication === undefined ? undefined : hashAt(this.#store, replication, seq);
  }

  entryTimeMs(seq: number): number | undefined {
    const replication = this.replication();
    return replication === undefined ? undefined : entryTimeMs(this.#store, replication, seq);
  }

  isRestoreAt(seq: number): boolean {
    const replication = this.replication();
    return replication !== undefined && isRestoreAt(this.#store, replication, seq);
  }

  unusedTimeMs(): number | undefined {
    const replication = this.replication();
    return replication === undefined ? undefined : unusedTimeMs(this.#store, replication);
  }

  /**
   * Of all global objects exactly at that place of the global log; undefined where it is not on the chain,
   * or its entry is not kept any more.
   */
  globalDigestAt(cursor: GlobalCursor): Uint8Array | undefined {
    const replication = this.replication();
    if (replication === undefined || replication.isDiverged || replication.isWitness) {
      return undefined;
    }
    if (isSameCursor(cursor, replication.cursor)) return this.#meta.globalDigest;
    return entryDigestAt(this.#store, replication, cursor);
  }

  /** Of the entries up to `upTo`, as many as are trimmed in one piece. */
  trimmableTo(upTo: number): number {
    const replication = this.replication();
    return replication === undefined ? upTo : trimmableTo(this.#store, replication, upTo);
  }

  keptSizeAfter(seq: number): number {
    const replication = this.replication();
    return replication === undefined ? 0 : keptSizeAfter(this.#store, replication, seq);
  }

  async divergentEntries(limit: number): Promise<readonly GlobalEntry[]> {
    const replication = this.replication();
    return replication === undefined ? [] : await divergentEntries(this.#store, replication, limit);
  }

  divergentEntry(place: Position): GlobalEntry | undefined {
    const replication = this.replication();
    return replication && divergentEntryAt(this.#store, replication, place);
  }

  bootstrapIndex(): number | undefined {
    return this.#meta.bootstrapIndex;
  }

  restoreUnderWay(): Pick<RestoreProgress, 'id' | 'timeMs'> | undefined {
    const value = this.#restoreRow();
    return value === undefined ? undefined : (decodeImport(value) ?? decodeRestore(value));
  }

  importUnderWay(): ImportUnderWay | undefined {
    const value = this.#restoreRow();
    const progress = value === undefined ? undefined : decodeImport(value);
    if (progress === undefined) return undefined;
    const { id, timeMs, header, chunkCount, carryCount, isCarried } = progress;
    return { id, timeMs, cursor: header.cursor, chunkCount, carryCount, isCarried };
  }

  #restoreRow(): Uint8Array | undefined {
    this.#restore ??= { row: this.#store.get(RESTORE_KEY) };
    return this.#restore.row;
  }

  localRows(after: Uint8Array | undefined, limit: number): Promise<readonly Uint8Array[]> {
    return localRows(this.#store, after, limit);
  }

  appliedIndex(): number {
    return this.#meta.appliedEntry?.index ?? 0;
  }

  counts(namespace: NamespaceName): ObjectCounts {
    return decodeCounts(this.#store.get(rowKey('counts', namespace)));
  }

  totals(): Totals {
    return this.#meta.totals;
  }

  digests(): { readonly global: string; readonly all: string } {
    const { globalDigest, fullDigest } = this.#meta;
    return { global: new Digest(globalDigest).hex(), all: new Digest(fullDigest).hex() };
  }
}
