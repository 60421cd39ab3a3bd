// Who is let in, who is a stranger, and what the directory of a group says of its servers.

import t from 'tap';
import { nodeNumberOf } from '../../../cluster/member/founding/node-number.ts';
import type { MemberView } from '../../../cluster/member/group-member.ts';
import {
  admissionOf,
  isSameRecord,
  selfRecordChange,
} from '../../../cluster/member/leading/admission.ts';
import { Changes } from '../../../cluster/member/leading/changes.ts';
import { Leading } from '../../../cluster/member/leading/leading.ts';
import {
  DEFAULT_MEMBER_LIMITS,
  DEFAULT_MEMBER_TIMING,
} from '../../../cluster/member/member-timing.ts';
import { Directory } from '../../../cluster/member/seat/directory.ts';
import type { Logger } from '../../../cluster/platform/logger.ts';
import { NO_MEMBERS } from '../../../cluster/raft/membership/membership.ts';
import type { MembershipChange } from '../../../cluster/raft/membership/membership-change.ts';
import { EMPTY_GROUP, type MemberRecord } from '../../../cluster/replica/group-record.ts';
import { GroupRefusal } from '../../../cluster/replica/group-refusal.ts';
import type { GroupReplica } from '../../../cluster/replica/group-replica.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { MemberWorld } from '../../support/simulated/member-world.ts';
import { clean, followersOf, leaderOf } from './cases.ts';

t.test(
  'strangers: wrong key, wrong datacenter, wrong cluster are refused, and nothing else happens',
  async (test) => {
    const key = (fill: number): Uint8Array => new Uint8Array(32).fill(fill);
    const world = new MemberWorld();
    const nodes = await world.group(3, { clusterKey: key(1) });
    const leader = leaderOf(nodes);
    const { term } = leader.up.status();
    const join = nodes.map(({ name }) => name);
    const strangers = [
      world.node('keyless', { join }),
      world.node('wrong-key', { join, clusterKey: key(2) }),
      world.node('far', { join, clusterKey: key(1), datacenter: 'dc2' }),
    ];
    await world.start(...strangers);
    await world.run(10_000);
    const reasons = [/cluster_key/, /cluster_key/, /datacenter/];
    strangers.forEach((stranger, place) => {
      test.equal(stranger.clusterId, undefined, stranger.name);
      test.ok(stranger.hasLogged(reasons[place]!), `${stranger.name} knows why`);
      test.match(stranger.says, reasons[place]!, 'and says so');
      test.ok(
        nodes.some((node) => node.hasLogged(reasons[place]!)),
        'and so do the others',
      );
    });
    const other = world.node('other', { clusterKey: key(1) });
    await world.start(other);
    await world.settled([other]);
    await world.stop(other);
    other.settings = { clusterKey: key(1), join };
    await world.start(other);
    await world.run(10_000);
    test.equal(other.group, 'other');
    test.equal(leader.up.status().term, term);
    test.equal(leader.group, 'a b c');
    await world.writes(leader, 3);
    await world.checkEven(nodes);
    clean(test, world);
  },
);

function recordOf(number: number, changed: Partial<MemberRecord> = {}): MemberRecord {
  const id = `0000000${number}-0000-4000-8000-000000000000`;
  const address = { host: `n${number}`, port: 8300 };
  const name = `n${number}`;
  return { node: nodeNumberOf(id), id, name, address, httpAddress: '', version: '1', ...changed };
}

t.test('admission: what a leader answers to whom', async (test) => {
  const [one, two, three] = [1, 2, 3].map((number) => recordOf(number)) as [
    MemberRecord,
    MemberRecord,
    MemberRecord,
  ];
  const group = { ...EMPTY_GROUP, members: [one, two] };
  const alive = { isAlive: true, isReliedOn: true };
  const dead = { isAlive: false, isReliedOn: true };
  const fresh = { isAlive: true, isReliedOn: false };
  const answer = (record: MemberRecord, isOurs: boolean, known = alive): string => {
    const admission = admissionOf({ record, isOurs }, group, () => known);
    if (admission.kind !== 'change') return admission.kind;
    return admission.change.changes.map(({ kind }) => kind).join(' ');
  };
  test.equal(answer(one, true), 'known');
  test.equal(answer(one, false, fresh), 'known', 'it was let in and does not know it yet');
  test.equal(answer(one, false), 'refused', 'it has lost what it promised');
  test.equal(answer({ ...one, version: '2' }, true), 'update');
  test.equal(answer({ ...one, address: { host: 'x', port: 1 } }, true), 'update');
  test.equal(answer({ ...one, name: 'n2' }, true, dead), 'refused', 'a name is taken');
  test.equal(answer(three, false), 'add-learner');
  test.equal(answer(three, true), 'removed');
  test.equal(answer({ ...three, name: 'n2' }, false), 'refused');
  test.equal(answer({ ...three, name: 'n2' }, false, dead), 'remove add-learner');
  test.equal(answer({ ...three, name: 'n2' }, true, dead), 'removed');
  const alike = { ...one, id: '00000001-0000-4000-8000-000000000001' };
  test.equal(answer(alike, true, fresh), 'refused', 'another one of the same number');
  test.equal(selfRecordChange(one, group), undefined);
  test.equal(selfRecordChange(three, group)?.changes[0]?.kind, 'add-voter');
  test.equal(selfRecordChange({ ...one, version: '2' }, group)?.changes[0]?.kind, 'update');
  test.notOk(isSameRecord(one, { ...one, httpAddress: 'x' }));
});

