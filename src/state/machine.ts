// The state machine: committed entries go in, outcomes come out, and the state in between is on disk.
// A group of entries is one synced batch; only when it is there do readers see it, listeners hear of
// it and callers get their outcomes. Opening reads one row, however large the state is.

import { assert } from '../../cluster/base/assert.ts';
import type { LogEntry, LogWitness } from '../../cluster/log/log-entry.ts';
import type { Clock } from '../../cluster/platform/clock.ts';
import type { Kv } from '../../cluster/platform/kv.ts';
import type { AuthMethod } from '../acl/auth-method.ts';
import type { BindingRule } from '../acl/binding-rule.ts';
import type { AccessorId, NamespaceName, PolicyId, SecretId } from '../acl/ids.ts';
import type { Namespace } from '../acl/namespace.ts';
import type { NamespaceScope } from '../acl/namespace-selection.ts';
import type { Policy } from '../acl/policy.ts';
import type { Role } from '../acl/role.ts';
import type { Token } from '../acl/token.ts';
import { applyCommand } from './apply/apply-command.ts';
import {
  type PendingLogin,
  readPendingLogin,
  readRequest,
  type RememberedRequest,
} from './bookkeeping.ts';
import { ChangeSet, META_KEY } from './change-set.ts';
import { decodeCommand } from './command-codec.ts';
import { Digest } from './digest.ts';
import { expiredTokens, oldPendingLogins, oldRequests, orphanedTokens } from './due.ts';
import {
  listAuthMethods,
  listBindingRules,
  listNamespaces,
  listPolicies,
  listRoles,
  listTokens,
} from './lists.ts';
import { decodeCounts, decodeMeta, EMPTY_META, type Meta, type Totals } from './meta.ts';
import { ObjectCache } from './object-cache.ts';
import { idKey, namedObjectKey } from './objects.ts';
import type { Outcome, Position } from './outcome.ts';
import {
  isIdInUse,
  readAuthMethod,
  readBindingRule,
  readNamespace,
  readPolicy,
  readPolicyByName,
  readRole,
  readRoleByName,
  readRulesOfMethod,
  readToken,
  readTokenBySecret,
} from './reads.ts';
import { rowKey } from './tables.ts';
import type { ObjectCounts, Page, StateView, TableName, TokenFilter } from './view.ts';
import { type AppliedChange, Watch } from './watch.ts';

