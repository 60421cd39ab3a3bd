// Retention of the primary's log by what each datacenter has acknowledged, within bounds.

import t from 'tap';
import type { FollowerView } from '../../../cluster/federation/feed/follower.ts';
import {
  type RetentionQuestion,
  retentionOf,
} from '../../../cluster/federation/slots/retention.ts';
import { Slots, type SlotsOptions } from '../../../cluster/federation/slots/slots.ts';
import { FeedWorld } from './feed-world.ts';
import { MemoryLog } from './memory-log.ts';

const HOUR_MS = 3_600_000;

/** A reign of dc1, alone unless more is said. */
function slotsOf(world: FeedWorld, log: MemoryLog, more: Partial<SlotsOptions>): Slots {
  return new Slots({
    clock: world.clock,
    logger: world.logger('slots'),
    datacenter: 'dc1',
    source: log,
    datacenters: () => ['dc1'],
    followers: () => [],
    pinnedSeq: () => undefined,
    majoritySeq: () => log.head.seq,
    unusedTimeMs: () => undefined,
    trim: async (upToSeq) => {
      log.trimmedSeq = upToSeq;
    },
    reviewMs: 1_000,
    ...more,
  });
}

/** A thousand entries of 100 bytes each, one a minute, the last one now. */
const QUESTION: RetentionQuestion = {
  headSeq: 1_000,
  kept: { afterSeq: 0, sizeBytes: 100_000 },
  slots: [
    { datacenter: 'dc2', ackedSeq: 900 },
    { datacenter: 'dc3', ackedSeq: 800 },
  ],
  pinnedSeq: undefined,
  majoritySeq: 1_000,
  nowMs: 100 * HOUR_MS,
  writtenAtMs: (seq) => 100 * HOUR_MS - (1_000 - seq) * 60_000,
  limits: { maxBytes: 1_000_000, maxAgeMs: 24 * HOUR_MS, keepEntries: 50 },
};

interface Case {
  readonly title: string;
  readonly given: Partial<RetentionQuestion>;
  readonly trimSeq: number;
  readonly dropped?: readonly string[];
}

const CASES: readonly Case[] = [
  { title: 'what the last one has', given: {}, trimSeq: 800 },
  { title: 'a tail when nobody follows', given: { slots: [] }, trimSeq: 950 },
  {
    title: 'a tail when all have everything',
    given: { slots: [{ datacenter: 'dc2', ackedSeq: 1_000 }] },
    trimSeq: 950,
  },
  {
    title: 'all, for one that is not heard yet',
    given: { slots: [{ datacenter: 'dc2', ackedSeq: undefined }] },
    trimSeq: 0,
  },
  {
    title: 'what a majority has not, whoever is waited for',
    given: { slots: [], majoritySeq: 700 },
    trimSeq: 700,
  },
  {
    title: 'no more of it than the bound',
    given: { slots: [], majoritySeq: 0, limits: { ...QUESTION.limits, maxBytes: 15_000 } },
    trimSeq: 850,
  },
  { title: 'what a snapshot pins', given: { pinnedSeq: 300 }, trimSeq: 300 },
  {
    title: 'no more bytes than the bound, and drops who is before them',
    given: { limits: { ...QUESTION.limits, maxBytes: 15_000 } },
    trimSeq: 850,
    dropped: ['dc3'],
  },
  {
    title: 'nothing older than the bound, and drops who is before it',
    given: { limits: { ...QUESTION.limits, maxAgeMs: 2 * HOUR_MS } },
    trimSeq: 879,
    dropped: ['dc3'],
  },
  {
    title: 'nothing older than the bound, heard or not',
    given: {
      slots: [{ datacenter: 'dc2', ackedSeq: undefined }],
      limits: { ...QUESTION.limits, maxAgeMs: 2 * HOUR_MS },
    },
    trimSeq: 879,
    dropped: ['dc2'],
  },
  {
    title: 'the last entry, however old and large',
    given: { limits: { maxBytes: 0, maxAgeMs: -1, keepEntries: 0 } },
    trimSeq: 999,
    dropped: ['dc2', 'dc3'],
  },
  {
    title: 'what is gone stays gone',
    given: { kept: { afterSeq: 850, sizeBytes: 15_000 }, slots: [], pinnedSeq: 400 },
    trimSeq: 850,
  },
  {
    title: 'nothing more where nothing is left',
    given: { kept: { afterSeq: 1_000, sizeBytes: 0 }, slots: [] },
    trimSeq: 1_000,
  },
];

