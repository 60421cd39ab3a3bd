// A group that is there: leaving, losing the quorum, snapshots, wrong states, services, operators'
// wishes; on simulated clocks, network and disks.

import t, { type Test } from 'tap';
import {
  encodeFoundingOrder,
  encodeIntroduction,
  encodeText,
} from '../../cluster/member/member-frames.ts';
import {
  DEFAULT_MEMBER_LIMITS,
  DEFAULT_MEMBER_TIMING,
} from '../../cluster/member/member-timing.ts';
import { encodeBegin, encodeBegun, encodePiece } from '../../cluster/member/snapshot-frames.ts';
import { SnapshotInbox } from '../../cluster/member/snapshot-inbox.ts';
import { SnapshotOutbox } from '../../cluster/member/snapshot-outbox.ts';
import { digestVerdict } from '../../cluster/member/digest-verdict.ts';
import { nodeNumberOf } from '../../cluster/member/node-number.ts';
import { DurableLog } from '../../cluster/log/durable-log.ts';
import { LOG_ORIGIN, nextEntry } from '../../cluster/log/log-entry.ts';
import { NO_MEMBERS } from '../../cluster/raft/membership.ts';
import { DEFAULT_AUTOPILOT, type MemberRecord } from '../../cluster/replica/group-record.ts';
import { GroupRefusal } from '../../cluster/replica/group-refusal.ts';
import { type MachineSnapshot, SnapshotDamage } from '../../cluster/replica/replica.ts';
import { openTransport } from '../../cluster/transport/open-transport.ts';
import type { SnapshotMessage } from '../../cluster/raft/message.ts';
import { RpcError } from '../../cluster/transport/rpc-error.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { FakeRandom } from '../support/fake-random.ts';
import { type MemberNode, MemberWorld } from '../support/member-world.ts';
import { settled } from '../support/simulated-world.ts';

/** So short a log that whoever misses a few entries needs a snapshot. */
const SHORT_LOG = { keptCount: 5, heldCountMax: 10 };

function clean(test: Test, world: MemberWorld): void {
  test.same(world.violations, []);
}

function leaderOf(nodes: readonly MemberNode[]): MemberNode {
  const leader = nodes.find((node) => node.isLeader);
  if (leader === undefined) throw new Error('nobody leads');
  return leader;
}

function followersOf(nodes: readonly MemberNode[]): readonly MemberNode[] {
  return nodes.filter((node) => node.isUp && !node.isLeader);
}

t.test('leaving: a leader that closes hands over within a few round trips', async (test) => {
  for (const count of [3, 5]) {
    const world = new MemberWorld(count);
    const nodes = await world.group(count);
    const old = leaderOf(nodes);
    await world.writes(old, 3);
    const others = nodes.filter((node) => node !== old);
    const closing = old.up.close();
    const fromMs = world.nowMs;
    await world.until('another leads', () => others.some((node) => node.isLeader));
    test.ok(world.nowMs - fromMs <= 50, `${world.nowMs - fromMs} ms without a leader`);
    await world.write(leaderOf(others));
    await world.result(closing);
    old.member = undefined;
    old.life += 1;
    await world.checkEven(others);
    clean(test, world);
  }
});

t.test('leaving: the last ones that stop wait for nobody who is gone', async (test) => {
  const world = new MemberWorld();
  const nodes = await world.group(3);
  await world.writes(leaderOf(nodes), 3);
  for (const node of nodes) {
    const fromMs = world.nowMs;
    await world.result(node.up.transferLeadership(undefined).catch(() => undefined));
    await world.stop(node);
    const tookMs = world.nowMs - fromMs;
    test.ok(tookMs <= 100, `${node.name} took ${tookMs} ms`);
  }
  clean(test, world);
});

t.test('dying: a leader that is killed is replaced as soon as its links are gone', async (test) => {
  const world = new MemberWorld();
  const nodes = await world.group(3);
  const old = leaderOf(nodes);
  await world.writes(old, 3);
  world.crash(old);
  const others = nodes.filter((node) => node !== old);
  const fromMs = world.nowMs;
  await world.until('another leads', () => others.some((node) => node.isLeader));
  test.ok(world.nowMs - fromMs <= 500, `${world.nowMs - fromMs} ms without a leader`);
  await world.start(old);
  await world.settled(nodes);
  await world.checkEven(nodes);
  clean(test, world);
});

