// Writes that come twice, or at once: request ids, `cas`, the bootstrap.

import t from 'tap';
import { GLOBAL_MANAGEMENT_ID, type SecretId } from '../../../src/acl/ids.ts';
import { createOperations } from '../../../src/service/create-operations.ts';
import { LeaderAway } from '../../../src/service/remote.ts';
import { CALL, createHarness, newPolicy, refusalOf, secretWith } from '../harness.ts';
import { bind, logIn, NOBODY, newMethod } from './use-cases.ts';

t.test('cas: a write happens only on the state that the caller has seen', async (t) => {
  const harness = await createHarness();
  const id = await newPolicy(harness, 'p', '');
  const { modifyIndex } = (await harness.run('policy.read', { id })).value!.policy;
  const draft = { name: 'p', description: 'new' };
  t.match(
    await refusalOf(harness.run('policy.update', { id, draft }, { cas: modifyIndex - 1 })),
    /^cas-mismatch/,
  );
  t.equal(await refusalOf(harness.run('policy.update', { id, draft }, { cas: modifyIndex })), 'ok');
  t.match(
    await refusalOf(harness.run('policy.delete', { id }, { cas: modifyIndex })),
    /^cas-mismatch/,
  );
});

t.test('tokens: of two creates at once with one chosen id, one is made', async (t) => {
  const harness = await createHarness();
  const fields = ['accessorId', 'secretId'] as const;
  const pairs = fields.flatMap((first) => fields.map((second) => [first, second] as const));
  for (const [place, [first, second]] of pairs.entries()) {
    const id = NOBODY.replace('f', `${place}`);
    const make = (field: string) =>
      refusalOf(harness.run('token.create', { draft: { [field]: id } }));
    const [one, two] = await Promise.all([make(first), make(second)]);
    t.equal(one, 'ok', `${first}, then ${second}`);
    t.match(two, /^duplicate/, `${first}, then ${second}`);
  }
});

t.test('request ids: a repeat gets the first answer and changes nothing', async (t) => {
  const harness = await createHarness();
  const call = { requestId: 'r1' };
  const draft = { description: 'once', expirationTtlNs: 60_000_000_000n };
  const first = await harness.run('token.create', { draft }, call);
  const proposals = harness.proposals;
  harness.clock.advance(1000);
  const again = await harness.run('token.create', { draft }, call);
  t.equal(harness.proposals, proposals, 'nothing is done again');
  t.equal(again.meta.replayed, true);
  t.same(again.value.token, first.value.token, 'the secret included');
  const { expirationTtlNs, description } = draft;
  const turned = { draft: { expirationTtlNs, description } };
  t.equal((await harness.run('token.create', turned, call)).meta.replayed, true, 'in any order');
  const long = (length: number) =>
    refusalOf(harness.run('token.create', { draft: {} }, { requestId: 'x'.repeat(length) }));
  t.equal(await long(128), 'ok');
  t.equal(await long(129), 'malformed: A request id may have at most 128 characters');
  t.equal(
    await refusalOf(harness.run('token.create', { draft: { description: 'other' } }, call)),
    'invalid: The request id was used before, for another request',
  );
  for (const more of [{ cas: 0 }, { namespaceParameter: 'default' }, { namespaceHeader: 'a' }]) {
    t.equal(
      await refusalOf(harness.run('token.create', { draft }, { ...call, ...more })),
      'invalid: The request id was used before, for another request',
      Object.keys(more).join(),
    );
  }
  const { accessorId } = first.value.token;
  t.equal((await harness.run('token.delete', { accessorId }, { requestId: 'd' })).value, true);
  t.equal((await harness.run('token.delete', { accessorId }, { requestId: 'd' })).value, true);
  const clone = { accessorId, description: undefined, namespace: undefined };
  t.equal(
    await refusalOf(harness.run('token.clone', clone, { requestId: 'd' })),
    'invalid: The request id was used before, for another request',
    'what else is asked of the same object is another request',
  );
  harness.clock.advance(600_000);
  const later = await harness.run('token.create', { draft: { description: 'other' } }, call);
  t.equal(later.meta.replayed, false, 'after ten minutes the id is free');
});

t.test('request ids: two at once make one token', async (t) => {
  const harness = await createHarness();
  const make = () => harness.run('token.create', { draft: {} }, { requestId: 'r' });
  const [one, two] = await Promise.all([make(), make()]);
  t.same(one.value.token, two.value.token);
  t.same([one.meta.replayed, two.meta.replayed].sort(), [false, true]);
});

t.test(
  "request ids: nobody gets another caller's answer, nor one after losing rights",
  async (t) => {
    const harness = await createHarness();
    const call = { requestId: 'r' };
    const first = await harness.run('token.create', { draft: {} }, call);
    const secret = await secretWith(harness, 'acl = "write"');
    const other = await harness.run('token.create', { draft: {} }, { ...call, secret });
    t.not(other.value.token.secretId, first.value.token.secretId);
    const { accessorId } = (await harness.run('token.read-self', {}, { secret })).value!.token;
    await harness.run('token.update', { accessorId, draft: {} });
    t.match(
      await refusalOf(harness.run('token.create', { draft: {} }, { ...call, secret })),
      /lacks permission 'acl:write'/,
    );
  },
);

t.test(
  'request ids: nobody is told of a namespace after losing the right to write it',
  async (t) => {
    const harness = await createHarness();
    const secret = await secretWith(harness, 'operator = "write"');
    const make = () =>
      harness.run('namespace.create', { draft: { name: 'team' } }, { requestId: 'r', secret });
    await make();
    t.equal((await make()).meta.replayed, true);
    const { accessorId } = (await harness.run('token.read-self', {}, { secret })).value!.token;
    await harness.run('token.update', { accessorId, draft: {} });
    t.match(await refusalOf(make()), /lacks permission 'namespace:write' on "team" .*took effect/);
  },
);

