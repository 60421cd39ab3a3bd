// Names the rules behind a verdict: the one that decided, with its policy and the way it came to the
// token, and those that lost to it. It decides nothing; it looks up what was decided.

import {
  renderFlatRule,
  renderInNamespace,
  renderNamedRule,
  renderNamespacePolicy,
} from '../rules/render-rules.ts';
import type { Level, NamedResource, NamedRule, Position } from '../rules/rule-set.ts';
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
  type RuleTable,
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
  /** The rule says nothing of intentions, which were asked for: what it says of the service decides. */
  readonly isImplied: boolean;
}

/** The explanation of a verdict that this layer gave on this query. */
export function explainVerdict(
  layer: RuleLayer,
  query: AccessQuery,
  { label, level }: Verdict,
): Pick<Explanation, 'rule' | 'overruled' | 'consideredCount'> {
  const shown = new Shown(level);
  if (label.kind === 'named') showNamed(shown, { label, layer, query });
  else if (label.kind === 'namespace') showObject(shown, { label, layer, name: query.segment });
  else showFlat(shown, { label, layer, query });
  return shown.explanation();
}

/** There may be very many: the text is made only where it is shown. */
interface Finding {
  readonly source: PolicySource;
  readonly level: Level;
  readonly position: Position;
  readonly render: () => string;
}

/** Takes what bears on a query, policy by policy in their order, and keeps what is shown. */
class Shown {
  /** What was decided. */
  readonly level: Level;
  readonly #overruled: { readonly finding: Finding; readonly because: OverruledRule['because'] }[] =
    [];
  #deciding: Finding | undefined;
  #count = 0;

  constructor(level: Level) {
    this.level = level;
  }

  /** Whether the rule that decided is among what came. */
  get isDecided(): boolean {
    return this.#deciding !== undefined;
  }

  /** Whether no more can be shown beside it. */
  get isFull(): boolean {
    return this.#overruled.length === OVERRULED_MAX;
  }

  /** So many rules more bear on the query, whether they are handed in or not. */
  count(rules: number): void {
    this.#count += rules;
  }

  /** Of one policy, what stands under the label that decided; in no particular order. */
  addSame(findings: readonly Finding[]): void {
    for (const finding of inPlace(findings)) {
      if (finding.level === this.level) this.#deciding ??= finding;
      else if (!this.isFull) this.#overruled.push({ finding, because: 'precedence' });
    }
  }