t.test('quorum: without one nothing is written, and it comes back', async (test) => {
  const world = new MemberWorld();
  const nodes = await world.group(3);
  const leader = leaderOf(nodes);
  const [one, two] = followersOf(nodes) as [MemberNode, MemberNode];
  world.crash(one);
  world.crash(two);
  const lost = world.refusal(leader.up.propose(Buffer.from('lost')), 30_000);
  test.match(await lost, /lost its leadership|not known|no leader|takes no writes/);
  await world.until('it knows', () => !leader.isLeader);
  const standing = leader.up.standing();
  test.equal(standing.kind, 'member');
  test.equal(standing.kind === 'member' && standing.leader, undefined);
  test.match(await world.refusal(leader.up.propose(Buffer.from('x'))), /takes no writes/);
  test.match(await world.refusal(leader.up.readBarrier()), /no leader/);
  test.throws(() => leader.up.autopilotState(), /does not lead/);
  await world.start(one);
  await world.settled([leader, one]);
  await world.write(leaderOf([leader, one]));
  clean(test, world);
});

t.test('snapshots: a server that joins a short log gets the whole state', async (test) => {
  const world = new MemberWorld();
  const nodes = await world.group(3, { groupLimits: SHORT_LOG });
  await world.writes(leaderOf(nodes), 100);
  const d = world.node('d', { join: ['a'], groupLimits: SHORT_LOG });
  await world.start(d);
  await world.settled([...nodes, d]);
  test.ok(d.hasLogged(/a snapshot is in place/));
  await world.writes(leaderOf(nodes), 3);
  await world.checkEven([...nodes, d]);
  await world.until('d votes', () => d.group === 'a b c d');
  clean(test, world);
});

t.test('snapshots: a follower that was away for long gets the whole state', async (test) => {
  const world = new MemberWorld();
  const nodes = await world.group(3, { groupLimits: SHORT_LOG });
  const [away] = followersOf(nodes) as [MemberNode];
  world.crash(away);
  await world.writes(leaderOf(nodes), 100);
  await world.start(away);
  await world.settled(nodes);
  await world.checkEven(nodes);
  test.ok(away.hasLogged(/a snapshot is in place/));
  test.equal(away.machine.adoptedCount, 1);
  clean(test, world);
});

t.test('snapshots: whoever dies under way, the next try gets through', async (test) => {
  for (const victim of ['sender', 'receiver'] as const) {
    for (let chunks = 1; chunks <= 6; chunks += 2) {
      const world = new MemberWorld(chunks);
      const nodes = await world.group(3, { groupLimits: SHORT_LOG });
      const sender = leaderOf(nodes);
      const [away] = followersOf(nodes) as [MemberNode];
      world.crash(away);
      await world.writes(sender, 120);
      world.net.delayMs = 10;
      await world.start(away);
      await world.until('it comes in', () => away.hasLogged(/a snapshot comes in/));
      await world.run(chunks * 12);
      const dying = victim === 'sender' ? sender : away;
      world.crash(dying);
      await world.run(1_000);
      await world.start(dying);
      await world.settled(nodes);
      await world.checkEven(nodes);
      await world.until('every snapshot is let go of', () =>
        nodes.every(({ machine }) => machine.snapshotCount === 0),
      );
      clean(test, world);
    }
  }
});

t.test('snapshots: one of which nothing is heard is abandoned', async (test) => {
  const world = new MemberWorld();
  const timing = { intakeIdleMs: 3_000 };
  const nodes = await world.group(3, { groupLimits: SHORT_LOG, timing });
  const sender = leaderOf(nodes);
  const [away] = followersOf(nodes) as [MemberNode];
  world.crash(away);
  await world.writes(sender, 120);
  world.net.delayMs = 10;
  await world.start(away);
  await world.until('it comes in', () => away.hasLogged(/a snapshot comes in/));
  await world.run(30);
  world.cut(
    [away],
    nodes.filter((node) => node !== away),
  );
  await world.run(10_000);
  test.ok(away.hasLogged(/a snapshot was abandoned.*nothing was heard/));
  world.net.heal();
  await world.settled(nodes);
  await world.checkEven(nodes);
  clean(test, world);
});

