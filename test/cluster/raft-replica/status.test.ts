// What a replica says of its group: who was heard when, who leads, whether a quorum answers.

import t from 'tap';
import { NO_ENTRY } from '../../../cluster/raft/log/entry.ts';
import { encodeGroupRecord } from '../../../cluster/replica/group-record.ts';
import { othersOf, startedGroup, write } from '../../support/simulated/group-actions.ts';
import { settled } from '../../support/simulated/simulated-world.ts';

const IDS = [1, 2, 3];

t.test('group record: is that of the last applied entry, before raft hears of it', async (test) => {
  const group = await startedGroup({ size: 1 });
  const { replica, register } = await group.elected();
  const record = replica!.groupRecord();
  // The first batch of a group of entries has landed.
  const groupRecord = encodeGroupRecord({ ...record, autopilotIndex: 7 });
  Object.defineProperty(register, 'groupRecord', { value: groupRecord });
  test.equal(replica!.groupRecord().autopilotIndex, 7);
  test.equal(replica!.groupRecord(), replica!.groupRecord(), 'it is decoded once');
});

t.test('status: says who was heard when, and who leads', async (test) => {
  const group = await startedGroup();
  const heard: string[] = [];
  for (const { id, replica } of group.nodes) {
    replica!.onLeaderChanged(() => heard.push(`${id}: ${replica!.groupStatus().leader}`));
  }
  const silenced: string[] = [];
  group.node(1).replica!.onLeaderChanged(() => silenced.push('heard'))();
  const leader = await group.elected();
  await group.run(1000);
  test.same(
    IDS.map((id) => heard.filter((line) => line.startsWith(`${id}:`)).at(-1)),
    IDS.map((id) => `${id}: ${leader.id}`),
  );
  test.same(silenced, []);
  const [dead, living] = othersOf(group, leader.id);
  const status = leader.replica!.groupStatus();
  test.equal(status.lastContactMs, 0);
  test.ok(status.hasCommittedInTerm);
  for (const { lastHeardMs, state, matchIndex } of status.followers) {
    test.ok(lastHeardMs !== undefined && lastHeardMs <= 110, `${lastHeardMs}`);
    test.equal(state, 'replicate');
    test.equal(matchIndex, leader.replica!.status().lastIndex);
  }
  const contactOf = (id: number): number | undefined =>
    group.node(id).replica!.groupStatus().lastContactMs;
  test.ok((contactOf(living!) ?? Number.NaN) <= 110);
  group.linksClose = false;
  group.crash(dead!);
  await group.run(1000);
  const gone = leader.replica!.groupStatus().followers.find(({ node }) => node === dead);
  test.ok((gone?.lastHeardMs ?? 0) >= 900);
  const isLost = (id: number): boolean | undefined =>
    leader.replica!.groupStatus().followers.find(({ node }) => node === id)?.isLost;
  test.equal(isLost(dead!), false, 'its link stands');
  leader.replica!.linkClosed(dead!);
  leader.replica!.linkClosed(living!);
  await settled();
  test.same([isLost(dead!), isLost(living!)], [true, true]);
  await group.run(200);
  test.same([isLost(dead!), isLost(living!)], [true, false], 'it was heard since');
  group.partition([leader.id], [living!]);
  await group.run(1000);
  // Not what a leader says, and not of this term.
  const { term } = leader.replica!.status();
  const words = { from: leader.id, to: living! };
  const no = { type: 'vote-reply', rejected: true, committed: NO_ENTRY } as const;
  group.node(living!).replica!.receive({ ...no, ...words, term });
  const beat = { type: 'heartbeat', ...words, commitIndex: 0, readCount: 0 } as const;
  group.node(living!).replica!.receive({ ...beat, term: term - 1 });
  await settled();
  test.ok(
    (contactOf(living!) ?? 0) >= 900,
    'it still believes, and says since when it heard nothing',
  );
  await group.run(3000);
  test.equal(contactOf(living!), undefined, 'now nobody leads');
});

t.test('status: a leader that hears no quorum says since when', async (test) => {
  const group = await startedGroup();
  const leader = await group.elected();
  await group.run(1000);
  const [one, other] = othersOf(group, leader.id);
  const contact = (): number | undefined => leader.replica!.lead().lastContactMs;
  group.partition([leader.id, one!], [other!]);
  await group.run(1000);
  test.equal(contact(), 0, 'one of two is enough');
  group.partition([leader.id], [one!, other!]);
  await group.run(1200);
  test.ok(leader.replica!.lead().isLeader, 'it does not know yet');
  test.ok((contact() ?? 0) >= 1100, `${contact()}`);
  group.heal();
  await group.run(3000);
  const leading = await group.elected();
  test.equal(leading.replica!.lead().lastContactMs, 0);
});

