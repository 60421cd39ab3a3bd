// From the presented secret to who is asking and what that one may do. Tokens are kept in memory by
// secret, their rights by their links; both are dropped the moment the state tells that something
// changed, and expiry is looked at each time, so no request is answered by rights of the past.

import { LRUCache } from 'lru-cache';
import type { Clock } from '../../cluster/platform/clock.ts';
import { AclError, invalid } from '../acl/error.ts';
import { anonymousToken } from '../acl/built-ins.ts';
import { ANONYMOUS_SECRET, ROOT_SECRETS, type SecretId } from '../acl/ids.ts';
import { nameKey } from '../acl/names.ts';
import type { AuthMethodOrigin, Token } from '../acl/token.ts';
import { isExpired } from '../acl/token-expiry.ts';
import type { StateView } from '../state/view.ts';
import { type AppliedChange, watchKey } from '../state/watch.ts';
import type { Caller } from './caller.ts';
import type { Metrics } from './metrics.ts';
import { dependencyOf } from './linked-policies.ts';
import { type Rights, RightsCache, type RightsSettings } from './rights-cache.ts';

const TOKENS_MAX = 100_000;
const METHODS_MAX = 10_000;

export interface CallerResolverDeps {
  readonly view: StateView;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly settings: RightsSettings & { readonly defaultSecret: SecretId | undefined };
}

interface KnownToken {
  readonly token: Token;
  /** Compiled when it is first needed; replaced when it is no longer current. */
  rights: Rights;
}

export class CallerResolver {
  readonly #deps: CallerResolverDeps;
  readonly #rights: RightsCache;
  /** By the token's watch key. */
  readonly #secretByToken = new Map<string, SecretId>();
  readonly #tokens: LRUCache<SecretId, KnownToken>;
  /** CreateIndex of auth methods that logged tokens in; 0 for a method that is gone. */
  readonly #methods = new LRUCache<string, number>({ max: METHODS_MAX });

  constructor(deps: CallerResolverDeps) {
    this.#deps = deps;
    this.#rights = new RightsCache(deps.view, deps.settings);
    this.#tokens = new LRUCache({
      max: TOKENS_MAX,
      dispose: ({ token }) => this.#secretByToken.delete(watchKey({ id: token.accessorId })),
    });
  }

  /**
   * The caller behind a secret; without one, of the configured default, else the anonymous token.
   * Throws 'token-unknown' when no living token has the secret.
   */
  resolve(presented: SecretId | undefined): Caller {
    const secret = presented ?? this.#deps.settings.defaultSecret ?? ANONYMOUS_SECRET;
    if (ROOT_SECRETS.has(secret)) throw invalid('Cannot resolve root ACL');
    const known = this.#tokenOf(secret);
    if (known === undefined) {
      if (secret === ANONYMOUS_SECRET) return this.#nobody();
      throw this.#unknown();
    }
    if (this.isVoid(known.token)) throw this.#unknown();
    if (!known.rights.isCurrent) known.rights = this.#rights.rightsOf(known.token);
    return { token: known.token, authorizer: known.rights.authorizer };
  }

  /** Whether a stored token is void at this moment: expired, or made by a method that is gone. */
  isVoid(token: Token): boolean {
    return isExpired(token, this.#deps.clock.wallMs()) || this.isOrphaned(token);
  }

  /** Whether the auth method that made the token is gone. A later one of its name is another one. */
  isOrphaned({ authMethod }: Pick<Token, 'authMethod'>): boolean {
    return authMethod !== undefined && this.#methodIndex(authMethod) !== authMethod.createIndex;
  }

  /** To be told of every applied change before anybody is answered on account of it. */
  onApplied(changes: readonly AppliedChange[]): void {
    for (const change of changes) this.#forget(change);
  }

  #forget({ table, keys: [key] }: AppliedChange): void {
    if (key === undefined) return;
    if (table === 'auth-methods') this.#methods.clear();
    if (table !== 'tokens') {
      this.#rights.forget(dependencyOf(table, key));
      return;
    }
    const secret = this.#secretByToken.get(key);
    if (secret !== undefined) this.#tokens.delete(secret);
  }

  #tokenOf(secret: SecretId): KnownToken | undefined {
    const known = this.#tokens.get(secret);
    if (known !== undefined) {
      this.#deps.metrics.count('acl.token.cache_hit');
      return known;
    }
    this.#deps.metrics.count('acl.token.cache_miss');
    // What is not there is not remembered: a token that is made in this moment must work at once.
    const token = this.#deps.view.tokenBySecret(secret);
    if (token === undefined) return undefined;
    const fresh = { token, rights: this.#rights.rightsOf(token) };
    this.#tokens.set(secret, fresh);
    this.#secretByToken.set(watchKey({ id: token.accessorId }), secret);
    return fresh;
  }

  #methodIndex({ namespace, name }: AuthMethodOrigin): number {
    const key = `${namespace} ${nameKey(name)}`;
    const known = this.#methods.get(key);
    if (known !== undefined) return known;
    const createIndex = this.#deps.view.authMethod(namespace, name)?.createIndex ?? 0;
    this.#methods.set(key, createIndex);
    return createIndex;
  }

  /** The anonymous token is made when a datacenter starts; before that, nobody has no rights. */
  #nobody(): Caller {
    const token = { ...anonymousToken(0), createIndex: 0, modifyIndex: 0 };
    return { token, authorizer: this.#rights.rightsOf(token).authorizer };
  }

  #unknown(): AclError {
    const isBootstrapped = this.#deps.view.bootstrapIndex() !== undefined;
    const hint = isBootstrapped
      ? ''
      : 'ACL system must be bootstrapped before making any requests that require authorization: ';
    return new AclError('token-unknown', `${hint}ACL not found`);
  }
}