t.test('admission: a leader answers of the group as it is when all is applied', async (test) => {
  const [self, joined] = [recordOf(1), recordOf(2)];
  let group = { ...EMPTY_GROUP, members: [self] };
  const leading = new Leading({
    replica: {
      status: () => ({ standing: 'leader', term: 3, lastIndex: 9 }),
      groupStatus: () => ({ hasCommittedInTerm: true }),
      groupRecord: () => group,
      // What the leader before this one has let in is committed, and not applied here yet.
      readBarrier: async () => {
        group = { ...group, members: [self, joined] };
      },
    } as unknown as GroupReplica<unknown>,
    self: () => self,
    views: () => [],
    clock: new FakeClock(),
    logger: new Proxy({} as Logger, { get: () => () => undefined }),
    timing: DEFAULT_MEMBER_TIMING,
    limits: DEFAULT_MEMBER_LIMITS,
    heartbeatMs: 100,
  });
  await leading.admit({ record: joined, isOurs: true });
  await test.rejects(leading.admit({ record: recordOf(3), isOurs: true }), { code: 'removed' });
});

t.test(
  'admission: whose vote goes only now is relied on, and whoever has acknowledged',
  async (test) => {
    const [self, leaving, learner, fresh] = [1, 2, 3, 4].map((number) => recordOf(number)) as [
      ...[MemberRecord, MemberRecord, MemberRecord, MemberRecord],
    ];
    const membership = {
      ...{ ...NO_MEMBERS, voters: [self.node], votersOutgoing: [leaving.node] },
      learners: [learner.node, fresh.node],
    };
    const proposed: unknown[] = [];
    let version = self.version;
    const leading = new Leading({
      replica: {
        status: () => ({ standing: 'leader', term: 3, lastIndex: 9 }),
        groupStatus: () => ({ hasCommittedInTerm: true }),
        groupRecord: () => ({
          ...{ ...EMPTY_GROUP, membership },
          members: [self, leaving, learner, fresh],
        }),
        readBarrier: async () => undefined,
        proposeMembership: async ({ changes }: MembershipChange) => void proposed.push(changes),
      } as unknown as GroupReplica<unknown>,
      self: () => ({ ...self, version }),
      views: () => [{ ...learner, isVoter: false, lastIndex: 5 } as MemberView],
      clock: new FakeClock(),
      logger: new Proxy({} as Logger, { get: () => () => undefined }),
      timing: DEFAULT_MEMBER_TIMING,
      limits: DEFAULT_MEMBER_LIMITS,
      heartbeatMs: 100,
    });
    const lost = { code: 'refused', message: /its log is gone/ };
    await test.rejects(leading.admit({ record: leaving, isOurs: false }), lost);
    await test.rejects(leading.admit({ record: learner, isOurs: false }), lost);
    await leading.admit({ record: fresh, isOurs: false });
    await leading.unseat([learner.node, fresh.node]);
    test.same(proposed, [], 'who has no vote keeps none');
    await leading.unseat([self.node, learner.node]);
    test.same(proposed, [[{ kind: 'add-learner', node: self.node }]]);
    version = 'another';
    await test.rejects(leading.admit({ record: fresh, isOurs: true }), {
      code: 'not-leader',
      message: /not ready yet/,
    });
  },
);

t.test('changes: so many wait for another, and for so long', async (test) => {
  const clock = new FakeClock();
  const changes = new Changes({
    replica: {
      groupRecord: () => EMPTY_GROUP,
      proposeMembership: () =>
        Promise.reject(new GroupRefusal('change-in-flight', 'another one is under way')),
    },
    clock,
    timing: DEFAULT_MEMBER_TIMING,
    limits: { ...DEFAULT_MEMBER_LIMITS, changesMax: 2 },
  });
  const change = { transition: 'auto', changes: [], context: new Uint8Array(0) } as const;
  const ended: string[] = [];
  const ask = (): void =>
    void changes.propose(() => change).catch(({ message }: Error) => ended.push(message));
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms);
    await new Promise((resolve) => setImmediate(resolve));
  };
  for (let each = 0; each < 3; each += 1) ask();
  await pass(0);
  test.same(ended, ['2 changes of the group wait already']);
  await pass(DEFAULT_MEMBER_TIMING.changeWaitMs - 1);
  test.equal(ended.length, 1);
  await pass(1_000);
  test.same(ended.slice(1), Array(2).fill('another one is under way'));
});

