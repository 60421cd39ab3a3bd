// From the presented secret to who is asking and what that one may do. Tokens that are used are kept in
// memory by secret, their rights by their links; both are dropped the moment the state tells that something
// changed, and expiry is looked at each time, so no request is answered by rights of the past.

import { LRUCache } from 'lru-cache';
import { unreachable } from '../../../cluster/base/unreachable.ts';
import { upTo } from '../../../cluster/base/up-to.ts';
import type { Clock } from '../../../cluster/platform/clock.ts';
import { anonymousToken } from '../../acl/built-in/built-ins.ts';
import { AclError, invalid } from '../../acl/error.ts';
import {
  ANONYMOUS_SECRET,
  type NamespaceName,
  ROOT_SECRETS,
  type SecretId,
} from '../../acl/ids.ts';
import type { Token } from '../../acl/token.ts';
import { nameKey } from '../../acl/values/names.ts';
import { AskedBefore } from '../../state/reads/asked-before.ts';
import { hasLostNamespace, isVoid, type StandingLookup } from '../../state/reads/standing.ts';
import type { StateView } from '../../state/view.ts';
import type { AppliedChange, AppliedEvent } from '../../state/watch.ts';
import { charsIn } from '../chars-in.ts';
import { dependencyOf, methodDependency } from '../dependencies.ts';
import type { Metrics } from '../metrics.ts';
import type { Caller } from './caller.ts';
import { type Rights, RightsCache, type RightsSettings } from './rights-cache.ts';

const TOKENS_MAX = 20_000;
/** No token counts for less text, in characters: so no more are kept than that (see `upTo`). */
const TEXT_LEAST = 840;
/** Characters in the tokens that are kept: whoever may log in chooses what a description says. */
const TEXT_MAX = TOKENS_MAX * TEXT_LEAST;
const METHODS_MAX = 10_000;
const NAMESPACES_MAX = 10_000;

export interface CallerResolverDeps {
  readonly view: StateView;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly settings: RightsSettings;
}

interface KnownToken {
  readonly token: Token;
  /** Compiled when it is first needed; replaced when it is no longer current. */
  rights: Rights;
}

