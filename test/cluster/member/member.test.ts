// Members of one datacenter: leaving and dying, calls between them, what they say of each other.

import t from 'tap';
import { DurableLog } from '../../../cluster/log/durable-log.ts';
import { LOG_ORIGIN, nextEntry } from '../../../cluster/log/log-entry.ts';
import { nodeNumberOf } from '../../../cluster/member/founding/node-number.ts';
import {
  encodeFoundingOrder,
  encodeIntroduction,
  encodeText,
} from '../../../cluster/member/member-frames.ts';
import { DEFAULT_AUTOPILOT, type MemberRecord } from '../../../cluster/replica/group-record.ts';
import { RpcError } from '../../../cluster/transport/calls/rpc-error.ts';
import { openTransport } from '../../../cluster/transport/open-transport.ts';
import { FakeRandom } from '../../support/fake-random.ts';
import { type MemberNode, MemberWorld } from '../../support/simulated/member-world.ts';
import { clean, followersOf, leaderOf } from './cases.ts';

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
