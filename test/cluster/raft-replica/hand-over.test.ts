// A leader that leaves: whom it asks to lead, in which order, how long it waits; alone on a clock that stands
// still, then in whole groups.

import t from 'tap';
import { HandOver } from '../../../cluster/replica/leading/hand-over.ts';
import { successorsOf } from '../../../cluster/replica/leading/successors.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { electedGroup, othersOf, watched, write } from '../../support/simulated/group-actions.ts';
import { settled } from '../../support/simulated/simulated-world.ts';

const SELF = 1;

/** A hand-over that asks nobody but notes whom it would. */
function aHandOver(successors: readonly number[]) {
  const clock = new FakeClock();
  const asked: number[] = [];
  const handOver = new HandOver({
    self: SELF,
    clock,
    tryMs: 500,
    limitMs: 1500,
    successors: () => successors,
    transfer: (to) => asked.push(to),
  });
  return { clock, asked, handOver };
}

t.test('hand-over: asks the best one, and ends when another leads', async (test) => {
  const { asked, clock, handOver } = aHandOver([2, 3]);
  const result = watched(handOver.begin());
  handOver.onLeader(SELF);
  handOver.onLeader(0);
  clock.advance(1000);
  await settled();
  test.same([asked, result.result], [[2], undefined], 'somebody campaigns: nobody else is asked');
  handOver.onLeader(3);
  await settled();
  test.equal(result.result, 'done');
  test.equal(clock.pendingCount, 0);
});

t.test('hand-over: tries the next one when one is gone, or does not take over', async (test) => {
  const { asked, clock, handOver } = aHandOver([2, 3, 4]);
  const result = watched(handOver.begin());
  handOver.onLinkClosed(4);
  test.same(asked, [2]);
  handOver.onLinkClosed(2);
  test.same(asked, [2, 3], 'at once when its link closes');
  clock.advance(499);
  test.same(asked, [2, 3]);
  clock.advance(1);
  test.same(asked, [2, 3, 4]);
  clock.advance(999);
  await settled();
  test.equal(result.result, undefined, 'the last one has all the time that is left');
  clock.advance(1);
  await settled();
  test.equal(result.result, 'not-in-time');
  test.same(asked, [2, 3, 4, SELF], 'it leads on');
  test.equal(clock.pendingCount, 0);
});

t.test('hand-over: waits for nobody who cannot', async (test) => {
  const nobody = aHandOver([]);
  test.equal(await nobody.handOver.begin(), 'nobody');
  const stranger = aHandOver([2, 3]);
  test.equal(await stranger.handOver.begin(4), 'nobody');
  const gone = aHandOver([2]);
  const result = watched(gone.handOver.begin());
  gone.handOver.onLinkClosed(2);
  await settled();
  test.equal(result.result, 'not-in-time');
  test.same(gone.asked, [2, SELF]);
  for (const { clock } of [nobody, stranger, gone]) test.equal(clock.pendingCount, 0);
});

t.test('hand-over: to one voter asks no other; a newer one takes its place', async (test) => {
  const { asked, clock, handOver } = aHandOver([2, 3]);
  const first = watched(handOver.begin(3));
  clock.advance(1400);
  test.same(asked, [3]);
  const second = watched(handOver.begin());
  await settled();
  test.same([first.result, asked], ['not-in-time', [3, 2]]);
  handOver.stop();
  await settled();
  test.equal(second.result, 'not-in-time');
  test.equal(clock.pendingCount, 0);
});

t.test(
  'successors: voters that are there, those heard lately first, then by their logs',
  (test) => {
    const silenceMs = new Map([
      [2, 50],
      [3, 50],
      [4, 700],
      [5, 50],
      [6, 50],
      [7, 1600],
    ]);
    const progress = [1, 2, 3, 4, 5, 6, 7, 8].map(
      (node) => [node, { isLearner: node === 5, matchIndex: node === 4 ? 99 : node }] as const,
    );
    const found = successorsOf({
      self: SELF,
      progress,
      contact: { hasLost: (node) => node === 6, sinceMs: (node) => silenceMs.get(node) },
      freshMs: 300,
      goneMs: 1500,
    });
    test.same(found, [3, 2, 4]);
    test.end();
  },
);

t.test('leaving: right after the leader has checked its quorum, too', async (test) => {
  for (let round = 1; round <= 16; round += 1) {
    const { group, leader } = await electedGroup();
    let heartbeats = 0;
    let closedAtMs = 0;
    // Two at each tick, one of which has just begun to count anew who was heard.
    group.onSend = ({ type }) => {
      if (type === 'heartbeat') heartbeats += 1;
      if (heartbeats !== 2 * round || closedAtMs > 0) return;
      closedAtMs = group.nowMs;
      void leader.replica!.close();
    };
    await group.until(() => (group.leader() ?? leader) !== leader);
    const tookMs = group.nowMs - closedAtMs;
    if (tookMs > 50) test.fail(`round ${round}: ${tookMs} ms without a leader`);
  }
});

t.test(
  'leaving: one that stands still is not asked first, one that is gone not at all',
  async (test) => {
    for (const fault of ['pause', 'crash'] as const) {
      const { group, leader } = await electedGroup();
      const [bad, good] = othersOf(group, leader.id) as [number, number];
      // It has the longest log.
      group.partition([leader.id, bad], [good]);
      await write(group, leader.id, 3);
      group.heal();
      if (fault === 'pause') group.pause(bad, 30_000);
      else group.crash(bad);
      await group.run(350);
      const atMs = group.nowMs;
      void leader.replica!.close();
      await group.until(() => group.leader()?.id === good);
      test.ok(group.nowMs - atMs <= 50, `${fault}: ${group.nowMs - atMs} ms without a leader`);
      test.same(group.violations, []);
    }
  },
);

t.test('leaving: when one that was just asked dies, the next one is', async (test) => {
  const { group, leader } = await electedGroup({ size: 5 });
  const atMs = group.nowMs;
  let asked = 0;
  group.onSend = ({ type, to }) => {
    if (type !== 'timeout-now' || asked > 0) return;
    asked = to;
    group.crash(to);
  };
  const closed = watched(leader.replica!.close().then(() => 'closed'));
  await group.until(() => ![leader.id, asked, undefined].includes(group.leader()?.id));
  test.ok(asked > 0);
  test.ok(group.nowMs - atMs <= 100, `${group.nowMs - atMs} ms without a leader`);
  await group.until(() => closed.result !== undefined);
  group.crash(leader.id);
  await group.settle();
  test.same(group.violations, []);
});

t.test('leaving: who gave up too late does not ask to lead again', async (test) => {
  const { group, leader } = await electedGroup();
  const [follower] = othersOf(group, leader.id) as [number, number];
  const sent: string[] = [];
  group.onSend = ({ type }) => sent.push(type);
  // What a hand-over says when it gives up; another leads by now.
  group.node(follower).replica!.transferLeadership(follower);
  await group.run(500);
  test.notOk(sent.includes('transfer-leader'));
  test.equal(group.leader(), leader);
});

t.test('leaving: the last of a group waits for nobody', async (test) => {
  const { group, leader } = await electedGroup();
  for (const id of othersOf(group, leader.id)) group.crash(id);
  await group.run(20);
  const atMs = group.nowMs;
  const closed = watched(leader.replica!.close().then(() => 'closed'));
  await group.until(() => closed.result !== undefined);
  test.ok(group.nowMs - atMs <= 20, `it took ${group.nowMs - atMs} ms`);
});
