// The feed from the primary to a secondary: every entry once, in order, over lines of all kinds.

import t from 'tap';
import { decodeHello, FEED_METHOD } from '../../../../cluster/federation/feed/feed-frames.ts';
import {
  DEFAULT_SUBSCRIBER_LIMITS,
  TAIL_ENTRIES_MAX,
} from '../../../../cluster/federation/feed/feed-limits.ts';
import {
  aSecondary,
  chainViolations,
  FEDERATION,
  PrimaryNode,
  primaryStanding,
  type SecondaryNode,
  twoDatacenters,
} from '../feed-world.ts';
import { nextEntry } from '../memory-log.ts';

t.test(
  'feed: a secondary gets every entry once, in order, and what is written later',
  async (test) => {
    const { world, log, primary, secondary } = await twoDatacenters();
    for (let number = 1; number <= 500; number += 1) log.write(`early ${number}`);
    secondary.subscriber.start(1);
    await world.until('it has all', () => secondary.state.cursor?.seq === 500);
    test.equal(secondary.state.federationId, FEDERATION, 'it knows its federation now');
    for (let number = 1; number <= 50; number += 1) {
      log.write(`late ${number}`);
      await world.run(3);
    }
    await world.until('it has those too', () => secondary.state.cursor?.seq === 550);
    test.same(chainViolations(log, secondary.state), []);
    test.equal(secondary.state.refusedCount, 0);
    await world.run(2_500);
    test.match(secondary.subscriber.state(), { kind: 'tail', lagEntries: 0, lagMs: 0 });
    test.match(primary.feed.followers(), [
      {
        datacenter: 'dc2',
        node: 's1',
        state: 'tail',
        acked: { seq: 550 },
        lagEntries: 0,
        lagMs: 0,
      },
    ]);
  },
);

t.test('feed: an entry is there one way later, when nothing waits before it', async (test) => {
  const { world, log, secondary } = await twoDatacenters();
  world.net.delayMs = 40;
  secondary.subscriber.start(1);
  await world.until('it follows', () => secondary.subscriber.state().kind === 'tail');
  await world.run(500);
  const fromMs = world.time.nowMs;
  log.write('now');
  await world.until('it is there', () => secondary.state.cursor?.seq === 1);
  const tookMs = world.time.nowMs - fromMs;
  test.ok(tookMs >= 40 && tookMs <= 46, `${tookMs} ms for 40 on the way and 2 in the group`);
});

t.test('feed: what is on its way to a follower never exceeds its window', async (test) => {
  const { world, log, secondary } = await twoDatacenters();
  secondary.state.federationId = FEDERATION;
  const { windowBytes } = DEFAULT_SUBSCRIBER_LIMITS;
  const entryBytes = 50_000;
  const entryCount = (2 * windowBytes) / entryBytes;
  while (log.head.seq < entryCount) log.write(Buffer.alloc(entryBytes, log.head.seq));
  let isStalled = true;
  secondary.applyMs = () => (isStalled ? 1_000_000 : 2);
  let sentBytes = 0;
  world.net.onFrame = (frame, from) => {
    if (from === 'p1') sentBytes += frame.length;
  };
  secondary.subscriber.start(1);
  await world.run(4_000);
  test.ok(sentBytes > windowBytes / 2, `${sentBytes} bytes came`);
  test.ok(sentBytes < 1.1 * windowBytes, `${sentBytes} bytes for a window of ${windowBytes}`);
  isStalled = false;
  secondary.subscriber.stop();
  secondary.subscribe();
  secondary.subscriber.start(2);
  await world.until('it has all', () => secondary.state.cursor?.seq === log.head.seq);
  test.same(chainViolations(log, secondary.state), []);
});

t.test(
  'feed: a long line costs its length and little more, at any rate and behind a pause',
  async (test) => {
    const { world, log, secondary } = await twoDatacenters();
    const delayMs = 150;
    world.net.delayMs = delayMs;
    secondary.subscriber.start(1);
    await world.until('it follows', () => secondary.subscriber.state().kind === 'tail');
    const lagsMs: number[] = [];
    const writtenMs = new Map<number, number>();
    const look = (): void => {
      for (const [seq, atMs] of writtenMs) {
        if (seq > (secondary.state.cursor?.seq ?? 0)) return;
        writtenMs.delete(seq);
        lagsMs.push(world.time.nowMs - atMs);
      }
    };
    for (const everyMs of [10, 1]) {
      await world.run(5_000);
      look();
      lagsMs.length = 0;
      for (let atMs = 0; atMs < 2_000; atMs += 1) {
        if (atMs % everyMs === 0) {
          log.write(`${atMs}`);
          writtenMs.set(log.head.seq, world.time.nowMs);
        }
        await world.run(1);
        look();
      }
      const most = Math.max(...lagsMs);
      const isEnough = lagsMs.length > 1_500 / everyMs;
      test.ok(
        isEnough && most < delayMs + 20,
        `${most} ms over ${delayMs} ms, one each ${everyMs} ms`,
      );
    }
  },
);

