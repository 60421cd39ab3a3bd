// Groups under random faults of wire, disk, process and time, whose members come and go and whose logs
// are too short for those who lag behind. Whatever happens, what group-checks.ts looks at must hold; and
// when everything is well again, the group must go on.
// One seed alone: CONCLAVE_SEED=<seed>; more of them: CONCLAVE_RUNS=<count>, from CONCLAVE_SEED on if given.

import { createHash } from 'node:crypto';
import t from 'tap';
import { adoptSha256 } from '../../../cluster/platform/sha256.ts';
import { isJoint } from '../../../cluster/raft/membership/membership.ts';
import {
  LEAVE_JOINT,
  type MembershipChange,
} from '../../../cluster/raft/membership/membership-change.ts';
import { changeOf } from '../../support/simulated/group-members.ts';
import { InMemoryGroup } from '../../support/simulated/in-memory-group.ts';

const FIRST_SEED = Number(process.env.CONCLAVE_SEED ?? 1);
const COUNT_GIVEN = process.env.CONCLAVE_RUNS;
const IS_REPLAY = process.env.CONCLAVE_SEED !== undefined && COUNT_GIVEN === undefined;
const COUNT = IS_REPLAY ? 1 : Number(COUNT_GIVEN ?? 150);
const STEPS = 60;
const NODES_MAX = 8;

// Most of the time would go into hashes otherwise.
adoptSha256((bytes) => createHash('sha256').update(bytes).digest());

/** Small bounds, so that short runs meet them. */
const LIMITS = {
  batchCountMax: 4,
  messageBytesMax: 120,
  inflightCountMax: 4,
  tailCountMax: 6,
};
/** Nothing is trimmed that a dead node may need; or so much that whoever rests needs a snapshot. */
const LONG_LOG = { keptCount: 10_000 };
const SHORT_LOG = { keptCount: 5, heldCountMax: 30 };

/** One fault, or its end. */
const FAULTS: readonly ((group: InMemoryGroup, id: number) => Promise<void> | void)[] = [
  (group, id) => group.crash(id, { lands: group.chance(0.5) }),
  (group) => crashSoon(group, group.leader()?.id ?? 1),
  (group, id) => crashSoon(group, id),
  (group, id) => group.crash(group.leader()?.id ?? id),
  (group, id) => group.start(id),
  (group, id) => group.start(id),
  (group) => group.start(),
  (group, id) => group.pause(id, 100 + group.below(4000)),
  (group, id) => group.pause(group.leader()?.id ?? id, 3000 + group.below(3000)),
  (group, id) => group.node(id).queue.stall(),
  (group, id) => group.node(id).stateQueue.stall(),
  (group) => {
    for (const { queue, stateQueue } of group.nodes) {
      queue.resume();
      stateQueue.resume();
    }
  },
  (group, id) => {
    group.partition(
      [id],
      group.nodes.map((node) => node.id).filter((each) => each !== id),
    );
  },
  (group) => {
    const side = group.nodes.map((node) => node.id).filter(() => group.chance(0.5));
    const other = group.nodes.map((node) => node.id).filter((each) => !side.includes(each));
    group.partition(side, other);
  },
  (group) => group.heal(),
  (group) => group.heal(),
  (group, id) => group.node(id).replica?.linkClosed(1 + group.below(group.nodes.length)),
  (group, id) => group.node(id).replica?.transferLeadership(1 + group.below(group.nodes.length)),
];

/** At one of its next writes, before or after it lands. */
function crashSoon(group: InMemoryGroup, id: number): void {
  const node = group.node(id);
  const queue = group.chance(0.5) ? node.queue : node.stateQueue;
  const atCount = queue.writeCount + 1 + group.below(12);
  queue.onWrite = (count) => {
    if (count < atCount) return;
    queue.onWrite = () => undefined;
    const { life } = node;
    const lands = group.chance(0.5);
    // Not within the turn that begins the write.
    setImmediate(() => {
      if (node.life === life) group.crash(id, { lands });
    });
  };
}

/** A node that may join: a new one, or one that was removed and still has its disk. */
async function newcomer(group: InMemoryGroup): Promise<number> {
  const members = group.members().map(({ id }) => id);
  const outside = group.nodes.filter(({ id }) => !members.includes(id));
  const { id } = group.nodes.length < NODES_MAX ? group.addNode() : (outside[0] ?? group.nodes[0]!);
  await group.start(id);
  return id;
}

