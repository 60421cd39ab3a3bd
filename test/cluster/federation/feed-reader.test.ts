// One session at the follower's side against a primary that a test plays: what does not fit ends it, and
// nothing of it is applied. And the arithmetic of majorities, lag and addresses.

import t, { type Test } from 'tap';
import { AddressChoice } from '../../../cluster/federation/feed/address-choice.ts';
import {
  decodePull,
  type EntryRun,
  encodeEntryRun,
  encodeFeedFrame,
  FEED_METHOD,
  type FeedFrame,
} from '../../../cluster/federation/feed/feed-frames.ts';
import { DEFAULT_SUBSCRIBER_LIMITS } from '../../../cluster/federation/feed/feed-limits.ts';
import { FeedReader, type GlobalBatch } from '../../../cluster/federation/feed/feed-reader.ts';
import { Lag } from '../../../cluster/federation/feed/lag.ts';
import {
  type Acknowledged,
  allSeqOf,
  majoritySeqOf,
} from '../../../cluster/federation/feed/majority.ts';
import { type GlobalCursor, LOG_START } from '../../../cluster/federation/global-log.ts';
import { FeedWorld } from './feed-world.ts';
import { MemoryLog } from './memory-log.ts';

const NEWS = { epoch: 1, headSeq: 9, headAtMs: 0, nowMs: 0, majoritySeq: 0 };

interface Played {
  readonly world: FeedWorld;
  readonly log: MemoryLog;
  readonly applied: GlobalBatch[];
  readonly over: Promise<string>;
}

/** A session that is answered by these frames, and then by silence. */
function play(
  frames: (log: MemoryLog) => readonly Partial<FeedFrame>[],
  apply: (batch: GlobalBatch, world: FeedWorld) => Promise<GlobalCursor> = async ({ to }) => to,
): Played {
  const world = new FeedWorld();
  const log = new MemoryLog();
  for (let number = 1; number <= 9; number += 1) log.write(`${number}`);
  const answers = frames(log);
  const applied: GlobalBatch[] = [];
  const reader = new FeedReader({
    clock: world.clock,
    limits: DEFAULT_SUBSCRIBER_LIMITS,
    federationId: 'fed',
    session: 5,
    epoch: 1,
    after: LOG_START,
    call: async (method, payload) => {
      if (method !== FEED_METHOD.pull) return new Uint8Array(0);
      const { number } = decodePull(payload);
      const answer = answers[number];
      if (answer === undefined) return new Promise(() => undefined);
      return encodeFeedFrame({ number, news: NEWS, body: new Uint8Array(0), ...answer });
    },
    apply: (batch) => {
      applied.push(batch);
      return apply(batch, world);
    },
    onNews: () => undefined,
    onApplied: () => undefined,
  });
  reader.start();
  const over = reader.over.catch((error: Error) => `${error.name}: ${error.message}`);
  return { world, log, applied, over };
}

function run(log: MemoryLog, from: number, to: number, given: Partial<EntryRun> = {}): Uint8Array {
  return encodeEntryRun({ after: log.at(from), entries: log.entries.slice(from, to), ...given });
}

interface WrongCase {
  readonly title: string;
  readonly frames: (log: MemoryLog) => readonly Partial<FeedFrame>[];
  readonly says: RegExp;
  /** Entries that are applied before. */
  readonly appliedCount: number;
}

const WRONG: readonly WrongCase[] = [
  {
    title: 'a gap',
    frames: (log) => [{ body: run(log, 0, 2) }, { body: run(log, 3, 5) }],
    says: /WireDamage: entries behind 1.3 came behind 1.2/,
    appliedCount: 2,
  },
  {
    title: 'a duplicate',
    frames: (log) => [{ body: run(log, 0, 2) }, { body: run(log, 0, 2) }],
    says: /WireDamage: entries behind 0.0 came behind 1.2/,
    appliedCount: 2,
  },
  {
    title: 'another chain',
    frames: (log) => [{ body: run(log, 0, 2, { after: { ...LOG_START, hash: log.at(1).hash } }) }],
    says: /or on another chain/,
    appliedCount: 0,
  },
  {
    title: 'an answer to another pull',
    frames: (log) => [{ number: 1, body: run(log, 0, 2) }],
    says: /the answer to pull 0 is to pull 1/,
    appliedCount: 0,
  },
  {
    title: 'seqs that go back',
    frames: (log) => [{ body: run(log, 0, 0, { entries: [log.entries[1]!, log.entries[0]!] }) }],
    says: /entry 1.1 follows 1.2/,
    appliedCount: 0,
  },
  {
    title: 'epochs that go back',
    frames: (log) => [
      { body: run(log, 0, 0, { entries: [{ ...log.entries[0]!, epoch: 2 }, log.entries[1]!] }) },
    ],
    says: /entry 1.2 follows 2.1/,
    appliedCount: 0,
  },
  {
    title: 'another reign',
    frames: (log) => [{ news: { ...NEWS, epoch: 2 }, body: run(log, 0, 2) }],
    says: /FeedOver: epoch 2 has begun at the primary/,
    appliedCount: 0,
  },
  {
    title: 'silence',
    frames: () => [],
    says: /FeedOver: nothing came over the feed for 5000 ms/,
    appliedCount: 0,
  },
];

