// Servers that compare what they hold, and stop where it is wrong.

import t from 'tap';
import { digestVerdict } from '../../../cluster/member/digests/digest-verdict.ts';
import { type MemberNode, MemberWorld } from '../../support/simulated/member-world.ts';
import { clean, followersOf, leaderOf } from './cases.ts';

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