export class StateMachine implements StateView {
  readonly watch: Watch;
  readonly #kv: Kv;
  readonly #policies = new ObjectCache<Policy>(
    ({ rules, description }) => rules.length + description.length,
  );
  readonly #roles = new ObjectCache<Role>(
    ({ description, policies }) => description.length + policies.length * 36,
  );
  /** As it is on disk. */
  #meta: Meta;
  #isApplying = false;

  private constructor(kv: Kv, meta: Meta, clock: Clock) {
    this.#kv = kv;
    this.#meta = meta;
    this.watch = new Watch(clock);
  }

  /** Opens the state on a store. Throws when another release wrote it. */
  static open(kv: Kv, deps: { readonly clock: Clock }): StateMachine {
    const value = kv.get(META_KEY);
    return new StateMachine(kv, value === undefined ? EMPTY_META : decodeMeta(value), deps.clock);
  }

  get appliedEntry(): LogWitness | undefined {
    return this.#meta.appliedEntry;
  }

  /**
   * Applies entries that follow the last one, as one batch; resolves with one outcome an entry when
   * it is on disk. Never while another call is under way.
   */
  async apply(entries: readonly LogEntry[]): Promise<readonly Outcome[]> {
    assert(!this.#isApplying, 'one group of entries is applied at a time');
    const last = entries.at(-1);
    if (last === undefined) return [];
    this.#isApplying = true;
    const changes = new ChangeSet(this.#kv, this.#meta);
    const outcomes = this.#outcomesOf(entries, changes);
    const { index, term, hash } = last;
    const finished = changes.finish({ index, term, hash });
    await this.#kv.write(finished.writes);
    this.#meta = finished.meta;
    this.#isApplying = false;
    this.#forgetChanged(finished.changes);
    this.watch.announce(finished.changes);
    return outcomes;
  }

  #forgetChanged(changes: readonly AppliedChange[]): void {
    for (const { table, watchKeys } of changes) {
      if (table === 'policies') this.#policies.forget(watchKeys);
      else if (table === 'roles') this.#roles.forget(watchKeys);
    }
  }

  #outcomesOf(entries: readonly LogEntry[], changes: ChangeSet): readonly Outcome[] {
    let appliedIndex = this.appliedIndex();
    return entries.map(({ index, payload }) => {
      assert(index === appliedIndex + 1, 'entries are applied in order', { index, appliedIndex });
      appliedIndex = index;
      // A new leader's first entry says nothing.
      if (payload.length > 0) return applyCommand(changes, decodeCommand(payload));
      const { index: at, position } = changes;
      return { kind: 'applied', answer: { type: 'done' }, index: at, position, replayed: false };
    });
  }

  token(accessorId: string): Token | undefined {
    return readToken(this.#kv, accessorId);
  }

  tokenBySecret(secretId: SecretId): Token | undefined {
    return readTokenBySecret(this.#kv, secretId);
  }

  idInUse(id: string): boolean {
    return isIdInUse(this.#kv, id);
  }

  policy(id: string): Policy | undefined {
    return this.#policies.get(idKey(id), () => readPolicy(this.#kv, id));
  }

  policyByName(namespace: NamespaceName, name: string): Policy | undefined {
    const key = namedObjectKey({ namespace, name });
    return this.#policies.get(key, () => readPolicyByName(this.#kv, namespace, name));
  }

  role(id: string): Role | undefined {
    return this.#roles.get(idKey(id), () => readRole(this.#kv, id));
  }

  roleByName(namespace: NamespaceName, name: string): Role | undefined {
    const key = namedObjectKey({ namespace, name });
    return this.#roles.get(key, () => readRoleByName(this.#kv, namespace, name));
  }

  authMethod(namespace: NamespaceName, name: string): AuthMethod | undefined {
    return readAuthMethod(this.#kv, namespace, name);
  }

  bindingRule(id: string): BindingRule | undefined {
    return readBindingRule(this.#kv, id);
  }

  namespace(name: string): Namespace | undefined {
    return readNamespace(this.#kv, name);
  }

  pendingLogin(key: string): PendingLogin | undefined {
    return readPendingLogin(this.#kv, key);
  }

  request(key: Uint8Array): RememberedRequest | undefined {
    return readRequest(this.#kv, key);
  }

  tokens(
    scope: NamespaceScope,
    filter: TokenFilter | undefined,
    page: Page,
  ): AsyncIterable<readonly Token[]> {
    return listTokens(this.#kv, scope, filter, page);
  }

  policies(scope: NamespaceScope, page: Page): AsyncIterable<readonly Policy[]> {
    return listPolicies(this.#kv, scope, page);
  }

  roles(
    scope: NamespaceScope,
    policyId: PolicyId | undefined,
    page: Page,
  ): AsyncIterable<readonly Role[]> {
    return listRoles(this.#kv, scope, policyId, page);
  }

  authMethods(scope: NamespaceScope, page: Page): AsyncIterable<readonly AuthMethod[]> {
    return listAuthMethods(this.#kv, scope, page);
  }

  bindingRules(
    scope: NamespaceScope,
    authMethod: string | undefined,
    page: Page,
  ): AsyncIterable<readonly BindingRule[]> {
    return listBindingRules(this.#kv, scope, authMethod, page);
  }

  namespaces(page: Page): AsyncIterable<readonly Namespace[]> {
    return listNamespaces(this.#kv, page);
  }

  bindingRulesOf(namespace: NamespaceName, authMethod: string): readonly BindingRule[] {
    return readRulesOfMethod(this.#kv, namespace, authMethod);
  }

  expiredTokens(nowMs: number, limit: number): Promise<readonly AccessorId[]> {
    return expiredTokens(this.#kv, nowMs, limit);
  }

  orphanedTokens(limit: number): Promise<readonly AccessorId[]> {
    return orphanedTokens(this.#kv, limit);
  }

  oldRequests(beforeMs: number, limit: number): Promise<readonly Uint8Array[]> {
    return oldRequests(this.#kv, beforeMs, limit);
  }

  oldPendingLogins(nowMs: number, limit: number): Promise<readonly string[]> {
    return oldPendingLogins(this.#kv, nowMs, limit);
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

  bootstrapIndex(): number | undefined {
    return this.#meta.bootstrapIndex;
  }

  appliedIndex(): number {
    return this.#meta.appliedEntry?.index ?? 0;
  }

  counts(namespace: NamespaceName): ObjectCounts {
    return decodeCounts(this.#kv.get(rowKey('counts', namespace)));
  }

  totals(): Totals {
    return this.#meta.totals;
  }

  digests(): { readonly global: string; readonly all: string } {
    const { globalDigest, fullDigest } = this.#meta;
    return { global: new Digest(globalDigest).hex(), all: new Digest(fullDigest).hex() };
  }
}