t.test('feed: what is asked beside it does not stand behind it on a thin line', async (test) => {
  const { world, log, primary, secondary } = await twoDatacenters();
  world.net.bytesPerMs = 500;
  while (log.head.seq < 400) log.write(Buffer.alloc(50_000, log.head.seq));
  primary.handlers = { ...primary.handlers, ask: async ({ payload }) => payload };
  secondary.subscriber.start(1);
  await world.run(8_000);
  test.ok((secondary.state.cursor?.seq ?? 0) < log.head.seq, 'it takes entries in');
  const fromMs = world.time.nowMs;
  const request = { method: 'ask', payload: Uint8Array.of(7), deadlineMs: 60_000, hops: 0 };
  const answer = await world.result(secondary.transport.call(primary.address, request));
  test.same(answer, request.payload);
  const tookMs = world.time.nowMs - fromMs;
  test.ok(tookMs < 100, `${tookMs} ms`);
});

t.test('feed: a line that is long and wide is full while a follower catches up', async (test) => {
  const { world, log, secondary } = await twoDatacenters();
  world.net.delayMs = 150;
  const entryCount = 100_000;
  while (log.head.seq < entryCount) log.write(Buffer.alloc(600, log.head.seq));
  const fromMs = world.time.nowMs;
  secondary.subscriber.start(1);
  await world.until('it has all', () => secondary.state.cursor?.seq === entryCount);
  const seconds = (world.time.nowMs - fromMs) / 1_000;
  test.ok(entryCount / seconds > 20_000, `${entryCount} entries in ${seconds} s`);
});

t.test('feed: followers of the same entries share packed frames', async (test) => {
  const { world, log, primary } = await twoDatacenters();
  const others: SecondaryNode[] = [];
  for (const name of ['dc3', 'dc4', 'dc5']) {
    others.push(await aSecondary(world, name, `${name}-1`, [primary]));
  }
  for (const { subscriber } of others) subscriber.start(1);
  await world.until('all follow', () =>
    others.every(({ subscriber }) => subscriber.state().kind === 'tail'),
  );
  const readBefore = log.readCount;
  for (let number = 1; number <= 20; number += 1) {
    log.write(`${number}`);
    await world.run(50);
  }
  test.ok(others.every(({ state }) => state.cursor?.seq === 20));
  test.equal(log.readCount - readBefore, 20, 'one read an entry, not one a follower');
  test.ok(primary.feed.followers().length === 3);
});

t.test(
  'feed: goes on from the durable cursor after whatever happens to the connection',
  async (test) => {
    const { world, log, secondary } = await twoDatacenters();
    secondary.subscriber.start(1);
    let number = 0;
    for (let round = 0; round < 5; round += 1) {
      for (let count = 0; count < 40; count += 1) {
        number += 1;
        log.write(`${number}`);
        await world.run(1);
      }
      await world.until('it follows', () => secondary.subscriber.state().kind === 'tail');
      world.net.breakAll('p1', 's1');
      await world.until('it knows', () => secondary.subscriber.state().kind !== 'tail');
    }
    await world.until('it has all', () => secondary.state.cursor?.seq === number);
    test.same(chainViolations(log, secondary.state), []);
    test.ok(secondary.subscriber.state().sessionCount >= 5);
    test.ok(world.log.some((line) => /the feed stands .*the network broke it/.test(line)));
  },
);

t.test(
  'feed: a way that is dark in one direction is noticed, and left for another',
  async (test) => {
    const { world, log, secondary } = await twoDatacenters();
    secondary.subscriber.start(1);
    await world.until('it follows', () => secondary.subscriber.state().kind === 'tail');
    for (const [from, to] of [
      ['p1', 's1'],
      ['s1', 'p1'],
    ] as const) {
      world.net.cut(from, to);
      log.write('dark');
      await world.until('it is noticed', () => secondary.subscriber.state().kind === 'connecting');
      world.net.heal();
      const { seq } = log.head;
      await world.until('it has it', () => secondary.state.cursor?.seq === seq);
      await world.until('it follows', () => secondary.subscriber.state().kind === 'tail');
    }
    test.same(chainViolations(log, secondary.state), []);
  },
);

