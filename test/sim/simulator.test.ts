// The simulator on itself: runs follow from their seeds, what gets in from outside is noticed, a finding
// comes with the shortest run that shows it; and a few runs of the product, with those that once failed.

import { join } from 'node:path';
import t from 'tap';
import { Pool } from '../../scripts/sim/pool.ts';
import { Print } from '../../scripts/sim/print.ts';
import { seedRange } from '../../scripts/sim/seed-range.ts';
import { sweep } from '../../scripts/sim/sweep.ts';
import type { Runner, Task } from '../../scripts/sim/tasks.ts';
import { type Cuts, cut } from './run/cuts.ts';
import { drawOptions, SUBJECT_NAMES, type SubjectName } from './run/run-options.ts';

/** With all that was drawn when they were found: more is drawn since. */
const WHOLE: Cuts = {
  ...{ keepsAll: false, hasNoDeputies: false, hasNoGrants: false, hasNoExiles: false },
  ...{ hasNoRestores: false, hasNoForks: false, hasNoPutBacks: false, areAllNew: false },
};

const WITH_ALL_DRAWS: Cuts = {
  ...{ ...WHOLE, hasNoLocalRights: false, hasNoAbsences: false, hasNoRushes: false },
  ...{ hasNoForeigners: false, hasNoChangedTokens: false, hasNoPairs: false },
};

