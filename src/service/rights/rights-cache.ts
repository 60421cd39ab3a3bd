// Compiled authorizers, one for each set of links: a million login tokens with the same links share
// one. An authorizer is dropped the moment anything changes that it was made from, so it is never
// served stale; which change concerns which authorizer is kept in a table of dependencies.

import { LRUCache } from 'lru-cache';
import { must } from '../../../cluster/base/assert.ts';
import { AclError } from '../../acl/error.ts';
import type { Policy } from '../../acl/policy.ts';
import {
  type Authorizer,
  type AuthorizerInput,
  compileAuthorizer,
} from '../../authz/authorizer.ts';
import { type PolicySource, validInDatacenter } from '../../authz/policy-source.ts';
import { parseRules } from '../../rules/parse-rules.ts';
import type { RuleSet } from '../../rules/rule-set.ts';
import type { StateView } from '../../state/view.ts';
import {
  type LinkedPolicy,
  linkedPolicies,
  type RightsOwner,
  TOO_MUCH_LINKED,
} from './linked-policies.ts';

const RIGHTS_MAX = 20_000;
/** No rights count for fewer rules: so no more are kept than that (see `upTo`). */
const RULES_LEAST = 100;
/**
 * Rules in all rights that are kept. Each keeps alive what its rules were parsed into, and some have lists or merged
 * forms of them: without a bound, long policies take all memory.
 */
const RULES_MAX = RIGHTS_MAX * RULES_LEAST;
/** So many characters of a key count as a rule: it names the datacenters of identities, as many as somebody likes. */
const RULE_CHARS = 20;
const RULE_SETS_MAX = 20_000;
/** No rule set counts for less text, in characters: so no more are kept than that (see `upTo`). */
const RULE_TEXT_LEAST = 1_680;
/** Characters of rule text that are kept parsed. */
const RULE_TEXT_MAX = RULE_SETS_MAX * RULE_TEXT_LEAST;

/** The rights of one set of links. Whoever keeps it must look at `isCurrent` before each use. */
export interface Rights {
  /** Throws 'permission-denied' where the links lead to more than may be looked at. */
  readonly authorizer: Authorizer;
  /** `dependencyOf` what they were made from. */
  readonly dependencies: ReadonlySet<string>;
  readonly isCurrent: boolean;
}

class Entry implements Rights {
  readonly key: string;
  readonly dependencies: ReadonlySet<string>;
  /** Rules, blocks of them, links, and what the key is long. */
  readonly size: number;
  #authorizer: Authorizer | AclError | undefined;

  /** `input`, or why there are no rights. */
  constructor(key: string, dependencies: ReadonlySet<string>, input: AuthorizerInput | AclError) {
    this.key = key;
    this.dependencies = dependencies;
    const isRefusal = input instanceof AclError;
    const ruleCount = isRefusal ? 0 : rulesIn(input.sources) + rulesIn(input.namespaceDefaults);
    this.size = dependencies.size + ruleCount + Math.ceil(key.length / RULE_CHARS);
    this.#authorizer = isRefusal ? input : compileAuthorizer(input);
  }

  get isCurrent(): boolean {
    return this.#authorizer !== undefined;
  }

