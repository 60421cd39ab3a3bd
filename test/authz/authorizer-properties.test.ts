// The authorizer against the obvious one over random policies, namespaces and questions; the order
// of its sources; and explanations against decisions.

import fc from 'fast-check';
import t from 'tap';
import type { NamespaceName, PolicyId } from '../../src/acl/ids.ts';
import type { AccessQuery, Decision } from '../../src/authz/access-query.ts';
import { type AuthorizerInput, compileAuthorizer } from '../../src/authz/authorizer.ts';
import type { PolicySource } from '../../src/authz/policy-source.ts';
import { PrefixIndex } from '../../src/authz/prefix-index.ts';
import { OVERRULED_MAX } from '../../src/authz/rule-table.ts';
import type { Level } from '../../src/rules/rule-set.ts';
import { MEETING_NAMES, NAMESPACES, ruleSets } from '../rules/random-rule-sets.ts';
import { obviousBearing, obviousDecision, obviousReason } from './obvious-authorizer.ts';

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

/** Enough labels that the rules of a policy are merged with none of another, and one label with very many rules. */
const longNames = fc.oneof(
  names,
  fc.integer({ min: 0, max: 60 }).map((number) => `ab${number.toString(4)}`),
);
const longRules = fc.array(
  fc.record({
    resource: fc.constantFrom('key' as const, 'service' as const),
    match: fc.constantFrom('exact' as const, 'prefix' as const),
    name: longNames,
    level: fc.constantFrom<Level>('write', 'write', 'write', 'read', 'deny'),
    intentions: fc.constant(undefined),
    line: fc.integer({ min: 100, max: 200 }),
  }),
  { minLength: 150, maxLength: 300 },
);

/** Positions are unique, as they are in a text. */
const longSource: fc.Arbitrary<PolicySource> = fc
  .tuple(source, longRules, fc.constantFrom(0, 40))
  .map(([short, rules, repeats]) => {
    const many = [...Array<undefined>(repeats)].flatMap(() => rules.slice(0, 2));
    const named = [...rules, ...many].map((rule, column) => ({ ...rule, column }));
    return { ...short, ruleSet: { ...short.ruleSet, named } };
  });

/** Ids are unique, as they are in a state; names are not. */
const sourcesOf = (prefix: string, maxLength: number, each = source) =>
  fc.array(each, { maxLength }).map((sources) =>
    sources.map((one, place) => ({
      ...one,
      policy: { ...one.policy, id: `${prefix}${place}` as PolicyId },
    })),
  );

const inputs: fc.Arbitrary<AuthorizerInput> = fc.record({
  sources: sourcesOf('own-', 4),
  namespaceDefaults: sourcesOf('default-', 2),
  defaultPolicy: fc.constantFrom('allow', 'deny'),
});

/** As above, with policies of many rules among those of few. */
const longInputs: fc.Arbitrary<AuthorizerInput> = fc.record({
  sources: sourcesOf('own-', 5, fc.oneof(source, longSource)),
  namespaceDefaults: sourcesOf('default-', 3, fc.oneof(source, longSource)),
  defaultPolicy: fc.constantFrom('allow', 'deny'),
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

/** Throws at the first question that is decided otherwise. */
function requireObvious(input: AuthorizerInput, queries: readonly AccessQuery[]): void {
  const authorizer = compileAuthorizer(input);
  for (const query of queries) {
    const decision = authorizer.decide(query);
    const expected = obviousDecision(input, query);
    if (decision !== expected) {
      throw new Error(`${JSON.stringify(query)}: ${decision}, should be ${expected}`);
    }
  }
}

t.test('authorizer: decides as the obvious one does, on every question', async () => {
  fc.assert(
    fc.property(inputs, (input) => {
      requireObvious(input, everyQuery);
    }),
    { numRuns: 120 },
  );
});

t.test('authorizer: decides as the obvious one does where policies are long', async () => {
  const queries = ['key', 'service', 'intention'].flatMap((resource) =>
    everyQuery
      .filter((query) => query.resource === resource)
      .flatMap((query) => [query, { ...query, segment: `ab${query.segment.length}` }]),
  );
  fc.assert(
    fc.property(longInputs, (input) => {
      requireObvious(input, queries);
    }),
    { numRuns: 25, endOnFailure: true },
  );
});

/** Throws at the first explanation that does not tell what the obvious authorizer finds. */
function requireTold(input: AuthorizerInput, queries: readonly AccessQuery[]): void {
  const authorizer = compileAuthorizer(input);
  for (const query of queries) {
    const { decision, reason, rule, overruled, consideredCount } = authorizer.explain(query);
    const about = JSON.stringify({ query, reason, rule });
    const shall = [obviousDecision(input, query), obviousReason(input, query)];
    if (shall.join() !== `${decision},${reason}`) throw new Error(`${about}: not ${shall}`);
    if (rule === undefined) {
      if (reason === 'default-policy' && consideredCount === 0) continue;
      throw new Error(`${about}: no rule`);
    }
    if (!couldDecide(query, { decision, level: rule.level }))
      throw new Error(`${about}: it cannot`);
    const link = reason === 'rule' ? input.sources : input.namespaceDefaults;
    const bearing = obviousBearing(link, query, rule);
    const isEarlier = (each: (typeof bearing)[number]): boolean =>
      each.line < rule.line || (each.line === rule.line && each.column < rule.column);
    const alike = bearing.filter(
      ({ isDeciding, level, policy }) =>
        isDeciding && level === rule.level && policy === rule.policy,
    );
    if (alike.some(isEarlier)) throw new Error(`${about}: it is not the first`);
    const losing = bearing
      .filter(({ isDeciding, level }) => !(isDeciding && level === rule.level))
      .map(({ isDeciding, level, text, policy }) =>
        JSON.stringify([isDeciding ? 'precedence' : 'less-specific', level, text, policy.id]),
      );
    const shown = overruled.map(({ because, witness: { level, text, policy } }) =>
      JSON.stringify([because, level, text, policy.id]),
    );
    const isAll = losing.length <= OVERRULED_MAX;
    const isRight = isAll
      ? shown.sort().join() === losing.sort().join()
      : shown.length === OVERRULED_MAX && shown.every((each) => losing.includes(each));
    if (consideredCount !== bearing.length || !isRight) {
      throw new Error(`${about}: ${consideredCount} of ${bearing.length}, ${shown}, not ${losing}`);
    }
  }
}

t.test('explain: tells which rules bore on a question, on every one', async () => {
  fc.assert(
    fc.property(inputs, (input) => requireTold(input, everyQuery)),
    { numRuns: 40 },
  );
});

t.test('explain: and where policies are long', async () => {
  const queries = ['', 'a', 'ab', 'ab0', 'ab1', 'ab33', 'zz', '*'].flatMap((segment) =>
    everyQuery
      .filter(({ resource }) => ['key', 'service', 'intention'].includes(resource))
      .filter((query) => query.segment === 'zz')
      .map((query) => ({ ...query, segment })),
  );
  fc.assert(
    fc.property(longInputs, (input) => requireTold(input, queries)),
    { numRuns: 25, endOnFailure: true },
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
      { numRuns: 40 },
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
          const all = [...index.all(name)].map(({ prefix }) => prefix);
          return index.longest(name)?.value === longest && all.join('|') === fitting.join('|');
        });
      },
    ),
    { numRuns: 1000 },
  );
});
