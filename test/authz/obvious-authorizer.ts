// The same decisions by the most obvious way: collect every rule that could speak, one by one, and
// look. Slow on purpose; it shares no code with the authorizer but the shapes of its input.

import type { AccessQuery, Decision } from '../../src/authz/access-query.ts';
import type { AuthorizerInput } from '../../src/authz/authorizer.ts';
import type { Explanation, RuleWitness } from '../../src/authz/explanation.ts';
import type { PolicyRef, PolicySource } from '../../src/authz/policy-source.ts';
import type {
  FlatRule,
  Level,
  NamedRule,
  NamespaceBlock,
  Position,
} from '../../src/rules/rule-set.ts';

type Answer = Decision | 'silent';

/** What lives in a namespace. */
const IN_ONE: readonly string[] = ['acl', 'key', 'node', 'service', 'session', 'intention'];

export function obviousDecision(input: AuthorizerInput, query: AccessQuery): Decision {
  const own = obviousAnswer(input.sources, query);
  if (own !== 'silent') return own;
  const inherited = obviousAnswer(input.namespaceDefaults, query);
  if (inherited !== 'silent') return inherited;
  if (query.resource === 'acl' || query.resource === 'snapshot') return 'deny';
  return input.defaultPolicy;
}

/** Which link of the chain has something to say. */
export function obviousReason(
  { sources, namespaceDefaults }: AuthorizerInput,
  query: AccessQuery,
): Explanation['reason'] {
  if (obviousAnswer(sources, query) !== 'silent') return 'rule';
  return obviousAnswer(namespaceDefaults, query) === 'silent'
    ? 'default-policy'
    : 'namespace-default';
}

/** A rule that bears on a question, as it is told. */
export interface BearingRule extends Position {
  readonly policy: PolicyRef;
  readonly text: string;
  /** Of what is asked for: of intentions where those were decided by. */
  readonly level: Level;
  /** It has the label that decided. */
  readonly isDeciding: boolean;
}

/**
 * All rules that bear on a question that this one is said to have decided. Throws where it cannot have: no rule here is
 * it, another label fits more closely, or another rule of its label is stronger.
 */
export function obviousBearing(
  sources: readonly PolicySource[],
  query: AccessQuery,
  said: Pick<RuleWitness, 'text' | 'level' | 'policy'>,
): readonly BearingRule[] {
  const labelled = labelledRules(sources, query);
  const isIt = (each: LabelledRule): boolean =>
    each.text === said.text && each.policy === said.policy;
  const it = labelled.find(isIt);
  if (it === undefined) throw new Error('no rule here is it');
  const isAside = it.resource === 'operator' && query.resource !== 'operator';
  if (isAside && labelled.some((each) => isAbout(each, query))) throw new Error('it is not asked');
  const ofLabel = labelled.filter(({ label }) => label === it.label);
  const byIntentions =
    query.resource === 'intention' && ofLabel.some(({ intentions }) => intentions !== undefined);
  const bearing = labelled
    .filter((each) => each.label === it.label || fits(each, it, query))
    .flatMap((each) => {
      const level = byIntentions ? each.intentions : each.level;
      return level === undefined ? [] : [{ ...each, level, isDeciding: each.label === it.label }];
    });
  const levels = bearing.filter(({ isDeciding }) => isDeciding).map(({ level }) => level);
  if (said.level !== strongest(levels)) throw new Error(`its label says ${strongest(levels)}`);
  const closer = bearing.filter(({ isDeciding }) => !isDeciding).map(({ label }) => label);
  if (closer.some((label) => isCloser(label, it.label))) throw new Error('another label is closer');
  return bearing;
}

interface LabelledRule extends Position {
  readonly policy: PolicyRef;
  readonly text: string;
  /** Rules of one label are merged: `prefix ab`, `exact ab`, or what has no names. */
  readonly label: string;
  readonly resource: string;
  readonly level: Level;
  readonly intentions: Level | undefined;
}

