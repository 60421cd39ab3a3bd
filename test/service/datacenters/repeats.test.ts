// Writes for another datacenter that are made again, or lost on the way.

import t from 'tap';
import type { AccessorId } from '../../../src/acl/ids.ts';
import { NEWEST_LEVEL } from '../../../src/state/commands/feature-levels.ts';
import { CALL, type Harness, newPolicy, newToken, refusalOf } from '../harness.ts';
import { ABSENT, type Fault, settled, twoDatacenters } from './cases.ts';

const NAMED = { draft: { name: 'p1', rules: '' } };

t.test("datacenters: a token that is not known here is the primary's to know", async (t) => {
  const two = await twoDatacenters();
  const { accessorId } = await newToken(two.primary);
  const barriers = two.secondary.barriers;
  const gone = await settled(two, two.secondary.run('token.delete', { accessorId }));
  t.equal(gone.value, true);
  t.ok(two.secondary.barriers > barriers, 'after its own state was made sure of');
  t.equal(two.primary.machine.token(accessorId), undefined);
});

t.test(
  'datacenters: a repeat of what was done to a local token gets the first answer',
  async (t) => {
    const two = await twoDatacenters();
    const { secondary } = two;
    const run: Harness['run'] = (...asked) => settled(two, secondary.run(...asked));
    // Both draw the same ids: a token of the primary would answer for this one.
    const one = await newToken(secondary, { accessorId: HOME, local: true });
    const other = await newToken(two.primary);
    const update = { accessorId: one.accessorId, draft: { local: true, description: 'new' } };
    const clone = { accessorId: one.accessorId, description: 'copy', namespace: undefined };
    const gone = { accessorId: one.accessorId };
    const first = {
      update: (await run('token.update', update, { requestId: 'u' })).value,
      clone: (await run('token.clone', clone, { requestId: 'c' })).value,
      gone: (await run('token.delete', gone, { requestId: 'd' })).value,
    };
    t.equal(first.gone, true);
    for (const fault of [undefined, 'away'] as const) {
      if (fault !== undefined) two.faults.push(...Array<Fault>(999).fill(fault));
      const again = {
        update: (await run('token.update', update, { requestId: 'u' })).value,
        clone: (await run('token.clone', clone, { requestId: 'c' })).value,
        gone: (await run('token.delete', gone, { requestId: 'd' })).value,
      };
      t.same(again, first, `the primary is ${fault ?? 'there'}`);
      two.faults.length = 0;
    }
    const all = { ...gone };
    t.equal((await run('token.delete', all, { requestId: 'd', ack: 'all' })).value, true);
    t.equal((await run('token.delete', gone, { requestId: 'e' })).value, false, 'another request');
    t.match(
      await refusalOf(run('token.delete', { accessorId: ABSENT }, { requestId: 'd' })),
      /^invalid: The request id was used before/,
    );
    const known = { accessorId: other.accessorId };
    t.equal((await run('token.delete', known, { requestId: 'f' })).value, true);
    t.equal((await run('token.delete', known, { requestId: 'f' })).value, true, 'of the primary');
  },
);

t.test(
  'datacenters: what all share is not answered from memory where more was asked',
  async (t) => {
    const two = await twoDatacenters();
    const { secondary } = two;
    const run: Harness['run'] = (...asked) => settled(two, secondary.run(...asked));
    const made = { draft: { accessorId: HOME } };
    const gone = { accessorId: HOME };
    // As it would have arrived from the primary.
    const call = (requestId: string) => ({ ...CALL, requestId });
    await secondary.door.runForOther({ name: 'token.create', input: made, call: call('c') });
    await secondary.door.runForOther({ name: 'token.delete', input: gone, call: call('d') });
    two.faults.push(...Array<Fault>(999).fill('away'));
    t.match(await refusalOf(run('token.create', made, { requestId: 'c' })), /^unavailable: /);
    const all = { requestId: 'd', ack: 'all' } as const;
    t.match(await refusalOf(run('token.delete', gone, all)), /^unavailable: /);
    t.equal((await run('token.delete', gone, { requestId: 'd' })).value, true, 'it is gone here');
  },
);

