// What is written in the primary, what stays at home, and what goes on without the primary.

import t from 'tap';
import { must } from '../../../cluster/base/assert.ts';
import type { SecretId } from '../../../src/acl/ids.ts';
import { DatacenterAway, type Errand } from '../../../src/service/datacenters/federation.ts';
import { loneDatacenter } from '../../support/state-and-service/lone-datacenter.ts';
import { allOf, CALL, createHarness, newPolicy, newToken, refusalOf } from '../harness.ts';
import { ABSENT, noFilter, PAGE, settled, twoDatacenters } from './cases.ts';

t.test('datacenters: what all share is written in the primary, the rest at home', async (t) => {
  const two = await twoDatacenters();
  const { primary, secondary } = two;
  const before = primary.proposals;
  await settled(two, newPolicy(secondary, 'shared', ''));
  t.equal(primary.proposals, before + 1);
  t.ok(primary.machine.totals().policies > secondary.machine.totals().policies);
  const token = await newToken(secondary, { local: true });
  t.equal(primary.proposals, before + 1, 'a local token is made without the primary');
  t.ok(secondary.machine.token(token.accessorId));
  const { value } = await secondary.run('token.delete', { accessorId: token.accessorId });
  t.same([value, primary.proposals], [true, before + 1]);
});

t.test('datacenters: what lives in the primary alone is not shown to another', async (t) => {
  const two = await twoDatacenters();
  const { primary, secondary } = two;
  const { accessorId, secretId } = await newToken(primary, { local: true, description: 'home' });
  const writes = [
    () => secondary.run('token.update', { accessorId, draft: {} }),
    () => secondary.run('token.clone', { accessorId, description: '', namespace: undefined }),
  ];
  for (const write of writes) {
    t.match(
      await refusalOf(settled(two, write())),
      /^permission-denied: .*local to datacenter dc1: ask a server there$/,
    );
  }
  const there = { datacenter: 'dc1' };
  const read = await settled(
    two,
    secondary.run('token.read', { accessorId, expanded: false }, there),
  );
  t.match(read.value, { secretHidden: true, token: { description: 'home', secretId: '' } });
  const list = await allOf(await settled(two, secondary.run('token.list', noFilter(), there)));
  t.match(
    list.find(({ token }) => token.accessorId === accessorId),
    { secretHidden: true },
  );
  const own = await settled(
    two,
    secondary.run('token.read-self', {}, { ...there, secret: secretId }),
  );
  t.match(own.value, { secretHidden: false, token: { accessorId, secretId } }, 'who holds it');
  t.match(own.meta.watch, { datacenter: 'dc1' });
  t.notOk(two.answers.join().includes(secretId), 'not even where it is hidden');
  const gone = await settled(two, secondary.run('token.delete', { accessorId }));
  t.equal(gone.value, true, 'but whoever may, revokes it from anywhere');
});

t.test(
  'datacenters: a home that becomes the primary meanwhile is asked all the same',
  async (t) => {
    const names = ['dc1', 'dc2', 'dc3'];
    const asked: string[] = [];
    let datacenter = 'dc1';
    const topology = { datacenters: () => names, primary: () => ({ datacenter, epoch: 3 }) };
    const home = await createHarness({ datacenter: 'dc3' }, topology);
    const first = await createHarness({}, topology);
    const { accessorId } = await newToken(home, { local: true });
    const run = async (to: string, errand: Errand): Promise<unknown> => {
      asked.push(to);
      const answer = await (to === 'dc3' ? home : first).door.runForDatacenter(
        errand as never,
        'dc2',
      );
      datacenter = 'dc3';
      return answer;
    };
    const here = await createHarness({ datacenter: 'dc2' }, { ...topology, run });
    const { value } = await here.run('token.delete', { accessorId }, { datacenter: 'dc3' });
    t.same([value, asked], [true, ['dc1', 'dc3']]);
    t.equal(home.machine.token(accessorId), undefined);
  },
);

