// The rules of several groups as one. Short groups are merged into one table; long ones keep the tables that
// they share with other tokens, and a label is merged over all tables when it is asked for: so the first
// question of a token costs no more than its policies have cost already, however long they are.

import type { FlatResource, Level, NamedResource, RuleGroup } from '../rules/rule-set.ts';
import { dominant } from './levels.ts';
import { ascending, atOrAfter } from './prefix-index.ts';
import {
  addGrant,
  bothGrants,
  compileGroup,
  type Grant,
  type Label,
  labelsOf,
  mergeTables,
  type RuleTable,
} from './rule-table.ts';

/** Labels of a table that is cheaper to merge, once for a token, than to ask with each question. */
const MERGED_MAX = 64;

export interface LabelGrant extends Label {
  readonly grant: Grant;
}

/** A property of grants; `key` tells it from others on the same resource. */
export interface GrantTest {
  readonly key: string;
  /** Holds of a merged grant only if it holds of a grant that it was merged from. */
  readonly holds: (grant: Grant) => boolean;
}

export class MergedRules {
  readonly #groups: readonly RuleGroup[];
  readonly #flat: ReadonlyMap<FlatResource, Level>;
  readonly #tables = new Map<NamedResource, readonly RuleTable[]>();
  readonly #selections = new Map<string, Selection>();

  constructor(groups: readonly RuleGroup[]) {
    this.#groups = groups;
    this.#flat = mergeFlat(groups);
  }

  flat(resource: FlatResource): Level | undefined {
    return this.#flat.get(resource);
  }

  /** The one label that decides on `name`: exact before prefix, longer prefix before shorter. */
  closest(resource: NamedResource, name: string): LabelGrant | undefined {
    return this.at(resource, { match: 'exact', name }) ?? this.longestPrefix(resource, name);
  }

  longestPrefix(resource: NamedResource, name: string): LabelGrant | undefined {
    let longest: string | undefined;
    for (const { prefixes } of this.#tablesOf(resource)) {
      const found = prefixes.longest(name)?.prefix;
      if (found !== undefined && found.length >= (longest?.length ?? 0)) longest = found;
    }
    return longest === undefined
      ? undefined
      : this.at(resource, { match: 'prefix', name: longest });
  }

  /** What the rules of one label say. */
  at(resource: NamedResource, { match, name }: Label): LabelGrant | undefined {
    let merged: Grant | undefined;
    for (const table of this.#tablesOf(resource)) {
      const grant = labelsOf(table, match).get(name);
      if (grant !== undefined) merged = merged === undefined ? grant : bothGrants(merged, grant);
    }
    return merged && { match, name, grant: merged };
  }

  /** The first label that begins with `prefix` and of whose grant the test holds: prefixes first, then by name. */
  firstBelow(resource: NamedResource, prefix: string, test: GrantTest): LabelGrant | undefined {
    const selection = this.#selectionOf(resource, test);
    for (const match of ['prefix', 'exact'] as const) {
      const name = selection[match][atOrAfter(selection[match], prefix)];
      if (name?.startsWith(prefix) === true) return this.at(resource, { match, name });
    }
    return undefined;
  }

  #tablesOf(resource: NamedResource): readonly RuleTable[] {
    const known = this.#tables.get(resource);
    if (known !== undefined) return known;
    const tables = combined(
      this.#groups.flatMap((group) => compileGroup(group).get(resource) ?? []),
    );
    this.#tables.set(resource, tables);
    return tables;
  }

  #selectionOf(resource: NamedResource, test: GrantTest): Selection {
    const key = `${resource} ${test.key}`;
    const known = this.#selections.get(key);
    if (known !== undefined) return known;
    const selection = select(this.#tablesOf(resource), test);
    this.#selections.set(key, selection);
    return selection;
  }
}

/** The names of some labels by their kind, ascending. */
interface Selection {
  readonly exact: readonly string[];
  readonly prefix: readonly string[];
}

function select(tables: readonly RuleTable[], { holds }: GrantTest): Selection {
  const namesOf = (match: Label['match']) => {
    const merged = new Map<string, Grant>();
    const labels = tables.map((table) => labelsOf(table, match));
    const candidates = new Set<string>();
    for (const table of labels) {
      for (const [name, grant] of table) if (holds(grant)) candidates.add(name);
    }
    for (const table of candidates.size === 0 ? [] : labels) {
      for (const [name, grant] of table) if (candidates.has(name)) addGrant(merged, name, grant);
    }
    return ascending([...candidates].filter((name) => holds(merged.get(name)!)));
  };
  return { exact: namesOf('exact'), prefix: namesOf('prefix') };
}

function combined(tables: readonly RuleTable[]): readonly RuleTable[] {
  const isShort = ({ exact, prefixes }: RuleTable) =>
    exact.size + prefixes.entries.size <= MERGED_MAX;
  const short = tables.filter(isShort);
  if (short.length < 2) return tables;
  return [mergeTables(short), ...tables.filter((table) => !isShort(table))];
}

function mergeFlat(groups: readonly RuleGroup[]): ReadonlyMap<FlatResource, Level> {
  const merged = new Map<FlatResource, Level>();
  for (const { flat } of groups) {
    for (const { resource, level } of flat) {
      const present = merged.get(resource);
      merged.set(resource, present === undefined ? level : dominant(present, level));
    }
  }
  return merged;
}
