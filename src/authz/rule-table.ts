// The compiled form of rules on one resource: labels to grants, repeated labels merged. Tables of a
// rule group are kept with the group object, so tokens that share a policy share them.

import {
  FLAT_RESOURCES,
  type FlatResource,
  type Level,
  type Match,
  NAMED_RESOURCES,
  type NamedResource,
  type NamedRule,
  type RuleGroup,
} from '../rules/rule-set.ts';
import { dominant } from './levels.ts';
import { PrefixIndex } from './prefix-index.ts';

/** What merged rules of one label say. `policy` and `intentions` merge independently. */
export interface Grant {
  readonly level: Level;
  readonly intentions: Level | undefined;
}

export interface RuleTable {
  readonly exact: ReadonlyMap<string, Grant>;
  readonly prefixes: PrefixIndex<Grant>;
}

export interface TableMatch {
  readonly match: Match;
  readonly name: string;
  readonly grant: Grant;
}

export interface CompiledGroup {
  readonly flat: ReadonlyMap<FlatResource, Level>;
  readonly tables: ReadonlyMap<NamedResource, RuleTable>;
}

/** Lives as long as the rule group that it was compiled from. */
const compiledGroups = new WeakMap<RuleGroup, CompiledGroup>();

/** Compiles a group once; the same object gives the same answer. */
export function compileGroup(group: RuleGroup): CompiledGroup {
  const known = compiledGroups.get(group);
  if (known !== undefined) return known;
  const tables = NAMED_RESOURCES.flatMap((resource) => {
    const rules = group.named.filter((rule) => rule.resource === resource);
    return rules.length === 0 ? [] : [[resource, tableOf(rules)] as const];
  });
  const flat = group.flat.map((rule) => ({ flat: new Map([[rule.resource, rule.level]]) }));
  const compiled = { flat: mergeFlat(flat), tables: new Map(tables) };
  compiledGroups.set(group, compiled);
  return compiled;
}

/** Merges the groups of several policies; a single one is handed back as it is. */
export function mergeGroups(groups: readonly CompiledGroup[]): CompiledGroup {
  const [first] = groups;
  if (first !== undefined && groups.length === 1) return first;
  const tables = NAMED_RESOURCES.flatMap((resource) => {
    const found = groups.flatMap((group) => group.tables.get(resource) ?? []);
    return found.length === 0 ? [] : [[resource, mergeTables(found)] as const];
  });
  return { flat: mergeFlat(groups), tables: new Map(tables) };
}

/** The one rule that decides on `name`: exact before prefix, longer prefix before shorter. */
export function matchIn(table: RuleTable, name: string): TableMatch | undefined {
  const exact = table.exact.get(name);
  if (exact !== undefined) return { match: 'exact', name, grant: exact };
  const longest = table.prefixes.longest(name);
  if (longest === undefined) return undefined;
  return { match: 'prefix', name: longest.prefix, grant: longest.value };
}

/** Every label of the table, in an order that does not depend on where its rules came from. */
export function* matchesOf(table: RuleTable): Generator<TableMatch> {
  for (const [name, grant] of table.prefixes.entries) yield { match: 'prefix', name, grant };
  for (const [name, grant] of table.exact) yield { match: 'exact', name, grant };
}

function mergeFlat(
  groups: readonly Pick<CompiledGroup, 'flat'>[],
): ReadonlyMap<FlatResource, Level> {
  const merged = new Map<FlatResource, Level>();
  for (const resource of FLAT_RESOURCES) {
    const levels = groups.flatMap((group) => group.flat.get(resource) ?? []);
    if (levels.length > 0) merged.set(resource, levels.reduce(dominant));
  }
  return merged;
}

function tableOf(rules: readonly NamedRule[]): RuleTable {
  const labels = { exact: new Map<string, Grant>(), prefix: new Map<string, Grant>() };
  for (const rule of rules) addGrant(labels[rule.match], rule.name, rule);
  return inLabelOrder(labels.exact, labels.prefix);
}

function mergeTables(tables: readonly RuleTable[]): RuleTable {
  const [first] = tables;
  if (first !== undefined && tables.length === 1) return first;
  const exact = new Map<string, Grant>();
  const prefixes = new Map<string, Grant>();
  for (const table of tables) {
    for (const [name, grant] of table.exact) addGrant(exact, name, grant);
    for (const [name, grant] of table.prefixes.entries) addGrant(prefixes, name, grant);
  }
  return inLabelOrder(exact, prefixes);
}

function inLabelOrder(
  exact: ReadonlyMap<string, Grant>,
  prefixes: ReadonlyMap<string, Grant>,
): RuleTable {
  const ordered = (labels: ReadonlyMap<string, Grant>) =>
    new Map([...labels].sort(([a], [b]) => (a < b ? -1 : 1)));
  return { exact: ordered(exact), prefixes: new PrefixIndex(ordered(prefixes)) };
}

function addGrant(labels: Map<string, Grant>, name: string, grant: Grant): void {
  const { level, intentions } = grant;
  const present = labels.get(name);
  if (present === undefined) {
    labels.set(name, { level, intentions });
    return;
  }
  const both = [present.intentions, intentions].filter((each) => each !== undefined);
  labels.set(name, {
    level: dominant(present.level, level),
    intentions: both.length === 0 ? undefined : both.reduce(dominant),
  });
}