t.test(
  'changes: one that has waited for another is asked again whether it may be',
  async (test) => {
    const [self, other, third] = [recordOf(1), recordOf(2), recordOf(3)];
    const clock = new FakeClock();
    let proposed = 0;
    const views = [self, other, third].map((each) => ({
      ...{ ...each, isSelf: each === self, isLeader: each === self, isVoter: true },
      ...{ reads: 1, isAlive: true, lastContactMs: 0, lastIndex: 9 },
    }));
    const followers = [other, third].map(({ node }) => ({ node, lastHeardMs: 0, isLost: false }));
    const leading = new Leading({
      replica: {
        status: () => ({ standing: 'leader', term: 3, lastIndex: 9 }),
        groupStatus: () => ({ hasCommittedInTerm: true, followers }),
        groupRecord: () => ({ ...EMPTY_GROUP, members: [self, other, third] }),
        proposeMembership: async () => {
          proposed += 1;
          throw new GroupRefusal('change-in-flight', 'another one is under way');
        },
      } as unknown as GroupReplica<unknown>,
      self: () => self,
      views: () => views,
      clock,
      logger: new Proxy({} as Logger, { get: () => () => undefined }),
      timing: DEFAULT_MEMBER_TIMING,
      limits: DEFAULT_MEMBER_LIMITS,
      heartbeatMs: 100,
    });
    let isAllowed = true;
    const requireStill = (): void => {
      if (!isAllowed) throw new Error('it was taken away');
    };
    for (const ask of [
      () => leading.remove(other.node, requireStill),
      () => leading.setAutopilot(EMPTY_GROUP.autopilot, undefined, requireStill),
    ]) {
      [proposed, isAllowed] = [0, true];
      const asked = test.rejects(Promise.resolve<unknown>(ask()), { message: 'it was taken away' });
      while (proposed === 0 || clock.pendingCount === 0) await Promise.resolve();
      isAllowed = false;
      clock.advance(1_000);
      await asked;
      test.equal(proposed, 1);
    }
  },
);

t.test('directory: what is on record, what was told, and who moved', async (test) => {
  const [one, two, three] = [1, 2, 3].map((number) => recordOf(number)) as [
    MemberRecord,
    MemberRecord,
    MemberRecord,
  ];
  const directory = new Directory(one.node);
  const peers = (): readonly string[] =>
    [...directory.peers().values()].map(({ host, port }) => `${host}:${port}`);
  directory.tell([one, three]);
  test.same(peers(), ['n3:8300'], 'never itself');
  const voters = [one.node, two.node];
  const group = {
    ...EMPTY_GROUP,
    membership: { ...EMPTY_GROUP.membership, voters },
    members: [one, two],
  };
  directory.follow(group);
  test.same(peers(), ['n2:8300', 'n3:8300'], 'the record may lag behind');
  const before = directory.unsettled();
  directory.tell([{ ...three, address: { host: 'z', port: 3 } }]);
  directory.settle(before);
  test.same(peers(), ['n2:8300', 'z:3'], 'what was said since is newer than the proof');
  directory.heard({ ...three, address: { host: 'z', port: 4 } });
  test.same(peers(), ['n2:8300', 'z:4'], 'who is no more than told of can move, too');
  directory.settle(directory.unsettled());
  test.same(peers(), ['n2:8300'], 'who is not on a record that is proven has left');
  const moved = { ...two, address: { host: 'x', port: 1 } };
  directory.heard(moved);
  test.same(peers(), ['x:1']);
  directory.heard(three);
  test.same(peers(), ['x:1'], 'a stranger is not heard');
  directory.follow({ ...group, members: [one, { ...two, address: { host: 'y', port: 2 } }] });
  test.same(peers(), ['y:2'], 'what is on record is newer');
  directory.follow({ ...group, members: [one, { ...two, address: { host: '', port: 0 } }] });
  test.same(peers(), [], 'a member without a port');
});

