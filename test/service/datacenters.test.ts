// Several datacenters, as the service of one sees them: where each operation runs, what may travel, how
// often it is tried, and what an answer says of how far it got. The way between them is the test's.

import { inspect } from 'node:util';
import t from 'tap';
import { must } from '../../cluster/base/assert.ts';
import { AclError } from '../../src/acl/error.ts';
import type { AccessorId, SecretId } from '../../src/acl/ids.ts';
import { DatacenterAway, type Errand, type Federation } from '../../src/service/federation.ts';
import { LeaderAway } from '../../src/service/remote.ts';
import { type ListPage, listOfPages, pageOf } from '../../src/service/remote-list.ts';
import type { ListResult, PolicyView, WriteResult } from '../../src/service/views.ts';
import { NEWEST_LEVEL } from '../../src/state/feature-levels.ts';
import { OPERATION_TABLE } from '../../src/service/operation-table.ts';
import type { OperationName } from '../../src/service/operations.ts';
import { placementOf } from '../../src/service/placement.ts';
import {
  allOf,
  CALL,
  createHarness,
  type Harness,
  newPolicy,
  newToken,
  refusalOf,
} from './harness.ts';
import { loneDatacenter } from '../support/lone-datacenter.ts';

const PAGE = { page: {} };
const NAMED = { draft: { name: 'p1', rules: '' } };
/** What may go wrong with the next errands, one each; afterwards they arrive. */
type Fault = 'away' | 'no-leader' | 'lose-question' | 'lose-answer' | 'moved';

interface Two {
  readonly primary: Harness;
  readonly secondary: Harness;
  readonly faults: Fault[];
  /** What came to the primary. */
  readonly arrived: Errand[];
  /** What it answered, as text. */
  readonly answers: string[];
}

/** dc1 is the primary, dc2 asks it. Their states are their own: nothing is replicated here. */
async function twoDatacenters(more: Partial<Federation> = {}): Promise<Two> {
  const primary = await createHarness({}, { datacenters: () => ['dc1', 'dc2'], ...more });
  const faults: Fault[] = [];
  const arrived: Errand[] = [];
  const answers: string[] = [];
  const run = async (datacenter: string, errand: Errand): Promise<unknown> => {
    t.equal(datacenter, 'dc1');
    const fault = faults.shift();
    if (fault === 'away') throw new DatacenterAway('dc1', 'the line is cut');
    if (fault === 'no-leader') throw new LeaderAway();
    if (fault === 'lose-question') throw unknown();
    if (fault === 'moved')
      throw new AclError('not-primary', 'nothing was done: dc3 is the primary');
    arrived.push(errand);
    const answer = await primary.door.runForDatacenter(errand as never, 'dc2');
    answers.push(inspect(answer, { depth: 9 }));
    if (fault === 'lose-answer') throw unknown();
    return answer;
  };
  const secondary = await createHarness(
    { datacenter: 'dc2' },
    {
      datacenters: () => ['dc2', 'dc1'],
      primary: () => ({ datacenter: 'dc1', epoch: 3 }),
      run,
    },
  );
  return { primary, secondary, faults, arrived, answers };
}

function unknown(): AclError {
  return new AclError('outcome-unknown', 'whether the write took effect is not known: lost');
}

/** Moves the time of the secondary on until it is settled. */
async function settled<T>({ secondary }: Pick<Two, 'secondary'>, running: Promise<T>): Promise<T> {
  let isOver = false;
  const end = (): void => {
    isOver = true;
  };
  running.then(end, end);
  while (!isOver) {
    await new Promise<void>((resolve) => setImmediate(resolve));
    if (!isOver) secondary.clock.advance(50);
  }
  return running;
}

t.test('placement: what another datacenter sends is run, or sent back; never sent on', (t) => {
  const primary = { datacenter: 'dc1', primaryDatacenter: 'dc1', isLeader: false };
  const before = { datacenter: 'dc1', primaryDatacenter: 'dc3', isLeader: true };
  const cases = [
    ['policy.create', undefined, primary, { kind: 'leader' }],
    ['policy.create', undefined, before, { kind: 'astray', name: 'dc3' }],
    ['policy.list', undefined, before, { kind: 'here' }],
    ['token.create', true, primary, { kind: 'local-here' }],
    ['token.update', true, primary, { kind: 'local-here' }],
    ['token.delete', true, primary, { kind: 'leader' }],
    ['logout', true, before, { kind: 'here' }],
    ['login', true, primary, { kind: 'ahead', name: 'dc2' }],
    ['oidc.callback', true, before, { kind: 'ahead', name: 'dc2' }],
    ['login', false, before, { kind: 'astray', name: 'dc3' }],
  ] as const;
  for (const [name, isLocalToken, topology, expected] of cases) {
    const facts = OPERATION_TABLE[name as OperationName];
    const question = { facts, datacenter: undefined, isLocalToken, from: 'dc2' };
    t.same(placementOf(question, topology), expected, name);
  }
  t.end();
});

