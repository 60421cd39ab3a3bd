// Names the rules behind a verdict: the one that decided, with its policy and the way it came to the
// token, and those that lost to it. It decides nothing; it looks up what was decided.

import {
  renderFlatRule,
  renderInNamespace,
  renderNamedRule,
  renderNamespacePolicy,
} from '../rules/render-rules.ts';
import type { Level, Position } from '../rules/rule-set.ts';
import { excerpt } from '../rules/source-text.ts';
import type { AccessQuery, Decision } from './access-query.ts';
import { type DecidingLabel, scopeOf, type Verdict } from './evaluate.ts';
import { groupBy } from './group-by.ts';
import type { PolicyRef, PolicySource, Via } from './policy-source.ts';
import type { RuleLayer, RulePart, RuleScope } from './rule-layer.ts';
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
  const shown = new Shown(verdict.level);
  for (const found of findingsOf(layer, query, verdict.label)) shown.addSame(found);
  for (const found of lessSpecificFindings(layer, query, verdict.label)) shown.addOthers(found);
  return shown.explanation();
}

/** Rules of one policy that bear on the query, with what is not among them because so many say the same. */
interface Findings {
  /** In no particular order; asked for only where they may be shown. */
  readonly rules: () => readonly Finding[];
  readonly count: number;
}

/** There may be very many: the text is made only where it is shown. */
interface Finding {
  readonly source: PolicySource;
  readonly level: Level;
  readonly position: Position;
  readonly render: () => string;
}

/** Takes what bears on a query in the order of the policies, and keeps what is shown. */
class Shown {
  readonly #level: Level;
  readonly #overruled: { readonly finding: Finding; readonly because: OverruledRule['because'] }[] =
    [];
  #deciding: Finding | undefined;
  #count = 0;

  constructor(level: Level) {
    this.#level = level;
  }