t.test(
  'datacenters: a repeat about a local token that is gone waits for no other datacenter',
  async (t) => {
    const acknowledged = (): Promise<'primary'> => Promise.resolve('primary');
    const { primary } = await twoDatacenters({ acknowledged });
    const change = { type: 'level.raise', level: NEWEST_LEVEL } as const;
    await primary.deps.propose({ change, timeMs: 0, cas: undefined, request: undefined });
    const gone = { accessorId: HOME };
    const ask = { requestId: 'd', ack: 'all' } as const;
    await newToken(primary, { ...gone, local: true });
    for (const what of ['first', 'again']) {
      const { value, meta } = await primary.run('token.delete', gone, ask);
      t.same([value, meta.ack], [true, undefined], what);
    }
    const shared = { draft: { accessorId: ABSENT } };
    await primary.run('token.create', shared);
    const both = () =>
      primary.run('token.delete', { accessorId: ABSENT }, { ...ask, requestId: 'e' });
    for (const what of ['first', 'again']) {
      t.match(await refusalOf(both()), /^wait-timeout: The write stands/, `of all, ${what}`);
    }
  },
);

t.test('datacenters: who lost the right does not get the first answer again', async (t) => {
  const two = await twoDatacenters();
  const { secondary } = two;
  const one = await newToken(secondary, { accessorId: HOME, local: true });
  const { policy } = (
    await secondary.door.runForOther({
      name: 'policy.create',
      input: { draft: { name: 'w', rules: 'acl = "write"' } },
      call: CALL,
    })
  ).value;
  const { secretId: secret } = await newToken(secondary, {
    local: true,
    policies: [{ id: policy.id }],
  });
  const clone = { accessorId: one.accessorId, description: '', namespace: undefined };
  const run = () => settled(two, secondary.run('token.clone', clone, { secret, requestId: 'c' }));
  await run();
  await secondary.run('token.delete', { accessorId: one.accessorId });
  t.equal(await refusalOf(run()), 'ok');
  const lost = { id: policy.id, draft: { name: 'w', rules: '' } };
  await secondary.door.runForOther({ name: 'policy.update', input: lost, call: CALL });
  t.match(await refusalOf(run()), /^permission-denied: .* lacks permission 'acl:write'/);
});

t.test('datacenters: a logout that is repeated is no stranger', async (t) => {
  const two = await twoDatacenters();
  const { secondary } = two;
  const draft = { name: 'm', type: 'jwt', config: {} };
  const rule = { authMethod: 'm', bindType: 'service', bindName: 'web' };
  await secondary.door.runForOther({ name: 'auth-method.create', input: { draft }, call: CALL });
  await secondary.door.runForOther({
    name: 'binding-rule.create',
    input: { draft: rule },
    call: CALL,
  });
  const login = { authMethod: 'm', bearerToken: '{"name":"web"}', meta: {}, namespace: undefined };
  const { secretId } = (await secondary.run('login', login, { secret: undefined })).value.token;
  const out = (requestId: string) =>
    settled(two, secondary.run('logout', {}, { secret: secretId, requestId }));
  t.equal((await out('o')).value, true);
  t.equal((await out('o')).value, true);
  t.match(await refusalOf(out('p')), /^token-unknown: ACL not found/);
});

const HOME = '22222222-2222-4333-8444-555555555555' as AccessorId;