t.test('feed: a line that was cut for long is used soon after it is mended', async (test) => {
  const { world, log, primary, secondary } = await twoDatacenters();
  secondary.subscriber.start(1);
  await world.until('it follows', () => secondary.subscriber.state().kind === 'tail');
  for (let round = 0; round < 5; round += 1) {
    primary.handlers = {};
    world.net.breakAll('p1', 's1');
    await world.run(60_000);
    log.write(`while it was away, ${round}`);
    primary.handlers = primary.feed.handlers;
    const mendedAtMs = world.time.nowMs;
    const { seq } = log.head;
    await world.until('it has it', () => secondary.state.cursor?.seq === seq);
    const tookMs = world.time.nowMs - mendedAtMs;
    test.ok(tookMs < 2_500, `${tookMs} ms`);
  }
});

t.test('feed: behind a session that was a good one the next try comes soon', async (test) => {
  const { world, log, primary, secondary } = await twoDatacenters();
  const { subscriber } = secondary;
  subscriber.start(1);
  for (const what of ['stood', 'brought something'] as const) {
    primary.handlers = {};
    world.net.breakAll('p1', 's1');
    await world.run(20_000);
    primary.handlers = primary.feed.handlers;
    await world.until('it follows again', () => subscriber.state().kind === 'tail');
    if (what === 'stood') await world.run(6_000);
    else {
      log.write('one');
      await world.until('it has it', () => secondary.state.cursor?.seq === log.head.seq);
    }
    primary.become({ kind: 'elsewhere', addresses: [], says: 'for a moment' });
    await world.until('it is over', () => subscriber.state().kind === 'connecting');
    primary.become(primaryStanding());
    const overAtMs = world.time.nowMs;
    await world.until('it follows', () => subscriber.state().kind === 'tail');
    const tookMs = world.time.nowMs - overAtMs;
    test.ok(tookMs < 2 * DEFAULT_SUBSCRIBER_LIMITS.retryBaseMs + 100, `${what}: ${tookMs} ms`);
  }
});

t.test('feed: a server that is not the one says where the one is', async (test) => {
  const { world, log, primary, secondary } = await twoDatacenters();
  const follower = await new PrimaryNode(world, 'p2', log).start();
  follower.become({ kind: 'elsewhere', addresses: [primary.address], says: 'p1 leads' });
  secondary.addresses = [follower.address];
  log.write('one');
  secondary.subscriber.start(1);
  await world.until('it has it', () => secondary.state.cursor?.seq === 1);
  test.equal(secondary.subscriber.state().source, `p1:${primary.address.port}`);
  primary.become({ kind: 'elsewhere', addresses: [follower.address], says: 'p2 leads' });
  follower.become(primaryStanding());
  log.write('two');
  await world.until('it has it', () => secondary.state.cursor?.seq === 2);
  test.equal(secondary.subscriber.state().source, `p2:${follower.address.port}`);
  test.same(primary.feed.followers(), [], 'who does not lead knows no followers');
});

t.test('feed: servers that point at each other are not followed for ever', async (test) => {
  const { world, log, primary, secondary } = await twoDatacenters();
  const other = await new PrimaryNode(world, 'p2', log).start();
  primary.become({ kind: 'elsewhere', addresses: [other.address], says: 'p2 leads' });
  other.become({ kind: 'elsewhere', addresses: [primary.address], says: 'p1 leads' });
  let helloCount = 0;
  for (const node of [primary, other]) {
    const { handlers } = node;
    node.handlers = {
      ...handlers,
      'feed.hello': (request) => {
        helloCount += 1;
        return handlers['feed.hello']!(request);
      },
    };
  }
  secondary.subscriber.start(1);
  await world.run(10_000);
  test.ok(helloCount < 60, `${helloCount} hellos in ten seconds`);
  test.match(secondary.subscriber.state().lastError?.text, /is not the one to ask: p\d leads/);
});