t.test('placement: who is named answers for what lives there, and not for what all share', (t) => {
  const primary = { datacenter: 'dc1', primaryDatacenter: 'dc1', isLeader: true };
  const secondary = { datacenter: 'dc2', primaryDatacenter: 'dc1', isLeader: true };
  const cases = [
    ['login', false, 'dc2', secondary, { kind: 'datacenter', name: 'dc1' }],
    ['login', false, 'dc2', primary, { kind: 'here' }],
    ['login', true, 'dc2', primary, { kind: 'datacenter', name: 'dc2' }],
    ['logout', false, 'dc2', primary, { kind: 'here' }],
    ['logout', false, 'dc2', secondary, { kind: 'datacenter', name: 'dc1' }],
    ['logout', undefined, 'dc2', primary, { kind: 'datacenter', name: 'dc2' }],
    ['logout', undefined, 'dc2', secondary, { kind: 'datacenter', name: 'dc1' }],
    ['logout', true, 'dc2', secondary, { kind: 'here' }],
    ['login', undefined, 'dc2', secondary, { kind: 'datacenter', name: 'dc1' }],
    ['oidc.auth-url', false, 'dc2', secondary, { kind: 'datacenter', name: 'dc1' }],
    ['token.delete', false, 'dc2', secondary, { kind: 'datacenter', name: 'dc1' }],
  ] as const;
  for (const [name, isLocalToken, datacenter, topology, expected] of cases) {
    const facts = OPERATION_TABLE[name];
    const question = { facts, datacenter, isLocalToken, from: undefined };
    t.same(placementOf(question, topology), expected, `${name} at ${topology.datacenter}`);
  }
  t.end();
});

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

t.test("datacenters: a token that is not known here is the primary's to know", async (t) => {
  const two = await twoDatacenters();
  const { accessorId } = await newToken(two.primary);
  const barriers = two.secondary.barriers;
  const gone = await settled(two, two.secondary.run('token.delete', { accessorId }));
  t.equal(gone.value, true);
  t.ok(two.secondary.barriers > barriers, 'after its own state was made sure of');
  t.equal(two.primary.machine.token(accessorId), undefined);
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
  t.notOk(two.answers.join().includes(secretId), 'not even where it is hidden');
  const gone = await settled(two, secondary.run('token.delete', { accessorId }));
  t.equal(gone.value, true, 'but whoever may, revokes it from anywhere');
});

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

const HOME = '22222222-2222-4333-8444-555555555555' as AccessorId;
/** Of no token. */
const ABSENT = '11111111-2222-4333-8444-555555555555' as AccessorId;

function noFilter() {
  const none = { policy: undefined, role: undefined, serviceName: undefined };
  return { ...none, authMethod: undefined, authMethodNamespace: undefined, page: {} };
}

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
});

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

t.test('datacenters: a list of another one comes page by page', async (t) => {
  const two = await twoDatacenters();
  for (let number = 0; number < 7; number += 1) await newToken(two.primary);
  const wanted = (await allOf(await two.primary.run('token.list', noFilter()))).length;
  const there = { datacenter: 'dc1' };
  const all = await allOf(await settled(two, two.secondary.run('token.list', noFilter(), there)));
  t.equal(all.length, wanted);
  const page = { ...noFilter(), page: { limit: 3 } };
  const first: ListResult<unknown> = await settled(
    two,
    two.secondary.run('token.list', page, there),
  );
  t.equal((await allOf(first)).length, 3);
  const rest = { ...noFilter(), page: { after: first.next() } };
  t.equal(
    (await allOf(await settled(two, two.secondary.run('token.list', rest, there)))).length,
    wanted - 3,
  );
});

t.test('replication: who is the primary no more says how far it is behind', async (t) => {
  const lone = loneDatacenter('dc1', () => ({ epoch: 1, seq: 1 })).status();
  const own = must(lone.datacenters[0], 'itself');
  const shown = async (fields: Partial<typeof own>) => {
    const status = () => ({ ...lone, datacenters: [{ ...own, ...fields }] });
    const harness = await createHarness({}, { status });
    return await harness.run('replication.status', {});
  };
  t.match(await shown({}), { enabled: false, running: false, sourceDatacenter: '' });
  const apart = {
    state: 'stopped',
    lagMs: undefined,
    lastError: 'the primary has not what',
  } as const;
  t.match(await shown(apart), {
    ...{ enabled: true, running: false, sourceDatacenter: '' },
    lastErrorMessage: apart.lastError,
  });
  t.match(await shown({ state: 'snapshot' }), { enabled: true, running: true });
});