/** Runs that found something: a fault of the product or of the simulator itself. */
const SAVED: readonly {
  readonly seed: number;
  readonly subject: SubjectName;
  readonly cuts: Cuts;
  /** Of datacenters; 3 where nothing is said. */
  readonly siteCount?: number;
}[] = [
  // A stale read was judged by what its machine said of itself, while the rows were further.
  { seed: 300_173, subject: 'replica', cuts: { only: [] } },
  { seed: 301_651, subject: 'replica', cuts: { only: [] } },
  // A log that had lost its beginning, and with it all entries, was founded anew over what it had committed.
  { seed: 900_716, subject: 'replica', cuts: { only: [0, 2, 4, 5, 9], safetyMs: 2901 } },
  // Clients lost questions of their own accord while the healed group was to answer in time.
  { seed: 1061, subject: 'node', cuts: { only: [9] } },
  // A repeated request took effect once more: a leader with another clock held its first time for old.
  { seed: 10_080, subject: 'node', cuts: { only: [1, 3, 5, 6, 7, 8, 9, 13], clientCount: 2 } },
  { seed: 10_161, subject: 'node', cuts: { only: [1, 2, 4, 5] } },
  // A clock half an hour slow, and a repeat at the next leader.
  { seed: 50_103, subject: 'node', cuts: { only: [0, 6], clientCount: 1 } },
  // Five servers whose founder was killed in the middle of it missed each other's rounds for ever.
  { seed: 101_098, subject: 'node', cuts: { only: [0, 8, 27], clientCount: 1 } },
  // A write that lay behind a cut line took effect two reigns later, long after its client was refused.
  { seed: 102_275, subject: 'node', cuts: { only: [1, 2, 6, 8, 11, 12, 13], clientCount: 3 } },
  // A forced reign began in an epoch that another datacenter had just promised to itself.
  {
    seed: 1035,
    subject: 'datacenters',
    cuts: { only: [5, 6, 7], clientCount: 1, safetyMs: 9174 },
  },
  // What the next primary refused was taken for an answer about the entry that was set apart.
  {
    seed: 1025,
    subject: 'datacenters',
    cuts: { only: [0, 1, 2, 6, 7, 9, 10, 11], clientCount: 4 },
  },
  // A server whose disk stood still let a client believe that it had what its leader had written.
  { seed: 3011, subject: 'datacenters', cuts: { only: [1, 2, 3, 4, 5, 6, 8, 10, 11, 13] } },
  // Two primaries of the past were asked; what the first one did was forgotten over what the second one said.
  { seed: 3041, subject: 'datacenters', cuts: { only: [4, 6, 7, 8, 16, 17, 21, 24] } },
  // A primary that had taken a snapshot knew nothing of the requests that had led there, and did one again.
  {
    seed: 20_353,
    subject: 'datacenters',
    cuts: {
      only: [
        ...[4, 5, 6, 8, 9, 11, 12, 13, 14, 16, 17, 19, 20, 23, 26, 29, 30, 31, 33, 34, 38, 45, 46],
        ...[55, 56, 58, 63],
      ],
    },
  },
  // A witness had more than the only other datacenter that was left, gave it to nobody, and nobody was elected.
  { seed: 80_125, subject: 'datacenters', cuts: {} },
  // The primary was lost, and whoever had most stood on a fork: nobody could be elected without it, nor it.
  { seed: 121_881, subject: 'datacenters', cuts: {} },
  // A repeat was refused for its token that was deleted behind the write: its client was told that it was denied.
  { seed: 230_273, subject: 'datacenters', cuts: { only: [0, 1, 4] } },
  // What a fork showed was taken for what the log that is left had long after.
  { seed: 20_679, subject: 'datacenters', cuts: {} },
  // Whom the witness had elected was lost, and the old primary had written on beside it: nobody could be elected.
  { seed: 421_040, subject: 'datacenters', cuts: {} },
  // The primary waited for the word of another datacenter, lost a server meanwhile, and had no global log for good.
  {
    seed: 20_272,
    subject: 'datacenters',
    cuts: { only: [1], clientCount: 1, safetyMs: 4000 },
    siteCount: 5,
  },
  // A policy of the default namespace was taken for one that counts in the namespace of the token that has it.
  { seed: 113, subject: 'datacenters', cuts: WHOLE },
  // A primary whose disks were put back was elected, and was taken to write what it took back.
  { seed: 2064, subject: 'datacenters', cuts: WHOLE },
  // What was on its way when disks were put back came later, and the primary was started anew beside a cut line.
  { seed: 2077, subject: 'datacenters', cuts: WHOLE },
  // The disks of the primary were put back to before its reign: nobody was primary, and none said what to do.
  {
    seed: 1_100_159,
    subject: 'datacenters',
    cuts: { ...WHOLE, only: [6, 11, 12, 14, 15], clientCount: 1 },
  },
  {
    seed: 1_100_369,
    subject: 'datacenters',
    cuts: { ...WHOLE, only: [10, 28, 29], clientCount: 1, keepsAll: true, hasNoRestores: true },
  },
  // Here they said that it had promised the next reign to another one, and how to take that back.
  {
    seed: 1_100_667,
    subject: 'datacenters',
    cuts: { ...WHOLE, only: [3, 15, 29, 33], clientCount: 1, keepsAll: true, hasNoRestores: true },
  },
  // Nobody had anything of the reign, and the operator did not take it back as he was told.
  { seed: 1_204_403, subject: 'datacenters', cuts: WHOLE },
  // A server was left behind for good while whoever was put back was still to hear the others.
  { seed: 1_202_852, subject: 'datacenters', cuts: WHOLE },
  // The answer to a write was on its way when the disks that it was on were put back.
  {
    seed: 1_400_176,
    subject: 'datacenters',
    cuts: { ...WHOLE, only: [0, 1, 4, 5, 16, 17] },
  },
  // The deletion of a token was made again that was gone meanwhile: there is no second entry.
  {
    seed: 1_300_152,
    subject: 'datacenters',
    cuts: { ...WHOLE, only: [78, 79], clientCount: 3, hasNoGrants: true },
  },
  // Of a removed datacenter that was forced all had heard but whom they elected: both began one epoch.
  {
    seed: 1_500_368,
    subject: 'datacenters',
    cuts: { ...WHOLE, only: [10, 11, 27, 29, 31], clientCount: 1, safetyMs: 31_336 },
    siteCount: 5,
  },
  // What a write did was in the archive that was restored, and its repeat was refused on account of that.
  {
    seed: 2_000_223,
    subject: 'datacenters',
    cuts: { ...WHOLE, only: [7, 8, 10, 16, 21, 22], clientCount: 4, keepsAll: true },
  },
  // A datacenter lost its disks while no list named clusters yet, and the operator did not see that.
  {
    seed: 2_000_469,
    subject: 'datacenters',
    cuts: { ...WHOLE, only: [7, 11], clientCount: 1, keepsAll: true },
  },
  // Disks were put back to before another one's reign, which was over: it waited for that one, and said so for ever.
  {
    seed: 2_001_247,
    subject: 'datacenters',
    cuts: {
      ...{ ...WHOLE, only: [1, 23, 30, 31, 39, 40, 42, 58, 61, 73, 78, 79] },
      ...{ clientCount: 1, keepsAll: true },
    },
  },
  // Of a datacenter that was forced behind a cut one of those had heard who elected another one: both began one epoch.
  {
    seed: 2_002_124,
    subject: 'datacenters',
    cuts: {
      ...{ ...WHOLE, only: [0, 1, 2, 12, 14, 24, 25, 26, 28, 29, 51] },
      ...{ clientCount: 1, safetyMs: 32_464 },
    },
    siteCount: 5,
  },
  // Tokens that were void on a fork were said to be deleted anew, and lived on.
  { seed: 2_003_372, subject: 'datacenters', cuts: { ...WHOLE, only: [3, 4, 5], clientCount: 4 } },
  // A leader was lost just when it had raised the feature level: its datacenter never had the global log.
  { seed: 2_003_496, subject: 'datacenters', cuts: { ...WHOLE, only: [0, 7], clientCount: 2 } },
  // Nobody on the other side of a cut could hear of whoever was forced there, and one was elected.
  {
    seed: 2_005_660,
    subject: 'datacenters',
    cuts: {
      ...{ ...WHOLE, only: [1, 3, 4, 5, 6, 7, 12, 23], clientCount: 1, safetyMs: 18_355 },
      ...{ keepsAll: true, hasNoDeputies: true, areAllNew: true },
    },
    siteCount: 5,
  },
  // A copy of disks held a write that was under way, and others had another one in its place when it was put back.
  { seed: 2_006_298, subject: 'datacenters', cuts: WHOLE },
  // A primary that had lost its disks, and followed nobody yet, promised, and what it had acknowledged was passed over.
  { seed: 2_010_147, subject: 'datacenters', cuts: WHOLE },
  // The operator had the primary handed over while somebody was being forced behind a cut.
  { seed: 2_010_535, subject: 'datacenters', cuts: WHOLE, siteCount: 5 },
  // The next leader of a primary that was put back waited for less long than others take to find the last one silent.
  { seed: 2_011_526, subject: 'datacenters', cuts: { only: [0, 1, 3, 6, 8, 12], clientCount: 1 } },
  // What a datacenter that was put back had written was asked for again, and is in the same place once more.
  { seed: 2_012_986, subject: 'datacenters', cuts: WHOLE },
  // An operator's request found a disk damaged, and its server ended.
  { seed: 2_012_051, subject: 'datacenters', cuts: WHOLE },
  // Of whom a majority elected nobody could tell whoever was forced behind a cut: both began one epoch.
  {
    seed: 2_026_446,
    subject: 'datacenters',
    cuts: {
      ...{ ...WHOLE, only: [0, 1, 3, 16, 23, 24, 39, 40, 46], clientCount: 1 },
      ...{ safetyMs: 25_960, hasNoGrants: true },
    },
  },
  // A restore was with a witness alone when the disks of its primary were put back: each election failed for ever.
  {
    seed: 2_026_061,
    subject: 'datacenters',
    cuts: { ...WHOLE, only: [0, 1, 2, 3, 9, 10, 35, 36, 44, 45], clientCount: 1 },
  },
  // The operator did not read the refusal of a force right that names another epoch.
  { seed: 2_050_140, subject: 'datacenters', cuts: WHOLE },
  // What was read before disks were put back was held against what came in the same place later.
  {
    seed: 2_054_369,
    subject: 'datacenters',
    cuts: { ...WHOLE, only: [21, 22], keepsAll: true, hasNoRestores: true },
  },
  // A local token was deleted while an archive that has it was restored, and was taken to be there.
  { seed: 2_059_926, subject: 'datacenters', cuts: WHOLE },
  // An archive had `default` at another index: all local tokens of the other datacenters were taken for void.
  { seed: 3_020_037, subject: 'datacenters', cuts: { ...WHOLE, hasNoForeigners: false } },
  // Whom one primary had removed and another datacenter elected came back empty, and was lent the log.
  {
    seed: 2_202_091,
    subject: 'datacenters',
    cuts: {
      ...{ ...WITH_ALL_DRAWS, only: [0, 1, 4, 5, 8, 10, 11, 14, 36, 38] },
      ...{ clientCount: 2, safetyMs: 16_848 },
    },
  },
  // A removed datacenter that was forced was taken for the primary, and nobody made one that lets it back.
  {
    seed: 2_204_920,
    subject: 'datacenters',
    cuts: {
      ...{ ...WITH_ALL_DRAWS, only: [0, 2, 3, 5, 6, 7, 8, 9, 10, 11, 19, 21, 34, 36] },
      keepsAll: true,
    },
  },
  // A server's own repeat came behind a restore, was refused on account of the archive, and that was taken for a lie.
  { seed: 2_207_448, subject: 'datacenters', cuts: { ...WITH_ALL_DRAWS, safetyMs: 22_500 } },
  // Who deleted an expired token set its clock back, a server that was cut off had it, and it was taken for lost.
  {
    seed: 2_210_268,
    subject: 'datacenters',
    cuts: { ...WITH_ALL_DRAWS, only: [0, 1, 6], hasNoPutBacks: true },
  },
  // Who was removed was elected all the same, and let back with empty disks: a majority with who knew nothing of that.
  {
    seed: 2_222_182,
    subject: 'datacenters',
    cuts: { ...WITH_ALL_DRAWS, only: [1, 10, 11, 12, 13, 14, 20, 27, 28, 29, 32] },
  },
];

