// How members come and go while the group goes on: joining, replacing, moving, removing, restarting,
// on simulated clocks, network and disks.

import t, { type Test } from 'tap';
import { admissionOf, isSameRecord, selfRecordChange } from '../../cluster/member/admission.ts';
import { Leading } from '../../cluster/member/leading.ts';
import {
  DEFAULT_MEMBER_LIMITS,
  DEFAULT_MEMBER_TIMING,
} from '../../cluster/member/member-timing.ts';
import type { Logger } from '../../cluster/platform/logger.ts';
import type { GroupReplica } from '../../cluster/replica/group-replica.ts';
import { Directory } from '../../cluster/member/directory.ts';
import { encodeText } from '../../cluster/member/member-frames.ts';
import { nodeNumberOf } from '../../cluster/member/node-number.ts';
import { NO_MEMBERS } from '../../cluster/raft/membership.ts';
import { GroupRefusal } from '../../cluster/replica/group-refusal.ts';
import { EMPTY_GROUP, type MemberRecord } from '../../cluster/replica/group-record.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { type MemberNode, type MemberSettings, MemberWorld } from '../support/member-world.ts';

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

t.test(
  'joining: a server becomes a learner, takes in the log, and votes when it is stable',
  async (test) => {
    const world = new MemberWorld();
    const nodes = await world.group(3);
    await world.writes(leaderOf(nodes), 20);
    const [follower] = followersOf(nodes) as [MemberNode];
    // It was told of one follower only.
    const d = world.node('d', { join: [follower.name] });
    await world.start(d);
    const all = [...nodes, d];
    await world.settled(all);
    test.equal(d.group, '(d) a b c');
    test.equal(d.up.status().standing, 'learner');
    const learnedAtMs = world.nowMs;
    await world.until('d votes', () => d.group === 'a b c d');
    test.ok(world.nowMs - learnedAtMs >= 9_000, 'not before it was stable for 10 s');
    await world.writes(leaderOf(all), 3);
    await world.checkEven(all);
    clean(test, world);
  },
);

t.test('joining: a server that dies at any of its writes joins when it is back', async (test) => {
  for (let writes = 1; writes <= 5; writes += 1) {
    for (const lands of [false, true]) {
      const world = new MemberWorld(writes);
      const nodes = await world.group(1);
      await world.writes(nodes[0]!, 3);
      const b = world.node('b', { join: ['a'] });
      b.queue.onWrite = (count) => {
        if (count === writes) queueMicrotask(() => world.crash(b, { lands }));
      };
      await world.start(b);
      await world.until('b dies', () => !b.isUp);
      await world.run(2_000);
      await world.start(b);
      await world.settled([...nodes, b]);
      await world.until('b votes', () => b.group === 'a b');
      await world.write(leaderOf([...nodes, b]));
      await world.checkEven([...nodes, b]);
      clean(test, world);
    }
  }
});

/** So small steps that a log takes a while to come in, and many to be applied. */
const SMALL_STEPS = { messageBytesMax: 200, inflightCountMax: 1, batchCountMax: 4 };

/** A server that dies when it has been let in, before it has written that down, and is removed then. */
async function ghostOf(
  world: MemberWorld,
  leader: MemberNode,
  settings: MemberSettings,
): Promise<MemberNode> {
  const ghost = world.node('d', settings);
  ghost.queue.onWrite = () => queueMicrotask(() => world.crash(ghost));
  await world.start(ghost);
  await world.until('it dies', () => !ghost.isUp);
  ghost.queue.onWrite = () => undefined;
  const { node } = leader.up.groupRecord().members.find(({ id }) => id === ghost.id)!;
  await world.writes(leader, 20);
  await world.result(leader.up.removeMember(node));
  await world.writes(leader, 20);
  return ghost;
}

t.test(
  'joining: a server that was removed before it knew that it had joined takes no old removal for its own',
  async (test) => {
    const world = new MemberWorld();
    const nodes = await world.group(3, { groupLimits: SMALL_STEPS });
    const leader = leaderOf(nodes);
    const settings = { join: ['a', 'b', 'c'], groupLimits: SMALL_STEPS };
    const d = await ghostOf(world, leader, settings);
    test.equal(leader.group, 'a b c');
    test.equal(d.clusterId, undefined);
    await world.start(d);
    const seen: string[] = [];
    await world.until('it votes', () => {
      if (d.group !== seen.at(-1)) seen.push(d.group);
      return d.stands === 'removed' || d.group === 'a b c d';
    });
    const onTheWay = ['(d) a b c', 'a b c', '(d) a b c', 'a b c d'];
    test.same(seen.slice(seen.indexOf('(d) a b c')), onTheWay, 'it came by its removal');
    await world.settled([...nodes, d]);
    await world.checkEven([...nodes, d]);
    clean(test, world);
  },
);

