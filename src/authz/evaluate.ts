// The decision of one layer on one query, with the label that decided it (compatibility.md 5.3 and
// 5.5). A layer that says nothing gives undefined, and the next link of the chain is asked.

import { unreachable } from '../../cluster/base/unreachable.ts';
import type { FlatResource, Level, Match, NamedResource } from '../rules/rule-set.ts';
import { type AccessQuery, livesInNamespace, type PlainAccess } from './access-query.ts';
import { grants } from './levels.ts';
import type { GrantTest, LabelGrant } from './merged-rules.ts';
import type { RuleLayer, RuleScope } from './rule-layer.ts';
import type { Grant } from './rule-table.ts';

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
  const level = scope.rules.flat(resource);
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
  const found = rules.scope.rules.closest(resourceOf(rules), name);
  return found && verdictOf(rules, found, access);
}

/** Allows if any rule grants; else denies if the one for everything does: others leave names to the default. */
function any(rules: Rules, access: PlainAccess): Verdict | undefined {
  return firstBelow(rules, '', { access, allows: true }) ?? onEverything(rules, access);
}

/** Denies if any rule does not grant; allows if there is a rule for everything. */
function all(rules: Rules, access: PlainAccess): Verdict | undefined {
  return firstBelow(rules, '', { access, allows: false }) ?? onEverything(rules, access);
}

/** What the rule says whose prefix every name has. */
function onEverything(rules: Rules, access: PlainAccess): Verdict | undefined {
  const everything = rules.scope.rules.at(resourceOf(rules), { match: 'prefix', name: '' });
  return everything && verdictOf(rules, everything, access);
}

/** The longest prefix rule over `prefix` must grant, and every rule below it must grant too. */
function allBelow(rules: Rules, prefix: string, access: PlainAccess): Verdict | undefined {
  const above = rules.scope.rules.longestPrefix(resourceOf(rules), prefix);
  const base = above && verdictOf(rules, above, access);
  if (base !== undefined && !base.allows) return base;
  return firstBelow(rules, prefix, { access, allows: false }) ?? base;
}

/** The first label below the prefix whose rules give this answer. */
function firstBelow(
  rules: Rules,
  prefix: string,
  answer: { readonly access: PlainAccess; readonly allows: boolean },
): Verdict | undefined {
  const { access, allows } = answer;
  const { topic } = rules;
  const test: GrantTest = {
    key: `${topic} ${access} ${allows}`,
    holds: (grant) => allowsOn(topic, grant, access) === allows,
  };
  const found = rules.scope.rules.firstBelow(resourceOf(rules), prefix, test);
  return found && verdictOf(rules, found, access);
}

function resourceOf(rules: Rules): NamedResource {
  return rules.topic === 'intention' ? 'service' : rules.topic;
}

function verdictOf(rules: Rules, found: LabelGrant, access: PlainAccess): Verdict {
  const { match, name, grant } = found;
  const speaks = rules.topic === 'intention' && grant.intentions !== undefined;
  const attribute = speaks ? 'intentions' : 'policy';
  return {
    allows: allowsOn(rules.topic, grant, access),
    level: speaks ? grant.intentions : grant.level,
    label: { kind: 'named', resource: resourceOf(rules), match, name, attribute },
  };
}

/** Who may use a service may see who calls it, and no more than that, where nothing is said of intentions. */
function allowsOn(topic: Rules['topic'], grant: Grant, access: PlainAccess): boolean {
  if (topic !== 'intention') return grants(grant.level, access);
  const implied = grants(grant.level, 'read') ? 'read' : 'deny';
  return grants(grant.intentions ?? implied, access);
}
