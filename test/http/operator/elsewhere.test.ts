// Endpoints for operators where somebody else must answer: a leader, another datacenter, or nobody.

import t from 'tap';
import { AclError } from '../../../src/acl/error.ts';
import { type SecretId, secretIdOf } from '../../../src/acl/ids.ts';
import { AUTOPILOT_DEFAULTS } from '../../../src/api/bodies/autopilot-settings.ts';
import { LeaderAway } from '../../../src/service/remote.ts';
import type { Change } from '../../../src/state/commands/commands.ts';
import { CALL, newPolicy, newToken, refusalOf } from '../../service/harness.ts';
import {
  IDS,
  type OperatorServer,
  type OperatorServerOptions,
  operatorServer,
  tell,
  withRules,
} from '../operator-support.ts';
import { ASKS, CONFIGURATION, PEER } from './cases.ts';

t.test('a follower: asks the leader everything but what is stale and known to it', async (t) => {
  const server = await operatorServer();
  server.contact = { isLeader: false, knownLeader: true, lastContactMs: 5 };
  server.leaderSays = () => server.group.autopilotState();
  const secret = await withRules(server, 'operator = "read"');
  await tell(server, 'service', { ask: 'GET /operator/autopilot/health?stale', secret });
  t.same(server.forwarded, [{ name: 'autopilot-state', input: {}, secret }]);
  server.readBarrier = () => Promise.reject(new LeaderAway());
  for (const ask of [
    'GET /operator/raft/configuration?stale',
    `GET ${CONFIGURATION}?max_stale=1s`,
    'GET /snapshot?stale',
  ]) {
    t.equal((await tell(server, 'service', { ask })).status, 200, ask);
  }
  const denied = await tell(server, 'service', { ask: `GET ${CONFIGURATION}?stale`, secret: '' });
  t.equal(denied.status, 403, 'stale or not, rights are asked');
  t.equal(server.forwarded.length, 1);
});

t.test('a follower: a restore ends when it has what was restored, or soon after', async (t) => {
  const server = await operatorServer();
  const { harness } = server;
  server.contact = { isLeader: false, knownLeader: true, lastContactMs: 5 };
  let finishedCount = 0;
  const intakeTo = (index: number) => () => ({
    add: async () => undefined,
    finish: async () => {
      finishedCount += 1;
      return { index };
    },
    abandon: async () => undefined,
  });
  /** The leader is done, and this server waits for its own state. */
  const waiting = async (count: number) => {
    while (finishedCount < count || harness.clock.pendingCount === 0) {
      await new Promise(setImmediate);
    }
  };
  const index = harness.machine.index() + 1;
  server.leaderSays = intakeTo(index);
  const ask = { ask: 'PUT /snapshot', body: 'x' };
  // The clock stands: it is waited for the state, or for ever.
  const inTime = tell(server, 'service', ask);
  await waiting(1);
  await harness.run('token.create', { draft: {} });
  t.equal((await inTime).text, `{"Index":${index}}`);

  server.leaderSays = intakeTo(index + 10);
  const late = tell(server, 'service', ask);
  await waiting(2);
  harness.clock.advance(1_000);
  t.equal((await late).text, `{"Index":${index + 10}}`);
});

t.test('a follower: carries nothing to a leader that it does not allow itself', async (t) => {
  const server = await operatorServer();
  server.contact = { isLeader: false, knownLeader: true, lastContactMs: 5 };
  // As one whose ACLs are off, or whose default policy allows.
  server.leaderSays = () => server.group.autopilotState();
  const weak = await withRules(server, 'key "a" { policy = "read" }');
  for (const [ask, right, body] of ASKS) {
    for (const secret of ['', weak] as const) {
      const { status, text } = await tell(server, 'service', { ask, secret, body });
      t.equal(status, 403, ask);
      t.match(text, right, ask);
    }
  }
  t.same(server.forwarded, []);
});

t.test(
  'a follower: a right that goes while an archive comes is asked for again at its end',
  async (t) => {
    const server = await operatorServer();
    const { harness } = server;
    server.contact = { isLeader: false, knownLeader: true, lastContactMs: 5 };
    const secret = await withRules(server, 'acl = "write"');
    const { accessorId } = harness.machine.tokenBySecret(secret as SecretId)!;
    const events: string[] = [];
    server.leaderSays = () => ({
      add: async () => {
        events.push('add');
        await harness.run('token.delete', { accessorId });
      },
      finish: async () => {
        events.push('finish');
        return { index: 1 };
      },
      abandon: async () => void events.push('abandon'),
    });
    const { status } = await tell(server, 'service', { ask: 'PUT /snapshot', body: 'x', secret });
    t.equal(status, 403);
    t.same(events, ['add', 'abandon']);
  },
);

