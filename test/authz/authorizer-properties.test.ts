// The authorizer against the obvious one over random policies, namespaces and questions; the order
// of its sources; and explanations against decisions.

import fc from 'fast-check';
import t from 'tap';
import type { NamespaceName, PolicyId } from '../../src/acl/ids.ts';
import type { AccessQuery, Decision } from '../../src/authz/access-query.ts';
import { type AuthorizerInput, compileAuthorizer } from '../../src/authz/authorizer.ts';
import type { PolicySource } from '../../src/authz/policy-source.ts';
import { PrefixIndex } from '../../src/authz/prefix-index.ts';
import type { Level } from '../../src/rules/rule-set.ts';
import { MEETING_NAMES, NAMESPACES, ruleSets } from '../rules/random-rule-sets.ts';
import { obviousDecision } from './obvious-authorizer.ts';

const names = fc.constantFrom(...MEETING_NAMES);
const namespaceNames = fc.constantFrom('', 't', 'team-', ...NAMESPACES);
const namespaces = fc.constantFrom(...NAMESPACES).map((name) => name as NamespaceName);

const source: fc.Arbitrary<PolicySource> = fc
  .record({
    ruleSet: ruleSets({ names, namespaceNames }),
    name: fc.constantFrom('p', 'q', 'r'),
    namespace: fc.oneof(
      { weight: 2, arbitrary: fc.constant('default' as NamespaceName) },
      namespaces,
    ),
    roleName: fc.option(fc.constantFrom('x', 'y'), { nil: undefined }),
  })
  .map(({ ruleSet, name, namespace, roleName }) => ({
    ruleSet,
    policy: { id: name as PolicyId, name, namespace },
    via: { kind: 'templated-policy', templateName: roleName ?? 'z', role: undefined },
  }));

/** Ids are unique, as they are in a state; names are not. */
const sourcesOf = (prefix: string, maxLength: number) =>
  fc.array(source, { maxLength }).map((sources) =>
    sources.map((each, place) => ({
      ...each,
      policy: { ...each.policy, id: `${prefix}${place}` as PolicyId },
    })),
  );

const inputs: fc.Arbitrary<AuthorizerInput> = fc.record({
  sources: sourcesOf('own-', 4),
  namespaceDefaults: sourcesOf('default-', 2),
  defaultPolicy: fc.constantFrom('allow', 'deny'),
  homeNamespace: namespaces,
});

const QUESTIONS: readonly (readonly [resource: string, ...accesses: string[]])[] = [
  ...['acl', 'keyring', 'operator', 'mesh', 'peering', 'snapshot'].map(
    (name) => [name, 'read', 'write'] as const,
  ),
  ...['agent', 'event', 'query', 'session', 'intention', 'namespace'].map(
    (name) => [name, 'read', 'write'] as const,
  ),
  ['key', 'read', 'list', 'write', 'write-prefix'],
  ['node', 'read', 'write', 'read-all'],
  ['service', 'read', 'write', 'read-all', 'write-any'],
];

/** Every question that there is, over names that meet the rules and some that do not. */
const everyQuery: readonly AccessQuery[] = QUESTIONS.flatMap(([resource, ...accesses]) =>
  accesses.flatMap((access) =>
    [...(resource === 'namespace' ? NAMESPACES : MEETING_NAMES), 'abcd', 'zz'].flatMap((segment) =>
      NAMESPACES.map((namespace) => ({ resource, access, segment, namespace }) as AccessQuery),
    ),
  ),
);

t.test('authorizer: decides as the obvious one does, on every question', async () => {
  fc.assert(
    fc.property(inputs, (input) => {
      const authorizer = compileAuthorizer(input);
      for (const query of everyQuery) {
        const decision = authorizer.decide(query);
        const expected = obviousDecision(input, query);
        if (decision !== expected) {
          throw new Error(`${JSON.stringify(query)}: ${decision}, should be ${expected}`);
        }
      }
    }),
    { numRuns: 120 },
  );
});

t.test(
  'authorizer: the order of its sources changes neither decisions nor explanations',
  async () => {
    const queries = everyQuery.filter((_, place) => place % 7 === 0);
    fc.assert(
      fc.property(
        inputs.chain((input) =>
          fc.record({
            input: fc.constant(input),
            sources: fc.shuffledSubarray([...input.sources], { minLength: input.sources.length }),
          }),
        ),
        ({ input, sources }) => {
          const one = compileAuthorizer(input);
          const other = compileAuthorizer({ ...input, sources });
          return queries.every(
            (query) => JSON.stringify(one.explain(query)) === JSON.stringify(other.explain(query)),
          );
        },
      ),
      { numRuns: 60 },
    );
  },
);

t.test(
  'explain: agrees with decide, and shows a rule that is in its policy and says so',
  async () => {
    fc.assert(
      fc.property(inputs, (input) => {
        const authorizer = compileAuthorizer(input);
        return everyQuery.every((query) => {
          const { decision, reason, rule } = authorizer.explain(query);
          if (decision !== authorizer.decide(query)) return false;
          if (rule === undefined) return reason === 'default-policy';
          const link = reason === 'rule' ? input.sources : input.namespaceDefaults;
          const isFromLink = link.some((each) => each.policy === rule.policy);
          return isFromLink && couldDecide(query, { decision, level: rule.level });
        });
      }),
      { numRuns: 60 },
    );
  },
);

/** Whether a rule of this level alone would give the decision. */
function couldDecide(
  query: AccessQuery,
  answer: { readonly decision: Decision; readonly level: Level },
): boolean {
  const { decision, level } = answer;
  // The level of a service rule says only in part what it means for intentions.
  if (query.resource === 'intention') return decision === 'deny' || level !== 'deny';
  const access = query.resource === 'snapshot' ? 'write' : query.access.replace(/-.*/, '');
  const granted = { deny: '', read: 'read', list: 'read list', write: 'read list write' }[level];
  return granted.includes(access) === (decision === 'allow');
}

t.test('PrefixIndex: finds the longest prefix, whatever the prefixes are', async () => {
  const text = fc.oneof(
    fc.string({ unit: fc.constantFrom('a', 'b', '\0', '\uffff', '😀'), maxLength: 6 }),
    fc.string({ unit: 'binary', maxLength: 3 }),
  );
  fc.assert(
    fc.property(
      fc.uniqueArray(text, { maxLength: 20 }),
      fc.array(text, { maxLength: 20 }),
      (prefixes, names) => {
        const index = new PrefixIndex(new Map(prefixes.map((prefix) => [prefix, prefix])));
        return [...names, ...prefixes].every((name) => {
          const fitting = prefixes.filter((prefix) => name.startsWith(prefix));
          const longest = fitting.sort((a, b) => b.length - a.length)[0];
          return index.longest(name)?.value === longest;
        });
      },
    ),
    { numRuns: 1000 },
  );
});