t.test(
  'snapshots: no more than two leave at once, none faster than allowed, and writes go on',
  async (test) => {
    const world = new MemberWorld();
    const limits = { snapshotBytesPerSecond: 20_000, snapshotGentleBytesPerSecond: 20_000 };
    // What a server that joins has still to get is kept for it.
    const groupLimits = { keptCount: 5, heldCountMax: 10_000 };
    const nodes = await world.group(5, { groupLimits, limits });
    const leader = leaderOf(nodes);
    await world.writes(leader, 100);
    const fresh = ['f', 'g', 'h'].map((name) =>
      world.node(name, { join: ['a'], groupLimits, limits }),
    );
    await world.start(...fresh);
    let most = 0;
    const comingIn = (): number =>
      fresh.filter(
        (node) =>
          node.hasLogged(/a snapshot comes in/) && !node.hasLogged(/a snapshot is in place/),
      ).length;
    const fromMs = world.nowMs;
    let writeCount = 0;
    while (!fresh.every((node) => node.hasLogged(/a snapshot is in place/))) {
      most = Math.max(most, comingIn());
      await world.write(leader);
      writeCount += 1;
      await world.run(20);
    }
    test.equal(most, 2);
    const bytes = 100 * 100;
    test.ok(world.nowMs - fromMs >= (bytes / 20_000) * 1000, 'not faster');
    test.ok(writeCount > 10);
    await world.settled([...nodes, ...fresh]);
    await world.checkEven([...nodes, ...fresh]);
    clean(test, world);
  },
);

t.test(
  'digests: a follower whose state is wrong stops, says so, and stays stopped',
  async (test) => {
    const world = new MemberWorld();
    const nodes = await world.group(3);
    const leader = leaderOf(nodes);
    const [wrong, right] = followersOf(nodes) as [MemberNode, MemberNode];
    await world.writes(leader, 30);
    await world.run(12_000);
    test.equal(wrong.stands, 'follower', 'as long as it is right, nothing happens');
    wrong.machine.fault = 'bad';
    await world.writes(leader, 30);
    await world.until('it stops', () => wrong.stands === 'quarantined');
    test.match(wrong.says, /at log index \d+ its digest is bad[0-9a-f]+, theirs is [0-9a-f]+/);
    test.match(wrong.says, /empty the folder, and start the server again/);
    test.match(await world.refusal(wrong.up.readBarrier()), /the state of this server is not that/);
    test.ok(leader.hasLogged(/error the states of servers differ/));
    await world.writes(leader, 3);
    // It has no vote: with the other follower gone, nothing can be written.
    world.crash(right);
    await world.until('no quorum', () => !leader.isLeader, 20_000);
    await world.start(right);
    await world.settled([leader, right]);
    await world.stop(wrong);
    wrong.machine.fault = '';
    await world.start(wrong);
    await world.run(5_000);
    test.equal(wrong.stands, 'quarantined', 'also after a restart');
    // On an empty disk it is let in again under its name.
    await world.stop(wrong);
    const fresh = world.node(wrong.name, { join: [right.name] });
    await world.start(fresh);
    await world.settled([leader, right, fresh]);
    clean(test, world);
  },
);

t.test('digests: a leader whose state is wrong stops, and the others go on', async (test) => {
  const world = new MemberWorld();
  const nodes = await world.group(3);
  const wrong = leaderOf(nodes);
  const others = followersOf(nodes);
  wrong.machine.fault = 'bad';
  await world.writes(wrong, 30);
  await world.until('it stops', () => wrong.stands === 'quarantined');
  const fromMs = world.nowMs;
  await world.settled(others);
  test.ok(world.nowMs - fromMs <= 100, 'it hands over');
  await world.writes(leaderOf(others), 3);
  clean(test, world);
});

t.test(
  'digests: those who are right go on where they are few, and let the others in again',
  async (test) => {
    for (const count of [2, 3]) {
      const world = new MemberWorld(7);
      const nodes = await world.group(count);
      const leader = leaderOf(nodes);
      const others = followersOf(nodes);
      await world.writes(leader, 10);
      // Each in its own way: no two agree.
      for (const [place, node] of others.entries()) node.machine.fault = `wrong${place}`;
      await world.writes(leader, 10);
      await world.until('they stop', () => others.every(({ stands }) => stands === 'quarantined'));
      await world.writes(leader, 3);
      const names = others.map(({ name }) => `(${name})`);
      test.equal(leader.group, [...names, leader.name].sort().join(' '), 'they have no votes');
      const fresh: MemberNode[] = [];
      for (const node of others) {
        await world.stop(node);
        const again = world.node(node.name, { join: [leader.name] });
        await world.start(again);
        fresh.push(again);
      }
      await world.settled([leader, ...fresh]);
      clean(test, world);
    }
  },
);

