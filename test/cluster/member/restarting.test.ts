// Groups whose servers come back at other addresses, or have all been replaced.

import t, { type Test } from 'tap';
import {
  type MemberNode,
  type MemberSettings,
  MemberWorld,
} from '../../support/simulated/member-world.ts';
import { clean, followersOf, ghostOf, leaderOf, SMALL_STEPS } from './cases.ts';

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