t.test('joining: whoever is asked says who leads, and waits while nobody does', async (test) => {
  const world = new MemberWorld();
  const nodes = await world.group(3);
  const [one, two] = followersOf(nodes) as [MemberNode, MemberNode];
  world.crash(leaderOf(nodes));
  world.crash(two);
  const d = world.node('d', { join: [one.name] });
  await world.start(d);
  await world.run(10_000);
  test.match(d.says, /waiting until it has a leader|has not let this one join/);
  await world.start(two);
  await world.settled([one, two, d]);
  clean(test, world);
});

t.test(
  'replacing: a server on a new disk takes the place of the dead one with its name',
  async (test) => {
    const world = new MemberWorld();
    const nodes = await world.group(3);
    const [one, two] = followersOf(nodes) as [MemberNode, MemberNode];
    const old = two;
    // While the one with that name is alive, nobody takes it.
    const twin = world.node('twin', { join: [one.name], shownName: two.name });
    await world.start(twin);
    await world.run(10_000);
    test.match(twin.says, new RegExp(`a server with the name ${two.name} belongs to the cluster`));
    test.equal(leaderOf(nodes).group, 'a b c');
    await world.stop(twin);
    world.crash(two);
    const fresh = world.node(two.name, { join: [one.name] });
    await world.start(fresh);
    const now = [...nodes.filter((node) => node !== old), fresh];
    await world.settled(now);
    const names = leaderOf(now)
      .up.groupRecord()
      .members.map(({ name, id }) => `${name} ${id}`);
    test.equal(names.filter((name) => name.startsWith(`${old.name} `)).length, 1);
    test.ok(names.includes(`${fresh.name} ${fresh.id}`));
    await world.until('it votes', () => leaderOf(now).group === 'a b c');
    await world.writes(leaderOf(now), 3);
    await world.checkEven(now);
    clean(test, world);
  },
);

t.test('replacing: the old disk, put back, is told that it was removed', async (test) => {
  const world = new MemberWorld();
  const nodes = await world.group(3);
  const [one, old] = followersOf(nodes) as [MemberNode, MemberNode];
  world.crash(old);
  const fresh = world.node(old.name, { join: [one.name] });
  await world.start(fresh);
  const now = [...nodes.filter((node) => node !== old), fresh];
  await world.settled(now);
  // The machine of the new one is switched off and the old disk put into it.
  await world.stop(fresh);
  await world.start(old);
  await world.until('it is told', () => old.stands === 'removed');
  test.match(old.says, /was removed from the cluster.*empty its data folder/);
  test.ok(old.hasLogged(/error server . was removed from the cluster/));
  await world.start(world.nodes.get(fresh.name)!).catch(() => undefined);
  clean(test, world);
});

t.test(
  'replacing: a log that is lost under a kept id does not come back as if nothing were',
  async (test) => {
    const world = new MemberWorld();
    const nodes = await world.group(3);
    const [one, amnesiac] = followersOf(nodes) as [MemberNode, MemberNode];
    world.crash(amnesiac);
    const same = world.node(amnesiac.name, { join: [one.name] }, amnesiac.id);
    await world.start(same);
    await world.run(10_000);
    test.match(
      same.says,
      /its log is gone: it must not come back under its old id.*empty its whole/,
    );
    test.equal(same.clusterId, undefined);
    await world.stop(same);
    const fresh = world.node(amnesiac.name, { join: [one.name] });
    await world.start(fresh);
    await world.settled([...nodes.filter((node) => node !== amnesiac), fresh]);
    clean(test, world);
  },
);

t.test('replacing: a leader that has just begun takes nobody for dead', async (test) => {
  const world = new MemberWorld();
  const nodes = await world.group(3);
  const [a, b, c] = nodes as [MemberNode, MemberNode, MemberNode];
  for (const node of nodes) world.crash(node);
  const twin = world.node('twin', { join: ['a', 'b'], shownName: 'c' });
  await world.start(a, b, twin);
  await world.until('one leads', () => a.isLeader || b.isLeader);
  await world.run(1_500);
  await world.start(c);
  await world.settled(nodes);
  await world.run(10_000);
  test.equal(twin.clusterId, undefined);
  test.ok(a.up.groupRecord().members.some(({ id }) => id === c.id));
  clean(test, world);
});

