// All policies that stand on one step of the chain (a token's own, or a namespace's defaults) and
// what of them speaks for a namespace (decisions.md 4).
//
// A policy outside `default` speaks for its own namespace alone, and there only on what lives in
// namespaces. A policy in `default` speaks by its top level for `default` and for all that lives in
// no namespace, and for any other namespace by its namespace blocks: those of the most specific
// selector that names it, over all policies of the layer, and no others.

import { DEFAULT_NAMESPACE, type NamespaceName } from '../acl/ids.ts';
import type { Level, Match, NamespaceBlock, RuleGroup } from '../rules/rule-set.ts';
import { groupBy } from './group-by.ts';
import { dominant } from './levels.ts';
import { MergedRules } from './merged-rules.ts';
import type { PolicySource } from './policy-source.ts';
import { PrefixIndex } from './prefix-index.ts';

/** Rules that take part, with the policy they stand in; `block` where they stand in one. */
export interface RulePart {
  readonly source: PolicySource;
  readonly group: RuleGroup;
  readonly block: NamespaceBlock | undefined;
}

/** The parts that are merged for one namespace, and their merged form. */
export interface RuleScope {
  readonly parts: readonly RulePart[];
  readonly rules: MergedRules;
}

/** The rule that governs a namespace object. */
export interface NamespaceObjectRule {
  readonly match: Match;
  readonly name: string;
  readonly level: Level;
}

interface BlockPart extends RulePart {
  readonly block: NamespaceBlock;
}

export class RuleLayer {
  readonly #sourcesByNamespace: ReadonlyMap<NamespaceName, readonly PolicySource[]>;
  readonly #exactBlocks: ReadonlyMap<string, readonly BlockPart[]>;
  readonly #prefixBlocks: PrefixIndex<readonly BlockPart[]>;
  /** Merged lazily, by the selector and the namespace that make a difference: bounded by rules. */
  readonly #scopes = new Map<string, RuleScope>();
  /** What was asked for last: most questions are about one namespace. */
  #last: { readonly namespace: NamespaceName; readonly scope: RuleScope } | undefined;
  #objectPrefixesMemo: PrefixIndex<NamespaceObjectRule> | undefined;

  constructor(sources: readonly PolicySource[]) {
    this.#sourcesByNamespace = groupBy(sources, (source) => source.policy.namespace);
    const blocks = this.#sourcesIn(DEFAULT_NAMESPACE).flatMap((source) =>
      source.ruleSet.namespaces.map((block) => ({ source, group: block, block })),
    );
    const ofMatch = (match: Match) =>
      groupBy(
        blocks.filter((part) => part.block.match === match),
        (part) => part.block.name,
      );
    this.#exactBlocks = ofMatch('exact');
    this.#prefixBlocks = new PrefixIndex(ofMatch('prefix'));
  }

  /** What speaks for things that live in this namespace. */
  scope(namespace: NamespaceName): RuleScope {
    if (this.#last?.namespace !== namespace) {
      this.#last = { namespace, scope: this.#mergedScope(namespace) };
    }
    return this.#last.scope;
  }

  #mergedScope(namespace: NamespaceName): RuleScope {
    const selected = this.#selectedBlocks(namespace);
    const own = this.#sourcesIn(namespace);
    const key = own.length > 0 ? `in ${namespace}` : selected.key;
    const known = this.#scopes.get(key);
    if (known !== undefined) return known;
    const topLevel = own.map((source) => ({ source, group: source.ruleSet, block: undefined }));
    const parts = [...topLevel, ...selected.parts];
    // Rules that come by many ways say no more than once.
    const groups = new Set(parts.map((part) => part.group));
    const scope = { parts, rules: new MergedRules([...groups]) };
    this.#scopes.set(key, scope);
    return scope;
  }

  /** What speaks for things that live in no namespace. */
  globalScope(): RuleScope {
    return this.scope(DEFAULT_NAMESPACE);
  }

  /** The rule on the namespace object itself: the `policy` of blocks, exact before prefix. */
  namespaceObjectRule(name: string): NamespaceObjectRule | undefined {
    const exact = mergedLevel(this.#exactBlocks.get(name) ?? []);
    if (exact !== undefined) return { match: 'exact', name, level: exact };
    return this.#objectPrefixes().longest(name)?.value;
  }

  /** The blocks of one selector, for showing what was merged. */
  blocksOf(selector: { readonly match: Match; readonly name: string }): readonly BlockPart[] {
    const blocks =
      selector.match === 'exact'
        ? this.#exactBlocks.get(selector.name)
        : this.#prefixBlocks.entries.get(selector.name);
    return blocks ?? [];
  }

  /** The prefix selectors that name the namespace, in no particular order. */
  prefixSelectorsOf(namespaceName: string): readonly string[] {
    return [...this.#prefixBlocks.entries.keys()].filter((name) => namespaceName.startsWith(name));
  }

  /** The top level of `default` is an exact selector: prefix blocks do not reach `default`. */
  #selectedBlocks(namespace: NamespaceName): {
    readonly key: string;
    readonly parts: readonly BlockPart[];
  } {
    const exact = this.#exactBlocks.get(namespace);
    if (exact !== undefined || namespace === DEFAULT_NAMESPACE) {
      return { key: `in ${namespace}`, parts: exact ?? [] };
    }
    const longest = this.#prefixBlocks.longest(namespace);
    if (longest === undefined) return { key: 'nowhere', parts: [] };
    return { key: `below ${longest.prefix}`, parts: longest.value };
  }

  #sourcesIn(namespace: NamespaceName): readonly PolicySource[] {
    return this.#sourcesByNamespace.get(namespace) ?? [];
  }

  #objectPrefixes(): PrefixIndex<NamespaceObjectRule> {
    this.#objectPrefixesMemo ??= new PrefixIndex(
      new Map(
        [...this.#prefixBlocks.entries].flatMap(([name, blocks]) => {
          const level = mergedLevel(blocks);
          return level === undefined ? [] : [[name, { match: 'prefix', name, level }] as const];
        }),
      ),
    );
    return this.#objectPrefixesMemo;
  }
}

function mergedLevel(blocks: readonly BlockPart[]): Level | undefined {
  const levels = blocks.flatMap((part) => part.block.level ?? []);
  return levels.length === 0 ? undefined : levels.reduce(dominant);
}