t.test('digests: the majority is right; without one, and all heard, the leader', async (test) => {
  const said = (...digests: readonly (string | undefined)[]) =>
    digests.map((digest, place) => ({ node: place + 1, isVoter: true, digest }));
  test.equal(digestVerdict(said('x', 'x', 'x'), 1).kind, 'equal');
  test.equal(digestVerdict(said('x', undefined, undefined), 1).kind, 'equal');
  test.same(digestVerdict(said('x', 'x', 'y'), 1), {
    kind: 'wrong',
    right: 'x',
    nodes: [3],
    voters: [],
  });
  test.same(digestVerdict(said('y', 'x', 'x'), 1), {
    kind: 'wrong',
    right: 'x',
    nodes: [1],
    voters: [],
  });
  test.equal(digestVerdict(said('y', 'x', undefined), 1).kind, 'open');
  test.same(digestVerdict(said('y', 'x'), 1), {
    kind: 'wrong',
    right: 'y',
    nodes: [2],
    voters: [2],
  });
  test.same(digestVerdict(said('x', 'y', 'z'), 2), {
    kind: 'wrong',
    right: 'y',
    nodes: [1, 3],
    voters: [1, 3],
  });
  const learner = { node: 9, isVoter: false, digest: 'y' };
  test.same(digestVerdict([...said('x'), learner], 1), {
    kind: 'wrong',
    right: 'x',
    nodes: [9],
    voters: [],
  });
  const learners = [...said('x'), learner, { ...learner, node: 10 }];
  test.same(digestVerdict(learners, 1), { kind: 'wrong', right: 'x', nodes: [9, 10], voters: [] });
});

t.test('services: members ask each other and themselves; strangers are refused', async (test) => {
  const world = new MemberWorld();
  const nodes = await world.group(3);
  const [a, b] = nodes as [MemberNode, MemberNode];
  for (const node of nodes) {
    node.up.serve('service.echo', async ({ payload, from }) =>
      Buffer.from(`${node.name} to ${from.name}: ${Buffer.from(payload).toString()}`),
    );
  }
  const request = {
    method: 'service.echo',
    payload: Buffer.from('hello'),
    deadlineMs: 1_000,
    hops: 0,
  };
  const echoed = async (to: MemberNode): Promise<string> =>
    Buffer.from(await world.result(a.up.call(to.up.node, request))).toString();
  test.equal(await echoed(b), 'b to a: hello');
  test.equal(await echoed(a), 'a to a: hello');
  for (const to of [a, b]) {
    const call = a.up.call(to.up.node, { ...request, method: 'service.none' });
    const error: unknown = await world.result(call.catch((caught: unknown) => caught));
    test.ok(error instanceof RpcError);
    test.equal((error as RpcError).refusal?.code, 'unknown-method');
  }
  test.throws(() => a.up.serve('service.echo', async () => Buffer.alloc(0)), /one handler/);
  test.throws(() => a.up.serve('member.join', async () => Buffer.alloc(0)), /among themselves/);
  const alone = new MemberWorld();
  const lone = alone.node('lone', { hasPort: false });
  await alone.start(lone);
  await alone.settled([lone]);
  test.match(await alone.refusal(lone.up.call(5, request)), /no cluster port/);
});

t.test('services: whoever has the key and is no member is refused', async (test) => {
  const clusterKey = new Uint8Array(32).fill(7);
  const world = new MemberWorld();
  const [a] = (await world.group(3, { clusterKey })) as [MemberNode];
  a.up.serve('service.echo', async ({ payload }) => payload);
  const { clock } = world.net;
  const silent = (): void => undefined;
  const opened = openTransport({
    net: world.net.host('x'),
    clock,
    random: new FakeRandom(),
    logger: { debug: silent, info: silent, warn: silent, error: silent },
    self: { node: 5, id: 'x', name: 'x', datacenter: 'dc1', version: '1', reads: 1 },
    uses: () => 1,
    clusterId: () => undefined,
    clusterKey,
    listen: { host: 'x', port: 8300 },
    onMessage: silent,
    onLinkClosed: silent,
    serve: () => Promise.reject(new Error('nothing is served')),
  });
  const transport = await world.result(opened);
  const call = (method: string): Promise<unknown> =>
    transport
      .call(
        { host: 'a', port: 8300 },
        { method, payload: Buffer.from('x'), deadlineMs: 1_000, hops: 0 },
      )
      .catch((error: unknown) => (error instanceof RpcError ? error.refusal?.code : error));
  test.equal(await world.result(call('service.echo')), 'no-member');
  test.equal(await world.result(call('member.intro')), 'damaged', 'members answer each other');
  await world.result(transport.close());
});