t.test('removing: a server that cannot take in its removal is told all the same', async (test) => {
  const world = new MemberWorld();
  const nodes = await world.group(3);
  const [gone] = followersOf(nodes) as [MemberNode];
  gone.queue.stall();
  await world.result(leaderOf(nodes).up.removeMember(gone.up.node));
  await world.until('it is told', () => gone.stands === 'removed', 500);
  clean(test, world);
});

t.test('removing: a server is told, stops, and does not disturb the others', async (test) => {
  const world = new MemberWorld();
  const nodes = await world.group(3);
  const [gone, stays] = followersOf(nodes) as [MemberNode, MemberNode];
  const leader = leaderOf(nodes);
  await world.result(leader.up.removeMember(gone.up.node));
  await world.until('it is told', () => gone.stands === 'removed', 2_000);
  test.match(gone.says, /was removed from the cluster/);
  test.match(await world.refusal(gone.up.propose(Buffer.from('x'))), /was removed/);
  const { term } = leader.up.status();
  await world.run(30_000);
  test.equal(leader.up.status().term, term, 'no election');
  test.equal(leader.group, [leader.name, stays.name].sort().join(' '));
  // Started again it is told again; emptied it joins anew.
  await world.stop(gone);
  await world.start(gone);
  await world.until('it is told again', () => gone.stands === 'removed');
  await world.stop(gone);
  const fresh = world.node(gone.name, { join: [leader.name] });
  await world.start(fresh);
  await world.settled([leader, stays, fresh]);
  await world.until('it votes', () => leader.group === 'a b c');
  clean(test, world);
});

t.test('removing: a server that was away is told when it comes back', async (test) => {
  const world = new MemberWorld();
  const nodes = await world.group(3);
  const [gone] = followersOf(nodes) as [MemberNode];
  const leader = leaderOf(nodes);
  const { node } = gone.up;
  world.crash(gone);
  await world.run(5_000);
  await world.result(leader.up.removeMember(node));
  const { term } = leader.up.status();
  await world.start(gone);
  await world.until('it is told', () => gone.stands === 'removed');
  await world.run(10_000);
  test.equal(leader.up.status().term, term, 'no election');
  clean(test, world);
});

t.test('removing: a leader hands over first, and the next one removes it', async (test) => {
  const world = new MemberWorld();
  const nodes = await world.group(3);
  const old = leaderOf(nodes);
  const { node } = old.up;
  try {
    await world.result(old.up.removeMember(node));
    test.fail('it does not remove itself');
  } catch (error) {
    test.ok(error instanceof GroupRefusal);
    test.equal((error as GroupRefusal).code, 'not-leader');
  }
  await world.settled(nodes);
  const next = leaderOf(nodes);
  test.not(next, old);
  await world.result(next.up.removeMember(node));
  await world.until('it is told', () => old.stands === 'removed');
  await world.write(next);
  clean(test, world);
});

t.test('removing: what would leave no quorum is refused, and so is a stranger', async (test) => {
  const world = new MemberWorld();
  const nodes = await world.group(3);
  const [one, two] = followersOf(nodes) as [MemberNode, MemberNode];
  const leader = leaderOf(nodes);
  world.crash(one);
  await world.run(5_000);
  test.match(
    await world.refusal(leader.up.removeMember(two.up.node)),
    new RegExp(`there would be 2 voters, .* no answer from ${one.name}:`),
  );
  test.match(
    await world.refusal(leader.up.removeMember(99)),
    /no member of the cluster has the number 99/,
  );
  test.match(await world.refusal(two.up.removeMember(99)), /does not lead/);
  const alone = new MemberWorld();
  const [a] = (await alone.group(1)) as [MemberNode];
  test.match(await alone.refusal(a.up.removeMember(a.up.node)), /is the only voter/);
});