const SNAPSHOT_SEED = 503;

const FRESH: readonly { readonly seed: number; readonly subject: SubjectName }[] = [
  { seed: 1, subject: 'replica' },
  { seed: 2, subject: 'replica' },
  { seed: 1, subject: 'datacenters' },
  { seed: 2, subject: 'datacenters' },
  // Of five datacenters.
  { seed: 9, subject: 'datacenters' },
];

function taskOf(seed: number, subject: SubjectName, more: Partial<Task> = {}): Task {
  return { seed, subject, cuts: {}, mutant: undefined, isTwice: false, isTraced: false, ...more };
}

/** Beside this process: runs take the clock and the timers of theirs. */
function pool(owner: { teardown(action: () => void): void }, worker?: string): Runner {
  const made = new Pool(1, worker);
  owner.teardown(() => made.close());
  return made;
}

t.test('runs: those of the product are clean', async (t) => {
  const { run } = pool(t);
  for (const { seed, subject } of FRESH) {
    const { violation } = await run(taskOf(seed, subject));
    t.equal(violation, undefined, `npm run sim -- --seed ${seed} --subject ${subject}`);
  }
  for (const { seed, subject, cuts } of SAVED) {
    // They were found when no server of a simulated datacenter was ever sent a snapshot by its leader, nobody
    // wrote whose right to it came and went, no roles came and went, no datacenter was removed or lost its
    // disks, nobody restored an archive, no forks were made on purpose, no disks were put back, and all were of
    // one release.
    const sameAsThen = {
      ...{ keepsAll: subject !== 'replica', hasNoDeputies: true, hasNoGrants: true },
      ...{ hasNoExiles: true, hasNoRestores: true, hasNoForks: true, hasNoPutBacks: true },
      ...{ areAllNew: true, hasNoLocalRights: true, hasNoAbsences: true, hasNoRushes: true },
      ...{ hasNoForeigners: true, hasNoChangedTokens: true, hasNoPairs: true },
      ...cuts,
    };
    const { violation } = await run(taskOf(seed, subject, { cuts: sameAsThen }));
    t.equal(violation, undefined, `npm run sim -- --seed ${seed} --subject ${subject}`);
  }
});

