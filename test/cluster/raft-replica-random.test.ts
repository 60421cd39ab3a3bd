// Groups of three and five under random faults of wire, disk, process and time. Whatever happens, what
// in-memory-group.ts checks must hold; and when everything is well again, the group must go on.
// One seed alone: CONCLAVE_SEED=<seed>; more of them: CONCLAVE_RUNS=<count>.

import { createHash } from 'node:crypto';
import t from 'tap';
import { adoptSha256 } from '../../cluster/platform/sha256.ts';
import { InMemoryGroup } from '../support/in-memory-group.ts';

const RUNS = Number(process.env.CONCLAVE_RUNS ?? 150);
const ONE_SEED = process.env.CONCLAVE_SEED;
const FIRST_SEED = ONE_SEED === undefined ? 1 : Number(ONE_SEED);
const STEPS = 60;

// Most of the time would go into hashes otherwise.
adoptSha256((bytes) => createHash('sha256').update(bytes).digest());

/** Small bounds, so that short runs meet them; but nothing is trimmed that a dead node may need. */
const LIMITS = {
  batchCountMax: 4,
  messageBytesMax: 120,
  inflightCountMax: 4,
  tailCountMax: 6,
  keptCount: 10_000,
};

/** One fault, or its end. */
const FAULTS: readonly ((group: InMemoryGroup, id: number) => Promise<void> | void)[] = [
  (group, id) => group.crash(id, { lands: group.chance(0.5) }),
  (group, id) => group.crash(group.leader()?.id ?? id),
  (group, id) => group.start(id),
  (group, id) => group.start(id),
  (group) => group.start(),
  (group, id) => group.pause(id, 100 + group.below(4000)),
  (group, id) => group.pause(group.leader()?.id ?? id, 3000 + group.below(3000)),
  (group, id) => group.node(id).disk.stall(),
  (group) => {
    for (const { disk } of group.nodes) disk.resume();
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

async function runSeed(seed: number): Promise<InMemoryGroup> {
  const group = new InMemoryGroup({ size: seed % 3 === 0 ? 5 : 3, seed, limits: LIMITS });
  group.linksClose = group.chance(0.7);
  const faultRate = group.chance(0.2) ? 0.05 : 0.3;
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
    for (let count = group.below(4); count > 0; count -= 1) {
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
    let [acked, unknown, refused, reads] = [0, 0, 0, 0];
    const count = ONE_SEED === undefined ? RUNS : 1;
    for (let seed = FIRST_SEED; seed < FIRST_SEED + count; seed += 1) {
      const group = await runSeed(seed);
      acked += group.acked.size;
      unknown += group.unknown.size;
      refused += group.refused.size;
      reads += group.readsDone;
      if (group.violations.length === 0) continue;
      const rerun = `CONCLAVE_SEED=${seed} node ${process.argv[1]}`;
      test.fail(`seed ${seed}: ${group.violations[0]}`, { rerun, violations: group.violations });
      if (ONE_SEED !== undefined)
        test.comment(group.nodes.map(({ log }) => log.join('\n')).join('\n\n'));
      return;
    }
    test.comment(
      `seeds ${FIRST_SEED}..${FIRST_SEED + count - 1}: ${acked} answered, ${unknown} unknown, ` +
        `${refused} refused, ${reads} reads`,
    );
    test.ok(ONE_SEED !== undefined || acked > 15 * count, 'writes got through');
    test.ok(ONE_SEED !== undefined || reads > 5 * count, 'reads got through');
  },
);