t.test('services: other datacenters are answered where a service says so', async (test) => {
  const world = new MemberWorld();
  const settings = { clusterKey: new Uint8Array(32).fill(7), federationId: () => 'all-of-us' };
  const [near] = (await world.group(1, settings)) as [MemberNode];
  const far = world.node('far', { ...settings, datacenter: 'dc2' });
  await world.start(far);
  await world.settled([far]);
  near.up.serve('service.own', async () => Buffer.from('never'));
  near.up.serve(
    'service.all',
    async ({ from, payload }) => Buffer.from(`${Buffer.from(payload)} ${from.datacenter}`),
    {
      from: 'datacenters',
    },
  );
  const call = async (from: MemberNode, method: string): Promise<string> => {
    const request = { method, payload: Buffer.from('x'), deadlineMs: 1_000, hops: 0 };
    const answer = from.up.call({ host: near.name, port: 8300 }, request);
    return world.result(
      answer.then(
        (bytes) => Buffer.from(bytes).toString(),
        (error: RpcError) => `${error.refusal?.code}: ${error.message}`,
      ),
    );
  };
  test.equal(await call(far, 'service.all'), 'x dc2');
  const two = 'server far is of datacenter "dc2", a of "dc1"';
  for (const method of ['service.own', 'member.join', 'member.intro']) {
    const says = `other-datacenter: ${method} is for servers of one datacenter: ${two}`;
    test.equal(await call(far, method), says);
    test.ok(near.hasLogged(/a call was refused/), 'its log says so');
  }
  test.match(await call(far, 'service.none'), /^unknown-method/);
  const own = { method: 'service.all', payload: Buffer.from('x'), deadlineMs: 1_000, hops: 0 };
  test.equal(Buffer.from(await near.up.call(near.up.node, own)).toString(), 'x dc1');
  clean(test, world);
});

t.test('calls: a node speaks for itself, and for its own cluster', async (test) => {
  const world = new MemberWorld();
  const nodes = await world.group(3);
  const leader = leaderOf(nodes);
  const [one, two] = followersOf(nodes) as [MemberNode, MemberNode];
  const record = one.up.groupRecord().members.find(({ name }) => name === two.name)!;
  const introduction = {
    record,
    expect: 1,
    clusterId: one.clusterId!,
    leader: undefined,
    members: [],
  };
  const own = { ...introduction, record: { ...record, ...idOf(one) } };
  const codeOf = async (method: string, payload: Uint8Array): Promise<string | undefined> => {
    const call = one.up.call(leader.up.node, { method, payload, deadlineMs: 1_000, hops: 0 });
    const error: unknown = await world.result(call.catch((caught: unknown) => caught));
    return error instanceof RpcError ? error.refusal?.code : undefined;
  };
  const other = { ...own, clusterId: 'another' };
  test.equal(await codeOf('member.intro', encodeIntroduction(introduction)), 'not-yours');
  test.equal(await codeOf('member.join', encodeIntroduction(introduction)), 'not-yours');
  test.equal(await codeOf('member.join', encodeIntroduction(other)), 'other-cluster');
  test.equal(await codeOf('member.removed', encodeText('another')), 'other-cluster');
  test.equal(await codeOf('member.promise', encodeText('x')), 'has-cluster');
  const order = { clusterId: 'another', payloads: [] };
  test.equal(await codeOf('member.found', encodeFoundingOrder(order)), 'has-cluster');
  test.equal(
    await codeOf('member.found', encodeFoundingOrder({ ...order, clusterId: one.clusterId! })),
    undefined,
  );
  test.equal(await codeOf('member.join', Buffer.from('garbage')), 'damaged');
  test.equal(await codeOf('member.nothing', Buffer.from('')), 'unknown-method');
  test.equal(leader.stands, 'leader');
  clean(test, world);
});

function idOf({ id, name, up }: MemberNode): Pick<MemberRecord, 'id' | 'name' | 'node'> {
  return { id, name, node: up.node };
}

interface Inbox {
  readonly inbox: SnapshotInbox;
  readonly clock: FakeClock;
  /** What was done with what comes in. */
  readonly did: string[];
}

function inboxOf(fails: { readonly add?: Error; readonly begin?: Error } = {}): Inbox {
  const clock = new FakeClock();
  const did: string[] = [];
  const silent = (): void => undefined;
  const inbox = new SnapshotInbox({
    clock,
    logger: { debug: silent, info: silent, warn: silent, error: silent },
    timing: DEFAULT_MEMBER_TIMING,
    begin: async ({ snapshot }) => {
      if (fails.begin !== undefined) throw fails.begin;
      did.push(`begin ${snapshot.index}`);
      return {
        add: async (chunk) => {
          if (fails.add !== undefined) throw fails.add;
          did.push(`add ${chunk.length}`);
        },
        finish: async () => void did.push('finish'),
        abandon: async () => void did.push('abandon'),
      };
    },
  });
  return { inbox, clock, did };
}

const SNAPSHOT: SnapshotMessage = {
  type: 'snapshot',
  from: 1,
  to: 2,
  term: 1,
  snapshot: {
    term: 1,
    index: 7,
    membership: { ...NO_MEMBERS, voters: [1, 2] },
    data: new Uint8Array(0),
  },
};

