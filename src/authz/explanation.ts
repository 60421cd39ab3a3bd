// Names the rules behind a verdict: the one that decided, with its policy and the way it came to the
// token, and those that lost to it. It decides nothing; it looks up what was decided.

import { unreachable } from '../../cluster/base/unreachable.ts';
import {
  renderFlatRule,
  renderInNamespace,
  renderNamedRule,
  renderNamespacePolicy,
} from '../rules/render-rules.ts';
import type { Level, Match, NamedRule, Position } from '../rules/rule-set.ts';
import type { AccessQuery, Decision } from './access-query.ts';
import { type DecidingLabel, scopeOf, type Verdict } from './evaluate.ts';
import type { PolicyRef, Via } from './policy-source.ts';
import type { RuleLayer, RulePart, RuleScope } from './rule-layer.ts';

/** Most losing rules that an explanation names. */
export const OVERRULED_MAX = 32;

/** One rule of one policy, as a person would look for it. */
export interface RuleWitness extends Position {
  /** The rule alone, in the notation of the rule language. */
  readonly text: string;
  readonly level: Level;
  readonly policy: PolicyRef;
  readonly via: Via;
}

export interface OverruledRule {
  readonly witness: RuleWitness;
  /** A stronger level under the same label, or a label that fits more closely. */
  readonly because: 'precedence' | 'less-specific';
}

export interface Explanation {
  readonly decision: Decision;
  /** Which link of the chain decided. */
  readonly reason: 'rule' | 'namespace-default' | 'default-policy';
  /** Undefined iff the reason is the default policy. */
  readonly rule: RuleWitness | undefined;
  /** At most OVERRULED_MAX of them. */
  readonly overruled: readonly OverruledRule[];
  /** How many rules on this link bore on the query, the deciding one included. */
  readonly consideredCount: number;
}

/** The explanation of a verdict that this layer gave on this query. */
export function explainVerdict(
  layer: RuleLayer,
  query: AccessQuery,
  verdict: Verdict,
): Pick<Explanation, 'rule' | 'overruled' | 'consideredCount'> {
  const same = inOrder(witnessesOf(layer, query, verdict.label));
  const others = inOrder(lessSpecificWitnesses(layer, query, verdict.label));
  const overruled: readonly OverruledRule[] = [
    ...same
      .filter((witness) => witness.level !== verdict.level)
      .map((witness) => ({ witness, because: 'precedence' as const })),
    ...others.map((witness) => ({ witness, because: 'less-specific' as const })),
  ];
  return {
    rule: same.find((witness) => witness.level === verdict.level),
    overruled: overruled.slice(0, OVERRULED_MAX),
    consideredCount: same.length + others.length,
  };
}

/** Every rule that says something under the label. */
function witnessesOf(
  layer: RuleLayer,
  query: AccessQuery,
  label: DecidingLabel,
): readonly RuleWitness[] {
  switch (label.kind) {
    case 'flat':
      return scopeOf(layer, query).parts.flatMap((part) =>
        part.group.flat
          .filter((rule) => rule.resource === label.resource)
          .map((rule) => witnessOf(part, { ...rule, text: renderFlatRule(rule) })),
      );
    case 'named':
      return namedWitnesses(scopeOf(layer, query), label, (rule) => isSameLabel(rule, label));
    case 'namespace':
      return objectWitnesses(layer, label);
    default:
      return unreachable(label);
  }
}

/** Rules that fit the name as well, and would have decided without the closer one. */
function lessSpecificWitnesses(
  layer: RuleLayer,
  query: AccessQuery,
  label: DecidingLabel,
): readonly RuleWitness[] {
  if (label.kind === 'flat' || asksForMany(query)) return [];
  const isOther = (rule: { readonly match: Match; readonly name: string }) =>
    fits(rule, query.segment) && !isSameLabel(rule, label);
  if (label.kind === 'named') return namedWitnesses(scopeOf(layer, query), label, isOther);
  return layer.prefixSelectorsOf(query.segment).flatMap((name) => {
    const selector = { match: 'prefix', name } as const;
    return isOther(selector) ? objectWitnesses(layer, selector) : [];
  });
}

function namedWitnesses(
  scope: RuleScope,
  label: DecidingLabel & { readonly kind: 'named' },
  matches: (rule: NamedRule) => boolean,
): readonly RuleWitness[] {
  return scope.parts.flatMap((part) =>
    part.group.named
      .filter((rule) => rule.resource === label.resource && matches(rule))
      .flatMap((rule) => {
        const level = label.attribute === 'intentions' ? rule.intentions : rule.level;
        if (level === undefined) return [];
        return witnessOf(part, { ...rule, level, text: renderNamedRule(rule) });
      }),
  );
}

function objectWitnesses(
  layer: RuleLayer,
  selector: { readonly match: Match; readonly name: string },
): readonly RuleWitness[] {
  return layer.blocksOf(selector).flatMap(({ source, block }) => {
    if (block.level === undefined) return [];
    const { level, line, column } = block;
    const text = renderNamespacePolicy(block);
    return { text, level, line, column, policy: source.policy, via: source.via };
  });
}

function witnessOf(
  part: RulePart,
  rule: Position & { readonly level: Level; readonly text: string },
): RuleWitness {
  const { level, line, column } = rule;
  const text = part.block === undefined ? rule.text : renderInNamespace(part.block, rule.text);
  return { text, level, line, column, policy: part.source.policy, via: part.source.via };
}

/** Such a query is decided by looking at all rules, not at those that fit a name. */
function asksForMany(query: AccessQuery): boolean {
  return (
    query.access === 'write-prefix' ||
    query.access === 'read-all' ||
    query.access === 'write-any' ||
    (query.resource === 'intention' && query.segment === '*')
  );
}

function fits(rule: { readonly match: Match; readonly name: string }, name: string): boolean {
  return rule.match === 'exact' ? rule.name === name : name.startsWith(rule.name);
}

function isSameLabel(
  a: { readonly match: Match; readonly name: string },
  b: { readonly match: Match; readonly name: string },
): boolean {
  return a.match === b.match && a.name === b.name;
}

/** The same order, and so the same deciding rule, in whatever order the policies were handed in. */
function inOrder(witnesses: readonly RuleWitness[]): readonly RuleWitness[] {
  const textOf = ({ policy, via }: RuleWitness) =>
    JSON.stringify([policy.namespace, policy.name, policy.id, via]);
  return witnesses
    .map((witness) => ({ witness, text: textOf(witness) }))
    .sort((a, b) => {
      if (a.text !== b.text) return a.text < b.text ? -1 : 1;
      return a.witness.line - b.witness.line || a.witness.column - b.witness.column;
    })
    .map(({ witness }) => witness);
}
