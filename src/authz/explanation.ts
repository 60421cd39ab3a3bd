// Names the rules behind a verdict: the one that decided, with its policy and the way it came to the
// token, and those that lost to it. It decides nothing; it looks up what was decided.

import { unreachable } from '../../cluster/base/unreachable.ts';
import {
  renderFlatRule,
  renderInNamespace,
  renderNamedRule,
  renderNamespacePolicy,
} from '../rules/render-rules.ts';
import type { Level, Position } from '../rules/rule-set.ts';
import type { AccessQuery, Decision } from './access-query.ts';
import { type DecidingLabel, scopeOf, type Verdict } from './evaluate.ts';
import type { PolicyRef, PolicySource, Via } from './policy-source.ts';
import type { RuleLayer, RulePart } from './rule-layer.ts';
import {
  compileGroup,
  type GroupGrant,
  type Label,
  labelsOf,
  OVERRULED_MAX,
} from './rule-table.ts';

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
  const [same, sameCount] = inOrder(findingsOf(layer, query, verdict.label));
  const [others, othersCount] = inOrder(lessSpecificFindings(layer, query, verdict.label));
  const deciding = same.find(({ level }) => level === verdict.level);
  const losing = [
    ...same
      .filter(({ level }) => level !== verdict.level)
      .map((finding) => ({ finding, because: 'precedence' as const })),
    ...others.map((finding) => ({ finding, because: 'less-specific' as const })),
  ];
  return {
    rule: deciding && witnessOf(deciding),
    overruled: losing
      .slice(0, OVERRULED_MAX)
      .map(({ finding, because }) => ({ witness: witnessOf(finding), because })),
    consideredCount: sameCount + othersCount,
  };
}

/** Rules that bear on the query, with what is not among them because so many say the same. */
interface Findings {
  readonly rules: readonly Finding[];
  readonly count: number;
}

/** There may be very many: the text is made only where it is shown. */
interface Finding {
  readonly source: PolicySource;
  readonly level: Level;
  readonly position: Position;
  readonly render: () => string;
}

/** Every rule that says something under the label. */
function findingsOf(
  layer: RuleLayer,
  query: AccessQuery,
  label: DecidingLabel,
): readonly Findings[] {
  switch (label.kind) {
    case 'flat':
      return scopeOf(layer, query).parts.map((part) =>
        allOf(
          part.group.flat
            .filter((rule) => rule.resource === label.resource)
            .map((rule) => findingOf(part, rule, () => renderFlatRule(rule))),
        ),
      );
    case 'named':
      return scopeOf(layer, query).parts.flatMap((part) => {
        const table = compileGroup(part.group).get(label.resource);
        const grant = table && labelsOf(table, label.match).get(label.name);
        return grant === undefined ? [] : namedFindings(part, label, grant);
      });
    case 'namespace':
      return [objectFindings(layer, label)];
    default:
      return unreachable(label);
  }
}

/** Rules that fit the name as well, and would have decided without the closer one. */
function lessSpecificFindings(
  layer: RuleLayer,
  query: AccessQuery,
  label: DecidingLabel,
): readonly Findings[] {
  if (label.kind === 'flat' || asksForMany(query)) return [];
  const { segment } = query;
  const isOther = (name: string) => label.match === 'exact' || label.name !== name;
  if (label.kind === 'namespace') {
    return layer
      .prefixSelectorsOf(segment)
      .filter(isOther)
      .map((name) => objectFindings(layer, { match: 'prefix', name }));
  }
  return scopeOf(layer, query).parts.flatMap((part) => {
    const prefixes = compileGroup(part.group).get(label.resource)?.prefixes.all(segment) ?? [];
    return [...prefixes]
      .filter(({ prefix }) => isOther(prefix))
      .map(({ value }) => namedFindings(part, label, value));
  });
}

/** What the part says under one label, by the attribute that decided. */
function namedFindings(
  part: RulePart,
  { attribute }: DecidingLabel & { readonly kind: 'named' },
  grant: GroupGrant,
): Findings {
  const isOfIntentions = attribute === 'intentions';
  const rules = grant.rules.flatMap((rule) => {
    const level = isOfIntentions ? rule.intentions : rule.level;
    if (level === undefined) return [];
    return findingOf(part, { ...rule, level }, () => renderNamedRule(rule));
  });
  return { rules, count: isOfIntentions ? grant.intentionsCount : grant.ruleCount };
}

function objectFindings(layer: RuleLayer, selector: Label): Findings {
  const rules = layer.blocksOf(selector).flatMap(({ source, block }) => {
    const { level } = block;
    if (level === undefined) return [];
    return { source, level, position: block, render: () => renderNamespacePolicy(block) };
  });
  return allOf(rules);
}

function allOf(rules: readonly Finding[]): Findings {
  return { rules, count: rules.length };
}

function findingOf(
  { source, block }: RulePart,
  rule: Position & { readonly level: Level },
  textOf: () => string,
): Finding {
  const render = () => (block === undefined ? textOf() : renderInNamespace(block, textOf()));
  return { source, level: rule.level, position: rule, render };
}

function witnessOf({ source, level, position, render }: Finding): RuleWitness {
  const { line, column } = position;
  return { text: render(), level, line, column, policy: source.policy, via: source.via };
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

/** The same order, and so the same deciding rule, in whatever order the policies were handed in. */
function inOrder(
  found: readonly Findings[],
): readonly [inOrder: readonly Finding[], count: number] {
  const rules = found.flatMap((each) => each.rules);
  const texts = new Map<PolicySource, string>();
  for (const { source } of rules) {
    if (!texts.has(source)) texts.set(source, orderTextOf(source));
  }
  rules.sort((a, b) => {
    const [textA, textB] = [texts.get(a.source)!, texts.get(b.source)!];
    if (textA !== textB) return textA < textB ? -1 : 1;
    return a.position.line - b.position.line || a.position.column - b.position.column;
  });
  return [rules, found.reduce((sum, { count }) => sum + count, 0)];
}

function orderTextOf({ policy, via }: PolicySource): string {
  return JSON.stringify([policy.namespace, policy.name, policy.id, via]);
}
