// Lists: filters, pages, all namespaces at once, and how much of them is held.

import t from 'tap';
import type { SecretId } from '../../../src/acl/ids.ts';
import type { Page } from '../../../src/state/view.ts';
import {
  allOf,
  createHarness,
  newPolicy,
  newToken,
  ROOT,
  refusalOf,
  secretWith,
} from '../harness.ts';
import { bind, descriptions, logIn, NOBODY, newMethod, tokenList } from './use-cases.ts';

t.test('lists: filters, one at a time, and pages that fit together', async (t) => {
  const harness = await createHarness();
  const policy = await newPolicy(harness, 'p', '');
  const role = (await harness.run('role.create', { draft: { name: 'r' } })).value.role.id;
  await newToken(harness, { description: 'by policy', policies: [{ id: policy }] });
  await newToken(harness, { description: 'by role', roles: [{ id: role }] });
  await newToken(harness, {
    description: 'by service',
    serviceIdentities: [{ serviceName: 'web' }],
  });
  const dns = { templateName: 'builtin/service', variables: { name: 'web' } };
  await newToken(harness, { description: 'by template', templatedPolicies: [dns] });
  await newMethod(harness, 'login');
  await bind(harness, 'login', 'service', 'api');
  await logIn(harness, 'LOGIN');
  t.same(await descriptions(tokenList(harness, { policy })), ['by policy']);
  t.same(await descriptions(tokenList(harness, { role: role.toUpperCase() })), ['by role']);
  t.same(await descriptions(tokenList(harness, { serviceName: 'WEB' })), [
    'by service',
    'by template',
  ]);
  t.same(await descriptions(tokenList(harness, { authMethod: 'Login' })), [
    'token created via login',
  ]);
  t.same(await descriptions(tokenList(harness, { policy: NOBODY })), []);
  t.equal(
    await refusalOf(tokenList(harness, { policy, role })),
    'invalid: can only filter by one of policy, role, serviceName, or methodName at a time',
  );
  const noUuid = (kind: string) =>
    `invalid: failed acl ${kind} lookup: index error: UUID must be 36 characters`;
  t.equal(await refusalOf(tokenList(harness, { policy: 'x' })), noUuid('token'));
  t.equal(await refusalOf(tokenList(harness, { role: 'x' })), noUuid('token'));
  const roles = (wanted: string) => harness.run('role.list', { policy: wanted, page: {} });
  t.equal(await refusalOf(roles('x')), noUuid('role'));
  t.equal((await allOf(await roles(''))).length, 1, 'an empty one is none');
  t.same(await allOf(await roles(policy)), []);
  t.same(
    await descriptions(tokenList(harness, { authMethod: 'login' }, { namespaceParameter: '*' })),
    ['token created via login'],
    'of all namespaces, by the method of default',
  );
  for (const authMethodNamespace of ['BAD', '*', '-']) {
    t.equal(
      await refusalOf(tokenList(harness, { authMethod: 'login', authMethodNamespace })),
      `malformed: Invalid namespace "${authMethodNamespace}": no namespace has such a name`,
    );
  }
  const whole = (await allOf(await tokenList(harness))).map(({ token }) => token.accessorId);
  t.equal(whole.length, 7);
  t.same(whole, [...whole].sort());
  const paged: string[] = [];
  for (let after: string | undefined, turn = 0; turn < 10; turn += 1) {
    const page = await tokenList(harness, { page: { limit: 2, after } });
    paged.push(...(await allOf(page)).map(({ token }) => token.accessorId));
    after = page.next();
    if (after === undefined) break;
  }
  t.same(paged, whole);
  const full = await tokenList(harness, { page: { limit: whole.length } });
  t.same([(await allOf(full)).length, full.next()], [7, undefined], 'nothing is behind it');
});

t.test(
  'lists: pages of names go on behind the last one, in one namespace and in all',
  async (t) => {
    const harness = await createHarness();
    await harness.run('namespace.create', { draft: { name: 'team' } });
    for (const name of ['Bb', 'aa', 'cc']) await newPolicy(harness, name, '');
    await newPolicy(harness, 'aa', '', 'team');
    for (const call of [{}, { namespaceParameter: '*' }]) {
      const names = (policies: { policy: { namespace: string; name: string } }[]) =>
        policies.map(({ policy }) => `${policy.namespace}/${policy.name}`);
      const whole = names(await allOf(await harness.run('policy.list', { page: {} }, call)));
      const paged: string[] = [];
      for (let after: string | undefined, turn = 0; turn < 10; turn += 1) {
        const page = await harness.run('policy.list', { page: { limit: 1, after } }, call);
        paged.push(...names(await allOf(page)));
        after = page.next();
        if (after === undefined) break;
      }
      t.same(paged, whole);
      t.equal(whole[0], 'default/aa');
    }
  },
);