t.test('a follower: what the leader refuses is refused in the same words', async (t) => {
  const server = await operatorServer();
  server.contact = { isLeader: false, knownLeader: true, lastContactMs: 5 };
  server.leaderSays = () => {
    throw new AclError('update-target-missing', 'id "x" was not found in the Raft configuration');
  };
  const told = await tell(server, 'consul', { ask: `${PEER}?id=x` });
  t.same([told.status, told.text], [500, 'id "x" was not found in the Raft configuration']);
  t.same(server.forwarded, [
    { name: 'raft-remove-peer', input: { server: { id: 'x' } }, secret: 'root-secret' },
  ]);
});

t.test(
  'without a leader: it is tried again for a while, then 503, and nothing was done',
  async (t) => {
    const server = await operatorServer();
    server.contact = { isLeader: false, knownLeader: false, lastContactMs: 5 };
    for (const [ask, , body] of ASKS.filter(([each]) => each !== 'GET /snapshot')) {
      const before = server.forwarded.length;
      const { status, text, headers } = await tell(server, 'service', { ask, body });
      t.same([status, text, headers['retry-after']], [503, 'No cluster leader', '1'], ask);
      t.ok(server.forwarded.length - before > 10, 'it was tried');
    }
    let tries = 0;
    server.leaderSays = () => {
      tries += 1;
      if (tries < 3) throw new LeaderAway();
      return server.group.servers();
    };
    t.equal(
      (await tell(server, 'service', { ask: 'GET /operator/raft/configuration' })).status,
      200,
    );
  },
);

t.test('a look whose answer is lost is asked again, and a change is not', async (t) => {
  const server = await operatorServer();
  server.contact = { isLeader: false, knownLeader: true, lastContactMs: 5 };
  for (const [ask, isRead] of [
    ['GET /operator/raft/configuration', true],
    [`${PEER}?id=x`, false],
  ] as const) {
    let tries = 0;
    server.leaderSays = () => {
      tries += 1;
      if (tries < 3) throw new AclError('outcome-unknown', 'another server leads by now');
      return isRead ? server.group.servers() : 'done';
    };
    const { status } = await tell(server, 'service', { ask });
    t.same([status, tries], isRead ? [200, 3] : [504, 1], ask);
  }
});

t.test('a server that is not open: says why, also where a request is stale', async (t) => {
  const server = await operatorServer();
  server.closedReason = 'this server was removed from its cluster';
  for (const [ask, , body] of [...ASKS, ['GET /operator/raft/configuration?stale', '']]) {
    const { status, text } = await tell(server, 'service', { ask: ask ?? '', body });
    t.same([status, text], [503, 'this server was removed from its cluster'], ask);
  }
  t.same([server.forwarded, server.group.acts, server.archives.events], [[], [], []]);
});

t.test('a change: needs the barrier even where the request is stale', async (t) => {
  const server = await operatorServer();
  server.readBarrier = () => Promise.reject(new AclError('unavailable', 'no quorum'));
  const { status } = await tell(server, 'service', { ask: `${PEER}?id=${IDS.two}&stale` });
  t.equal(status, 503);
  t.same(server.group.acts, []);
  await t.rejects(server.operator.beginRestore({ ...CALL, consistency: 'stale' }), {
    code: 'unavailable',
  });
  t.same(server.archives.events, [], 'a restore, too');
});

t.test('a server that does not lead does nothing that others ask of the leader', async (t) => {
  const server = await operatorServer();
  server.contact = { isLeader: false, knownLeader: true, lastContactMs: 0 };
  const { operator } = server;
  const asked = [
    operator.runForOther('raft-transfer-leader', { id: undefined }, CALL),
    operator.beginRestoreForOther(CALL),
  ];
  for (const each of await Promise.allSettled<unknown>(asked))
    t.ok(each.status === 'rejected' && each.reason instanceof LeaderAway);
  t.same([server.group.acts, server.archives.events], [[], []]);
});

t.test('a follower: asks for a leader as long as is set, and no longer', async (t) => {
  for (const leaderWaitMs of [5_000, 250]) {
    const server = await operatorServer({ service: { leaderWaitMs } });
    server.contact = { isLeader: false, knownLeader: false, lastContactMs: 5 };
    const { operator, harness } = server;
    const beganMs = harness.clock.monotonicMs();
    const told = await refusalOf(operator.run('raft-transfer-leader', { id: undefined }, CALL));
    t.match(told, /^unavailable: No cluster leader/);
    t.equal(harness.clock.monotonicMs() - beganMs, leaderWaitMs);
    t.equal(server.forwarded.length, 1 + Math.ceil(leaderWaitMs / 100), 'ten times a second');
    const opening = harness.clock.monotonicMs();
    server.closedReason = 'it waits for others';
    await refusalOf(operator.run('raft-transfer-leader', { id: undefined }, CALL));
    t.equal(harness.clock.monotonicMs() - opening, leaderWaitMs, 'so it does until it is open');
  }
});