t.test('removing: who is told so asks the leader, and believes nobody else', async (test) => {
  const world = new MemberWorld();
  const nodes = await world.group(3);
  const [one, two] = followersOf(nodes) as [MemberNode, MemberNode];
  const tell = (from: MemberNode, to: MemberNode): Promise<Uint8Array> =>
    from.up.call(to.up.node, {
      method: 'member.removed',
      payload: encodeText(from.clusterId!),
      deadlineMs: 1_000,
      hops: 0,
    });
  // A leader of the past applies an old removal late, of a server that was admitted again since.
  await world.result(tell(one, two));
  await world.run(5_000);
  test.equal(two.stands, 'follower');
  await world.result(tell(one, leaderOf(nodes)));
  await world.run(5_000);
  test.equal(leaderOf(nodes).group, 'a b c');
  // While nobody can prove to lead, it waits for an answer.
  const leader = leaderOf(nodes);
  world.crash(leader);
  world.cut([two], [one]);
  await world.run(5_000);
  world.net.heal();
  await world.start(leader);
  await world.settled(nodes);
  await world.write(leaderOf(nodes));
  await world.checkEven(nodes);
  clean(test, world);
});

t.test('removing: two at once go one after the other', async (test) => {
  const world = new MemberWorld();
  const nodes = await world.group(5);
  const leader = leaderOf(nodes);
  const [one, two] = followersOf(nodes) as [MemberNode, MemberNode];
  const both = [one, two].map((node) => leader.up.removeMember(node.up.node));
  await world.result(Promise.all(both));
  const rest = nodes.filter((node) => node !== one && node !== two);
  await world.settled(rest);
  test.equal(leader.group, rest.map(({ name }) => name).join(' '));
  clean(test, world);
});

t.test(
  'restarting: one server after the other, with a new version and address, while writes go on',
  async (test) => {
    const world = new MemberWorld();
    const nodes = await world.group(3);
    let writeCount = 0;
    for (const node of nodes) {
      await world.stop(node);
      const others = nodes.filter((each) => each !== node);
      await world.settled(others);
      await world.write(leaderOf(others));
      node.settings = { ...node.settings, version: '2.0', port: 9_000 + writeCount };
      writeCount += 1;
      await world.start(node);
      await world.settled(nodes);
      await world.write(leaderOf(nodes));
      await world.until('it is on record', () =>
        nodes.every((each) => each.view(node.name)?.version === '2.0'),
      );
    }
    const ports = leaderOf(nodes)
      .up.groupRecord()
      .members.map(({ address }) => address.port);
    test.same(ports, [9_000, 9_001, 9_002]);
    await world.checkEven(nodes);
    clean(test, world);
  },
);

t.test('restarting: servers that all moved find each other through retry_join', async (test) => {
  const world = new MemberWorld();
  const nodes = await world.group(3);
  for (const node of nodes) world.crash(node);
  nodes.forEach((node, place) => {
    node.settings = { ...node.settings, port: 9_000 + place };
  });
  await world.start(...nodes);
  await world.settled(nodes);
  await world.until('all are on record', () =>
    leaderOf(nodes)
      .up.groupRecord()
      .members.every(({ address }) => address.port >= 9_000),
  );
  await world.write(leaderOf(nodes));
  await world.checkEven(nodes);
  clean(test, world);
});

t.test('restarting: a server with another id than its log knows names the file', async (test) => {
  const says = /the cluster knows server . by the id 0000000.*node-id .* put the former id back$/;
  const world = new MemberWorld();
  const [alone] = (await world.group(1)) as [MemberNode];
  const { id } = alone;
  await world.stop(alone);
  alone.id = `ffffffff${id.slice(8)}`;
  await world.start(alone);
  await world.run(10_000);
  test.equal(alone.stands, 'joining');
  test.match(alone.says, says);
  await world.stop(alone);
  alone.id = id;
  await world.start(alone);
  await world.settled([alone]);
  clean(test, world);

  const other = new MemberWorld();
  const nodes = await other.group(3);
  const [one] = followersOf(nodes) as [MemberNode];
  const former = one.id;
  await other.stop(one);
  one.id = `ffffffff${former.slice(8)}`;
  await other.start(one);
  await other.until('it is told', () => one.stands === 'removed');
  test.match(one.says, says);
  await other.stop(one);
  one.id = former;
  await other.start(one);
  await other.settled(nodes);
  clean(test, other);
});

t.test(
  'restarting: a server that was away while all others were replaced finds the new ones',
  async (test) => {
    const world = new MemberWorld();
    const nodes = await world.group(3);
    const away = followersOf(nodes)[0]!;
    world.crash(away);
    let group = nodes.filter((node) => node !== away);
    for (const name of ['d', 'e']) {
      const fresh = world.node(name, { join: group.map((node) => node.name) });
      await world.start(fresh);
      group = [...group, fresh];
      await world.settled(group);
      await world.until(`${name} votes`, () => fresh.group.split(' ').includes(name));
    }
    for (const old of nodes.filter((node) => node !== away)) {
      const leader = leaderOf(group);
      if (leader === old) await world.refusal(leader.up.removeMember(old.up.node));
      await world.settled(group);
      await world.result(leaderOf(group).up.removeMember(old.up.node));
      group = group.filter((node) => node !== old);
      await world.stop(old);
    }
    await world.settled(group);
    await world.writes(leaderOf(group), 3);
    await world.start(away);
    await world.settled([...group, away]);
    await world.checkEven([...group, away]);
    clean(test, world);
  },
);

