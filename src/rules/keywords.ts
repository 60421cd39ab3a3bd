// The keywords of the rule language, in any letter case, and what each stands for.

import {
  FLAT_RESOURCES,
  type FlatResource,
  type Match,
  NAMED_RESOURCES,
  type NamedResource,
} from './rule-set.ts';
import type { KeyNode } from './syntax-tree.ts';

export type Keyword =
  | { readonly kind: 'flat'; readonly resource: FlatResource }
  | NamedKeyword
  | NamespaceKeyword
  | { readonly kind: 'ignored'; readonly reason: string };

export interface NamedKeyword {
  readonly kind: 'named';
  readonly resource: NamedResource;
  readonly match: Match;
  /** As deployed servers write it: `key_prefix`. */
  readonly text: string;
}

export interface NamespaceKeyword {
  readonly kind: 'namespace';
  readonly match: Match;
  readonly text: string;
}

const KEYWORDS: ReadonlyMap<string, Keyword> = new Map<string, Keyword>([
  ...FLAT_RESOURCES.map((resource) => [resource, { kind: 'flat', resource }] as const),
  ...NAMED_RESOURCES.flatMap((resource) => [
    [resource, { kind: 'named', resource, match: 'exact', text: resource }] as const,
    [
      `${resource}_prefix`,
      { kind: 'named', resource, match: 'prefix', text: `${resource}_prefix` },
    ] as const,
  ]),
  ['namespace', { kind: 'namespace', match: 'exact', text: 'namespace' }],
  ['namespace_prefix', { kind: 'namespace', match: 'prefix', text: 'namespace_prefix' }],
  ['identity', { kind: 'ignored', reason: 'is deprecated and ignored' }],
  ['identity_prefix', { kind: 'ignored', reason: 'is deprecated and ignored' }],
  ['partition', { kind: 'ignored', reason: 'is not supported and ignored' }],
  ['partition_prefix', { kind: 'ignored', reason: 'is not supported and ignored' }],
]);

/** In the one form that all letter cases of a word have, as the reference compares: U+017F is an `s`, too. */
export function folded(word: string): string {
  return word.toLowerCase().replaceAll('\u017f', 's');
}

/** Never fails: what is unknown is ignored, for a reason that a warning can give. */
export function keywordOf(key: KeyNode): Keyword {
  const known = KEYWORDS.get(folded(key.text));
  return known ?? { kind: 'ignored', reason: 'is not a known keyword and ignored' };
}