/** Changes of the group; whether they fit it is for the group to say. */
const CHANGES: readonly ((
  group: InMemoryGroup,
  id: number,
) => Promise<MembershipChange> | MembershipChange)[] = [
  async (group) => changeOf(['add-learner', await newcomer(group)]),
  async (group) => changeOf(['add-voter', await newcomer(group)]),
  (_, id) => changeOf(['add-voter', id]),
  (_, id) => changeOf(['add-voter', id]),
  (_, id) => changeOf(['add-learner', id]),
  (_, id) => changeOf(['update', id]),
  (_, id) => changeOf(['remove', id]),
  async (group, id) => changeOf(['add-voter', await newcomer(group)], ['remove', id]),
  async (group, id) => changeOf(['add-learner', id], ['add-voter', await newcomer(group)]),
  (_, id) => ({ ...changeOf(['add-learner', id], ['update', id]), transition: 'explicit' }),
  () => LEAVE_JOINT,
  () => LEAVE_JOINT,
];

async function changeGroup(group: InMemoryGroup): Promise<void> {
  const leader = group.leader();
  const members = group.members();
  const { id } = members[group.below(members.length)] ?? group.nodes[0]!;
  const record = leader?.replica?.groupRecord();
  const isStuck = record !== undefined && isJoint(record.membership) && group.chance(0.5);
  const wanted = CHANGES[group.below(CHANGES.length)]!;
  void group.change(leader?.id ?? id, isStuck ? LEAVE_JOINT : await wanted(group, id));
}

async function runSeed(seed: number): Promise<InMemoryGroup> {
  const logLimits = seed % 4 === 0 ? LONG_LOG : SHORT_LOG;
  const size = seed % 5 === 0 ? 1 : seed % 3 === 0 ? 5 : 3;
  const group = new InMemoryGroup({ size, seed, limits: { ...LIMITS, ...logLimits } });
  group.linksClose = group.chance(0.7);
  const faultRate = [0.05, 0.05, 0.15, 0.3, 0.3][group.below(5)]!;
  const changeRate = group.chance(0.3) ? 0 : 0.2;
  group.wire = {
    lossRate: group.chance(0.5) ? 0 : 0.2,
    doubleRate: group.chance(0.5) ? 0 : 0.2,
    minMs: 1,
    maxMs: group.chance(0.5) ? 5 : 150,
  };
  group.diskMs = group.chance(0.7) ? [1, 10] : [1, 400];
  if (group.chance(0.5)) group.slowDiskId = 1 + group.below(group.nodes.length);
  await group.start();
  await group.run(2500);
  for (let step = 0; step < STEPS; step += 1) {
    const id = 1 + group.below(group.nodes.length);
    if (group.chance(faultRate)) await FAULTS[group.below(FAULTS.length)]!(group, id);
    if (group.chance(changeRate)) await changeGroup(group);
    for (let count = group.below(6); count > 0; count -= 1) {
      const leader = group.leader()?.id ?? id;
      void group.write(group.chance(0.8) ? leader : id);
    }
    if (group.chance(0.5)) void group.read(1 + group.below(group.nodes.length));
    // Two may believe that they lead: neither may give a stale read.
    for (const { id: each, replica } of group.nodes) {
      if (replica?.status().standing === 'leader') void group.read(each);
    }
    await group.run(group.below(200));
  }
  await group.settle();
  return group;
}

t.test(
  'random groups: promises hold under all faults, and the healed group goes on',
  async (test) => {
    let [acked, unknown, refused, reads, changes, snapshots] = [0, 0, 0, 0, 0, 0];
    for (let seed = FIRST_SEED; seed < FIRST_SEED + COUNT; seed += 1) {
      const group = await runSeed(seed);
      acked += group.acked.size;
      unknown += group.unknown.size;
      refused += group.refused.size;
      reads += group.readsDone;
      changes += group.changesDone;
      for (const { register } of group.nodes) snapshots += register.adoptedCount;
      if (group.violations.length === 0) continue;
      const rerun = `CONCLAVE_SEED=${seed} node ${process.argv[1]}`;
      test.fail(`seed ${seed}: ${group.violations[0]}`, { rerun, violations: group.violations });
      if (IS_REPLAY) test.comment(group.nodes.map(({ log }) => log.join('\n')).join('\n\n'));
      return;
    }
    test.comment(
      `seeds ${FIRST_SEED}..${FIRST_SEED + COUNT - 1}: ${acked} answered, ${unknown} unknown, ` +
        `${refused} refused, ${reads} reads, ${changes} changes, ${snapshots} snapshots`,
    );
    if (IS_REPLAY) return;
    test.ok(acked > 15 * COUNT, 'writes got through');
    test.ok(reads > 5 * COUNT, 'reads got through');
    test.ok(changes > COUNT, 'changes of the group got through');
    test.ok(snapshots > COUNT / 2, 'snapshots were taken in');
  },
);
