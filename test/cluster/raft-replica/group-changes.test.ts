// Changes of who belongs to a group, one situation at a time: nodes join, are promoted, replaced and
// removed while it takes writes. What must hold everywhere is checked by the group itself.

import t from 'tap';
import { isJoint } from '../../../cluster/raft/membership/membership.ts';
import {
  LEAVE_JOINT,
  type MembershipChange,
} from '../../../cluster/raft/membership/membership-change.ts';
import { DEFAULT_AUTOPILOT, encodeGroupContext } from '../../../cluster/replica/group-record.ts';
import {
  change,
  electedGroup,
  othersOf,
  read,
  startedGroup,
  watched,
  write,
} from '../../support/simulated/group-actions.ts';
import { changeOf, memberRecordOf } from '../../support/simulated/group-members.ts';
import { CALM, type InMemoryGroup } from '../../support/simulated/in-memory-group.ts';
import { settled } from '../../support/simulated/simulated-world.ts';

function votersAt(group: InMemoryGroup, id: number): readonly number[] {
  return group.node(id).replica!.groupRecord().membership.voters;
}

t.test(
  'joining: a node without a log hears the leader, catches up, and then votes',
  async (test) => {
    const { group, leader } = await electedGroup({ size: 1 });
    await write(group, leader.id, 20);
    const joiner = group.addNode();
    await group.start(joiner.id);
    await group.run(3000);
    const { replica } = joiner;
    test.same([replica!.status().standing, replica!.status().term], ['follower', 0]);
    test.notOk(replica!.groupStatus().isMember);
    test.equal(await read(group, joiner.id), 'refused', 'it knows of no leader');

    const changed: string[] = [];
    replica!.onGroupChanged(() => changed.push(votersAt(group, joiner.id).join()));
    test.match(await change(group, leader.id, changeOf(['add-learner', 2])), {
      membership: { voters: [1], learners: [2] },
      members: [memberRecordOf(1), memberRecordOf(2)],
    });
    await group.until(() => joiner.register.applied.length === leader.register.applied.length);
    test.equal(replica!.status().standing, 'learner');
    test.ok(replica!.groupStatus().isMember);
    test.equal(await read(group, joiner.id), 'done');
    test.same(replica!.groupRecord().members, [memberRecordOf(1), memberRecordOf(2)]);

    test.match(await change(group, leader.id, changeOf(['add-voter', 2])), {
      membership: { voters: [1, 2], learners: [] },
    });
    await group.until(() => votersAt(group, 2).length === 2);
    test.same(changed.at(-1), '1,2');
    // Now both are needed.
    group.partition([1], [2]);
    const lonely = watched(group.write(1));
    await group.run(4000);
    test.equal(lonely.result, 'unknown');
    await group.settle();
    test.same(group.violations, []);
  },
);

t.test('changes: are refused by who does not lead, with the leader named', async (test) => {
  const { group, leader } = await electedGroup();
  const [other] = othersOf(group, leader.id);
  const asked = group.node(other!).replica!.proposeMembership(changeOf(['remove', 1]));
  await test.rejects(asked, { name: 'GroupRefusal', code: 'not-leader', leader: leader.id });
  await group.settle();
  test.same(group.violations, []);
});

t.test('changes: one at a time', async (test) => {
  const { group, leader } = await electedGroup();
  const { replica } = leader;
  const first = watched(group.change(leader.id, changeOf(['update', leader.id])));
  const asked = replica!.proposeMembership(changeOf(['update', leader.id]));
  await test.rejects(asked, { code: 'change-in-flight' });
  await group.until(() => first.result !== undefined);
  test.equal(first.result, 'acked');

  // A joint state that somebody must leave by hand stands in the way of all others.
  const [next] = othersOf(group, leader.id);
  const explicit: MembershipChange = { ...changeOf(['update', next!]), transition: 'explicit' };
  test.match(await change(group, leader.id, explicit), {
    membership: { voters: [1, 2, 3], votersOutgoing: [1, 2, 3] },
  });
  const blocked = await change(group, leader.id, changeOf(['remove', next!]));
  test.equal(blocked, 'change-in-flight');
  test.match(await change(group, leader.id, LEAVE_JOINT), {
    membership: { votersOutgoing: { length: 0 } },
  });
  await group.settle();
  test.same(group.violations, []);
});