t.test('datacenters: whatever is lost on the way, the write is applied once', async (t) => {
  for (const fault of ['away', 'no-leader', 'lose-question', 'lose-answer'] as const) {
    const two = await twoDatacenters();
    two.faults.push(fault);
    const before = two.primary.machine.totals().tokens;
    const made = await settled(two, two.secondary.run('token.create', { draft: {} }));
    t.equal(two.primary.machine.totals().tokens, before + 1, fault);
    t.equal(made.meta.replayed, false, 'the caller repeated nothing');
    t.match(two.arrived[0]?.call.requestId, /^server\//);
  }
});

t.test('datacenters: what is not known in the end is said to be not known', async (t) => {
  const two = await twoDatacenters();
  two.faults.push('lose-answer', ...Array.from({ length: 999 }, () => 'away' as const));
  const running = settled(two, newPolicy(two.secondary, 'p', ''));
  t.match(await refusalOf(running), /^outcome-unknown: whether the write took effect is not known/);
});

t.test('datacenters: a refusal says nothing of a try that may still be on its way', async (t) => {
  const two = await twoDatacenters();
  await newPolicy(two.primary, 'p', '');
  two.faults.push('lose-question');
  const running = settled(two, newPolicy(two.secondary, 'p', ''));
  t.match(await refusalOf(running), /^outcome-unknown: /);
  t.equal(
    await refusalOf(settled(two, newPolicy(two.secondary, 'p', ''))),
    'duplicate: Invalid Policy: A Policy with Name "p" already exists',
  );
});

t.test('datacenters: nothing to delete says nothing of a delete on its way, either', async (t) => {
  const two = await twoDatacenters();
  const deleted = () => settled(two, two.secondary.run('auth-method.delete', { name: 'm' }));
  two.faults.push('lose-question');
  t.match(await refusalOf(deleted()), /^outcome-unknown: /);
  t.equal(await refusalOf(deleted()), 'ok');
});

t.test('datacenters: nor where the leader of now remembers that it found nothing', async (t) => {
  const two = await twoDatacenters();
  const { secondary } = two;
  const deleted = () =>
    settled(two, secondary.run('auth-method.delete', { name: 'm' }, { requestId: 'of-a-client' }));
  two.faults.push('lose-question');
  t.match(await refusalOf(deleted()), /^outcome-unknown: /);
  t.ok(two.arrived.length > 1, 'it was asked again, and remembered');
  t.equal((await deleted()).value, false, 'whoever has no try on its way is told');
});

t.test('datacenters: a write whose client is gone is not begun again', async (t) => {
  for (const fault of ['away', 'no-leader', 'moved', 'lose-question'] as const) {
    const two = await twoDatacenters();
    two.faults.push(fault);
    const { operations } = two.secondary;
    const running = operations.answer('policy.create', NAMED, CALL, () => true);
    const says =
      fault === 'lose-question' ? /^outcome-unknown: / : /^(?:unavailable|not-primary): /;
    t.match(await refusalOf(settled(two, Promise.resolve(running))), says, fault);
    t.same(two.arrived, [], fault);
  }
  const two = await twoDatacenters();
  const ahead = { ...CALL, minPosition: { epoch: 0, seq: 0 } };
  const late = two.secondary.operations.answer('policy.create', NAMED, ahead, () => true);
  t.match(await refusalOf(settled(two, Promise.resolve(late))), /^unavailable: .* is gone$/);
  t.same(two.arrived, [], 'it had waited for a position');
});

t.test('datacenters: what an earlier primary did of a write stays not known', async (t) => {
  for (const last of ['moved', 'away', 'no-leader'] as const) {
    for (const requestId of ['of-the-client', undefined]) {
      const two = await twoDatacenters();
      const input = { draft: { name: 'p1', rules: '' } };
      const run = () => settled(two, two.secondary.run('policy.create', input, { requestId }));
      two.faults.push('moved', ...Array<Fault>(500).fill(last));
      t.match(
        await refusalOf(run()),
        /^(?:not-primary|unavailable): /,
        `${last}: nothing was done`,
      );
      two.faults.splice(
        0,
        two.faults.length,
        'lose-answer',
        'moved',
        ...Array<Fault>(500).fill(last),
      );
      t.match(await refusalOf(run()), /^outcome-unknown: /, `${last}, ${requestId}`);
      t.equal(two.arrived.length, 1);
    }
  }
});

t.test(
  'datacenters: that stays so when the token is gone, or may not be sent any more',
  async (t) => {
    for (const [secondTry, says] of [
      ['sent', /^token-unknown: /],
      ['not-sent', /^permission-denied: .* local to datacenter dc2/],
    ] as const) {
      const two = await twoDatacenters();
      const id = await newPolicy(two.primary, 'writers', 'acl = "write"');
      const writer = await newToken(two.primary, { policies: [{ id }] });
      const { accessorId, secretId } = writer;
      const run = (requestId: string) =>
        two.secondary.run('policy.create', NAMED, { secret: secretId, requestId });
      two.faults.push('lose-answer', 'moved');
      const running = run('first');
      while (two.arrived.length === 0) await new Promise<void>((resolve) => setImmediate(resolve));
      await two.primary.run('token.delete', { accessorId });
      if (secondTry === 'not-sent') await newToken(two.secondary, { secretId, local: true });
      t.match(await refusalOf(settled(two, running)), /^outcome-unknown: /, secondTry);
      t.match(await refusalOf(settled(two, run('second'))), says, 'which says enough of another');
    }
  },
);