/** a leads d, which joined while c was away; c was told so by b, which was removed then. */
async function withNewcomer(
  world: MemberWorld,
  settings: MemberSettings,
  join: (leader: MemberNode) => Promise<MemberNode>,
): Promise<{ readonly a: MemberNode; readonly c: MemberNode; readonly d: MemberNode }> {
  const nodes = await world.group(3, settings);
  const [a, b, c] = nodes as [MemberNode, MemberNode, MemberNode];
  if (!a.isLeader) await world.result(leaderOf(nodes).up.transferLeadership(a.up.node));
  await world.until('a leads', () => a.isLeader);
  world.cut([c], [a]);
  // All this c has to take in before it comes to the newcomer.
  await world.writes(a, 40);
  const d = await join(a);
  world.cut([c], [d]);
  await world.start(d);
  await world.until('d votes', () => a.group === 'a b c d');
  await world.result(a.up.removeMember(b.up.node));
  await world.until('d knows', () => d.group === 'a c d');
  await world.stop(b);
  return { a, c, d };
}

/** These are one group, take a write, and have the same. */
async function goesOn(
  test: Test,
  world: MemberWorld,
  { nodes, withinMs }: { readonly nodes: readonly MemberNode[]; readonly withinMs?: number },
): Promise<void> {
  await world.settled(nodes, withinMs);
  await world.write(leaderOf(nodes));
  await world.checkEven(nodes);
  clean(test, world);
}

t.test(
  'turnover: who lags behind is led by whom it was told of, and has not on record',
  async (test) => {
    const world = new MemberWorld();
    const settings = { join: ['a', 'b', 'c'], groupLimits: SMALL_STEPS };
    const { a, c, d } = await withNewcomer(world, { groupLimits: SMALL_STEPS }, async () =>
      world.node('d', settings),
    );
    world.net.heal();
    await world.until('c follows a', () => {
      const standing = c.up.standing();
      return standing.kind === 'member' && standing.leader?.name === 'a';
    });
    test.equal(c.group, 'a b c', 'it has not caught up');
    world.crash(a);
    // At once, and not when they ask around.
    await goesOn(test, world, { nodes: [c, d], withinMs: 2_000 });
  },
);

t.test(
  'turnover: who knew a server as removed is led by it when nobody else is left',
  async (test) => {
    const world = new MemberWorld();
    const nodes = await world.group(3);
    const [a, b, c] = nodes as [MemberNode, MemberNode, MemberNode];
    const d = await ghostOf(world, leaderOf(nodes), { join: ['a', 'b', 'c'] });
    if (!a.isLeader) await world.result(leaderOf(nodes).up.transferLeadership(a.up.node));
    await world.until('a leads', () => a.isLeader);
    await world.until('c knows that d was removed', () => c.group === 'a b c');
    await world.run(1_000);
    world.cut([c], [a, b, d]);
    await world.start(d);
    await world.until('d votes', () => a.group === 'a b c d');
    await world.result(a.up.removeMember(b.up.node));
    await world.until('d knows', () => d.group === 'a c d');
    await world.stop(b);
    world.crash(a);
    world.net.heal();
    await goesOn(test, world, { nodes: [c, d] });
  },
);

t.test('turnover: who takes in an old removal refuses nobody who came back since', async (test) => {
  const world = new MemberWorld();
  const settings = { join: ['a', 'b', 'c'], groupLimits: SMALL_STEPS };
  const { a, c, d } = await withNewcomer(world, { groupLimits: SMALL_STEPS }, (leader) =>
    ghostOf(world, leader, settings),
  );
  world.net.heal();
  await world.until('c knows d', () => c.group === '(d) a b c');
  await world.until('c knows that d was removed', () => c.group === 'a b c');
  world.crash(a);
  // At once, and not when they ask around.
  await goesOn(test, world, { nodes: [c, d], withinMs: 2_000 });
});

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
  test.equal(answer({ ...one, id: '00000001-0000-4000-8000-000000000001' }, false), 'refused');
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
