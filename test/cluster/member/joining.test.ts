// Servers that join a group, and those that take the place of another.

import t from 'tap';
import { type MemberNode, MemberWorld } from '../../support/simulated/member-world.ts';
import { clean, followersOf, ghostOf, leaderOf, SMALL_STEPS } from './cases.ts';

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

t.test(
  'joining: a server that was removed before it knew that it had joined takes no old removal for its own',
  async (test) => {
    const world = new MemberWorld(2);
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