t.test('changes: not before the leader has committed in its term', async (test) => {
  const { group, leader: old } = await electedGroup();
  const [next, other] = othersOf(group, old.id);
  // The next leader gets its votes, and no entry through.
  group.onSend = ({ type, from }) => {
    if (from === next && type === 'append') group.partition([next], [old.id], [other!]);
  };
  old.replica!.transferLeadership(next!);
  await group.until(() => group.node(next!).replica!.status().standing === 'leader');
  const { replica } = group.node(next!);
  test.notOk(replica!.groupStatus().hasCommittedInTerm);
  const { lastIndex } = replica!.status();
  test.equal(await change(group, next!, changeOf(['remove', old.id])), 'change-in-flight');
  test.equal(replica!.status().lastIndex, lastIndex, 'nothing was proposed');
  group.onSend = () => undefined;
  await group.settle();
  test.same(group.violations, []);
});

t.test(
  'changes: what does not fit the group, or cannot be read, is refused and not logged',
  async (test) => {
    const { group, leader } = await electedGroup({ size: 1 });
    const { lastIndex } = leader.replica!.status();
    const unfit: readonly (readonly [MembershipChange, string])[] = [
      [changeOf(['remove', 1]), 'refused'],
      [changeOf(['add-learner', 1]), 'refused'],
      [LEAVE_JOINT, 'refused'],
      [{ ...changeOf(['update', 1]), context: Buffer.from([0x91, 7]) }, 'refused'],
      [{ ...changeOf(['update', 1]), context: Buffer.from('garbage') }, 'refused'],
      [{ ...changeOf(['update', 1]), context: Buffer.alloc(65 * 1024) }, 'too-large'],
      [changeOf(...Array.from({ length: 256 }, () => ['update', 1] as const)), 'too-large'],
    ];
    for (const [each, code] of unfit) test.equal(await change(group, leader.id, each), code);
    test.equal(leader.replica!.status().lastIndex, lastIndex);
    test.same(leader.fatal, undefined);
    await group.settle();
    test.same(group.violations, []);
  },
);

t.test('changes: settings and addresses alone go through every node', async (test) => {
  const { group, leader } = await electedGroup();
  const autopilot = { ...DEFAULT_AUTOPILOT, cleanupDeadServers: false };
  const moved = { ...memberRecordOf(2), address: { host: 'elsewhere', port: 4 } };
  const context = encodeGroupContext({ autopilot, members: [moved] });
  const changes = [{ kind: 'update' as const, node: leader.id }];
  test.match(await change(group, leader.id, { transition: 'auto', changes, context }), {
    autopilot,
    autopilotIndex: 1,
  });
  await group.run(500);
  for (const { replica } of group.nodes) {
    test.match(replica!.groupRecord(), { autopilot, autopilotIndex: 1 });
    test.same(replica!.groupRecord().members[1], moved);
  }
  await group.settle();
  test.same(group.violations, []);
});

t.test('changes: of a leader that is cut off are unknown, and the group decides', async (test) => {
  const { group, leader: old } = await electedGroup();
  const joiner = group.addNode();
  await group.start(joiner.id);
  group.partition(
    [old.id, joiner.id],
    othersOf(group, old.id).filter((id) => id < 4),
  );
  const lost = watched(group.change(old.id, changeOf(['add-voter', joiner.id])));
  await group.until(() => lost.result !== undefined);
  test.equal(lost.result, 'unknown');
  await group.settle();
  test.same(
    group.members().map(({ id }) => id),
    [1, 2, 3],
  );
  test.same(group.violations, []);
});