function beginOfSnapshot(index: number): Uint8Array {
  return encodeBegin({ ...SNAPSHOT, snapshot: { ...SNAPSHOT.snapshot, index } });
}

t.test('snapshots coming in: in order, whole, from one sender, one at a time', async (test) => {
  const { inbox, did } = inboxOf();
  const piece = (transfer: number, number: number, size = 3): Uint8Array =>
    encodePiece({ transfer, number, bytes: new Uint8Array(size) });
  await inbox.begin(1, beginOfSnapshot(7));
  await inbox.chunk(1, piece(1, 0));
  await inbox.chunk(1, piece(1, 1, 4));
  await test.rejects(inbox.chunk(9, piece(1, 2)), /not under way/, 'another sender');
  await test.rejects(inbox.chunk(1, piece(2, 2)), /not under way/, 'another transfer');
  await inbox.finish(1, piece(1, 2, 0));
  test.same(did.splice(0), ['begin 7', 'add 3', 'add 4', 'finish']);
  await test.rejects(inbox.chunk(1, piece(1, 2)), /not under way/, 'after the end');
  await inbox.begin(1, beginOfSnapshot(8));
  await test.rejects(inbox.chunk(1, piece(2, 1)), /chunk 1 came where 0 was expected/);
  test.same(did.splice(0), ['begin 8', 'abandon']);
  await inbox.begin(1, beginOfSnapshot(9));
  await inbox.chunk(1, piece(3, 0));
  await test.rejects(inbox.finish(1, piece(3, 2, 0)), /1 chunks of 2 came/);
  test.same(did.splice(0), ['begin 9', 'add 3', 'abandon']);
  await inbox.begin(1, beginOfSnapshot(10));
  await inbox.begin(1, beginOfSnapshot(11));
  test.same(did.splice(0), ['begin 10', 'abandon', 'begin 11'], 'a newer one takes its place');
  await inbox.abandon(9, piece(5, 0, 0));
  test.same(did.splice(0), [], 'another gives up nothing');
  await inbox.abandon(1, piece(5, 0, 0));
  test.same(did.splice(0), ['abandon']);
  await test.rejects(
    async () => inbox.begin(5, beginOfSnapshot(12)),
    /node 5 sends a snapshot of node 1/,
  );
});

t.test(
  'snapshots going out: no faster than allowed, and given up where one fails',
  async (test) => {
    const clock = new FakeClock();
    const calls: string[] = [];
    let failing = '';
    const outbox = new SnapshotOutbox({
      clock,
      timing: DEFAULT_MEMBER_TIMING,
      limits: { ...DEFAULT_MEMBER_LIMITS, snapshotBytesPerSecond: 1_000 },
      lastIndex: () => 0,
      bytesBehind: () => 0,
      held: { heldCountMax: 1_000, heldBytesMax: 1_000 },
      call: async (_to, method) => {
        calls.push(method.replace('member.snapshot-', ''));
        if (method.endsWith(failing)) throw new RpcError('lost', 'the link ended');
        return encodeBegun(1);
      },
    });
    let isClosed = false;
    async function* chunks(): AsyncGenerator<Uint8Array> {
      try {
        for (let count = 0; count < 3; count += 1) yield new Uint8Array(2_000);
      } finally {
        isClosed = true;
      }
    }
    const snapshot: MachineSnapshot = {
      appliedEntry: undefined,
      groupRecord: undefined,
      chunks,
      close: async () => undefined,
    };
    failing = 'nothing';
    const sent = outbox.send(2, SNAPSHOT, snapshot);
    for (const expected of [1, 2, 3]) {
      await settled();
      test.equal(calls.filter((call) => call === 'chunk').length, expected);
      clock.advance(1_999);
      await settled();
      test.equal(calls.filter((call) => call === 'chunk').length, expected, 'not before its time');
      clock.advance(1);
    }
    await sent;
    test.same(calls.splice(0), ['begin', 'chunk', 'chunk', 'chunk', 'finish']);
    failing = 'chunk';
    isClosed = false;
    await test.rejects(outbox.send(2, SNAPSHOT, snapshot), /the link ended/);
    test.same(calls.splice(0), ['begin', 'chunk', 'abandon']);
    test.equal(isClosed, true, 'nothing is read any more');
    failing = 'begin';
    await test.rejects(outbox.send(2, SNAPSHOT, snapshot), /the link ended/);
    test.same(calls.splice(0), ['begin']);
  },
);