for (const { title, frames, says, appliedCount } of WRONG) {
  t.test(`reader: ${title} ends the session, and is not applied`, async (test) => {
    const { world, over, applied } = play(frames);
    test.match(await world.result(over), says);
    await world.run(100);
    test.equal(applied.flatMap(({ entries }) => entries).length, appliedCount);
  });
}

t.test('reader: what the own log does not take ends the session', async (test) => {
  const { world, over } = play(
    (log) => [{ body: run(log, 0, 2) }],
    async () => LOG_START,
  );
  test.match(await world.result(over), /FeedOver: the own log is at 0.0, not at 1.2/);
});

t.test('reader: what comes while a batch is applied goes with the next one', async (test) => {
  const seqsThatCome = [1, 2, 3, 4, 5, 6, 7, 8];
  const { world, applied } = play(
    (log) => seqsThatCome.map((seq) => ({ body: run(log, seq - 1, seq) })),
    (batch, { clock }) =>
      new Promise((resolve) => {
        clock.after(5, () => resolve(batch.to));
      }),
  );
  await world.run(1_000);
  const seqs = applied.map(({ entries }) => entries.map(({ seq }) => seq));
  test.same(seqs.flat(), seqsThatCome);
  test.ok(applied.length < seqsThatCome.length, `${applied.length} batches`);
  for (const [place, batch] of applied.entries()) {
    test.equal(batch.from.seq, applied[place - 1]?.to.seq ?? 0, 'each behind the one before');
  }
});

function acknowledged(given: Partial<Acknowledged>, acked: Readonly<Record<string, number>>) {
  return {
    voters: ['dc1', 'dc2', 'dc3'],
    joining: [],
    witnesses: [],
    restoredSeq: 0,
    datacenter: 'dc1',
    headSeq: 100,
    epochStartSeq: 1,
    ackedSeqOf: (each: string) => acked[each],
    ...given,
  };
}

function seqsOf(
  given: Partial<Acknowledged>,
  acked: Readonly<Record<string, number>>,
): readonly number[] {
  const all = acknowledged(given, acked);
  return [majoritySeqOf(all), allSeqOf(all)];
}

t.test('majority: what so many datacenters have, the primary among them', async (test) => {
  test.same(seqsOf({ voters: ['dc1'] }, {}), [100, 100], 'alone');
  test.same(seqsOf({ voters: ['dc1', 'dc2'] }, { dc2: 40 }), [40, 40], 'two need both');
  test.same(seqsOf({}, { dc2: 40, dc3: 70 }), [70, 40]);
  test.same(seqsOf({}, { dc2: 40 }), [40, 0], 'one was not heard');
  test.same(seqsOf({}, {}), [0, 0]);
  const four = ['dc1', 'dc2', 'dc3', 'dc4'];
  test.same(seqsOf({ voters: four }, { dc2: 90, dc3: 80, dc4: 10 }), [80, 10], 'four need three');
  test.same(seqsOf({}, { dc2: 5, dc9: 99 }), [5, 0], 'who has no vote does not count');
  test.same(seqsOf({ voters: [] }, {}), [0, 0]);
  const joining = ['dc4', 'dc5'];
  test.same(seqsOf({ joining }, { dc4: 90, dc5: 80 }), [0, 0], 'who joins is no majority alone');
  test.same(seqsOf({ joining }, { dc3: 70, dc4: 90, dc5: 80 }), [70, 0]);
  test.same(seqsOf({ joining }, { dc2: 40, dc3: 70 }), [40, 0], 'and is asked for');
  const two = { voters: ['dc1', 'dc2'], joining: ['dc3'] };
  test.same(seqsOf(two, { dc3: 70 }), [0, 0], 'dc2 may elect by an earlier list');
  test.same(seqsOf(two, { dc2: 60, dc3: 70 }), [60, 60]);
  const alone = { voters: ['dc1'], joining: ['dc3'] };
  test.same(seqsOf(alone, { dc3: 70 }), [70, 70], 'there is nobody who could');
});

t.test(
  'majority: an entry of an earlier reign counts with one of this reign only',
  async (test) => {
    const given = { epochStartSeq: 51 };
    test.same(seqsOf(given, { dc2: 50, dc3: 50 }), [0, 0], 'all have entry 50, and it can be lost');
    test.same(seqsOf(given, { dc2: 51, dc3: 50 }), [51, 0]);
    test.same(seqsOf(given, { dc2: 60, dc3: 51 }), [60, 51]);
  },
);