t.test('datacenters: who names its home deletes a local token from anywhere', async (t) => {
  const names = ['dc1', 'dc2', 'dc3'];
  const isAway = { dc1: false, dc3: false };
  const asked: string[] = [];
  const home = await createHarness(
    { datacenter: 'dc3' },
    { datacenters: () => names, primary: () => ({ datacenter: 'dc1', epoch: 3 }) },
  );
  const run = (datacenter: string, errand: Errand): Promise<unknown> => {
    asked.push(datacenter);
    if (isAway[datacenter as 'dc1' | 'dc3'])
      throw new DatacenterAway(datacenter, 'the line is cut');
    const there = datacenter === 'dc3' ? home : primary;
    return there.door.runForDatacenter(errand as never, 'dc2');
  };
  const lone = loneDatacenter('dc1', () => ({ epoch: 3, seq: 1 })).status();
  const [one] = lone.datacenters;
  const removed = { ...must(one, 'itself'), name: 'dc4', state: 'removed' } as const;
  const status = () => ({ ...lone, datacenters: [removed] });
  const primary = await createHarness({}, { datacenters: () => names, run, status });
  const secondary = await createHarness(
    { datacenter: 'dc2' },
    { datacenters: () => names, primary: () => ({ datacenter: 'dc1', epoch: 3 }), run, status },
  );
  for (const here of [primary, secondary]) {
    const between = here === primary ? [] : ['dc1'];
    const { accessorId } = await newToken(home, { local: true });
    const gone = async (datacenter?: string) => {
      asked.length = 0;
      const running = here.run('token.delete', { accessorId }, { datacenter });
      return (await settled({ secondary: here }, running)).value;
    };
    t.equal(await gone(), false, 'nobody said where');
    t.match(
      await refusalOf(gone('dc9')),
      /^no-such-datacenter: No path to datacenter$/,
      'of a name that nobody has nothing is known',
    );
    t.match(
      await refusalOf(gone('dc4')),
      /^no-such-datacenter: .* an operator has removed datacenter dc4 from the federation$/,
    );
    t.same(asked, between);
    t.equal(await gone(''), false, 'an empty name is none');
    t.equal(await gone('dc1'), false);
    t.same(asked, between, 'the primary is asked once, whoever names it');
    t.ok(home.machine.token(accessorId));
    t.equal(await gone('dc3'), true);
    t.same(asked, [...between, 'dc3'], 'whoever may know it by itself first');
    t.equal(home.machine.token(accessorId), undefined);
    t.equal(await gone('dc3'), false, 'and nobody has it any more');
    const known = await newToken(here, { local: true });
    asked.length = 0;
    const { value } = await here.run(
      'token.delete',
      { accessorId: known.accessorId },
      { datacenter: 'dc3' },
    );
    t.same([value, asked], [true, []], 'what is known here is not looked for there');
  }
  isAway.dc1 = true;
  const { accessorId } = await newToken(home, { local: true });
  for (const [id, says] of [
    [accessorId, /^ok$/],
    [accessorId, /^unavailable: Remote DC has no server currently reachable: dc1/],
  ] as const) {
    const running = secondary.run('token.delete', { accessorId: id }, { datacenter: 'dc3' });
    t.match(await refusalOf(settled({ secondary }, running)), says, 'while the primary is away');
  }
  t.equal(home.machine.token(accessorId), undefined);
  isAway.dc3 = true;
  const running = primary.run('token.delete', { accessorId: ABSENT }, { datacenter: 'dc3' });
  t.match(
    await refusalOf(settled({ secondary: primary }, running)),
    /^unavailable: Remote DC has no server currently reachable: dc3/,
    'without the one that is named nobody knows',
  );
});