/** All that might speak on what a question is about, whichever names it is of. */
function labelledRules(
  sources: readonly PolicySource[],
  { resource, namespace }: AccessQuery,
): readonly LabelledRule[] {
  const { flat, named } = rulesFor(sources, IN_ONE.includes(resource) ? namespace : 'default');
  const topic = resource === 'intention' ? 'service' : resource === 'snapshot' ? 'acl' : resource;
  const inBlock = ({ block }: Tagged, text: string): string =>
    block === undefined ? text : `${keyword('namespace', block)} { ${text} }`;
  const blocks = sources
    .filter(({ policy }) => policy.namespace === 'default')
    .flatMap(({ ruleSet, policy }) => ruleSet.namespaces.map((block) => ({ block, policy })));
  return [
    ...flat
      .filter((each) => each.resource === topic || each.resource === 'operator')
      .map(({ resource: of, level, ...tagged }) => ({
        ...{ ...placeOf(tagged), label: of, resource: of, level, intentions: undefined },
        text: inBlock(tagged, `${of} = "${level}"`),
      })),
    ...named
      .filter((each) => each.resource === topic)
      .map(({ level, intentions, ...rule }) => {
        const also = intentions === undefined ? '' : ` intentions = "${intentions}"`;
        const text = `${keyword(rule.resource, rule)} { policy = "${level}"${also} }`;
        const label = `${rule.match} ${rule.name}`;
        const says = { label, resource: topic, level, intentions };
        return { ...placeOf(rule), text: inBlock(rule, text), ...says };
      }),
    ...blocks.flatMap(({ block, policy }) => {
      const { level, match, name } = block;
      if (resource !== 'namespace' || level === undefined) return [];
      const text = `${keyword('namespace', block)} { policy = "${level}" }`;
      const label = `${match} ${name}`;
      const place = placeOf({ ...block, policy });
      return [{ ...place, text, label, resource, level, intentions: undefined }];
    }),
  ];
}

function placeOf({ policy, line, column }: Position & { readonly policy: PolicyRef }) {
  return { policy, line, column };
}

function keyword(
  of: string,
  { match, name }: { readonly match: string; readonly name: string },
): string {
  return `${of}${match === 'prefix' ? '_prefix' : ''} "${name}"`;
}

/** Whether it speaks of what is asked for: where nothing does, rules on `operator` may. */
function isAbout({ resource, label }: LabelledRule, query: AccessQuery): boolean {
  if (resource === 'operator' || query.resource !== 'namespace') return resource !== 'operator';
  const [match, name = ''] = label.split(' ');
  return match === 'exact' ? name === query.segment : query.segment.startsWith(name);
}

/** Whether another label than the one that decided fits as well; where all names are asked for, none is looked at. */
function fits(each: LabelledRule, it: LabelledRule, { access, segment, resource }: AccessQuery) {
  const isOfMany = ['write-prefix', 'read-all', 'write-any'].includes(access);
  const isOfAll = resource === 'intention' && segment === '*';
  if (isOfMany || isOfAll || each.resource !== it.resource) return false;
  const [match, name = ''] = each.label.split(' ');
  if (match === 'exact') return name === segment;
  return match === 'prefix' && segment.startsWith(name);
}

function isCloser(label: string, than: string): boolean {
  if (than.startsWith('exact')) return false;
  return label.startsWith('exact') || label.length > than.length;
}