t.test('feed: a secondary that the log does not reach back to takes a snapshot', async (test) => {
  const { world, log, primary, secondary } = await twoDatacenters();
  for (let number = 1; number <= 300; number += 1) log.write(`entry ${number}`);
  log.trimmedSeq = 250;
  secondary.subscriber.start(1);
  await world.until('it takes one', () => secondary.subscriber.state().kind === 'snapshot');
  await world.until('it is lent', () => primary.lender.pinnedSeq !== undefined);
  test.equal(primary.lender.pinnedSeq, 300, 'the log behind it is kept');
  log.write('meanwhile');
  await world.until('it has all', () => secondary.state.cursor?.seq === 301);
  test.equal(secondary.state.snapshotCount, 1);
  test.same(chainViolations(log, secondary.state), []);
  await world.run(70_000);
  test.equal(primary.lender.pinnedSeq, undefined, 'the lease is over');
});

t.test(
  'feed: whose reign ends before it takes a snapshot does not say that it does',
  async (test) => {
    const { world, log, secondary } = await twoDatacenters();
    for (let number = 1; number <= 9; number += 1) log.write(`entry ${number}`);
    log.trimmedSeq = 5;
    secondary.applyMs = () => 1_000;
    secondary.subscriber.start(1);
    const { subscriber } = secondary;
    await world.until('it is answered', () => subscriber.state().begunEpoch > 0);
    test.equal(
      secondary.state.federationId,
      '',
      'of which federation it is, its group decides now',
    );
    subscriber.stop();
    await world.run(5_000);
    test.equal(secondary.state.federationId, FEDERATION);
    test.equal(subscriber.state().kind, 'idle');
    test.equal(secondary.state.snapshotCount, 0);
  },
);

t.test(
  'feed: who stands still does so however the line is, and says why it is not better',
  async (test) => {
    for (const kind of ['diverged', 'fenced'] as const) {
      const { world, log, primary, secondary } = await twoDatacenters();
      for (let number = 1; number <= 3; number += 1) log.write(`${number}`);
      secondary.state.federationId = FEDERATION;
      if (kind === 'fenced') secondary.maxEpoch = 2;
      else secondary.state.cursor = nextEntry(log.at(2), Buffer.from('stray'));
      const { subscriber } = secondary;
      subscriber.start(1);
      await world.until('it knows', () => subscriber.state().kind === kind);
      primary.handlers = {};
      world.net.breakAll('p1', 's1');
      await world.run(10_000);
      test.equal(subscriber.state().kind, kind);
      test.match(subscriber.state().lastError?.text, /feed\.hello/);
    }
  },
);

t.test('feed: who lacks much, or something for long, is not said to have it all', async (test) => {
  const { world, log, secondary } = await twoDatacenters();
  const { subscriber } = secondary;
  subscriber.start(1);
  await world.until('it follows', () => subscriber.state().kind === 'tail');
  secondary.applyMs = () => 4_000;
  log.write('one');
  await world.run(500);
  test.equal(subscriber.state().kind, 'tail', 'it is on its way');
  await world.run(2_500);
  test.equal(subscriber.state().kind, 'catching-up');
  secondary.applyMs = () => 300;
  await world.until('it has it', () => secondary.state.cursor?.seq === 1);
  await world.until('it says so', () => subscriber.state().kind === 'tail');
  for (let number = 0; number <= TAIL_ENTRIES_MAX; number += 1) log.write(`${number}`);
  await world.run(200);
  test.equal(subscriber.state().kind, 'catching-up');
  await world.until('it has all', () => subscriber.state().kind === 'tail');
});

t.test('feed: how far it is nobody says before what was taken is decided', async (test) => {
  const { world, log, primary, secondary } = await twoDatacenters();
  secondary.subscriber.start(1);
  await world.until('it follows', () => secondary.subscriber.state().kind === 'tail');
  let isStill = true;
  secondary.applyMs = () => (isStill ? 20_000 : 2);
  log.write('on its way');
  await world.run(100);
  isStill = false;
  const hellos: (number | undefined)[] = [];
  const { handlers } = primary;
  primary.handlers = {
    ...handlers,
    [FEED_METHOD.hello]: (request) => {
      hellos.push(decodeHello(request.payload).cursor?.seq);
      return handlers[FEED_METHOD.hello]!(request);
    },
  };
  primary.become({ kind: 'elsewhere', addresses: [], says: 'another one leads' });
  await world.run(10_000);
  test.same(hellos, [], 'the disk stands still');
  primary.become(primaryStanding());
  await world.until('it is decided', () => secondary.state.cursor?.seq === 1);
  await world.until('it asks', () => hellos.length > 0);
  test.same(hellos, [1]);
});
