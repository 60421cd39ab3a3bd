// Which rules a policy may hold by the namespace it lives in (decisions.md 4).

import { invalid } from '../acl/error.ts';
import type { FlatResource, NamedResource, Position, RuleSet } from './rule-set.ts';
import { placeOf, quoted } from './source-text.ts';

/** The namespace whose policies may govern the whole system and other namespaces. */
const DEFAULT_NAMESPACE = 'default';
const DEFAULT_ONLY: ReadonlySet<FlatResource | NamedResource> = new Set([
  'operator',
  'keyring',
  'event',
  'query',
] as const);

/**
 * Throws AclError `invalid` with line and column of the first rule that a policy in this namespace
 * may not hold, whatever its level: outside `default` neither operator, keyring, event and query
 * rules nor namespace blocks, because such a policy governs its own namespace only.
 */
export function checkForNamespace(rules: RuleSet, namespaceName: string): void {
  if (namespaceName === DEFAULT_NAMESPACE) return;
  const offences = [
    ...[...rules.flat, ...rules.named]
      .filter((rule) => DEFAULT_ONLY.has(rule.resource))
      .map((rule) => ({ what: rule.resource, ...placeIn(rule) })),
    ...rules.namespaces.map((block) => ({ what: 'namespace', ...placeIn(block) })),
  ].sort((a, b) => a.line - b.line || a.column - b.column);
  const [first] = offences;
  if (first === undefined) return;
  const where = `a policy in namespace ${quoted(namespaceName)}`;
  throw invalid(
    `Invalid ${first.what} policy: ${where} cannot hold ${first.what} rules at ${placeOf(first)}`,
  );
}

function placeIn({ line, column }: Position): Position {
  return { line, column };
}