t.test('ns=*: shows only what lies where the caller may read', async (t) => {
  const harness = await createHarness();
  for (const name of ['a', 'b']) {
    await harness.run('namespace.create', { draft: { name } });
    await newPolicy(harness, `in-${name}`, '', name);
  }
  const list = async (secret: SecretId, limit?: number) => {
    const call = { secret, namespaceParameter: '*' };
    const result = await harness.run('policy.list', { page: { limit } }, call);
    return (await allOf(result)).map(({ policy }) => policy.name);
  };
  const ofB = await secretWith(harness, 'namespace "b" {\n  acl = "read"\n}\n');
  t.same(await list(ofB), ['in-b']);
  t.same(await list(ofB, 1), ['in-b'], 'a page is full of what may be seen');
  t.ok((await list(ROOT)).includes('in-a'));
  const ofNone = await newToken(harness);
  t.match(await refusalOf(list(ofNone.secretId)), /lacks permission 'acl:read'/);
  for (const namespace of ['a', 'b']) {
    await newToken(harness, { namespace });
    const inIt = { namespaceParameter: namespace };
    await harness.run('role.create', { draft: { name: 'r' } }, inIt);
    const method = { name: 'm', type: 'jwt', config: {} };
    await harness.run('auth-method.create', { draft: method }, inIt);
    const rule = { authMethod: 'm', bindType: 'service', bindName: 'web' };
    await harness.run('binding-rule.create', { draft: rule }, inIt);
  }
  const all = { secret: ofB, namespaceParameter: '*' };
  const ofMethod = { authMethod: 'M', page: {} };
  const shown = {
    tokens: (await allOf(await tokenList(harness, {}, all))).map(({ token }) => token),
    roles: (await allOf(await harness.run('role.list', { policy: undefined, page: {} }, all))).map(
      ({ role }) => role,
    ),
    methods: (await allOf(await harness.run('auth-method.list', { page: {} }, all))).map(
      ({ method }) => method,
    ),
    rules: (await allOf(await harness.run('binding-rule.list', ofMethod, all))).map(
      ({ rule }) => rule,
    ),
  };
  for (const [what, objects] of Object.entries(shown)) {
    t.same(
      objects.map(({ namespace }) => namespace),
      ['b'],
      what,
    );
  }
  const rulesOfB = await secretWith(harness, 'namespace "b" { policy = "read" }');
  const namespaces = await harness.run('namespace.list', { page: {} }, { secret: rulesOfB });
  t.same(
    (await allOf(namespaces)).map(({ namespace }) => namespace.name),
    ['b'],
  );
});

t.test('ns=*: goes by the rights that the caller has behind the names', async (t) => {
  const harness = await createHarness();
  await harness.run('namespace.create', { draft: { name: 'team' } });
  const everywhere = (level: string) =>
    `acl = "${level}" namespace_prefix "" { acl = "${level}" policy = "${level}" }`;
  const id = await newPolicy(harness, 'admin', everywhere('write'));
  const { secretId: secret } = await newToken(harness, { policies: [{ id }] });
  const now = (rules: string) =>
    harness.run('policy.update', { id, draft: { name: 'admin', rules } });
  const { machine } = harness;
  const namespaces = machine.namespaces.bind(machine);
  let then = everywhere('write');
  Object.assign(machine, {
    namespaces: async function* (given: Page) {
      yield* namespaces(given);
      await now(then);
    },
  });
  const all = { secret, namespaceParameter: '*' };
  const method = { authMethod: undefined, page: {} };
  const asks = {
    tokens: () => tokenList(harness, {}, all),
    policies: () => harness.run('policy.list', { page: {} }, all),
    roles: () => harness.run('role.list', { policy: undefined, page: {} }, all),
    methods: () => harness.run('auth-method.list', { page: {} }, all),
    rules: () => harness.run('binding-rule.list', method, all),
    namespaces: () => harness.run('namespace.list', { page: {} }, all),
  };
  for (const [what, ask] of Object.entries(asks)) {
    then = '';
    t.match(await refusalOf(ask()), /^permission-denied: /, what);
    await now(everywhere('write'));
  }
  then = everywhere('read');
  const tokens = await allOf(await asks.tokens());
  t.ok(tokens.length > 1);
  t.ok(tokens.every(({ secretHidden }) => secretHidden));
});

t.test('lists: a page reads about as many objects as it shows', async (test) => {
  const harness = await createHarness();
  const made = Array.from({ length: 80 }, () => harness.run('token.create', { draft: {} }));
  await Promise.all(made);
  const { machine } = harness;
  const read = machine.tokens.bind(machine);
  let readCount = 0;
  async function* counted(slices: ReturnType<typeof read>): ReturnType<typeof read> {
    for await (const slice of slices) {
      readCount += slice.length;
      yield slice;
    }
  }
  machine.tokens = (...asked) => counted(read(...asked));
  for (const [limit, readMax] of [
    [3, 32],
    [40, 41],
    [500, 82],
  ] as const) {
    readCount = 0;
    const shown = (await allOf(await tokenList(harness, { page: { limit } }))).length;
    test.equal(shown, Math.min(limit, 82), `shown of ${limit}`);
    test.ok(readCount <= readMax, `${readCount} read for ${limit}`);
  }
});

t.test(
  'lists: of long objects few are held at a time, and a page may be left early',
  async (test) => {
    const harness = await createHarness();
    const description = 'd'.repeat(100_000);
    const names = Array.from({ length: 8 }, (_, place) => `long-${place}`);
    for (const name of names) await harness.run('role.create', { draft: { name, description } });
    const asked = (after?: string) =>
      harness.run('role.list', { policy: undefined, page: { limit: 1000, after } });
    const seen: string[] = [];
    let after: string | undefined;
    do {
      const list = await asked(after);
      for await (const slice of list.slices) {
        seen.push(...slice.map(({ role }) => role.name));
        test.ok(slice.length <= 3, `${slice.length} at a time`);
        break;
      }
      after = list.next();
    } while (after !== undefined);
    test.same(seen, names);
    const whole = await asked();
    await allOf(whole);
    test.equal(whole.next(), undefined);
  },
);
