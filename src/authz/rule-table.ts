// The compiled form of the rules of one group on one resource: labels to grants, repeated labels merged.
// Tables are kept with the group object, so tokens that share a policy share them.

import {
  type Level,
  type Match,
  NAMED_RESOURCES,
  type NamedResource,
  type NamedRule,
  type RuleGroup,
} from '../rules/rule-set.ts';
import { groupBy } from './group-by.ts';
import { dominant } from './levels.ts';
import { PrefixIndex } from './prefix-index.ts';

/** What merged rules of one label say. `policy` and `intentions` merge independently. */
export interface Grant {
  readonly level: Level;
  readonly intentions: Level | undefined;
}

/** What names a label among the rules on one resource. */
export interface Label {
  readonly match: Match;
  readonly name: string;
}

export interface RuleTable<G extends Grant = Grant> {
  readonly exact: ReadonlyMap<string, G>;
  readonly prefixes: PrefixIndex<G>;
}

/** Most rules that an explanation shows next to the deciding one. */
export const OVERRULED_MAX = 32;

/** A grant with the rules of the group that it was merged from. */
export interface GroupGrant extends Grant {
  /** By their place in the text. Of those that say the same no more than can be shown: there may be very many. */
  readonly rules: readonly NamedRule[];
  readonly ruleCount: number;
  /** How many of them speak of intentions. */
  readonly intentionsCount: number;
}

export type GroupTables = ReadonlyMap<NamedResource, RuleTable<GroupGrant>>;

/** Lives as long as the rule group that it was compiled from. */
const compiledGroups = new WeakMap<RuleGroup, GroupTables>();

/** Compiles a group once; the same object gives the same answer. */
export function compileGroup(group: RuleGroup): GroupTables {
  const known = compiledGroups.get(group);
  if (known !== undefined) return known;
  const rulesByResource = groupBy(group.named, (rule) => rule.resource);
  const tables = NAMED_RESOURCES.flatMap((resource) => {
    const rules = rulesByResource.get(resource);
    return rules === undefined ? [] : [[resource, tableOf(rules)] as const];
  });
  const compiled = new Map(tables);
  compiledGroups.set(group, compiled);
  return compiled;
}

/** Merges tables of several groups into one. */
export function mergeTables(tables: readonly RuleTable[]): RuleTable {
  const merged = { exact: new Map<string, Grant>(), prefix: new Map<string, Grant>() };
  for (const match of ['exact', 'prefix'] as const) {
    for (const table of tables) {
      for (const [name, grant] of labelsOf(table, match)) addGrant(merged[match], name, grant);
    }
  }
  return { exact: merged.exact, prefixes: new PrefixIndex(merged.prefix) };
}

/** All labels of one kind, in no particular order. */
export function labelsOf<G extends Grant>(
  table: RuleTable<G>,
  match: Match,
): ReadonlyMap<string, G> {
  return match === 'exact' ? table.exact : table.prefixes.entries;
}

export function addGrant(labels: Map<string, Grant>, name: string, grant: Grant): void {
  const present = labels.get(name);
  labels.set(name, present === undefined ? grant : bothGrants(present, grant));
}

/** What two rules of one label say together. */
export function bothGrants(a: Grant, b: Grant): Grant {
  if (a.level === b.level && a.intentions === b.intentions) return a;
  const both = [a.intentions, b.intentions].filter((each) => each !== undefined);
  return {
    level: dominant(a.level, b.level),
    intentions: both.length === 0 ? undefined : both.reduce(dominant),
  };
}

function tableOf(rules: readonly NamedRule[]): RuleTable<GroupGrant> {
  const grantsOf = (match: Match) => {
    const grants = new Map<string, GroupGrant>();
    const ofMatch = rules.filter((rule) => rule.match === match);
    for (const [name, same] of groupBy(ofMatch, (rule) => rule.name)) {
      grants.set(name, grantOf(same));
    }
    return grants;
  };
  return { exact: grantsOf('exact'), prefixes: new PrefixIndex(grantsOf('prefix')) };
}

function grantOf(rules: readonly NamedRule[]): GroupGrant {
  const { level, intentions } = rules.reduce<Grant>(bothGrants, rules[0]!);
  const intentionsCount = rules.filter((rule) => rule.intentions !== undefined).length;
  return { level, intentions, rules: shownOf(rules), ruleCount: rules.length, intentionsCount };
}

function shownOf(rules: readonly NamedRule[]): readonly NamedRule[] {
  if (rules.length === 1) return rules;
  const inOrder = [...rules].sort((a, b) => a.line - b.line || a.column - b.column);
  const countBySaying = new Map<string, number>();
  return inOrder.filter(({ level, intentions }) => {
    const saying = `${level} ${intentions}`;
    const count = countBySaying.get(saying) ?? 0;
    countBySaying.set(saying, count + 1);
    return count < OVERRULED_MAX;
  });
}