t.test('another datacenter has nothing done to the group of this one', async (t) => {
  const { operator, group } = await operatorServer();
  for (const name of ['raft-transfer-leader', 'autopilot-configuration'] as const)
    await t.rejects(async () => operator.runForDatacenter(name, { id: undefined }, CALL), {
      code: 'unavailable',
    });
  t.same(group.acts, []);
  const named = { ...CALL, datacenter: 'dc2' };
  t.match(await operator.runForDatacenter('primary', {}, named), { datacenter: 'dc1' });
  t.match(await operator.run('primary', {}, { ...CALL, datacenter: '' }), { datacenter: 'dc1' });
});

const PRIMARY = 'PUT /operator/primary';

/** A server of dc1, which is the primary of dc2. */
async function primaryServer(options?: OperatorServerOptions): Promise<OperatorServer> {
  const server = await operatorServer(options);
  const { propose } = server.harness.deps;
  const done = async (change: Change): Promise<void> => {
    await propose({ change, timeMs: 0, cas: undefined, request: undefined });
  };
  const begin = { datacenter: 'dc1', primary: 'dc1', isWitness: false };
  await done({ type: 'global-log.begin', ...begin });
  const datacenters = ['dc1', 'dc2'].map((name) => ({ name, isVoter: true, isWitness: false }));
  await done({ type: 'datacenters.set', datacenters, majoritySeq: 0 });
  return server;
}

t.test('primary: a wish is carried out here, or sent once to where it can be', async (t) => {
  const server = await primaryServer();
  server.leaderSays = () => ({
    ...server.primary.moved(),
    datacenter: 'dc2',
    head: { epoch: 1, seq: 9 },
  });
  const move = (body: object) =>
    tell(server, 'service', { ask: PRIMARY, body: JSON.stringify(body) });
  const handedOver = await move({ Datacenter: 'dc2' });
  t.equal(handedOver.status, 200, handedOver.text);
  t.same(server.primary.moves, [{ handOver: 'dc2' }]);
  t.same(JSON.parse(handedOver.text), {
    Datacenter: 'dc2',
    Epoch: 2,
    Promises: ['dc3'],
    Position: '1.7',
    HeadPosition: '1.7',
  });
  const elsewhere = await move({ Datacenter: 'dc2', Mode: 'election' });
  t.match(JSON.parse(elsewhere.text), { Position: '1.7', HeadPosition: '1.9' });
  const wish = { datacenter: 'dc2', mode: 'election', from: 'dc1' };
  t.match(server.forwarded, [{ datacenter: 'dc2', name: 'primary-move', input: wish }]);
  const own = await move({ Datacenter: 'dc1' });
  t.same([own.status, own.text], [400, 'dc1 is the primary already']);
  // Only those who promise know whether it has been outrun.
  t.equal((await move({ Datacenter: 'dc1', Mode: 'election' })).status, 200);
  t.same(server.primary.moves, [{ handOver: 'dc2' }, 'elect']);
  const shown = await tell(server, 'service', { ask: 'GET /operator/primary' });
  t.same(JSON.parse(shown.text), {
    ...{ Datacenter: 'dc1', Epoch: 1, PromisedEpoch: 1, Position: '1.2', HeadPosition: '1.2' },
    ...{ Voters: ['dc1', 'dc2'], Closed: '', DivergentEntries: 0, GoneEntries: 0 },
  });
});

t.test('primary: one that takes no writes, because it is outrun, can be forced', async (t) => {
  const server = await primaryServer();
  const body = JSON.stringify({ Datacenter: 'dc1', Mode: 'forced', Epoch: 2, AcceptLoss: true });
  const force = () => tell(server, 'service', { ask: PRIMARY, body });
  const healthy = await force();
  t.same([healthy.status, healthy.text], [400, 'dc1 is the primary already']);
  server.primary.closed = new AclError('unavailable', 'dc2 is said to have begun epoch 2');
  const { status, text } = await force();
  t.equal(status, 200, text);
  t.same(server.primary.moves, [{ force: 2 }]);
});

