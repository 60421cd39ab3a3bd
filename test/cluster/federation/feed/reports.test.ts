// What the primary knows of those who follow: digests, levels, lag, acknowledgements.

import t from 'tap';
import { encodeAck, encodePull } from '../../../../cluster/federation/feed/feed-frames.ts';
import type { FeedStanding } from '../../../../cluster/federation/feed/feed-server.ts';
import {
  decodeReportAnswer,
  encodeReport,
} from '../../../../cluster/federation/feed/report-frames.ts';
import { positionText } from '../../../../cluster/federation/global-log.ts';
import { settled } from '../../../support/simulated/simulated-world.ts';
import { aSecondary, chainViolations, primaryStanding, twoDatacenters } from '../feed-world.ts';
import { digestOf } from '../memory-log.ts';
import { aPrimary, ask, HELLO, refusalOf, say, sessionOf } from './cases.ts';

t.test('reports: a state that is not that of the primary is named, and mended', async (test) => {
  const { world, log, primary, secondary } = await twoDatacenters();
  for (const text of ['one', 'two', 'three']) log.write(text);
  secondary.subscriber.start(1);
  await world.until('it follows', () => secondary.state.cursor?.seq === 3);
  await world.run(5_000);
  const view = () => primary.feed.followers()[0];
  test.match(view(), { state: 'tail', differenceCount: 0, lastError: undefined });
  secondary.digest = () => Buffer.alloc(32, 7);
  await world.until('it is seen', () => view()?.differenceCount === 1);
  test.match(world.log.join('\n'), /p1 error what a datacenter has is not what the primary has/);
  await world.until('it knows', () => secondary.subscriber.state().differenceCount === 1);
  test.match(world.log.join('\n'), /s1 error what this datacenter has is not .* has at 1.3/);
  secondary.digest = digestOf;
  await world.until('it took a snapshot', () => secondary.state.snapshotCount === 1);
  await world.until('it follows again', () => view()?.state === 'tail');
  test.match(
    view()?.lastError?.text,
    /what this datacenter has is not what the primary has at 1.3/,
  );
  test.equal(view()?.differenceCount, 1, 'that it came to this is not forgotten');
});

t.test('reports: digests of different places are never compared', async (test) => {
  const { world, log, primary, secondary } = await twoDatacenters();
  secondary.applyMs = () => 900;
  secondary.subscriber.start(1);
  for (let number = 0; number < 40; number += 1) {
    log.write(`entry ${number}`);
    await world.run(700);
  }
  log.trimmedSeq = 20;
  await world.until('it has all', () => secondary.state.cursor?.seq === 40);
  await world.run(3_000);
  test.equal(primary.feed.followers()[0]?.differenceCount, 0);
  test.equal(secondary.subscriber.state().differenceCount, 0);
  const report = { session: 1, digest: Buffer.alloc(32, 9), error: undefined };
  const elsewhere = { epoch: 1, seq: 40, hash: Buffer.alloc(32, 1) };
  const before = { ...primary.source.at(20), seq: 20 };
  for (const cursor of [elsewhere, { ...before, seq: 19 }, { ...before, seq: 41 }]) {
    const { session } = (await say(primary, { ...HELLO, cursor: log.head }, 'dc3')) as {
      readonly session: number;
    };
    const bytes = encodeReport({ ...report, session, cursor });
    const answer = decodeReportAnswer(await ask(primary, 'feed.report', bytes, 'dc3'));
    test.equal(answer.digest, undefined, positionText(cursor));
  }
  const dc3 = primary.feed.followers().find(({ datacenter }) => datacenter === 'dc3');
  test.equal(dc3?.differenceCount, 0);
});

t.test(
  'reports: a difference is one alarm while it lasts, and of its session alone',
  async (test) => {
    const { world, log, primary } = await aPrimary();
    log.write('one');
    const session = await sessionOf(primary, { ...HELLO, cursor: log.head });
    const report = (digest: Uint8Array, of = session): Promise<unknown> => {
      const said = { session: of, cursor: log.head, digest, error: undefined };
      return ask(primary, 'feed.report', encodeReport(said));
    };
    const wrong = Buffer.alloc(32, 7);
    const seen = () => [
      primary.feed.followers()[0]?.differenceCount,
      world.log.filter((line) => line.includes('is not what the primary has')).length,
    ];
    test.match(await refusalOf(report(wrong, session + 1)), /^feed.over/);
    test.same(seen(), [0, 0]);
    for (const digest of [wrong, wrong]) await report(digest);
    test.same(seen(), [1, 1]);
    for (const digest of [digestOf(log.head), wrong]) await report(digest);
    test.same(seen(), [2, 2], 'it was mended, and differs again');
  },
);

