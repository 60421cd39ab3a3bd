// Writes that come twice, or at once: request ids, `cas`, the bootstrap.

import t from 'tap';
import { GLOBAL_MANAGEMENT_ID, type SecretId } from '../../../src/acl/ids.ts';
import { createHarness, newPolicy, refusalOf, secretWith } from '../harness.ts';
import { NOBODY } from './use-cases.ts';

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
    t.same(again.value.token, first.value.token);
    t.equal(again.meta.replayed, true);
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