t.test(
  'status: a leader whose links are closed does not say that a quorum answers',
  async (test) => {
    const group = await startedGroup();
    const leader = await group.elected();
    await group.run(1000);
    group.partition([leader.id], othersOf(group, leader.id));
    for (const id of othersOf(group, leader.id)) leader.replica!.linkClosed(id);
    await group.run(50);
    test.ok((leader.replica!.lead().lastContactMs ?? 0) >= 50);
  },
);

t.test('status: heartbeats are not enough for whoever lacks what is committed', async (test) => {
  const group = await startedGroup();
  const leader = await group.elected();
  await group.run(1000);
  const [slow, away] = othersOf(group, leader.id);
  const contactOf = (id: number): number | undefined =>
    group.node(id).replica!.lead().lastContactMs;
  group.node(slow!).stateQueue.stall();
  void group.write(leader.id);
  await group.run(700);
  test.ok((contactOf(slow!) ?? 0) >= 600, `it applies nothing: ${contactOf(slow!)}`);
  group.node(slow!).stateQueue.resume();
  await group.run(300);
  test.ok((contactOf(slow!) ?? Number.NaN) <= 110, `${contactOf(slow!)}`);
  // Behind a link that was closed something is missing, and the way of what it is asked for is long.
  group.partition([leader.id, slow!], [away!]);
  group.node(away!).replica!.linkClosed(leader.id);
  leader.replica!.linkClosed(away!);
  void group.write(leader.id);
  await group.run(400);
  group.heal();
  let isTold = false;
  group.onSend = ({ type, to }) => {
    isTold ||= type === 'heartbeat' && to === away;
  };
  test.ok(await group.until(() => isTold, 200));
  group.node(away!).stateQueue.stall();
  await group.run(500);
  test.ok(
    (contactOf(away!) ?? 0) >= 900,
    `it is heard, and what it says not there: ${contactOf(away!)}`,
  );
  group.node(away!).stateQueue.resume();
  await group.run(300);
  test.ok((contactOf(away!) ?? Number.NaN) <= 110, `${contactOf(away!)}`);
  test.same(group.violations, []);
});

t.test(
  'status: heartbeats are not enough where the entries go lost, and the link stands',
  async (test) => {
    const group = await startedGroup();
    const leader = await group.elected();
    await group.run(1000);
    const [starved] = othersOf(group, leader.id);
    const contact = (): number => group.node(starved!).replica!.lead().lastContactMs ?? Number.NaN;
    group.isLost = ({ type, to }) => type === 'append' && to === starved;
    test.same(await write(group, leader.id), ['acked']);
    await group.run(4000);
    test.ok(contact() >= 1900, `it lacks what was written 4 s ago: ${contact()}`);
    group.isLost = () => false;
    await group.run(2000);
    test.ok(contact() <= 110, `${contact()}`);
    test.same(group.violations, []);
  },
);

t.test('status: what waited while the process stood still is as old as that', async (test) => {
  const group = await startedGroup();
  const leader = await group.elected();
  await group.run(1000);
  const [still, other] = othersOf(group, leader.id);
  const contactOf = (id: number): number => group.node(id).replica!.lead().lastContactMs ?? 0;
  // The leader stands still as soon as it has asked: it reads the answers of both when it goes on.
  group.onSend = ({ type, from }) => {
    if (type !== 'heartbeat' || from !== leader.id) return;
    group.onSend = () => undefined;
    group.pause(leader.id, 1300);
  };
  const isAsked = (): boolean => leader.pausedUntilMs > group.nowMs;
  test.ok(await group.until(isAsked, 500));
  await group.run(leader.pausedUntilMs - group.nowMs + 0.8);
  test.ok(leader.replica!.lead().isLeader);
  test.ok(contactOf(leader.id) >= 1200, `answers of long ago were read: ${contactOf(leader.id)}`);
  await group.run(500);
  test.equal(contactOf(leader.id), 0);
  group.pause(still!, 5000);
  await group.run(5000.8);
  test.ok(contactOf(still!) >= 4900, `heartbeats of long ago were read: ${contactOf(still!)}`);
  await group.run(500);
  test.ok(contactOf(still!) <= 110, `${contactOf(still!)}`);
  // Another leads when it wakes, which has said so while it stood still.
  group.pause(leader.id, 8000);
  await group.run(8000.1);
  test.ok(leader.replica!.lead().isLeader, 'it does not know yet');
  test.ok(contactOf(leader.id) >= 7900, `${contactOf(leader.id)}`);
  await group.run(0.7);
  test.not(leader.replica!.lead().isLeader, 'it has read');
  test.equal(
    leader.replica!.lead().lastContactMs,
    undefined,
    'and has nothing yet of what it read of',
  );
  await group.run(500);
  test.ok((leader.replica!.lead().lastContactMs ?? Number.NaN) <= 110);
  // It was the only one that stood still: the others were heard all the while.
  test.ok(contactOf(other!) <= 110);
  test.same(group.violations, []);
});