t.test('directory: who leaves the record counts until that is proven to be so', async (test) => {
  const [one, two] = [recordOf(1), recordOf(2)];
  const directory = new Directory(one.node);
  const follow = (...members: readonly MemberRecord[]): void => {
    const voters = members.map(({ node }) => node);
    directory.follow({ ...EMPTY_GROUP, membership: { ...NO_MEMBERS, voters }, members });
  };
  const peers = (): readonly number[] => [...directory.peers().keys()];
  follow(one, two);
  test.same(directory.unsettled(), []);
  follow(one);
  test.same(peers(), [two.node]);
  test.equal(directory.memberOf(two.node), two);
  const proven = directory.unsettled();
  test.same(proven, [two]);
  follow(one, two);
  directory.settle(proven);
  test.same(peers(), [two.node], 'it is a member again');
  follow(one);
  directory.settle(directory.unsettled());
  test.same(peers(), []);
  follow();
  test.same(directory.unsettled(), [], 'never itself');
});

t.test('directory: of those who are named it keeps so many, the newest', async (test) => {
  const directory = new Directory(recordOf(1).node);
  const named = Array.from({ length: 300 }, (_, place) => ({ ...recordOf(2), node: 100 + place }));
  directory.tell(named);
  const kept = directory.unsettled();
  test.equal(kept.length, 256);
  test.equal(kept.at(-1), named.at(-1));
});

const STRAY = /error retry_join names servers of another cluster.*empty their data folders/;

t.test(
  'other clusters: a leader that stands apart from the servers of retry_join says so, once',
  async (test) => {
    const world = new MemberWorld();
    const nodes = await world.group(3);
    const d = world.node('d');
    await world.start(d);
    await world.settled([d]);
    await world.stop(d);
    const timing = { otherClustersMs: 10_000 };
    d.settings = { join: ['a', 'b', 'c'], timing };
    await world.start(d);
    await world.until('d says so', () => d.hasLogged(STRAY), 5_000);
    await world.run(60_000);
    test.equal(d.log.filter((line) => STRAY.test(line)).length, 1);
    test.equal(d.stands, 'leader', 'it may be the rightful one');
    const servers = ['a at a:8300', 'b at b:8300', 'c at c:8300'];
    const found = [{ clusterId: nodes[0]!.clusterId, servers }];
    test.same(d.up.otherClusters(), found);
    test.ok(d.hasLogged(new RegExp(`"other":"${nodes[0]!.clusterId}"`)));
    // Looking is no knocking: nothing was refused there.
    for (const node of nodes)
      test.notOk(node.hasLogged(/warn a connection was refused/), node.name);
    // Who does not answer is still another one; who has begun anew belongs to this one.
    world.crash(nodes[0]!);
    await world.run(20_000);
    test.same(d.up.otherClusters(), found);
    for (const node of nodes.slice(1)) world.crash(node);
    for (const name of ['a', 'b', 'c']) {
      await world.start(world.node(name, { join: ['d'] }));
      await world.until(`${name} is with d`, () => d.group.includes(name));
    }
    await world.until('nobody is apart', () => d.up.otherClusters().length === 0);
    test.equal(d.log.filter((line) => STRAY.test(line)).length, 1);
    clean(test, world);
  },
);

t.test(
  'other clusters: the rightful one, whose settings name the stray, says so too',
  async (test) => {
    const world = new MemberWorld();
    const stray = world.node('d');
    await world.start(stray);
    await world.settled([stray]);
    const nodes = ['a', 'b', 'c'].map((name) =>
      world.node(name, { bootstrapExpect: 3, join: ['a', 'b', 'c'] }),
    );
    await world.start(...nodes);
    await world.settled(nodes);
    for (const node of nodes) node.settings = { join: ['a', 'b', 'c', 'd'] };
    for (const node of nodes) world.crash(node);
    await world.start(...nodes);
    const leader = await world.settled(nodes);
    await world.until('the leader says so', () => leader.hasLogged(STRAY), 5_000);
    test.match(leader.up.otherClusters(), [
      { clusterId: stray.clusterId, servers: ['d at d:8300'] },
    ]);
    for (const node of followersOf(nodes)) test.same(node.up.otherClusters(), []);
    clean(test, world);
  },
);

t.test('other clusters: none of one datacenter, of another one, or without any', async (test) => {
  const world = new MemberWorld();
  const elsewhere = world.node('e', { datacenter: 'dc2' });
  await world.start(elsewhere);
  const joins = ['a', 'b', 'c', 'e', 'f', 'gone'];
  const settings = { join: joins, timing: { otherClustersMs: 1_000 } };
  const nodes = ['a', 'b', 'c'].map((name) =>
    world.node(name, { ...settings, bootstrapExpect: 3 }),
  );
  const waiting = world.node('f', { bootstrapExpect: 5, join: ['f', 'gone'] });
  await world.start(...nodes);
  const leader = await world.settled(nodes);
  await world.start(waiting);
  await world.run(10_000);
  test.same(leader.up.otherClusters(), []);
  for (const node of nodes) test.notOk(node.hasLogged(STRAY));
  test.equal(waiting.clusterId, undefined, 'looking tells nobody of a cluster');
  clean(test, world);
});