  get authorizer(): Authorizer {
    const found = must(this.#authorizer, 'rights that are current');
    if (found instanceof AclError) throw new AclError(found.code, found.message);
    return found;
  }

  /** Whoever still holds it asks again, and keeps nothing alive until then. */
  release(): void {
    this.#authorizer = undefined;
  }
}

function rulesIn(sources: readonly PolicySource[]): number {
  let count = 0;
  for (const { ruleSet } of sources) {
    for (const { flat, named } of [ruleSet, ...ruleSet.namespaces]) {
      count += 1 + flat.length + named.length;
    }
  }
  return count;
}

export interface RightsSettings {
  readonly datacenter: string;
  readonly defaultPolicy: 'allow' | 'deny';
}

export class RightsCache {
  readonly #view: StateView;
  readonly #settings: RightsSettings;
  readonly #dependents = new Map<string, Set<Entry>>();
  readonly #entries: LRUCache<string, Entry>;
  /** By rule text, so that it can never be stale: equal policies and identities share one. */
  readonly #ruleSets = new LRUCache<string, RuleSet>({
    maxSize: RULE_TEXT_MAX,
    sizeCalculation: (_ruleSet, text) => Math.max(text.length, RULE_TEXT_LEAST),
  });

  constructor(view: StateView, settings: RightsSettings) {
    this.#view = view;
    this.#settings = settings;
    this.#entries = new LRUCache({
      maxSize: RULES_MAX,
      // What is larger than all of them would be kept by nobody, and told of no change.
      sizeCalculation: ({ size }) => Math.min(Math.max(size, RULES_LEAST), RULES_MAX),
      dispose: (entry) => this.#release(entry),
    });
  }

  /** The rights of these links as the state has them now. */
  rightsOf(owner: RightsOwner): Rights {
    const key = linksText(owner);
    const known = this.#entries.get(key);
    if (known !== undefined) return known;
    const entry = this.#compile(key, owner);
    for (const dependency of entry.dependencies) this.#dependentsOf(dependency).add(entry);
    this.#entries.set(key, entry);
    return entry;
  }

  /** Something changed: whatever was made from it is dropped. */
  forget(dependency: string): void {
    // Deleting an entry takes it out of the set that is walked here.
    for (const { key } of [...(this.#dependents.get(dependency) ?? [])]) this.#entries.delete(key);
  }

  /** Nothing holds of what the authorizers were made from. */
  forgetAll(): void {
    this.#entries.clear();
  }

  #compile(key: string, owner: RightsOwner): Entry {
    const { own, defaults, dependencies, isTooMuch } = linkedPolicies(this.#view, owner);
    if (isTooMuch) return new Entry(key, dependencies, tooMuchLinked());
    return new Entry(key, dependencies, {
      sources: this.#sourcesOf(own),
      namespaceDefaults: this.#sourcesOf(defaults),
      defaultPolicy: this.#settings.defaultPolicy,
    });
  }

  #sourcesOf(linked: readonly LinkedPolicy[]): readonly PolicySource[] {
    return linked
      .filter(({ policy }) => validInDatacenter(policy.datacenters, this.#settings.datacenter))
      .map(({ policy, via }) => {
        const { id, name, namespace } = policy;
        return { ruleSet: this.#ruleSetOf(policy), policy: { id, name, namespace }, via };
      });
  }

  #ruleSetOf({ name, rules }: Policy): RuleSet {
    const known = this.#ruleSets.get(rules);
    if (known !== undefined) return known;
    const ruleSet = parseStoredRules(name, rules);
    this.#ruleSets.set(rules, ruleSet);
    return ruleSet;
  }

  #dependentsOf(dependency: string): Set<Entry> {
    const known = this.#dependents.get(dependency);
    if (known !== undefined) return known;
    const fresh = new Set<Entry>();
    this.#dependents.set(dependency, fresh);
    return fresh;
  }

  #release(entry: Entry): void {
    // Nobody would tell it of later changes.
    entry.release();
    for (const dependency of entry.dependencies) {
      const dependents = this.#dependents.get(dependency);
      dependents?.delete(entry);
      if (dependents?.size === 0) this.#dependents.delete(dependency);
    }
  }
}

/** A part of it might leave out a deny, and all of it would keep the server from everything else. */
function tooMuchLinked(): AclError {
  return new AclError('permission-denied', `Permission denied: ${TOO_MUCH_LINKED}`);
}

/** Leaving out what cannot be read might leave out a deny, so a token with such a policy fails. */
function parseStoredRules(name: string, rules: string): RuleSet {
  try {
    return parseRules(rules, { standing: 'stored' });
  } catch (cause) {
    throw new AclError('internal', `the stored rules of policy "${name}" cannot be read`, {
      cause,
    });
  }
}

/** A text that is equal for equal sets of links in the same namespace, and for no others. */
function linksText(owner: RightsOwner): string {
  return JSON.stringify([
    owner.namespace,
    owner.policies,
    owner.roles,
    owner.serviceIdentities,
    owner.nodeIdentities,
    owner.templatedPolicies,
  ]);
}