t.test(
  'replacing: is through when the joint state is left and a quorum of the new group knows',
  async (test) => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const { group, leader } = await electedGroup({ seed });
      const [gone, stays] = othersOf(group, leader.id);
      const joiner = group.addNode();
      await group.start(joiner.id);
      const replaced = await change(
        group,
        leader.id,
        changeOf(['add-voter', joiner.id], ['remove', gone!]),
      );
      test.match(replaced, { membership: { votersOutgoing: { length: 0 }, autoLeave: false } });
      // Whoever is left of the new group goes on, whatever it had heard before.
      group.crash(gone!);
      group.crash(leader.id);
      const left = [stays!, joiner.id];
      const leads = (): boolean => left.includes(group.leader()?.id ?? 0);
      test.ok(await group.until(leads), `seed ${seed}: ${left} go on`);
      test.same(await write(group, group.leader()!.id), ['acked']);
      await group.settle();
      test.same(group.violations, [], `seed ${seed}`);
    }
  },
);

t.test('removing: is through when a quorum of those who stay knows', async (test) => {
  for (let seed = 1; seed <= 20; seed += 1) {
    const { group, leader } = await electedGroup({ seed, size: 4 });
    const [gone, ...stay] = othersOf(group, leader.id);
    group.wire = { ...CALM, lossRate: 0.4 };
    test.match(await change(group, leader.id, changeOf(['remove', gone!])), {});
    group.wire = CALM;
    group.crash(gone!);
    group.crash(leader.id);
    // Of the four that they were, two would be too few.
    const leads = (): boolean => stay.includes(group.leader()?.id ?? 0);
    test.ok(await group.until(leads), `seed ${seed}: ${stay} go on`);
    await group.settle();
    test.same(group.violations, [], `seed ${seed}`);
  }
});

t.test('replacing: of a leader that is cut off half way is unknown', async (test) => {
  const { group, leader } = await electedGroup();
  const [gone] = othersOf(group, leader.id);
  const joiner = group.addNode();
  await group.start(joiner.id);
  group.onSend = () => {
    if (!isJoint(leader.replica!.groupRecord().membership)) return;
    group.partition([leader.id], othersOf(group, leader.id));
  };
  const asked = changeOf(['add-voter', joiner.id], ['remove', gone!]);
  const half = watched(group.change(leader.id, asked));
  await group.until(() => half.result !== undefined);
  test.equal(half.result, 'unknown');
  group.onSend = () => undefined;
  await group.settle();
  const left = (): boolean => !isJoint(group.leader()!.replica!.groupRecord().membership);
  test.ok(await group.until(left), 'the next leader leaves the joint state');
  test.same(group.violations, []);
});

t.test(
  'removing: a leader that is to go hands over first, and names its successor',
  async (test) => {
    const { group, leader } = await electedGroup();
    await write(group, leader.id, 5);
    const atMs = group.nowMs;
    const asked = leader.replica!.proposeMembership(changeOf(['remove', leader.id]));
    const seen = watched(asked);
    await group.until(() => seen.result !== undefined);
    await test.rejects(asked, { name: 'GroupRefusal', code: 'not-leader' });
    const successor = group.leader()!;
    test.not(successor, leader);
    test.ok(group.nowMs - atMs < 200, `it took ${group.nowMs - atMs} ms`);
    await asked.catch((error: { leader: number }) => test.equal(error.leader, successor.id));
    await group.until(() => successor.replica!.groupStatus().hasCommittedInTerm);
    test.match(await change(group, successor.id, changeOf(['remove', leader.id])), {
      members: othersOf(group, leader.id).map(memberRecordOf),
    });
    await group.settle();
    test.same(group.violations, []);
  },
);

t.test('removing: a leader that nobody can succeed stays', async (test) => {
  const { group, leader } = await electedGroup();
  const others = othersOf(group, leader.id);
  const both = changeOf(['remove', leader.id], ['remove', others[0]!]);
  group.linksClose = false;
  group.crash(others[1]!);
  // Of those that stay nobody is heard of after a while.
  await group.run(4000);
  test.equal(await change(group, leader.id, both), 'refused');
  test.equal(group.leader(), leader);
  // Who is asked to succeed may not get the word.
  group.onSend = ({ type }) => {
    if (type === 'timeout-now') group.partition([leader.id], [others[0]!]);
    else group.heal();
  };
  test.equal(await change(group, leader.id, changeOf(['remove', leader.id])), 'change-in-flight');
  test.same(await write(group, leader.id), ['acked'], 'it leads on');
  group.onSend = () => undefined;
  await group.settle();
  test.same(group.violations, []);
});