for (const { title, given, trimSeq, dropped = [] } of CASES) {
  t.test(`retention: keeps ${title}`, async (test) => {
    const retention = retentionOf({ ...QUESTION, ...given });
    test.equal(retention.trimSeq, trimSeq);
    test.same(
      retention.dropped.map(({ datacenter }) => datacenter),
      dropped,
    );
    for (const { says } of retention.dropped) test.match(says, /it will need a snapshot/);
  });
}

function aView(datacenter: string, given: Partial<FollowerView>): FollowerView {
  return {
    datacenter,
    clusterId: '',
    node: '',
    remote: '',
    state: 'tail',
    acked: undefined,
    lastHeardMs: 0,
    lagEntries: 0,
    lagBytes: undefined,
    lagMs: 0,
    lastError: undefined,
    differenceCount: 0,
    ...given,
  };
}

t.test(
  'slots: are trimmed in a reign, with an alarm for whom the log does not wait',
  async (test) => {
    const world = new FeedWorld();
    const log = new MemoryLog(() => world.clock.wallMs());
    let views: readonly FollowerView[] = [];
    const trimmed: number[] = [];
    let majoritySeq = 3_000;
    const slots = slotsOf(world, log, {
      datacenters: () => ['dc1', 'dc2', 'dc3'],
      followers: () => views,
      majoritySeq: () => majoritySeq,
      trim: async (upToSeq) => {
        trimmed.push(upToSeq);
        log.trimmedSeq = upToSeq;
      },
      limits: { maxBytes: 100_000, keepEntries: 10 },
    });
    for (let number = 0; number < 1_000; number += 1) log.write(Buffer.alloc(50));
    await world.run(3_000);
    test.same(trimmed, [], 'nothing outside a reign');
    slots.start();
    await world.run(1_500);
    test.same(trimmed, [], 'nobody was heard: all may be needed');
    views = [aView('dc2', { acked: log.at(900) }), aView('dc3', { acked: log.at(400) })];
    await world.run(1_000);
    test.same(trimmed, [400]);
    for (let number = 0; number < 2_000; number += 1) log.write(Buffer.alloc(50));
    views = [aView('dc2', { acked: log.at(3_000) }), views[1]!];
    await world.run(1_000);
    test.same(trimmed, [400, 1_000]);
    test.match(slots.alarms(), [{ datacenter: 'dc3', says: /dc3 has acknowledged 400 of 3000/ }]);
    test.equal(world.log.filter((line) => /error/.test(line)).length, 1, 'told once');
    majoritySeq = 1_500;
    await world.run(1_000);
    test.same(trimmed, [400, 1_000, 1_500], 'what a majority lacks may be here alone');
    majoritySeq = 3_000;
    await world.run(1_000);
    test.same(trimmed, [400, 1_000, 1_500, 2_990], 'who is dropped holds nothing');
    test.equal(slots.alarms().length, 1);
    views = [views[0]!, aView('dc3', { acked: log.at(2_995) })];
    await world.run(1_000);
    test.same(slots.alarms(), [], 'it has a slot again');
    slots.stop();
    for (let number = 0; number < 500; number += 1) log.write(Buffer.alloc(50));
    await world.run(5_000);
    test.equal(trimmed.length, 4);
  },
);