/** Between the pieces of a snapshot, of which from the third on 60 entries are written for each. */
async function waitsOf(
  held: { readonly heldCountMax: number; readonly heldBytesMax: number },
  entryBytes: number,
): Promise<readonly number[]> {
  const clock = new FakeClock();
  const sentAtMs: number[] = [];
  const { index } = SNAPSHOT.snapshot;
  let lastIndex = index;
  let writesAPiece = 0;
  const outbox = new SnapshotOutbox({
    clock,
    timing: DEFAULT_MEMBER_TIMING,
    limits: {
      ...DEFAULT_MEMBER_LIMITS,
      snapshotBytesPerSecond: 1_000,
      snapshotGentleBytesPerSecond: 500,
    },
    lastIndex: () => lastIndex,
    bytesBehind: (from) => (lastIndex - from) * entryBytes,
    held,
    call: async (_to, method) => {
      if (!method.endsWith('chunk')) return encodeBegun(1);
      sentAtMs.push(clock.monotonicMs());
      lastIndex += writesAPiece;
      return encodeBegun(1);
    },
  });
  async function* chunks(): AsyncGenerator<Uint8Array> {
    for (let count = 0; count < 6; count += 1) yield new Uint8Array(2_000);
  }
  const sent = outbox.send(2, SNAPSHOT, {
    appliedEntry: undefined,
    groupRecord: undefined,
    chunks,
    close: async () => undefined,
  });
  const nextPiece = async (): Promise<void> => {
    const before = sentAtMs.length;
    for (let waitedMs = 0; sentAtMs.length === before && waitedMs < 10_000; waitedMs += 500) {
      await settled();
      if (sentAtMs.length === before) clock.advance(500);
    }
  };
  await nextPiece();
  await nextPiece();
  writesAPiece = 60;
  await nextPiece();
  await nextPiece();
  await nextPiece();
  await nextPiece();
  clock.advance(4_000);
  await sent;
  return sentAtMs.slice(1).map((atMs, place) => atMs - (sentAtMs[place] ?? 0));
}

t.test('snapshots going out: gently while others write, as long as there is time', async (test) => {
  const bounds = {
    number: [{ heldCountMax: 400, heldBytesMax: 1e9 }, 10],
    size: [{ heldCountMax: 100_000, heldBytesMax: 400_000 }, 1_000],
  } as const;
  for (const [bound, [held, entryBytes]] of Object.entries(bounds)) {
    const waitsMs = await waitsOf(held, entryBytes);
    test.same(waitsMs.slice(0, 2), [2_000, 2_000], 'nobody writes');
    test.same(waitsMs.slice(2, 3), [4_000], `others write: 60 of 100, by ${bound}`);
    test.same(waitsMs.slice(3), [2_000, 2_000], `more of them than may pass, by ${bound}`);
  }
});

t.test('snapshots coming in: silence ends one, a word keeps it', async (test) => {
  const { inbox, clock, did } = inboxOf();
  const { intakeIdleMs } = DEFAULT_MEMBER_TIMING;
  await inbox.begin(1, beginOfSnapshot(7));
  clock.advance(intakeIdleMs - 1);
  await inbox.chunk(1, encodePiece({ transfer: 1, number: 0, bytes: new Uint8Array(3) }));
  clock.advance(intakeIdleMs - 1);
  await inbox.chunk(1, encodePiece({ transfer: 1, number: 1, bytes: new Uint8Array(3) }));
  test.notOk(did.includes('abandon'));
  clock.advance(intakeIdleMs + 1);
  await inbox.close();
  test.equal(did.filter((each) => each === 'abandon').length, 1);
  test.equal(clock.pendingCount, 0);
});

t.test('snapshots coming in: what is wrong with one is told to its sender', async (test) => {
  const damaged = inboxOf({ add: new SnapshotDamage('it is torn') });
  await damaged.inbox.begin(1, beginOfSnapshot(7));
  const piece = encodePiece({ transfer: 1, number: 0, bytes: new Uint8Array(3) });
  await test.rejects(damaged.inbox.chunk(1, piece), { code: 'damaged', message: 'it is torn' });
  test.same(damaged.did, ['begin 7', 'abandon']);
  const unwanted = inboxOf({ begin: new GroupRefusal('refused', 'it is not needed') });
  await test.rejects(unwanted.inbox.begin(1, beginOfSnapshot(7)), {
    code: 'refused',
    message: 'it is not needed',
  });
});