t.test('primary: whoever loses the right while it is moved may not move it', async (t) => {
  const { operator, harness, primary } = await primaryServer();
  const given = { datacenter: 'dc1', epoch: undefined, acceptsLoss: false, from: undefined };
  for (const [name, wish] of [
    ['hand-over', { ...given, datacenter: 'dc2' }],
    ['election', given],
    ['forced', { ...given, epoch: 2, acceptsLoss: true }],
  ] as const) {
    const policies = [{ id: await newPolicy(harness, name, 'operator = "write"') }];
    const { accessorId, secretId: secret } = await newToken(harness, { policies });
    if (name === 'forced') primary.closed = new AclError('unavailable', 'dc2 has begun epoch 2');
    await operator.run('primary-move', { ...wish, mode: name }, { ...CALL, secret });
    primary.closed = undefined;
    t.doesNotThrow(() => primary.requireAllowed());
    const { proposals } = harness;
    const taken = harness.run('token.update', { accessorId, draft: {} });
    while (harness.proposals === proposals) await Promise.resolve();
    t.throws(() => primary.requireAllowed(), { code: 'unavailable' });
    await taken;
    t.throws(() => primary.requireAllowed(), { code: 'permission-denied' }, name);
  }
});

t.test('primary: one that has promised to another says so, and what to do', async (t) => {
  const server = await primaryServer();
  const { propose, view } = server.harness.deps;
  const at = view.replication()!.cursor;
  const change = { type: 'epoch.promise', epoch: 2, candidate: 'dc2', at } as const;
  await propose({ change, timeMs: 0, cas: undefined, request: undefined });
  const { text } = await tell(server, 'service', { ask: 'GET /operator/primary' });
  const { Closed, ...shown } = JSON.parse(text) as { Closed: string };
  t.match(shown, { Datacenter: 'dc1', Epoch: 1, PromisedEpoch: 2 });
  t.match(Closed, /^dc1 has promised epoch 2 to dc2, and has heard of no entry of it: /);
  t.match(Closed, /`conclave operator promote dc2` tries again/);
  t.match(Closed, /`conclave operator promote dc1 --election` takes it back$/);
});

t.test('primary: the secret of a local token that came a moment ago goes nowhere', async (t) => {
  const server = await primaryServer({ federation: { datacenters: () => ['dc1', 'dc2'] } });
  const { harness } = server;
  const secret = secretIdOf('8f1c2b34-5d6e-4f70-8a9b-0c1d2e3f4a5b');
  server.readBarrier = async () => {
    await harness.run('token.create', { draft: { secretId: secret, local: true } });
  };
  const there = { ...CALL, secret, datacenter: 'dc2', consistency: 'stale' } as const;
  t.match(
    await refusalOf(server.operator.run('primary', {}, there)),
    /^permission-denied: .*the token is local to datacenter dc1/,
  );
  t.same(server.forwarded, []);
});

t.test('primary: a local token moves nothing, and its secret goes nowhere', async (t) => {
  const server = await primaryServer();
  const secret = await withRules(server, 'operator = "write"', { local: true });
  for (const body of ['{"Datacenter":"dc2"}', '{"Datacenter":"dc2","Mode":"election"}']) {
    const told = await tell(server, 'service', { ask: PRIMARY, secret, body });
    t.equal(told.status, 403);
    t.match(told.text, /the token is local to datacenter dc1, .* use a global token$/);
  }
  t.same([server.primary.moves, server.forwarded], [[], []]);
});

t.test(
  'operator: where nothing comes to a quorum of disks, the answer comes in time',
  async (t) => {
    const never = (): Promise<never> => new Promise(() => undefined);
    const { group, archives, primary, operator, harness, log } = await primaryServer();
    Object.assign(group, { remove: never, transferLeadership: never, setAutopilot: never });
    const changes = [
      operator.run('raft-remove-peer', { server: { id: IDS.two } }, CALL),
      operator.run('raft-transfer-leader', { id: undefined }, CALL),
      operator.run(
        'autopilot-set-configuration',
        { settings: AUTOPILOT_DEFAULTS, ifIndex: undefined },
        CALL,
      ),
    ];
    archives.finish = never;
    Object.assign(primary, { elect: never });
    const restore = (await operator.beginRestore(CALL)).finish();
    const given = { datacenter: undefined, epoch: undefined, acceptsLoss: false, from: undefined };
    const move = operator.run('primary-move', { ...given, mode: 'election' }, CALL);
    const told = Promise.all(changes.map(refusalOf));
    await new Promise<void>((resolve) => setImmediate(resolve));
    harness.clock.advance(30_000);
    const unknown = 'took effect is not known: the leader has waited for it for';
    t.same(new Set(await told), new Set([`outcome-unknown: whether the change ${unknown} 30 s`]));
    t.equal(log.filter(({ fields }) => 'failed' in fields).length, 3, 'each is in the log');
    harness.clock.advance(570_000);
    t.equal(await refusalOf(restore), `outcome-unknown: whether the restore ${unknown} 600 s`);
    t.equal(await refusalOf(move), `outcome-unknown: whether the change ${unknown} 600 s`);
  },
);