t.test('acknowledgement: as many as were asked for, or it is said', async (t) => {
  let reached: 'primary' | 'majority' = 'primary';
  const asked: string[] = [];
  const names = ['dc1', 'dc2', 'dc3'];
  const { primary } = await twoDatacenters({
    datacenters: () => names,
    acknowledged: (_position, wanted, limitMs) => {
      asked.push(`${wanted} ${limitMs}`);
      return Promise.resolve(reached);
    },
  });
  const policy = (name: string, call: object) =>
    primary.run('policy.create', { draft: { name } }, call);
  t.equal((await policy('a', {})).meta.ack, 'primary');
  t.same(asked, []);
  t.match(
    await refusalOf(policy('b', { ack: 'all', ackTimeoutMs: 70 })),
    /^wait-timeout: The write stands at position 1\.\d+, but in time it was acknowledged by the primary only and not by all datacenters$/,
  );
  t.equal(await refusalOf(primary.run('policy.read-by-name', { name: 'b' })), 'ok');
  const { id } = (await policy('c', {})).value.policy;
  const gone = await primary.run('policy.delete', { id });
  t.equal(gone.meta.ack, 'primary', 'a default that was not reached is only told');
  reached = 'majority';
  t.equal((await policy('d', { ack: 'majority' })).meta.ack, 'majority');
  t.same(asked, ['all 70', 'majority 5000', 'majority 5000']);
  names.pop();
  const kept = (await policy('e', {})).value.policy.id;
  const alone = await primary.run('policy.delete', { id: kept });
  t.equal(alone.meta.ack, 'primary', 'and two datacenters do not wait for each other');
});

t.test('acknowledgement: a deletion that is tried again waits as the first one did', async (t) => {
  let reached: 'primary' | 'majority' | 'all' = 'primary';
  const waitedFor: string[] = [];
  const { primary } = await twoDatacenters({
    datacenters: () => ['dc1', 'dc2', 'dc3'],
    acknowledged: ({ seq }, wanted, limitMs) => {
      waitedFor.push(`${seq} ${wanted} ${limitMs}`);
      return Promise.resolve(reached);
    },
  });
  const { accessorId } = await newToken(primary);
  const ids = [undefined, 'one', 'one', 'two'];
  const asked = { ack: 'all', ackTimeoutMs: 70 } as const;
  t.match(
    await refusalOf(primary.run('token.delete', { accessorId }, asked)),
    /^wait-timeout: The write stands /,
  );
  const { seq } = primary.machine.position();
  for (const requestId of ids) {
    t.equal(
      await refusalOf(primary.run('token.delete', { accessorId }, { ...asked, requestId })),
      `wait-timeout: There was nothing to delete at position 1.${seq}, but in time it was acknowledged by the primary only and not by all datacenters`,
    );
  }
  const lesser = await primary.run('token.delete', { accessorId });
  t.same([lesser.value, lesser.meta.ack], [false, 'primary'], 'a default is only told');
  t.same(waitedFor, [...Array<string>(5).fill(`${seq} all 70`), `${seq} majority 5000`]);
  reached = 'all';
  for (const requestId of ids) {
    const { value, meta } = await primary.run(
      'token.delete',
      { accessorId },
      { ...asked, requestId },
    );
    t.same([value, meta.ack, meta.position.seq], [false, 'all', seq]);
  }
  for (const [name, input] of NOTHING) {
    const { value, meta } = (await primary.run(
      name,
      input as never,
      asked,
    )) as WriteResult<boolean>;
    t.same([value, meta.ack], [false, 'all'], name);
  }
});