t.test('reports: how far it is in bytes, and what the primary counts there', async (test) => {
  const { world, log, primary, secondary } = await twoDatacenters();
  log.write('12345');
  secondary.subscriber.start(1);
  await world.until('it knows', () => secondary.subscriber.state().figures?.[0] === 1);
  test.equal(secondary.subscriber.state().lagBytes, 0);
  secondary.applyMs = () => 10_000;
  log.write('1234567');
  log.write('123');
  await world.run(5_000);
  test.match(secondary.subscriber.state(), { lagBytes: 10, lagEntries: 2, figures: [1, 7] });
  test.match(primary.feed.followers()[0], { lagBytes: 10, lagEntries: 2 });
  await world.run(3_000);
  test.equal(primary.feed.followers()[0]?.state, 'catching-up', 'it lacks them for too long');
  secondary.applyMs = () => 1;
  await world.until('it has all', () => secondary.state.cursor?.seq === 3);
  await world.until('it knows', () => secondary.subscriber.state().figures?.[0] === 3);
  await world.until('the primary, too', () => primary.feed.followers()[0]?.lagBytes === 0);
});

t.test(
  'levels: a datacenter that uses less than the primary gets nothing until it has caught up',
  async (test) => {
    const { world, log, primary, secondary } = await twoDatacenters();
    primary.become(primaryStanding({ level: 2 }));
    log.write('one');
    secondary.subscriber.start(1);
    await world.until('it is refused', () => {
      return /upgrade all servers of dc2/.test(secondary.subscriber.state().lastError?.text ?? '');
    });
    await world.run(5_000);
    test.equal(secondary.state.cursor?.seq ?? 0, 0);
    test.same(primary.feed.followers(), []);
    secondary.level = 2;
    await world.until('it follows', () => secondary.state.cursor?.seq === 1);
    test.same(chainViolations(log, secondary.state), []);
  },
);

t.test(
  'levels: whoever is refused for its level is named while it is, and so many are',
  async (test) => {
    const { primary } = await aPrimary();
    primary.serve({ followersMax: 1 });
    primary.become(primaryStanding({ level: 2 }));
    for (const each of ['dc2', 'dc3']) {
      test.match(await refusalOf(say(primary, HELLO, each)), /^feed.too-old/);
    }
    test.match(primary.feed.refused('dc2')?.says, /^the servers of dc2 read the log up to feature/);
    test.equal(primary.feed.refused('dc3'), undefined, 'others are not counted for ever');
    await say(primary, { ...HELLO, level: 2 });
    test.equal(primary.feed.refused('dc2'), undefined);
    test.equal(primary.feed.followers().length, 1);
    primary.become(primaryStanding({ level: 3 }));
    test.match(await refusalOf(say(primary, { ...HELLO, level: 2 }, 'dc3')), /^feed.too-old/);
    primary.become(primaryStanding({ level: 3, epoch: 2 }));
    test.equal(primary.feed.refused('dc3'), undefined, 'nothing is known of it in this reign');
  },
);

t.test('followers: what is trimmed makes no lag smaller', async (test) => {
  const { world, log, primary } = await aPrimary();
  const lagMs = () => primary.feed.followers()[0]?.lagMs;
  for (let number = 1; number <= 4; number += 1) {
    log.write(`${number}`);
    await world.run(1_000);
  }
  const session = await sessionOf(primary);
  await ask(primary, 'feed.pull', encodePull({ session, number: 0 }));
  test.equal(lagMs(), 4_000);
  await ask(primary, 'feed.ack', encodeAck({ session, cursor: log.at(1) }));
  test.equal(lagMs(), 3_000);
  log.trimmedSeq = 3;
  await world.run(5_000);
  test.equal(lagMs(), 8_000, 'the second entry is as old as it was');
  test.equal((await say(primary, { ...HELLO, cursor: log.at(1) })).kind, 'snapshot-needed');
  test.equal(lagMs(), 8_000);
  await sessionOf(primary, { ...HELLO, cursor: log.at(3) });
  test.equal(lagMs(), 6_000, 'it has taken some');
  await sessionOf(primary, { ...HELLO, cursor: log.at(4) });
  test.equal(lagMs(), 0);
});