t.test('runs: a server that was away is sent a snapshot, unless all is kept', async (t) => {
  const { run } = pool(t);
  const sentIn = async (cuts: Cuts): Promise<number> =>
    (await run(taskOf(SNAPSHOT_SEED, 'node', { cuts }))).marks['says: a snapshot is being sent'] ??
    0;
  t.ok((await sentIn({})) > 0, `npm run sim -- --seed ${SNAPSHOT_SEED} --subject node`);
  t.equal(await sentIn({ keepsAll: true }), 0);
});

t.test('draws: one seed of six has five datacenters, saved ones are as before', async (t) => {
  const countOf = (seed: number): number =>
    drawOptions(seed, 'datacenters').federation?.siteSizes.length ?? 0;
  const counts = Array.from({ length: 600 }, (_, place) => countOf(place + 1));
  const fives = counts.filter((count) => count === 5).length;
  t.ok(fives > 80 && fives < 120, `${fives} of 600`);
  t.equal(counts.filter((count) => count === 3).length, 600 - fives);
  t.ok(FRESH.some(({ seed, subject }) => subject === 'datacenters' && countOf(seed) === 5));
  for (const { seed, subject, siteCount = 3 } of SAVED) {
    if (subject === 'datacenters') t.equal(countOf(seed), siteCount, `seed ${seed}`);
  }
});