t.test('datacenters: a write waits for the position that it names', async (t) => {
  const two = await twoDatacenters();
  const { secondary } = two;
  const { epoch, seq } = secondary.machine.position();
  const minPosition = { epoch, seq: seq + 1 };
  const draft = { local: true, policies: [{ name: 'late' }] };
  const running = secondary.run('token.create', { draft }, { minPosition });
  await new Promise<void>((resolve) => setImmediate(resolve));
  await secondary.door.runForOther({
    ...{ name: 'policy.create', input: { draft: { name: 'late', rules: '' } }, call: CALL },
  });
  t.equal((await running).value.token.policies.length, 1, 'what it links to has come');
  const startMs = secondary.clock.monotonicMs();
  const proposals = secondary.proposals;
  for (const local of [true, false]) {
    const never = { minPosition: { epoch, seq: seq + 99 } };
    t.match(
      await refusalOf(settled(two, secondary.run('token.create', { draft: { local } }, never))),
      /^wait-timeout: Nothing was written. Position 1\.\d+ was not reached in time/,
    );
  }
  t.ok(secondary.clock.monotonicMs() - startMs >= 20_000);
  t.same([two.arrived.length, secondary.proposals], [0, proposals]);
  const errand = { name: 'token.create', input: { draft: {} }, call: { ...CALL, minPosition } };
  await two.primary.door.runForDatacenter(errand as never, 'dc2');
  t.equal(two.primary.clock.pendingCount, 0, 'of what is sent the sender has waited');
});

t.test('datacenters: a login waits for an auth method that is not here yet', async (t) => {
  const two = await twoDatacenters();
  const { primary, secondary } = two;
  const draft = { name: 'm', type: 'jwt', config: {} };
  const rule = { authMethod: 'm', bindType: 'service', bindName: 'web' };
  await primary.run('auth-method.create', { draft });
  await primary.run('binding-rule.create', { draft: rule });
  const input = { authMethod: 'm', bearerToken: '{"name":"web"}', meta: {}, namespace: undefined };
  const login = (datacenter?: string) =>
    settled(two, secondary.run('login', input, { secret: undefined, datacenter }));
  const tokens = () => [primary, secondary].map(({ machine }) => machine.totals().tokens);
  const before = tokens();
  for (const datacenter of [undefined, 'dc2']) {
    const startMs = secondary.clock.monotonicMs();
    t.match(
      await refusalOf(login(datacenter)),
      /^not-primary: nothing was done: .* has not come to datacenter dc2 yet, try again$/,
      'no client takes that for final',
    );
    t.ok(secondary.clock.monotonicMs() - startMs >= 5_000, 'it was waited for');
  }
  t.match(
    await refusalOf(login('dc1')),
    /^permission-denied: .*local to datacenter dc1: ask a server there$/,
  );
  t.match(
    await refusalOf(settled(two, secondary.run('login', { ...input, authMethod: 'absent' }))),
    /^permission-denied: ACL not found: auth method "absent" not found$/,
  );
  t.same(tokens(), before);
  two.arrived.length = 0;
  const running = secondary.run('login', input, { secret: undefined });
  while (two.arrived.length === 0) await new Promise<void>((resolve) => setImmediate(resolve));
  await secondary.door.runForOther({ name: 'auth-method.create', input: { draft }, call: CALL });
  await secondary.door.runForOther({
    ...{ name: 'binding-rule.create', input: { draft: rule }, call: CALL },
  });
  t.equal((await settled(two, running)).value.token.local, true);
  t.same(tokens(), [before[0], before[1]! + 1], 'and made at home');
});

t.test('datacenters: a login is explained where it would be made', async (t) => {
  const two = await twoDatacenters();
  const method = { name: 'm', type: 'jwt', tokenLocality: 'global', config: {} } as const;
  await two.primary.run('auth-method.create', { draft: method });
  const rule = { authMethod: 'm', bindType: 'node', bindName: 'n1' };
  await two.primary.run('binding-rule.create', { draft: rule });
  const input = { authMethod: 'm', bearerToken: '{"name":"x"}', meta: {}, namespace: undefined };
  two.arrived.length = 0;
  const told = await settled(two, two.secondary.run('explain-login', input));
  t.match(told, {
    granted: true,
    token: { nodeIdentities: [{ nodeName: 'n1', datacenter: 'dc2' }] },
  });
  t.equal(two.arrived.length, 1, 'the primary was asked');
  const draft = { local: true, policies: [{ name: 'global-management' }] };
  const { secretId } = await newToken(two.secondary, draft);
  t.match(
    await refusalOf(settled(two, two.secondary.run('explain-login', input, { secret: secretId }))),
    /^permission-denied: .*the token is local to datacenter dc2/,
  );
  t.equal(two.arrived.length, 1, 'its secret stays at home');
});