t.test('request ids: who has no token is known by the credential', async (t) => {
  const harness = await createHarness();
  await newMethod(harness, 'idp', { type: 'oidc', maxTokenTtlNs: 60_000_000_000n });
  await bind(harness, 'idp', 'service', 'web');
  const common = { authMethod: 'idp', clientNonce: 'n', namespace: undefined };
  const call = { secret: undefined, requestId: 'r' };
  await harness.run('oidc.auth-url', { ...common, redirectUri: 'https://me', meta: {} }, call);
  const back = () =>
    harness.run('oidc.callback', { ...common, state: 'state-1', code: '{"name":"web"}' }, call);
  const first = (await back()).value.token;
  const again = await back();
  t.equal(again.meta.replayed, true);
  t.same(again.value.token, first, 'its state is used up, and it gets its token all the same');
  await newMethod(harness, 'jwt');
  await bind(harness, 'jwt', 'service', 'web');
  for (const bearerToken of ['{"name":"a"}', '{"name":"b"}']) {
    const login = { authMethod: 'jwt', bearerToken, meta: {}, namespace: undefined };
    const { replayed } = (await harness.run('login', login, call)).meta;
    t.equal(replayed, false, 'nobody is kept out by another');
    t.equal((await harness.run('login', login, call)).meta.replayed, true);
  }
  const others = [await logIn(harness, 'idp'), await logIn(harness, 'idp')];
  for (const { secretId: secret } of [first, ...others]) {
    const leave = () => harness.run('logout', {}, { secret, requestId: 'out' });
    const left = await leave();
    t.match([left.value, left.meta.replayed], [true, false], 'nobody is logged out by another');
    t.match(await refusalOf(harness.run('token.read-self', {}, { secret })), /^token-unknown/);
    t.equal((await leave()).meta.replayed, true);
  }
});

t.test(
  'bootstrap: once, idempotent with its secret, again only with the reset index',
  async (t) => {
    const harness = await createHarness({ initialManagementSecret: undefined });
    const secret = '2b778dd9-f5f1-6f29-b4b4-9a5fa948757a';
    const boot = (given: string | undefined, call = {}) =>
      harness.run('bootstrap', { secret: given }, { secret: undefined, ...call });
    t.equal(await refusalOf(boot('x')), 'invalid: uuid string is wrong length');
    const first = await boot(secret);
    t.equal(first.value.token.secretId, secret);
    t.same(first.value.policies, [{ id: GLOBAL_MANAGEMENT_ID, name: 'global-management' }]);
    const again = await boot(secret);
    t.same(again.value, first.value, 'its secret is shown as it was');
    t.equal(again.meta.replayed, true);
    t.equal(again.meta.index, harness.machine.index());
    const index = first.value.token.createIndex;
    const refused = `permission-denied: Permission denied: ACL bootstrap no longer allowed (reset index: ${index})`;
    t.equal(await refusalOf(boot(undefined)), refused);
    harness.resetIndex = index + 1;
    t.equal(
      await refusalOf(boot(undefined)),
      `invalid: Invalid bootstrap reset index (specified ${index + 1}, reset index: ${index})`,
    );
    t.equal(harness.resetIndex, undefined, 'the reset is used up by the attempt');
    harness.resetIndex = Number.NaN;
    t.equal(
      await refusalOf(boot(undefined)),
      `invalid: Invalid bootstrap reset index (the file acl-bootstrap-reset of the leader holds neither a number nor a number and a secret, reset index: ${index})`,
    );
    harness.resetIndex = index;
    const second = (await boot(undefined)).value.token;
    t.not(second.secretId, secret);
    t.match(await refusalOf(boot(secret)), /no longer allowed/, 'the older one is history');
    harness.resetIndex = second.createIndex;
    harness.resetSecret = '2b778dd9-f5f1-6f29-b4b4-9a5fa948757b';
    for (const other of [undefined, '2b778dd9-f5f1-6f29-b4b4-9a5fa948757c']) {
      t.match(await refusalOf(boot(other)), /no longer allowed/, 'it is for one secret alone');
    }
    t.equal((await boot(harness.resetSecret)).value.token.secretId, harness.resetSecret);
    const self = harness.run('token.read-self', {}, { secret: secret as SecretId });
    t.equal(await refusalOf(self), 'ok', 'older tokens stay valid');
  },
);

t.test('bootstrap: a request id gives nobody the token a second time', async (t) => {
  const harness = await createHarness({ initialManagementSecret: undefined });
  const boot = () =>
    harness.run('bootstrap', { secret: undefined }, { secret: undefined, requestId: 'r' });
  t.equal(await refusalOf(boot()), 'ok');
  t.match(await refusalOf(boot()), /no longer allowed/);
});

t.test('bootstrap: a leader that cannot prove that it leads uses nothing up', async (t) => {
  const harness = await createHarness({ initialManagementSecret: undefined });
  const call = { ...CALL, secret: undefined };
  const asked = { name: 'bootstrap', input: { secret: undefined }, call } as const;
  const first = (await harness.door.runForOther(asked)).value.token;
  harness.resetIndex = first.createIndex;
  const away = { ...harness.deps, readBarrier: () => Promise.reject(new LeaderAway()) };
  await t.rejects(createOperations(away).runForOther(asked));
  t.equal(harness.resetIndex, first.createIndex);
  t.equal(await refusalOf(harness.door.runForOther(asked)), 'ok');
});