function obviousAnswer(sources: readonly PolicySource[], query: AccessQuery): Answer {
  const { resource, access, segment } = query;
  const rules = rulesFor(sources, IN_ONE.includes(resource) ? query.namespace : 'default');
  const flat = (name: string, wanted: string): Answer => {
    const levels = rules.flat.filter((rule) => rule.resource === name).map((rule) => rule.level);
    return levels.length === 0 ? 'silent' : yes(strongest(levels), wanted);
  };
  const first = (...answers: readonly Answer[]) =>
    answers.find((answer) => answer !== 'silent') ?? 'silent';

  if (resource === 'acl' || resource === 'operator' || resource === 'keyring') {
    return flat(resource, access);
  }
  if (resource === 'snapshot') return flat('acl', 'write');
  if (resource === 'mesh' || resource === 'peering') {
    return first(flat(resource, access), flat('operator', access));
  }
  if (resource === 'namespace') {
    const blocks = sources
      .filter((source) => source.policy.namespace === 'default')
      .flatMap((source) => source.ruleSet.namespaces)
      .filter((block) => block.level !== undefined)
      .map((block) => ({ match: block.match, name: block.name, level: block.level! }));
    const closest = mostSpecific(blocks, segment);
    if (closest.length === 0) return flat('operator', access);
    return yes(strongest(closest.map((block) => block.level)), access);
  }

  const isIntention = resource === 'intention';
  const topic = isIntention ? 'service' : resource;
  const named = rules.named.filter((rule) => rule.resource === topic);
  /** What all rules of one label say together. */
  const together = (same: readonly NamedRule[], wanted: string): Answer => {
    if (same.length === 0) return 'silent';
    const level = strongest(same.map((rule) => rule.level));
    if (!isIntention) return yes(level, wanted);
    const intentions = same.flatMap((rule) => rule.intentions ?? []);
    if (intentions.length > 0) return yes(strongest(intentions), wanted);
    return level === 'deny' ? 'deny' : yes('read', wanted);
  };
  const labels = [...new Set(named.map((rule) => `${rule.match} ${rule.name}`))].map((label) =>
    named.filter((rule) => `${rule.match} ${rule.name}` === label),
  );
  const everything = named.filter((rule) => rule.match === 'prefix' && rule.name === '');
  const anyLabel = (wanted: string): Answer => {
    const isGranted = labels.some((same) => together(same, wanted) === 'allow');
    return isGranted ? 'allow' : together(everything, wanted);
  };
  const allLabels = (wanted: string): Answer => {
    if (labels.some((same) => together(same, wanted) === 'deny')) return 'deny';
    return together(everything, wanted);
  };

  if (access === 'read-all') return allLabels('read');
  if (access === 'write-any') return anyLabel('write');
  if (isIntention && segment === '*')
    return access === 'read' ? anyLabel('read') : allLabels('write');
  if (access === 'write-prefix') {
    const prefixes = named.filter((rule) => rule.match === 'prefix');
    const base = together(mostSpecific(prefixes, segment), 'write');
    const below = labels.filter((same) => same[0]!.name.startsWith(segment));
    const spoilt = below.some((same) => together(same, 'write') === 'deny');
    return base === 'deny' || spoilt ? 'deny' : base;
  }
  return together(mostSpecific(named, segment), access);
}

/** Where a rule stands. */
interface Tagged {
  readonly policy: PolicyRef;
  readonly block: NamespaceBlock | undefined;
}

function rulesFor(
  sources: readonly PolicySource[],
  namespace: string,
): {
  readonly flat: readonly (FlatRule & Tagged)[];
  readonly named: readonly (NamedRule & Tagged)[];
} {
  const topLevel = sources
    .filter((source) => source.policy.namespace === namespace)
    .map(({ ruleSet, policy }) => ({ group: ruleSet, policy, block: undefined }));
  const blocks = sources
    .filter((source) => source.policy.namespace === 'default')
    .flatMap(({ ruleSet, policy }) =>
      ruleSet.namespaces.map((block) => ({
        ...{ match: block.match, name: block.name },
        ...{ group: block, policy, block },
      })),
    )
    .filter((block) => namespace !== 'default' || block.match === 'exact');
  const groups = [...topLevel, ...mostSpecific(blocks, namespace)];
  return {
    flat: groups.flatMap(({ group, policy, block }) =>
      group.flat.map((rule) => ({ ...rule, policy, block })),
    ),
    named: groups.flatMap(({ group, policy, block }) =>
      group.named.map((rule) => ({ ...rule, policy, block })),
    ),
  };
}

/** All that fit the name with the closest label among them. */
function mostSpecific<T extends { readonly match: string; readonly name: string }>(
  candidates: readonly T[],
  name: string,
): readonly T[] {
  const exact = candidates.filter((each) => each.match === 'exact' && each.name === name);
  if (exact.length > 0) return exact;
  for (let length = name.length; length >= 0; length--) {
    const prefix = name.slice(0, length);
    const found = candidates.filter((each) => each.match === 'prefix' && each.name === prefix);
    if (found.length > 0) return found;
  }
  return [];
}

function strongest(levels: readonly Level[]): Level {
  return (
    (['deny', 'write', 'list', 'read'] as const).find((level) => levels.includes(level)) ?? 'deny'
  );
}

function yes(level: string, wanted: string): Answer {
  const granted = {
    deny: [],
    read: ['read'],
    list: ['read', 'list'],
    write: ['read', 'list', 'write'],
  };
  const accesses: readonly string[] = granted[level as keyof typeof granted];
  return accesses.includes(wanted) ? 'allow' : 'deny';
}
