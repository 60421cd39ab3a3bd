// Servers that are removed: how they hear of it, and what is refused.

import t from 'tap';
import { encodeText } from '../../../cluster/member/member-frames.ts';
import { GroupRefusal } from '../../../cluster/replica/group-refusal.ts';
import { type MemberNode, MemberWorld } from '../../support/simulated/member-world.ts';
import { clean, followersOf, leaderOf } from './cases.ts';

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