  /** Of the label that decided. */
  addSame({ rules, count }: Findings): void {
    this.#count += count;
    if (this.#deciding !== undefined && this.#isFull) return;
    for (const finding of inPlace(rules())) {
      if (finding.level === this.#level) this.#deciding ??= finding;
      else if (!this.#isFull) this.#overruled.push({ finding, because: 'precedence' });
    }
  }

  addOthers({ rules, count }: Findings): void {
    this.#count += count;
    if (this.#isFull) return;
    for (const finding of inPlace(rules())) {
      if (!this.#isFull) this.#overruled.push({ finding, because: 'less-specific' });
    }
  }

  explanation(): Pick<Explanation, 'rule' | 'overruled' | 'consideredCount'> {
    return {
      rule: this.#deciding && witnessOf(this.#deciding),
      overruled: this.#overruled.map(({ finding, because }) => ({
        witness: witnessOf(finding),
        because,
      })),
      consideredCount: this.#count,
    };
  }

  get #isFull(): boolean {
    return this.#overruled.length === OVERRULED_MAX;
  }
}

/** Every rule that says something under the label, policy by policy. */
function* findingsOf(
  layer: RuleLayer,
  query: AccessQuery,
  label: DecidingLabel,
): Generator<Findings> {
  if (label.kind === 'namespace') {
    yield* bySource(objectFindings(layer, label));
    return;
  }
  for (const parts of inOrder(scopeOf(layer, query))) {
    yield together(
      parts.map((part) =>
        label.kind === 'flat' ? flatFindings(part, label) : ofLabel(part, label),
      ),
    );
  }
}

function flatFindings(
  part: RulePart,
  { resource }: DecidingLabel & { readonly kind: 'flat' },
): Findings {
  return allOf(
    part.group.flat
      .filter((rule) => rule.resource === resource)
      .map((rule) => findingOf(part, rule, () => renderFlatRule(rule))),
  );
}

function ofLabel(part: RulePart, label: DecidingLabel & { readonly kind: 'named' }): Findings {
  const table = compileGroup(part.group).get(label.resource);
  const grant = table && labelsOf(table, label.match).get(label.name);
  return grant === undefined ? NO_FINDINGS : namedFindings(part, label, grant);
}

/** Rules that fit the name as well, and would have decided without the closer one. */
function* lessSpecificFindings(
  layer: RuleLayer,
  query: AccessQuery,
  label: DecidingLabel,
): Generator<Findings> {
  if (label.kind === 'flat' || asksForMany(query)) return;
  const { segment } = query;
  const isOther = (name: string) => label.match === 'exact' || label.name !== name;
  if (label.kind === 'namespace') {
    const selectors = layer.prefixSelectorsOf(segment).filter(isOther);
    yield* bySource(selectors.flatMap((name) => objectFindings(layer, { match: 'prefix', name })));
    return;
  }
  for (const parts of inOrder(scopeOf(layer, query))) {
    yield together(
      parts.flatMap((part) => {
        const prefixes = compileGroup(part.group).get(label.resource)?.prefixes.all(segment) ?? [];
        return [...prefixes]
          .filter(({ prefix }) => isOther(prefix))
          .map(({ value }) => namedFindings(part, label, value));
      }),
    );
  }
}

/** What the part says under one label, by the attribute that decided. */
function namedFindings(
  part: RulePart,
  { attribute }: DecidingLabel & { readonly kind: 'named' },
  grant: GroupGrant,
): Findings {
  const isOfIntentions = attribute === 'intentions';
  const rules = () =>
    grant.rules.flatMap((rule) => {
      const level = isOfIntentions ? rule.intentions : rule.level;
      if (level === undefined) return [];
      // A name may be as long as a policy, and is told with each item of a request.
      const render = () => renderNamedRule({ ...rule, name: excerpt(rule.name) });
      return findingOf(part, { ...rule, level }, render);
    });
  return { rules, count: isOfIntentions ? grant.intentionsCount : grant.ruleCount };
}

function objectFindings(layer: RuleLayer, selector: Label): readonly Finding[] {
  return layer.blocksOf(selector).flatMap(({ source, block }) => {
    const { level } = block;
    if (level === undefined) return [];
    return { source, level, position: block, render: () => renderNamespacePolicy(block) };
  });
}

const NO_FINDINGS: Findings = { rules: () => [], count: 0 };

function allOf(rules: readonly Finding[]): Findings {
  return { rules: () => rules, count: rules.length };
}

function together(findings: readonly Findings[]): Findings {
  const [only] = findings;
  if (only !== undefined && findings.length === 1) return only;
  const count = findings.reduce((sum, each) => sum + each.count, 0);
  return { rules: () => findings.flatMap(({ rules }) => rules()), count };
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

/**
 * The same order, and so the same deciding rule, in whatever order the policies were handed in: by policy and the way
 * it came, then by place.
 */
function inOrder(scope: RuleScope): readonly (readonly RulePart[])[] {
  const known = partsInOrder.get(scope);
  if (known !== undefined) return known;
  const ordered = sortedBySource(scope.parts);
  partsInOrder.set(scope, ordered);
  return ordered;
}

/** Made once: a batch may ask for explanations of many items. */
const partsInOrder = new WeakMap<RuleScope, readonly (readonly RulePart[])[]>();

function bySource(found: readonly Finding[]): readonly Findings[] {
  return sortedBySource(found).map(allOf);
}

function sortedBySource<T extends { readonly source: PolicySource }>(
  items: readonly T[],
): readonly (readonly T[])[] {
  return [...groupBy(items, ({ source }) => orderTextOf(source))]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, ofSource]) => ofSource);
}

function inPlace(rules: readonly Finding[]): readonly Finding[] {
  return [...rules].sort(
    (a, b) => a.position.line - b.position.line || a.position.column - b.position.column,
  );
}

/** Each item of a request asks for them anew. */
const orderTexts = new WeakMap<PolicySource, string>();

function orderTextOf(source: PolicySource): string {
  const known = orderTexts.get(source);
  if (known !== undefined) return known;
  const { policy, via } = source;
  const text = JSON.stringify([policy.namespace, policy.name, policy.id, via]);
  orderTexts.set(source, text);
  return text;
}
