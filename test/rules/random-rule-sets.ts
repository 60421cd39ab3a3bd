// Random rule sets as data, for properties of the renderer and of the authorizer. Names come from a
// small pool by default, so that rules meet each other and the queries.

import fc from 'fast-check';
import {
  FLAT_RESOURCES,
  type FlatResource,
  type FlatRule,
  type Level,
  NAMED_RESOURCES,
  type NamedResource,
  type NamedRule,
  type NamespaceBlock,
  type RuleSet,
} from '../../src/rules/rule-set.ts';

/** Names that are prefixes of each other. */
export const MEETING_NAMES = ['', 'a', 'ab', 'abc', 'abd', 'b', 'ba', '*'] as const;
export const NAMESPACES = ['default', 'team', 'team-a', 'other'] as const;

const BARE_LEVELS = ['deny', 'read', 'write'] as const;
const match = fc.constantFrom('exact' as const, 'prefix' as const);
const place = fc.record({ line: fc.integer({ min: 1, max: 99 }), column: fc.constant(1) });

export function ruleSets(options: {
  readonly names: fc.Arbitrary<string>;
  readonly namespaceNames: fc.Arbitrary<string>;
}): fc.Arbitrary<RuleSet> {
  const block: fc.Arbitrary<NamespaceBlock> = fc
    .tuple(
      fc.record({
        match,
        name: options.namespaceNames,
        level: fc.option(fc.constantFrom(...BARE_LEVELS), { nil: undefined }),
        flat: flatRules(['acl']),
        named: namedRules(['key', 'node', 'service', 'session'], options.names),
      }),
      place,
    )
    .map(([rules, position]) => ({ ...rules, ...position }));
  return fc.record({
    flat: flatRules(FLAT_RESOURCES),
    named: namedRules(NAMED_RESOURCES, options.names),
    namespaces: fc.array(block, { maxLength: 4 }),
    warnings: fc.constant([]),
  });
}

function flatRules(resources: readonly FlatResource[]): fc.Arbitrary<readonly FlatRule[]> {
  const rule = fc
    .tuple(
      fc.record({
        resource: fc.constantFrom(...resources),
        level: fc.constantFrom(...BARE_LEVELS),
      }),
      place,
    )
    .map(([rule, position]) => ({ ...rule, ...position }));
  return fc.uniqueArray(rule, { maxLength: 5, selector: ({ resource }) => resource });
}

function namedRules(
  resources: readonly NamedResource[],
  names: fc.Arbitrary<string>,
): fc.Arbitrary<readonly NamedRule[]> {
  const rule = fc
    .tuple(fc.constantFrom(...resources), match, names, place)
    .chain(([resource, match, name, position]) =>
      fc
        .record({
          level: fc.constantFrom<Level>(...BARE_LEVELS, ...listFor(resource)),
          intentions:
            resource === 'service'
              ? fc.option(fc.constantFrom<Level>(...BARE_LEVELS), { nil: undefined })
              : fc.constant(undefined),
        })
        .map((levels) => ({ resource, match, name, ...levels, ...position })),
    );
  return fc.array(rule, { maxLength: 8 });
}

function listFor(resource: NamedResource): readonly Level[] {
  return resource === 'key' ? ['list'] : [];
}
