// The decision of one layer on one query, with the label that decided it (compatibility.md 5.3 and
// 5.5). A layer that says nothing gives undefined, and the next link of the chain is asked.

import { unreachable } from '../../cluster/base/unreachable.ts';
import type { FlatResource, Level, Match, NamedResource } from '../rules/rule-set.ts';
import { type AccessQuery, livesInNamespace, type PlainAccess } from './access-query.ts';
import { grants } from './levels.ts';
import type { RuleLayer, RuleScope } from './rule-layer.ts';
import { matchesOf, matchIn, type TableMatch } from './rule-table.ts';

/** The label whose merged rules decided. */
export type DecidingLabel =
  | { readonly kind: 'flat'; readonly resource: FlatResource }
  | { readonly kind: 'namespace'; readonly match: Match; readonly name: string }
  | {
      readonly kind: 'named';
      readonly resource: NamedResource;
      readonly match: Match;
      readonly name: string;
      /** Which attribute of the rule spoke. */
      readonly attribute: 'policy' | 'intentions';
    };

export interface Verdict {
  readonly allows: boolean;
  /** The merged level that the label's attribute says. */
  readonly level: Level;
  readonly label: DecidingLabel;
}

/** Asks one layer; undefined where it holds no rule on the matter. */
export function evaluate(layer: RuleLayer, query: AccessQuery): Verdict | undefined {
  const scope = scopeOf(layer, query);
  switch (query.resource) {
    case 'acl':
    case 'keyring':
    case 'operator':
      return flat(scope, query.resource, query.access);
    case 'snapshot':
      return flat(scope, 'acl', 'write');
    case 'mesh':
    case 'peering':
      return flat(scope, query.resource, query.access) ?? flat(scope, 'operator', query.access);
    case 'namespace':
      return (
        namespaceObject(layer, query.segment, query.access) ?? flat(scope, 'operator', query.access)
      );
    case 'agent':
    case 'event':
    case 'query':
    case 'session':
      return one({ scope, topic: query.resource }, query.segment, query.access);
    case 'key':
      return onKeys({ scope, topic: 'key' }, query.segment, query.access);
    case 'node':
      if (query.access === 'read-all') return all({ scope, topic: 'node' }, 'read');
      return one({ scope, topic: 'node' }, query.segment, query.access);
    case 'service':
      return onServices({ scope, topic: 'service' }, query.segment, query.access);
    case 'intention':
      return onIntentions({ scope, topic: 'intention' }, query.segment, query.access);
    default:
      return unreachable(query);
  }
}

/** The rules that may speak on the query. */
export function scopeOf(layer: RuleLayer, query: AccessQuery): RuleScope {
  return livesInNamespace(query.resource) ? layer.scope(query.namespace) : layer.globalScope();
}

/** The rules that a question on named things looks at; intentions are told by service rules. */
interface Rules {
  readonly scope: RuleScope;
  readonly topic: NamedResource | 'intention';
}

function flat(scope: RuleScope, resource: FlatResource, access: PlainAccess): Verdict | undefined {
  const level = scope.rules.flat.get(resource);
  if (level === undefined) return undefined;
  return { allows: grants(level, access), level, label: { kind: 'flat', resource } };
}

function namespaceObject(layer: RuleLayer, name: string, access: PlainAccess): Verdict | undefined {
  const rule = layer.namespaceObjectRule(name);
  if (rule === undefined) return undefined;
  const label = { kind: 'namespace', match: rule.match, name: rule.name } as const;
  return { allows: grants(rule.level, access), level: rule.level, label };
}

function onKeys(rules: Rules, segment: string, access: PlainAccess | 'write-prefix') {
  return access === 'write-prefix'
    ? allBelow(rules, segment, 'write')
    : one(rules, segment, access);
}

function onServices(rules: Rules, segment: string, access: PlainAccess | 'read-all' | 'write-any') {
  if (access === 'read-all') return all(rules, 'read');
  if (access === 'write-any') return any(rules, 'write');
  return one(rules, segment, access);
}

function onIntentions(rules: Rules, segment: string, access: 'read' | 'write') {
  if (segment !== '*') return one(rules, segment, access);
  return access === 'read' ? any(rules, 'read') : all(rules, 'write');
}

/** The most specific rule for the name decides. */
function one(rules: Rules, name: string, access: PlainAccess): Verdict | undefined {
  const table = tableOf(rules);
  const found = table && matchIn(table, name);
  return found && verdictOf(rules, found, access);
}

/** Allows if any rule grants; else denies if the one for everything does: others leave names to the default. */
function any(rules: Rules, access: PlainAccess): Verdict | undefined {
  for (const verdict of allVerdicts(rules, access)) {
    if (verdict.allows) return verdict;
  }
  return onEverything(rules, access);
}

/** Denies if any rule does not grant; allows if there is a rule for everything. */
function all(rules: Rules, access: PlainAccess): Verdict | undefined {
  const refusing = firstRefusing(rules, { prefix: '', access });
  return refusing ?? onEverything(rules, access);
}

/** What the rule says whose prefix every name has. */
function onEverything(rules: Rules, access: PlainAccess): Verdict | undefined {
  const everything = tableOf(rules)?.prefixes.entries.get('');
  return everything && verdictOf(rules, { match: 'prefix', name: '', grant: everything }, access);
}

/** The longest prefix rule over `prefix` must grant, and every rule below it must grant too. */
function allBelow(rules: Rules, prefix: string, access: PlainAccess): Verdict | undefined {
  const above = tableOf(rules)?.prefixes.longest(prefix);
  const base =
    above && verdictOf(rules, { match: 'prefix', name: above.prefix, grant: above.value }, access);
  if (base !== undefined && !base.allows) return base;
  return firstRefusing(rules, { prefix, access }) ?? base;
}

function firstRefusing(
  rules: Rules,
  below: { readonly prefix: string; readonly access: PlainAccess },
): Verdict | undefined {
  for (const verdict of allVerdicts(rules, below.access)) {
    if (!verdict.allows && verdict.label.name.startsWith(below.prefix)) return verdict;
  }
  return undefined;
}

type NamedVerdict = Verdict & { readonly label: { readonly kind: 'named' } };

function* allVerdicts(rules: Rules, access: PlainAccess): Generator<NamedVerdict> {
  const table = tableOf(rules);
  if (table === undefined) return;
  for (const found of matchesOf(table)) yield verdictOf(rules, found, access);
}

function tableOf(rules: Rules) {
  return rules.scope.rules.tables.get(resourceOf(rules));
}

function resourceOf(rules: Rules): NamedResource {
  return rules.topic === 'intention' ? 'service' : rules.topic;
}

function verdictOf(rules: Rules, found: TableMatch, access: PlainAccess): NamedVerdict {
  const { match, name, grant } = found;
  const resource = resourceOf(rules);
  if (rules.topic === 'intention' && grant.intentions !== undefined) {
    const label = { kind: 'named', resource, match, name, attribute: 'intentions' } as const;
    return { allows: grants(grant.intentions, access), level: grant.intentions, label };
  }
  const level = rules.topic === 'intention' ? impliedIntentions(grant.level) : grant.level;
  const label = { kind: 'named', resource, match, name, attribute: 'policy' } as const;
  return { allows: grants(level, access), level: grant.level, label };
}

/** Who may use a service may see who calls it, and no more than that. */
function impliedIntentions(level: Level): Level {
  return grants(level, 'read') ? 'read' : 'deny';
}