t.test(
  'draws: what was added later stands behind all other faults, and can be left out',
  async (t) => {
    const plans = Array.from({ length: 600 }, (_, place) => drawOptions(place + 1, 'datacenters'));
    const exiles = plans.filter(({ plan }) => plan.some(({ of }) => of === 'exile')).length;
    t.ok(exiles > 110 && exiles < 180, `${exiles} of 600`);
    for (const [what, least, most] of [
      ['fork', 70, 140] as const,
      ['put-back', 60, 130] as const,
      ['absence', 35, 85] as const,
      ['rush', 40, 90] as const,
      ['foreign', 30, 75] as const,
      ['pair', 35, 85] as const,
    ]) {
      const count = plans.filter(({ plan }) => plan.some(({ of }) => of === what)).length;
      t.ok(count > least && count < most, `${what}: ${count} of 600`);
    }
    const changing = plans.filter(({ federation }) => federation?.hasChangedTokens === true).length;
    t.ok(changing > 90 && changing < 150, `${changing} of 600`);
    const older = plans.filter(({ federation }) => federation?.olderHosts !== undefined).length;
    t.ok(older > 40 && older < 80, `${older} of 600`);
    for (const options of plans) {
      const { plan, federation } = cut(options, {
        ...{ hasNoExiles: true, hasNoRestores: true, hasNoForks: true, hasNoPutBacks: true },
        ...{ areAllNew: true, hasNoAbsences: true, hasNoRushes: true, hasNoForeigners: true },
        ...{ hasNoChangedTokens: true, hasNoPairs: true },
      });
      t.same(plan, options.plan.slice(0, plan.length));
      t.notOk(plan.some(({ of }) => of !== undefined));
      t.same(federation?.olderHosts ?? [], []);
      t.equal(federation?.hasChangedTokens, false);
    }
  },
);

t.test('runs: one seed comes to the same events, another to others', async (t) => {
  const { run } = pool(t);
  for (const subject of SUBJECT_NAMES) {
    const cuts = { safetyMs: 2500 };
    const { hash, secondHash } = await run(taskOf(2, subject, { cuts, isTwice: true }));
    t.equal(secondHash, hash, subject);
    const other = await run(taskOf(3, subject, { cuts }));
    t.not(other.hash, hash);
  }
});

t.test('sweep: every hundredth seed runs twice, and what is not simulated shows', async (t) => {
  const lines: string[] = [];
  const plan = { subject: 'replica', from: 100, count: 1, minutes: undefined } as const;
  const print = new Print((line) => lines.push(line));
  const leaking = join(import.meta.dirname, 'leaking-worker.js');
  t.equal(await sweep(pool(t, leaking), plan, print), false);
  t.match(lines.join('\n'), /seed 100: two runs came to \S+ and \S+: not all is simulated/);
  lines.length = 0;
  t.equal(await sweep(pool(t), plan, print), true);
  t.match(lines.join('\n'), /seeds 100 to 100: 0 failed/);
});

t.test('sweep: a finding comes with the shortest run that shows it, and its command', async (t) => {
  const lines: string[] = [];
  const print = new Print((line) => lines.push(line));
  const { run } = pool(t);
  const broken: Runner = {
    size: 1,
    run: (task) => run({ ...task, mutant: 'no-read-barrier' }),
  };
  const plan = { subject: 'replica', from: 1, count: 1, minutes: undefined } as const;
  t.equal(await sweep(broken, plan, print), false);
  const said = lines.join('\n');
  t.match(said, /seed 1 fails after \d+ ms: linearizability/);
  t.match(said, /shortest of \d+ runs: /);
  t.match(said, /npm run sim -- --seed 1 .*--trace/);
  t.match(said, /marks: /);
  t.match(said, /faults: /);
});

t.test('sweep: seeds are so many, or from one through another', async (t) => {
  t.same(seedRange('200'), { count: 200 });
  t.same(seedRange('5001-5003'), { from: 5001, count: 3 });
  for (const wrong of ['', 'x', '1-', '9-3', '1.5']) {
    t.throws(() => seedRange(wrong), /is no/, wrong);
  }
});
