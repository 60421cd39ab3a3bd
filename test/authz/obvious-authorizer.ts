// The same decisions by the most obvious way: collect every rule that could speak, one by one, and
// look. Slow on purpose; it shares no code with the authorizer but the shapes of its input.

import type { NamespaceName } from '../../src/acl/ids.ts';
import type { AccessQuery, Decision } from '../../src/authz/access-query.ts';
import type { AuthorizerInput } from '../../src/authz/authorizer.ts';
import type { PolicySource } from '../../src/authz/policy-source.ts';
import type { FlatRule, NamedRule } from '../../src/rules/rule-set.ts';

type Answer = Decision | 'silent';

export function obviousDecision(input: AuthorizerInput, query: AccessQuery): Decision {
  const own = obviousAnswer(input.sources, query);
  if (own !== 'silent') return own;
  const inherited = obviousAnswer(input.namespaceDefaults, query);
  if (inherited !== 'silent') return inherited;
  if (query.resource === 'acl' || query.resource === 'snapshot') return 'deny';
  return input.defaultPolicy;
}

/** The rules on keys that bear on a question which one of them decided, whose text is given. */
export function obviousBearing(
  sources: readonly PolicySource[],
  query: AccessQuery,
  decidingText: string,
): readonly { readonly rule: NamedRule; readonly isDeciding: boolean }[] {
  const { segment, access, namespace } = query;
  return rulesFor(sources, namespace)
    .named.filter((rule) => rule.resource === 'key')
    .map((rule) => {
      const keyword = rule.match === 'prefix' ? 'key_prefix' : 'key';
      const isDeciding = decidingText.includes(`${keyword} "${rule.name}" {`);
      return { rule, isDeciding };
    })
    .filter(({ rule, isDeciding }) => {
      if (isDeciding || access === 'write-prefix') return isDeciding;
      return rule.match === 'exact' ? rule.name === segment : segment.startsWith(rule.name);
    });
}

function obviousAnswer(sources: readonly PolicySource[], query: AccessQuery): Answer {
  const { resource, access, segment } = query;
  const lives = ['acl', 'key', 'node', 'service', 'session', 'intention'].includes(resource);
  const rules = rulesFor(sources, lives ? query.namespace : ('default' as NamespaceName));
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

function rulesFor(
  sources: readonly PolicySource[],
  namespace: NamespaceName,
): { readonly flat: readonly FlatRule[]; readonly named: readonly NamedRule[] } {
  const topLevel = sources
    .filter((source) => source.policy.namespace === namespace)
    .map((source) => source.ruleSet);
  const blocks = sources
    .filter((source) => source.policy.namespace === 'default')
    .flatMap((source) => source.ruleSet.namespaces)
    .filter((block) => namespace !== 'default' || block.match === 'exact');
  const groups = [...topLevel, ...mostSpecific(blocks, namespace)];
  return {
    flat: groups.flatMap((group) => group.flat),
    named: groups.flatMap((group) => group.named),
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

function strongest(levels: readonly string[]): string {
  return ['deny', 'write', 'list', 'read'].find((level) => levels.includes(level)) ?? 'deny';
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