t.test(
  'acks: a write waits for a majority or for all, a bounded time, within the reign',
  async (test) => {
    const { world, log, primary, secondary } = await twoDatacenters();
    const third = await aSecondary(world, 'dc3', 't1', [primary]);
    secondary.subscriber.start(1);
    third.subscriber.start(1);
    await world.run(100);
    log.write('1');
    const wait = (level: 'majority' | 'all', timeoutMs = 500): Promise<string> =>
      world.result(primary.feed.awaitAck({ seq: log.head.seq, level, timeoutMs }));
    test.equal(await wait('majority'), 'reached');
    test.equal(await wait('all'), 'reached');
    third.applyMs = () => 100_000;
    log.write('2');
    test.equal(await wait('majority'), 'reached');
    test.equal(await wait('all'), 'timeout');
    test.equal(primary.feed.acknowledgedSeq('all'), 1);
    const ended = primary.feed.awaitAck({ seq: 2, level: 'all', timeoutMs: 10_000 });
    primary.become({ kind: 'elsewhere', addresses: [], says: 'deposed' });
    test.equal(await world.result(ended), 'reign-over');
    test.equal(await wait('majority'), 'reign-over');
    primary.become(primaryStanding());
    test.equal(primary.feed.acknowledgedSeq('majority'), 0, 'nothing is known at the start');
  },
);

t.test('acks: whoever waits for less hears first, and of so many at most', async (test) => {
  const { world, log, primary } = await aPrimary();
  primary.serve({ waitersMax: 4 });
  primary.become(primaryStanding({ voters: ['dc1', 'dc2'] }));
  for (let number = 1; number <= 4; number += 1) log.write(`${number}`);
  const heard: number[] = [];
  const wait = (seq: number) => primary.feed.awaitAck({ seq, level: 'all', timeoutMs: 60_000 });
  for (const seq of [3, 2, 4, 1]) void wait(seq).then(() => heard.push(seq));
  test.equal(await wait(2), 'too-many');
  await world.run(60_000);
  test.same(heard.splice(0).sort(), [1, 2, 3, 4], 'none has been reached in time');
  for (const seq of [3, 2, 4, 1]) void wait(seq).then(() => heard.push(seq));
  const session = await sessionOf(primary, { ...HELLO, cursor: log.at(1) });
  await settled();
  test.same(heard, [1]);
  await ask(primary, 'feed.pull', encodePull({ session, number: 0 }));
  await ask(primary, 'feed.ack', encodeAck({ session, cursor: log.at(3) }));
  await settled();
  test.same(heard, [1, 2, 3]);
});

t.test(
  'acks: counted anew once somebody asks, and after nothing but what may change it',
  async (test) => {
    const { log, primary } = await aPrimary();
    const alone = primaryStanding({ voters: ['dc1'] });
    let standing: FeedStanding = alone;
    let looks = 0;
    Object.defineProperty(primary, 'standing', {
      get: () => {
        looks += 1;
        return standing;
      },
      set: (next: FeedStanding) => {
        standing = next;
      },
    });
    primary.feed.standingChanged();
    looks = 0;
    for (let number = 1; number <= 9; number += 1) log.write(`${number}`);
    test.equal(looks, 0, 'nobody has asked');
    const known = () => [
      primary.feed.acknowledgedSeq('majority'),
      primary.feed.acknowledgedSeq('all'),
    ];
    test.same(known(), [9, 9]);
    test.same(known(), [9, 9]);
    test.equal(looks, 1, 'nothing has changed since');
    log.write('10');
    test.same(known(), [10, 10], 'alone, it moves with the head');
    primary.become(primaryStanding({ voters: ['dc1', 'dc2'] }));
    for (let number = 11; number <= 14; number += 1) log.write(`${number}`);
    test.same(known(), [10, 10], 'what was known stays known, and no more is');
    const session = await sessionOf(primary, { ...HELLO, cursor: log.at(11) });
    test.same(known(), [11, 11], 'as it says when it asks for the log');
    await ask(primary, 'feed.pull', encodePull({ session, number: 0 }));
    await ask(primary, 'feed.ack', encodeAck({ session, cursor: log.at(12) }));
    test.same(known(), [12, 12], 'as it acknowledges');
    const wait = primary.feed.awaitAck({ seq: 14, level: 'all', timeoutMs: 60_000 });
    await ask(primary, 'feed.ack', encodeAck({ session, cursor: log.at(14) }));
    test.equal(await wait, 'reached', 'who waits is told, though nobody asks');
    log.write('15');
    test.same(known(), [14, 14]);
    primary.become(alone);
    test.same(known(), [15, 15], 'nobody else counts any more');
    primary.become({ kind: 'elsewhere', addresses: [], says: 'deposed' });
    looks = 0;
    test.same(known(), [0, 0]);
    test.equal(looks, 0, 'of no reign nothing is counted');
  },
);