t.test('slots: a trim that fails is tried again', async (test) => {
  const world = new FeedWorld();
  const log = new MemoryLog(() => world.clock.wallMs());
  for (let number = 0; number < 1_000; number += 1) log.write('x');
  let tries = 0;
  const slots = slotsOf(world, log, {
    trim: async () => {
      tries += 1;
      await new Promise<void>((resolve) => world.clock.after(100, resolve));
      throw new Error('not now');
    },
    limits: { keepEntries: 0 },
  });
  slots.start();
  await world.run(3_250);
  test.equal(tries, 3);
  slots.stop();
  await world.run(5_000);
  test.equal(tries, 3, 'one that was under way is the last');
});

t.test(
  'slots: what nobody wants is dropped when it is as old as what is kept at most',
  async (test) => {
    const world = new FeedWorld();
    const log = new MemoryLog(() => world.clock.wallMs());
    log.write('x');
    let unusedTimeMs: number | undefined = world.clock.wallMs();
    const trimmed: number[] = [];
    const slots = slotsOf(world, log, {
      unusedTimeMs: () => unusedTimeMs,
      trim: async (upToSeq) => {
        trimmed.push(upToSeq);
        unusedTimeMs = undefined;
      },
      limits: { maxAgeMs: 5_000 },
    });
    slots.start();
    await world.run(4_500);
    test.same(trimmed, [], 'a fork may be gone back from');
    await world.run(5_000);
    test.same(trimmed, [0], 'once, though there is little that is kept');
    slots.stop();
  },
);

/** A reign over a log of so many entries of 50 bytes, of which `maxBytes` are kept for whoever is away. */
function aReign(count: number, maxBytes: number) {
  const world = new FeedWorld();
  const log = new MemoryLog(() => world.clock.wallMs());
  const write = (more: number): void => {
    for (let number = 0; number < more; number += 1) log.write(Buffer.alloc(50));
  };
  write(count);
  const known = { datacenters: ['dc1', 'dc2'], views: [] as readonly FollowerView[] };
  const trimmed: number[] = [];
  const slots = slotsOf(world, log, {
    datacenters: () => known.datacenters,
    followers: () => known.views,
    trim: async (upToSeq) => {
      trimmed.push(upToSeq);
      log.trimmedSeq = upToSeq;
    },
    limits: { maxBytes, keepEntries: 0 },
  });
  return { log, write, known, trimmed, slots };
}

t.test('slots: a command is worth it for a hundred entries', async (test) => {
  const { write, known, trimmed, slots } = aReign(300, 1e9);
  known.datacenters = ['dc1'];
  await slots.review();
  test.same(trimmed, [300]);
  write(99);
  await slots.review();
  test.same(trimmed, [300]);
  write(1);
  await slots.review();
  test.same(trimmed, [300, 400]);
});

t.test('slots: whoever is just where the log begins has its slot back', async (test) => {
  const { log, known, trimmed, slots } = aReign(300, 5_000);
  known.views = [aView('dc2', { acked: log.at(1) })];
  await slots.review();
  test.equal(slots.alarms().length, 1);
  known.views = [aView('dc2', { acked: log.at(trimmed[0]!) })];
  await slots.review();
  test.same(slots.alarms(), []);
});

t.test('slots: an alarm ends with the reign, and with the part of whom it is of', async (test) => {
  const { log, known, slots } = aReign(300, 5_000);
  known.views = [aView('dc2', { acked: log.at(1) })];
  await slots.review();
  known.datacenters = ['dc1'];
  test.same(slots.alarms(), [], 'it was removed');
  await slots.review();
  known.datacenters = ['dc1', 'dc2'];
  test.same(slots.alarms(), [], 'it is let back');
  await slots.review();
  test.equal(slots.alarms().length, 1, 'it has not what is kept');
  slots.stop();
  test.same(slots.alarms(), []);
});