t.test('majority: what was restored, a witness has not, whatever it acknowledges', async (test) => {
  const restored = { witnesses: ['dc3'], restoredSeq: 60 };
  test.same(seqsOf(restored, { dc3: 100 }), [59, 0], 'dc2 could not go on with what dc3 has');
  test.same(seqsOf(restored, { dc2: 59, dc3: 100 }), [59, 59]);
  test.same(seqsOf(restored, { dc2: 60, dc3: 100 }), [100, 60], 'it takes the rest from dc3');
  test.same(seqsOf(restored, { dc2: 50, dc3: 55 }), [55, 50]);
  test.same(seqsOf({ ...restored, epochStartSeq: 60 }, { dc3: 100 }), [0, 0]);
  const alone = { witnesses: ['dc2', 'dc3'], restoredSeq: 60 };
  test.same(seqsOf(alone, { dc2: 90 }), [90, 0], 'nobody else has objects');
  const five = { ...alone, voters: ['dc1', 'dc2', 'dc3', 'dc4', 'dc5'] };
  test.same(seqsOf(five, { dc2: 90, dc3: 80, dc4: 70 }), [59, 0], 'dc5 may be all that is left');
  test.same(seqsOf(five, { dc2: 90, dc3: 80, dc4: 70, dc5: 60 }), [80, 60]);
  const four = { ...restored, voters: ['dc1', 'dc2', 'dc3', 'dc4'] };
  test.same(seqsOf(four, { dc3: 90, dc4: 80 }), [80, 0], 'no three are left without dc4');
});

t.test('lag: is the age of what is not caught up with, and grows in silence', async (test) => {
  const world = new FeedWorld();
  const lag = new Lag(world.clock);
  test.equal(lag.ms(), undefined);
  lag.look({ headSeq: 5, appliedSeq: 5 });
  test.equal(lag.ms(), 0);
  await world.run(100);
  lag.look({ headSeq: 6, appliedSeq: 5 });
  await world.run(50);
  lag.look({ headSeq: 7, appliedSeq: 5 });
  await world.run(10);
  test.equal(lag.ms(), 60, 'of the oldest');
  lag.look({ headSeq: 7, appliedSeq: 6 });
  test.equal(lag.ms(), 10, 'of what is left');
  lag.look({ headSeq: 7, appliedSeq: 7 });
  await world.run(1_500);
  test.equal(lag.ms(), 0, 'heartbeats come every second');
  await world.run(4_500);
  test.equal(lag.ms(), 6_000, 'nobody knows what is missed');
  for (let seq = 8; seq < 5_000; seq += 1) {
    lag.look({ headSeq: seq, appliedSeq: 7 });
  }
  test.ok(lag.isFarBehind === false);
  await world.run(1_001);
  test.ok(lag.isFarBehind);
});

t.test('addresses: one that works is kept, the others get their turns', async (test: Test) => {
  const all = ['a', 'b', 'c'].map((host) => ({ host, port: 1 }));
  const choice = new AddressChoice({ addresses: () => all, toldEpoch: () => 1 }, 2);
  const next = (): string | undefined => choice.next()?.host;
  test.equal(next(), 'a');
  choice.failed();
  test.equal(next(), 'b');
  choice.worked();
  test.equal(next(), 'b');
  test.equal(choice.redirected([{ host: 'z', port: 1 }]), true);
  test.equal(next(), 'z');
  test.equal(choice.redirected([]), false, 'nowhere to go');
  test.equal(choice.redirected([all[0]!]), true);
  test.equal(choice.redirected([all[1]!]), false, 'too often');
  choice.failed();
  test.equal(next(), 'c');
  const nowhere = { addresses: () => [], toldEpoch: () => 0 };
  test.equal(new AddressChoice(nowhere, 2).next(), undefined);
});

t.test(
  'addresses: another likeliest one is asked at once, and not in its turn',
  async (test: Test) => {
    const old = ['a', 'b', 'c'].map((host) => ({ host, port: 1 }));
    let all = old;
    let toldEpoch = 1;
    const choice = new AddressChoice({ addresses: () => all, toldEpoch: () => toldEpoch }, 2);
    const next = (): string | undefined => choice.next()?.host;
    choice.next();
    choice.failed();
    test.equal(next(), 'b');
    choice.failed();
    all = [{ host: 'new', port: 1 }, ...old];
    test.equal(next(), 'new');
    choice.failed();
    test.equal(next(), 'a', 'then the others');
    choice.failed();
    test.equal(next(), 'b');
    choice.failed();
    toldEpoch = 2;
    test.equal(next(), 'new', 'it was asked before its reign began');
    choice.failed();
    test.equal(next(), 'a');
  },
);