t.test('autopilot settings: set by the leader, once for each index that was seen', async (test) => {
  const world = new MemberWorld();
  const nodes = await world.group(3);
  const leader = leaderOf(nodes);
  const [follower] = followersOf(nodes) as [MemberNode];
  const settings = { ...DEFAULT_AUTOPILOT, minQuorum: 3 };
  test.equal(await world.result(leader.up.setAutopilot(settings)), true);
  test.equal(leader.up.groupRecord().autopilotIndex, 1);
  test.equal(await world.result(leader.up.setAutopilot(settings, 0)), false);
  // Two that saw the same index: one of them comes first.
  const both = [leader.up.setAutopilot(settings, 1), leader.up.setAutopilot(settings, 1)];
  test.same((await world.result(Promise.all(both))).sort(), [false, true]);
  test.match(await world.refusal(follower.up.setAutopilot(settings)), /does not lead/);
  await world.until('all know', () =>
    nodes.every((node) => node.up.groupRecord().autopilotIndex === 2),
  );
  test.equal(follower.up.groupRecord().autopilot.minQuorum, 3);
  clean(test, world);
});

t.test('transfer: to whom the operator names, or to the best one', async (test) => {
  const world = new MemberWorld();
  const nodes = await world.group(3);
  const first = leaderOf(nodes);
  const [target] = followersOf(nodes) as [MemberNode];
  await world.result(first.up.transferLeadership(target.up.node));
  await world.settled(nodes);
  test.equal(leaderOf(nodes), target);
  await world.result(target.up.transferLeadership(undefined));
  await world.settled(nodes);
  test.not(leaderOf(nodes), target);
  const leader = leaderOf(nodes);
  await world.result(leader.up.transferLeadership(leader.up.node));
  test.equal(leaderOf(nodes), leader);
  test.match(await world.refusal(leader.up.transferLeadership(77)), /no other voter/);
  test.match(await world.refusal(target.up.transferLeadership(undefined)), /does not lead/);
  const [other] = followersOf(nodes).filter((node) => node !== target) as [MemberNode];
  world.crash(other ?? target);
  clean(test, world);
});

t.test('views: each member sees who is there, who leads, and how they do', async (test) => {
  const world = new MemberWorld();
  const nodes = await world.group(3);
  const leader = leaderOf(nodes);
  const [one, two] = followersOf(nodes) as [MemberNode, MemberNode];
  await world.writes(leader, 3);
  await world.run(500);
  for (const node of nodes) {
    const views = node.up.members();
    test.equal(views.length, 3);
    test.same(
      views.filter(({ isLeader }) => isLeader).map(({ name }) => name),
      [leader.name],
    );
    test.same(
      views.filter(({ isSelf }) => isSelf).map(({ name }) => name),
      [node.name],
    );
    test.ok(views.every(({ isAlive, isVoter }) => isAlive && isVoter));
    test.ok(
      views.every(({ lastContactMs }) => lastContactMs !== undefined && lastContactMs < 1_200),
    );
  }
  const { lastIndex } = leader.up.status();
  test.equal(leader.view(one.name)?.lastIndex, lastIndex);
  test.equal(one.view(two.name)?.lastIndex, undefined);
  world.crash(two);
  await world.run(5_000);
  test.equal(leader.view(two.name)?.isAlive, false);
  test.equal(one.view(two.name)?.isAlive, false);
  const state = leader.up.autopilotState();
  test.equal(state.isHealthy, false);
  test.equal(state.failureTolerance, 0);
});

t.test(
  'an earlier release: a folder without a group record becomes a group that others join',
  async (test) => {
    const world = new MemberWorld();
    const a = world.node('a');
    const log = await DurableLog.open(a.kv.now, undefined);
    const first = nextEntry(LOG_ORIGIN, 1, Buffer.from('old'));
    const hardState = { term: 1, vote: nodeNumberOf(a.id), commit: 1 };
    await log.write({ entries: [first], hardState });
    await world.start(a);
    await world.settled([a]);
    await world.until('it is on record', () => a.group === 'a');
    test.ok(a.clusterId !== undefined);
    test.equal(Buffer.from(a.machine.applied[0]!.payload).toString(), 'old');
    const b = world.node('b', { join: ['a'] });
    await world.start(b);
    await world.settled([a, b]);
    await world.writes(a, 3);
    await world.checkEven([a, b]);
    clean(test, world);
  },
);

t.test('numbers: from the first 48 bits of the id, and from no other text', async (test) => {
  test.equal(nodeNumberOf('00000001-0002-4000-8000-000000000000'), 0x1_0002);
  test.equal(nodeNumberOf('ffffffff-ffff-4fff-8fff-ffffffffffff'), 2 ** 48 - 1);
  for (const wrong of [
    '',
    'x',
    '00000000-0000-4000-8000-000000000001',
    'FFFFFFFF-FFFF-4FFF-8FFF-FFFFFFFFFFFF',
  ]) {
    test.throws(() => nodeNumberOf(wrong), wrong);
  }
});