t.test('acknowledgement: who takes no writes tells nobody that there is nothing', async (t) => {
  let closed: AclError | undefined;
  let primary = 'dc1';
  const harness = await createHarness(
    {},
    {
      datacenters: () => ['dc1', 'dc2'],
      primary: () => ({ datacenter: primary, epoch: 1 }),
      closedBecause: () => closed,
    },
  );
  const token = ['token.delete', { accessorId: ABSENT }] as const;
  const all = [token, ...NOTHING];
  const asked = { requestId: 'one' };
  closed = new AclError('unavailable', 'Nothing was written: dc2 is said to have begun epoch 2');
  for (const [name, input] of all) {
    const told = await refusalOf(harness.run(name, input as never, asked));
    t.equal(told, `unavailable: ${closed.message}`, name);
  }
  closed = undefined;
  for (const [name, input] of all) {
    const { value } = (await harness.run(name, input as never, asked)) as WriteResult<boolean>;
    t.equal(value, false, `${name}: the refusal is not remembered`);
  }
  closed = new AclError('not-primary', 'Nothing was written: the primary is dc2');
  primary = 'dc2';
  const late = { name: token[0], input: { accessorId: ABSENT }, call: CALL };
  const found = (await harness.door.runForOther(late)) as WriteResult<boolean>;
  t.equal(found.value, false, 'a secondary tells of its own local tokens');
});

/** Deletions of what nobody has made. */
const NOTHING: readonly (readonly [OperationName, object])[] = [
  ['policy.delete', { id: ABSENT }],
  ['role.delete', { id: ABSENT }],
  ['binding-rule.delete', { id: ABSENT }],
  ['auth-method.delete', { name: 'absent' }],
  ['namespace.delete', { name: 'absent' }],
  ['datacenter.remove', { name: 'absent', isForced: false }],
  ['datacenter.allow', { name: 'absent', isForced: false }],
];

t.test('acknowledgement: others that are late do not keep a local token alive', async (t) => {
  const names = ['dc1', 'dc2', 'dc3'];
  const home = await createHarness(
    { datacenter: 'dc3' },
    { datacenters: () => names, primary: () => ({ datacenter: 'dc1', epoch: 3 }) },
  );
  const isAway = { dc3: false };
  const primary = await createHarness(
    {},
    {
      datacenters: () => names,
      acknowledged: () => Promise.resolve('primary'),
      run: (_datacenter, errand) => {
        if (isAway.dc3) throw new DatacenterAway('dc3', 'the line is cut');
        return home.door.runForDatacenter(errand as never, 'dc1');
      },
    },
  );
  const there = { datacenter: 'dc3', ack: 'all' } as const;
  const gone = (accessorId: AccessorId) =>
    settled({ secondary: primary }, primary.run('token.delete', { accessorId }, there));
  const { accessorId } = await newToken(home, { local: true });
  t.equal((await gone(accessorId)).value, true);
  t.equal(home.machine.token(accessorId), undefined);
  const late = /^wait-timeout: There was nothing to delete /;
  t.match(await refusalOf(gone(accessorId)), late, 'what it was is not known any more');
  t.match(await refusalOf(gone(ABSENT)), late);
  isAway.dc3 = true;
  t.match(await refusalOf(gone(ABSENT)), late);
  const shared = await newToken(primary);
  t.match(await refusalOf(gone(shared.accessorId)), /^wait-timeout: The write stands /);
});

t.test('list pages: one of long objects ends early, and says where to go on', async (t) => {
  const harness = await createHarness();
  const rules = `# ${'x'.repeat(300_000)}`;
  for (let place = 0; place < 12; place += 1) await newPolicy(harness, `p${place + 10}`, rules);
  const asked: number[] = [];
  const list = await listOfPages<PolicyView>({}, async (page) => {
    const got = await pageOf(await harness.run('policy.list', { page }));
    asked.push(got.items.length);
    return got;
  });
  const names = (await allOf(list)).map(({ policy }) => policy.name);
  t.same(names.filter((name) => name.startsWith('p')).length, 12, 'all of them');
  t.equal(new Set(names).size, names.length, 'each once');
  t.ok(asked.length > 2 && Math.max(...asked) < 8, `in pages of ${asked.join(', ')}`);
});

t.test('list pages: one that is too large is asked for again with fewer objects', async (t) => {
  const limits: (number | undefined)[] = [];
  const meta = (await (await createHarness()).run('policy.list', PAGE)).meta;
  const list = await listOfPages<number>({}, async ({ after, limit = 0 }) => {
    limits.push(limit);
    if (limit > 20) throw new AclError('body-too-large', 'too large');
    const start = Number(after ?? 0);
    const items = Array.from({ length: Math.min(limit, 30 - start) }, (_, at) => start + at);
    const end = start + items.length;
    const page: ListPage<number> = { items, next: end < 30 ? String(end) : undefined, meta };
    return page;
  });
  t.same(
    await allOf(list),
    Array.from({ length: 30 }, (_, at) => at),
  );
  t.same(limits, [200, 50, 13, 13, 13]);
  t.equal(list.next(), undefined);
});