export class CallerResolver {
  readonly #deps: CallerResolverDeps;
  readonly #rights: RightsCache;
  /** By lower-cased accessor id, as changes name it. */
  readonly #secretByAccessor = new Map<string, SecretId>();
  /** Once it is full, from their second use on: what is used once grows old before it goes, as in ObjectCache. */
  readonly #tokens: LRUCache<SecretId, KnownToken>;
  readonly #asked = new AskedBefore(TOKENS_MAX);
  readonly #methodIndexes = new LRUCache<string, { readonly createIndex: number }>(
    upTo(METHODS_MAX),
  );
  readonly #lostNamespaces = new LRUCache<NamespaceName, number>(upTo(NAMESPACES_MAX));
  readonly #lookup: StandingLookup = {
    authMethod: (namespace, name) => this.#methodOf(namespace, name),
    namespaceLostUpTo: (name) => this.#lostUpTo(name),
  };

  constructor(deps: CallerResolverDeps) {
    this.#deps = deps;
    this.#rights = new RightsCache(deps.view, deps.settings);
    this.#tokens = new LRUCache({
      maxSize: TEXT_MAX,
      sizeCalculation: ({ token }) => sizeOf(token),
      dispose: ({ token }) => this.#secretByAccessor.delete(token.accessorId.toLowerCase()),
    });
  }

  /**
   * The caller behind a secret; without one, the anonymous token: a default of the server that was asked is put in
   * where the request comes in. Throws 'token-unknown' when no living token has the secret.
   */
  resolve(presented: SecretId | undefined): Caller {
    const secret = presented ?? ANONYMOUS_SECRET;
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

  /** Whoever holds a stored token that is not void. */
  holderOf(token: Token): Caller {
    return { token, authorizer: this.#rights.rightsOf(token).authorizer };
  }

  /** Whether whoever presents this may be anybody: no living token has it, or the one for those who have none. */
  isStranger(presented: SecretId | undefined): boolean {
    if (presented === undefined || presented === ANONYMOUS_SECRET) return true;
    const known = this.#tokenOf(presented);
    return known === undefined || this.isVoid(known.token);
  }

  /** Whatever the rights behind a secret follow from, by `dependencyOf`; nothing where no token has it. */
  rootsOf(presented: SecretId | undefined): Iterable<string> {
    const known = this.#tokenOf(presented ?? ANONYMOUS_SECRET);
    if (known === undefined) return [];
    const { accessorId, authMethod } = known.token;
    const own = [dependencyOf('tokens', accessorId)];
    if (authMethod !== undefined) own.push(methodDependency(authMethod.namespace, authMethod.name));
    return [...own, ...this.#rights.rightsOf(known.token).dependencies];
  }

  /** The stored token of a secret, void or not; undefined when there is none. */
  tokenOf(secret: SecretId): Token | undefined {
    return this.#tokenOf(secret)?.token;
  }

  /** Whether a stored token is void at this moment. Cheap enough for every token of a list. */
  isVoid(token: Token): boolean {
    // Most tokens have neither, and asking the clock is dear beside all else here.
    if (token.expirationTime === undefined && token.authMethod === undefined) {
      return hasLostNamespace(token, this.#lookup);
    }
    return isVoid(token, this.#lookup, this.#deps.clock.wallMs());
  }

  /** To be told of every applied change before anybody is answered on account of it. */
  onApplied(event: AppliedEvent): void {
    switch (event.kind) {
      case 'changed':
        for (const change of event.changes) this.#forget(change);
        return;
      case 'replaced':
        this.#tokens.clear();
        this.#methodIndexes.clear();
        this.#lostNamespaces.clear();
        this.#rights.forgetAll();
        return;
      default:
        unreachable(event);
    }
  }

  #forget({ table, key }: AppliedChange): void {
    if (table === 'auth-methods') this.#methodIndexes.clear();
    if (table === 'namespaces') this.#lostNamespaces.clear();
    this.#rights.forget(dependencyOf(table, key));
    const secret = table === 'tokens' ? this.#secretByAccessor.get(key) : undefined;
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
    const isFull = this.#tokens.calculatedSize + sizeOf(token) > TEXT_MAX;
    if (isFull && !this.#asked.note(secret)) return fresh;
    this.#tokens.set(secret, fresh);
    this.#secretByAccessor.set(token.accessorId.toLowerCase(), secret);
    return fresh;
  }

  #methodOf(namespace: NamespaceName, name: string): { readonly createIndex: number } | undefined {
    const key = `${namespace} ${nameKey(name)}`;
    const known = this.#methodIndexes.get(key);
    if (known !== undefined) return known;
    const method = this.#deps.view.authMethod(namespace, name);
    // A method that is gone has no index that a token could have.
    const found = { createIndex: method?.createIndex ?? -1 };
    this.#methodIndexes.set(key, found);
    return found;
  }

  #lostUpTo(name: NamespaceName): number {
    const known = this.#lostNamespaces.get(name);
    if (known !== undefined) return known;
    const found = this.#deps.view.namespaceLostUpTo(name);
    this.#lostNamespaces.set(name, found);
    return found;
  }

  /** The anonymous token is made when a datacenter starts; before that, nobody has no rights. */
  #nobody(): Caller {
    const token = { ...anonymousToken(0), createIndex: 0, modifyIndex: 0 };
    return this.holderOf(token);
  }

  #unknown(): AclError {
    const isBootstrapped = this.#deps.view.bootstrapIndex() !== undefined;
    const hint = isBootstrapped
      ? ''
      : 'ACL system must be bootstrapped before making any requests that require authorization: ';
    return new AclError('token-unknown', `${hint}ACL not found`);
  }
}

/** About as many characters as a link has. */
const LINK_TEXT = 40;

/** What a token counts for: what can be long in it. */
function sizeOf(token: Token): number {
  const { description, policies, roles } = token;
  const { serviceIdentities, nodeIdentities, templatedPolicies } = token;
  const links = (policies.length + roles.length) * LINK_TEXT;
  // Whoever makes a token may name very many datacenters, and long ones.
  const identities = charsIn([serviceIdentities, nodeIdentities, templatedPolicies]);
  return Math.min(Math.max(description.length + links + identities, TEXT_LEAST), TEXT_MAX);
}