t.test('removing: who is out is told by its status, and campaigns no more', async (test) => {
  const { group, leader } = await electedGroup();
  const [gone] = othersOf(group, leader.id);
  await change(group, leader.id, changeOf(['remove', gone!]));
  await group.until(() => !group.node(gone!).replica!.groupStatus().isMember);
  const { term } = leader.replica!.status();
  group.onSend = ({ type, from }) => {
    if (from === gone && type.includes('vote')) test.fail(`it sent ${type}`);
  };
  group.node(gone!).replica!.linkClosed(leader.id);
  await group.run(10_000);
  test.equal(leader.replica!.status().term, term, 'it disturbs nobody');
  test.equal(group.node(gone!).replica!.status().standing, 'follower');
  group.crash(gone!);
  await group.start(gone!);
  await group.run(10_000);
  test.notOk(group.node(gone!).replica!.groupStatus().isMember, 'nor after a restart');
  await group.settle();
  test.same(group.violations, []);
});

t.test('removing: down to one, who then leads at once at every start', async (test) => {
  const { group, leader } = await electedGroup();
  for (const id of othersOf(group, leader.id)) {
    test.equal(typeof (await change(group, leader.id, changeOf(['remove', id]))), 'object');
    group.crash(id);
  }
  test.same(await write(group, leader.id), ['acked']);
  for (let round = 0; round < 3; round += 1) {
    group.crash(leader.id);
    const atMs = group.nowMs;
    await group.start(leader.id);
    await group.until(() => group.leader() !== undefined);
    test.ok(group.nowMs - atMs < 100, `after ${group.nowMs - atMs} ms`);
    test.same(await write(group, leader.id), ['acked']);
  }
  await group.settle();
  test.same(group.violations, []);
});

/** A whole life of changes; the outcome of each step is for the group to say. */
async function lifeOfChanges(group: InMemoryGroup): Promise<void> {
  const steps: readonly MembershipChange[] = [
    changeOf(['add-learner', 4]),
    changeOf(['add-voter', 4]),
    changeOf(['add-voter', 5], ['remove', 3]),
    changeOf(['remove', 2]),
    changeOf(['update', 4]),
  ];
  for (const step of steps) {
    const leader = group.leader();
    if (leader !== undefined) void group.change(leader.id, step);
    if (leader !== undefined) void group.write(leader.id);
    await group.run(400);
  }
}

t.test(
  'restart: a node that ends at any write of any change comes back, and nothing is lost',
  async (test) => {
    let crashes = 0;
    for (const store of ['queue', 'stateQueue'] as const) {
      for (let at = 1; at <= 24; at += 1) {
        const lands = at % 2 === 0;
        const { group } = await electedGroup({ seed: at });
        group.addNode();
        group.addNode();
        await group.start();
        const victim = group.node(1 + (at % 5));
        const queue = victim[store];
        const atCount = queue.writeCount + Math.ceil(at / 2);
        queue.onWrite = (count) => {
          if (count !== atCount) return;
          crashes += 1;
          void settled().then(() => group.crash(victim.id, { lands }));
        };
        await lifeOfChanges(group);
        await group.start(victim.id);
        await lifeOfChanges(group);
        await group.settle();
        test.same(group.violations, [], `${store}, write ${at}`);
      }
    }
    test.ok(crashes > 30, `${crashes} crashes`);
  },
);

t.test(
  'close: a change that is under way ends as unknown, one that is asked for late is refused',
  async (test) => {
    const group = await startedGroup();
    const leader = await group.elected();
    await group.run(300);
    for (const id of othersOf(group, leader.id)) group.crash(id);
    const underWay = watched(leader.replica!.proposeMembership(changeOf(['update', leader.id])));
    await group.run(20);
    const closed = watched(leader.replica!.close());
    await test.rejects(leader.replica!.proposeMembership(changeOf(['update', leader.id])), {
      code: 'closed',
    });
    await group.until(() => closed.result !== undefined || underWay.result !== undefined);
    await group.run(2000);
    test.match(underWay.result, /the node ended under way|lost its leadership/);
  },
);