  /** Of one policy, what would have decided without a closer label. */
  addOthers(findings: readonly Finding[]): void {
    for (const finding of inPlace(findings)) {
      if (!this.isFull) this.#overruled.push({ finding, because: 'less-specific' });
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
}

function showFlat(
  shown: Shown,
  asked: {
    readonly label: DecidingLabel & { readonly kind: 'flat' };
    readonly layer: RuleLayer;
    readonly query: AccessQuery;
  },
): void {
  const { label, layer, query } = asked;
  for (const parts of inOrder(scopeOf(layer, query))) {
    const findings = parts.flatMap((part) =>
      part.group.flat
        .filter((rule) => rule.resource === label.resource)
        .map((rule) => findingOf(part, rule, () => renderFlatRule(rule))),
    );
    shown.count(findings.length);
    shown.addSame(findings);
  }
}

/** The rules of blocks that govern the namespace object of that name. */
function showObject(
  shown: Shown,
  asked: {
    readonly label: DecidingLabel & { readonly kind: 'namespace' };
    readonly layer: RuleLayer;
    readonly name: string;
  },
): void {
  const { label, layer, name } = asked;
  const same = objectFindings(layer, label);
  const others = layer
    .prefixSelectorsOf(name)
    .filter((prefix) => isOther(label, prefix))
    .flatMap((prefix) => objectFindings(layer, { match: 'prefix', name: prefix }));
  shown.count(same.length + others.length);
  for (const ofSource of sortedBySource(same)) shown.addSame(ofSource);
  for (const ofSource of sortedBySource(others)) shown.addOthers(ofSource);
}

function objectFindings(layer: RuleLayer, selector: Label): readonly Finding[] {
  return layer.blocksOf(selector).flatMap(({ source, block }) => {
    const { level } = block;
    if (level === undefined) return [];
    return { source, level, position: block, render: () => renderNamespacePolicy(block) };
  });
}

type NamedLabel = DecidingLabel & { readonly kind: 'named' };

/**
 * There may be ten thousand policies, and 64 questions in a request: a policy that says nothing of the matter, or
 * nothing new, costs a look into its table.
 */
function showNamed(
  shown: Shown,
  asked: { readonly label: NamedLabel; readonly layer: RuleLayer; readonly query: AccessQuery },
): void {
  const { label, layer, query } = asked;
  const bearing = bearingOn(scopeOf(layer, query), label.resource);
  for (const tables of bearing) {
    const held = heldUnder(tables, label);
    if (held.length === 0) continue;
    for (const { grant } of held) shown.count(countIn(grant, label));
    const saysNothingNew = (): boolean =>
      shown.isFull || held.every(({ grant }) => says(grant, label, shown.level));
    if (!shown.isDecided || !saysNothingNew()) shown.addSame(findingsIn(held, label));
  }
  if (asksForMany(query)) return;
  for (const tables of bearing) {
    const held = heldByPrefixes(tables, query.segment, label);
    if (held.length === 0) continue;
    for (const { grant } of held) shown.count(countIn(grant, label));
    if (!shown.isFull) shown.addOthers(findingsIn(held, label));
  }
}

/** What a part of a policy says on one resource. */
interface PartTable {
  readonly part: RulePart;
  readonly table: RuleTable<GroupGrant>;
}

/** What a part of a policy says under one label. */
interface Held {
  readonly part: RulePart;
  readonly grant: GroupGrant;
}

const NOTHING: readonly Held[] = [];

function heldUnder(tables: readonly PartTable[], { match, name }: NamedLabel): readonly Held[] {
  let held: Held[] | undefined;
  for (const { part, table } of tables) {
    const grant = labelsOf(table, match).get(name);
    if (grant === undefined) continue;
    held ??= [];
    held.push({ part, grant });
  }
  return held ?? NOTHING;
}

/** Under prefixes that fit the name as well, and would have decided without the closer label. */
function heldByPrefixes(
  tables: readonly PartTable[],
  segment: string,
  label: NamedLabel,
): readonly Held[] {
  let held: Held[] | undefined;
  for (const { part, table } of tables) {
    if (table.prefixes.entries.size === 0) continue;
    for (const { prefix, value } of table.prefixes.all(segment)) {
      if (!isOther(label, prefix)) continue;
      held ??= [];
      held.push({ part, grant: value });
    }
  }
  return held ?? NOTHING;
}

function isOther(label: Label, prefix: string): boolean {
  return label.match === 'exact' || label.name !== prefix;
}

function countIn(grant: GroupGrant, { attribute }: NamedLabel): number {
  return attribute === 'intentions' ? grant.intentionsCount : grant.ruleCount;
}

/** Whether no rule says anything but this by the attribute that decided. */
function says({ rules }: GroupGrant, { attribute }: NamedLabel, level: Level): boolean {
  return rules.every((rule) => (levelIn(rule, attribute) ?? level) === level);
}

function levelIn(rule: NamedRule, attribute: NamedLabel['attribute']): Level | undefined {
  return attribute === 'intentions' ? rule.intentions : rule.level;
}

/** By the attribute that decided. */
function findingsIn(held: readonly Held[], { attribute }: NamedLabel): readonly Finding[] {
  return held.flatMap(({ part, grant }) =>
    grant.rules.flatMap((rule) => {
      const level = levelIn(rule, attribute);
      if (level === undefined) return [];
      // A name may be as long as a policy, and is told with each item of a request.
      const render = () => renderNamedRule({ ...rule, name: excerpt(rule.name) });
      return findingOf(part, { ...rule, level }, render);
    }),
  );
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

/** The tables on one resource, policy by policy in their order; those that say nothing of it are left out. */
function bearingOn(scope: RuleScope, resource: NamedResource): readonly (readonly PartTable[])[] {
  const known = tablesInOrder.get(scope)?.get(resource);
  if (known !== undefined) return known;
  const bearing = inOrder(scope)
    .map((parts) => parts.flatMap((part) => tableIn(part, resource)))
    .filter((tables) => tables.length > 0);
  const byResource = tablesInOrder.get(scope) ?? new Map();
  tablesInOrder.set(scope, byResource.set(resource, bearing));
  return bearing;
}

function tableIn(part: RulePart, resource: NamedResource): readonly PartTable[] {
  const table = compileGroup(part.group).get(resource);
  return table === undefined ? [] : [{ part, table }];
}

/** As `partsInOrder`. */
const tablesInOrder = new WeakMap<
  RuleScope,
  Map<NamedResource, readonly (readonly PartTable[])[]>
>();

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