t.test('datacenters: a node that logs in is one of the datacenter where it does', async (t) => {
  const two = await twoDatacenters();
  const method = { name: 'm', type: 'jwt', tokenLocality: 'global', config: {} } as const;
  await two.primary.run('auth-method.create', { draft: method });
  const rule = { authMethod: 'm', bindType: 'node', bindName: 'n1' };
  await two.primary.run('binding-rule.create', { draft: rule });
  const login = { authMethod: 'm', bearerToken: '{"name":"x"}', meta: {}, namespace: undefined };
  for (const [at, named, datacenter] of [
    [two.secondary, undefined, 'dc2'],
    [two.secondary, 'dc2', 'dc2'],
    [two.primary, undefined, 'dc1'],
    [two.primary, 'dc2', 'dc1'],
    [two.primary, 'dc1', 'dc1'],
  ] as const) {
    const { value } = await settled(two, at.run('login', login, { datacenter: named }));
    t.same(value.token.nodeIdentities, [{ nodeName: 'n1', datacenter }], `${named} ${datacenter}`);
  }
});

t.test('datacenters: the secret of a local token never travels', async (t) => {
  const two = await twoDatacenters();
  const { secondary } = two;
  const policies = [{ id: '00000000-0000-0000-0000-000000000001' }];
  const { secretId: secret } = await newToken(secondary, { local: true, policies });
  t.equal(
    await refusalOf(secondary.run('policy.create', { draft: { name: 'p' } }, { secret })),
    'permission-denied: Permission denied: the token is local to datacenter dc2 and this is written in dc1 for all datacenters: use a global token',
  );
  t.match(
    await refusalOf(secondary.run('policy.list', PAGE, { secret, datacenter: 'dc1' })),
    /^token-unknown: ACL not found: the token is local to datacenter dc2/,
  );
  t.same(two.arrived, []);
  const barriers = secondary.barriers;
  const other = { secret: 'somebody' as SecretId };
  t.match(
    await refusalOf(settled(two, secondary.run('policy.create', { draft: { name: 'p' } }, other))),
    /^token-unknown: ACL not found/,
  );
  t.ok(secondary.barriers > barriers, 'who is not known is looked for with care first');
  const login = { authMethod: 'm', bearerToken: 'x', meta: {}, namespace: undefined };
  t.match(
    await refusalOf(settled(two, secondary.run('login', login, { secret }))),
    /^permission-denied: ACL not found: auth method "m" not found/,
    'a token that means nothing is left at home',
  );
  t.equal(two.arrived.at(-1)?.call.secret, undefined);
});

t.test('datacenters: without the primary reads and local writes go on', async (t) => {
  const two = await twoDatacenters();
  two.faults.push(...Array.from({ length: 999 }, () => 'away' as const));
  const startMs = two.secondary.clock.monotonicMs();
  t.equal(
    await refusalOf(settled(two, newPolicy(two.secondary, 'p', ''))),
    'unavailable: Remote DC has no server currently reachable: dc1: the line is cut; the last known primary is dc1, epoch 3',
  );
  t.ok(two.secondary.clock.monotonicMs() - startMs < 2_000, 'and that is soon said');
  t.equal(await refusalOf(two.secondary.run('policy.list', PAGE)), 'ok');
  t.equal(await refusalOf(newToken(two.secondary, { local: true })), 'ok');
});

t.test('datacenters: the answer says whether it can be read here by now', async (t) => {
  const two = await twoDatacenters();
  const startMs = two.secondary.clock.monotonicMs();
  const { meta } = await settled(two, two.secondary.run('token.create', { draft: {} }));
  t.same([meta.isVisible, meta.position], [false, two.primary.machine.position()]);
  t.ok(two.secondary.clock.monotonicMs() - startMs >= 2_000, 'it was waited for');
  const local = await two.secondary.run('token.create', { draft: { local: true } });
  t.equal(local.meta.isVisible, undefined);
});
