// The feed from the primary to a secondary: every entry once, in order, over lines of all kinds.

import t from 'tap';
import {
  decodeHello,
  decodeHelloAnswer,
  encodeHelloAnswer,
  FEED_METHOD,
  type FeedHello,
  type HelloAnswer,
} from '../../../../cluster/federation/feed/feed-frames.ts';
import {
  DEFAULT_FEED_LIMITS,
  DEFAULT_SUBSCRIBER_LIMITS,
  TAIL_ENTRIES_MAX,
} from '../../../../cluster/federation/feed/feed-limits.ts';
import type { FeedStanding } from '../../../../cluster/federation/feed/feed-server.ts';
import { refusingOutsiders } from '../../../../cluster/federation/refuse-outsiders.ts';
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
import { HELLO, refusalOf, say } from './cases.ts';

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
  'feed: a follower ahead of the primary, or beside it, is told where they part',
  async (test) => {
    const { world, log, primary, secondary } = await twoDatacenters();
    for (let number = 1; number <= 3; number += 1) log.write(`${number}`);
    const stray = nextEntry(log.at(2), Buffer.from('stray'));
    secondary.state.cursor = stray;
    secondary.state.federationId = FEDERATION;
    secondary.subscriber.start(1);
    await world.until('it knows', () => secondary.subscriber.state().kind === 'diverged');
    test.match(secondary.subscriber.state(), { forkSeq: 2, lastError: { text: /behind entry 2/ } });
    test.equal(primary.feed.acknowledgedSeq('majority'), 0, 'it counts for nothing');
    test.same(primary.feed.ahead(), [], 'beside it is not ahead of it');
    for (let second = 0; second < 30; second += 1) {
      const lastError = { text: 'it has what the primary has not, behind entry 2' };
      const stands = { state: 'diverged', acked: undefined, lastError };
      test.match(primary.feed.followers(), [stands], 'it is there, and stands still');
      await world.run(1_000);
    }
    secondary.state.cursor = undefined;
    await world.until('a snapshot puts it right', () => secondary.state.cursor?.seq === 3);
    test.equal(secondary.state.snapshotCount, 1);
  },
);

t.test('feed: a primary that has lost what it wrote is told who has it', async (test) => {
  const { world, log, primary, secondary } = await twoDatacenters();
  for (let number = 1; number <= 3; number += 1) log.write(`${number}`);
  const fourth = nextEntry(log.at(3), Buffer.from('lost'));
  secondary.state.cursor = nextEntry(fourth, Buffer.from('lost, too'));
  secondary.subscriber.start(1);
  await world.until('it stands', () => secondary.subscriber.state().kind === 'diverged');
  test.same(primary.feed.ahead(), [], 'who is of no federation has objects of its own');
  secondary.state.federationId = FEDERATION;
  await world.until('it is told', () => primary.feed.ahead().length > 0);
  test.match(primary.feed.ahead(), [{ datacenter: 'dc2', cursor: { epoch: 1, seq: 5 } }]);
  secondary.state.cursor = undefined;
  await world.until('it has given that up', () => secondary.state.cursor?.seq === 3);
  test.same(primary.feed.ahead(), []);
});

t.test('feed: also where whoever has it knows of a later reign', async (test) => {
  const { world, log, primary, secondary } = await twoDatacenters();
  log.write('kept');
  secondary.state.federationId = FEDERATION;
  secondary.state.cursor = nextEntry(log.at(1), Buffer.from('lost'));
  secondary.maxEpoch = 2;
  secondary.subscriber.start(2);
  await world.until('it is told', () => primary.feed.ahead().length > 0);
  test.match(primary.feed.ahead(), [{ datacenter: 'dc2', cursor: { epoch: 1, seq: 2 } }]);
  test.equal(primary.newerEpochs[0], 2);
  const earlier = { ...HELLO, federationId: FEDERATION, maxEpoch: 2, cursor: log.at(1), term: 1 };
  await say(primary, earlier);
  test.equal(primary.feed.ahead().length, 1, 'an earlier leader does not know');
  await say(primary, { ...earlier, term: 2 });
  test.same(primary.feed.ahead(), []);
  await world.until('it is told again', () => primary.feed.ahead().length > 0);
  secondary.subscriber.stop();
  primary.feed.forget('dc2');
  test.same(primary.feed.ahead(), []);
});

t.test('feed: who has something of a later reign tells that it has begun', async (test) => {
  const { log, primary } = await twoDatacenters();
  log.write('kept');
  const later = { epoch: 2, seq: 1, hash: log.at(1).hash };
  const fencing = { ...HELLO, federationId: FEDERATION, maxEpoch: 2, cursor: log.at(1) };
  await say(primary, fencing);
  test.same(primary.feed.beyond(), [], 'it has promised that, and no more');
  await say(primary, { ...fencing, federationId: '', cursor: later });
  test.same(primary.feed.beyond(), [], 'it is of no federation yet');
  await say(primary, { ...fencing, cursor: later });
  test.match(primary.feed.beyond(), [{ datacenter: 'dc2', cursor: { epoch: 2, seq: 1 } }]);
  test.same(primary.feed.ahead(), []);
  await say(primary, fencing);
  test.same(primary.feed.beyond(), [], 'it has lost that');
});

t.test('feed: not any more where that one has lost it, too', async (test) => {
  const { world, log, primary } = await twoDatacenters();
  log.write('kept');
  const lost = nextEntry(log.at(1), Buffer.from('lost'));
  const fencing = { ...HELLO, federationId: FEDERATION, maxEpoch: 2, cursor: lost };
  // Its data folders were put back to an earlier day, of an earlier term.
  const following = { ...fencing, maxEpoch: 1, cursor: log.at(1), term: 3 };
  for (const back of [following, { ...following, maxEpoch: 2 }]) {
    await say(primary, fencing);
    await say(primary, back);
    const ahead = [{ datacenter: 'dc2', cursor: { epoch: lost.epoch, seq: lost.seq } }];
    test.match(primary.feed.ahead(), ahead, 'a later one leads');
    await world.run(DEFAULT_FEED_LIMITS.silentMs + 1);
    await say(primary, back);
    test.same(primary.feed.ahead(), []);
  }
});

t.test('feed: and behind a promise of the primary as before that', async (test) => {
  for (const maxEpoch of [1, 2]) {
    const { log, primary } = await twoDatacenters();
    log.write('kept');
    const lost = nextEntry(log.at(1), Buffer.from('lost'));
    const elsewhere = { kind: 'elsewhere', addresses: [], says: 'it has promised that' } as const;
    const promised = { ...elsewhere, ended: { federationId: FEDERATION, epoch: 1 } };
    const known = (standing: FeedStanding): number => {
      primary.become(standing);
      return primary.feed.ahead().length;
    };
    const tells = async (hello: Partial<FeedHello>): Promise<readonly number[]> => {
      await say(primary, { ...HELLO, maxEpoch, ...hello });
      return [primary.feed.ahead().length, primary.feed.beyond().length];
    };
    test.same(await tells({ cursor: lost }), [1, 0]);
    test.equal(known(promised), 1, 'that is not forgotten');
    test.same(await tells({ cursor: log.at(1) }), [0, 0], 'it has lost that, too');
    test.same(await tells({ cursor: lost, federationId: 'another' }), [0, 0]);
    test.same(await tells({ cursor: lost }), [1, 0]);
    test.same(await tells({ cursor: { ...lost, epoch: 2 } }), [0, 1]);
    test.equal(known(primaryStanding({ epoch: 3, epochStartSeq: 2 })), 0, 'a reign of its own');
    for (const standing of [primaryStanding(), promised]) {
      primary.become(standing);
      await tells({ cursor: lost });
      test.equal(known(elsewhere), 0, 'another one of its servers leads');
      test.same(await tells({ cursor: lost }), [0, 0]);
    }
  }
});

t.test('feed: also whoever leads it next, before it has waited for that in vain', async (test) => {
  const { world, log, primary, secondary } = await twoDatacenters();
  const other = await new PrimaryNode(world, 'p2', log).start();
  const at = ({ address }: PrimaryNode): FeedStanding => ({
    ...{ kind: 'elsewhere', addresses: [address], says: 'another server leads' },
  });
  log.write('kept');
  secondary.addresses = [primary.address, other.address];
  secondary.state.federationId = FEDERATION;
  secondary.state.cursor = nextEntry(log.at(1), Buffer.from('lost'));
  secondary.subscriber.start(1);
  const tookMs: number[] = [];
  for (let reign = 0; reign < 30; reign += 1) {
    const [last, next] = reign % 2 === 0 ? [primary, other] : [other, primary];
    await world.until('it is told', () => last.feed.ahead().length > 0);
    await world.run(2_000 * world.draw());
    last.become(at(next));
    next.become(at(last));
    // Nobody leads.
    await world.run(500);
    next.become(primaryStanding());
    const fromMs = world.time.nowMs;
    await world.until('it is told, too', () => next.feed.ahead().length > 0);
    tookMs.push(world.time.nowMs - fromMs);
  }
  test.ok(Math.max(...tookMs) < 2_200, tookMs.map(Math.round).join(' '));
});

t.test(
  'feed: who knows of a later reign fences the primary, and takes nothing of it',
  async (test) => {
    const { world, log, primary, secondary } = await twoDatacenters();
    log.write('one');
    secondary.maxEpoch = 4;
    secondary.subscriber.start(1);
    await world.until('it is fenced', () => secondary.subscriber.state().kind === 'fenced');
    test.equal(primary.newerEpochs[0], 4);
    test.equal(secondary.subscriber.state().laterEpoch, 4);
    test.equal(secondary.state.cursor?.seq, 0);
    primary.become(primaryStanding({ epoch: 5, epochStartSeq: 2 }));
    log.write('two', 5);
    await world.until('the later reign is followed', () => secondary.state.cursor?.seq === 2);
  },
);

t.test('feed: a promise that is given in the middle of a session ends it', async (test) => {
  const { world, log, secondary } = await twoDatacenters();
  secondary.subscriber.start(1);
  log.write('one');
  await world.until('it follows', () => secondary.state.cursor?.seq === 1);
  secondary.maxEpoch = 2;
  log.write('two');
  const { subscriber } = secondary;
  const says = /is primary of epoch 1, and epoch 2 is promised here/;
  await world.until('it says so', () => says.test(subscriber.state().lastError?.text ?? ''));
  test.equal(subscriber.state().kind, 'fenced', 'also before it has asked again');
  test.equal(secondary.state.cursor?.seq, 1, 'what came under the old reign is not applied');
});

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

t.test('feed: nothing is taken of whoever answers for another federation', async (test) => {
  const { world, log, primary, secondary } = await twoDatacenters();
  secondary.state.federationId = FEDERATION;
  log.write('one');
  const { handlers } = primary;
  primary.handlers = {
    ...handlers,
    [FEED_METHOD.hello]: async (request) => {
      const answer = decodeHelloAnswer(await handlers[FEED_METHOD.hello]!(request));
      return encodeHelloAnswer({ ...answer, federationId: 'another' } as HelloAnswer);
    },
  };
  secondary.subscriber.start(1);
  await world.run(5_000);
  test.match(secondary.subscriber.state().lastError?.text, /is of federation another, not of/);
  test.equal(secondary.state.cursor?.seq, 0);
});

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

t.test(
  'feed: another federation, and another cluster of a known name, are refused',
  async (test) => {
    const { world, log, primary, secondary } = await twoDatacenters();
    log.write('one');
    secondary.state.federationId = 'another';
    secondary.subscriber.start(1);
    await world.run(1_000);
    test.match(
      secondary.subscriber.state().lastError?.text,
      /two federations: another and fedfedfe/,
    );
    secondary.state.federationId = '';
    await world.until('it has it', () => secondary.state.cursor?.seq === 1);
    const hello = { ...HELLO, clusterId: 'cluster of somebody else' };
    test.match(
      await refusalOf(say(primary, hello, 'dc2')),
      /^feed.stranger: dc2 is cluster cluster of dc2 here/,
    );
    primary.feed.forget('dc2');
    test.equal((await say(primary, hello, 'dc2')).kind, 'tail');
    const other = { ...HELLO, federationId: 'another' };
    test.match(
      await refusalOf(say(primary, other, 'dc3')),
      /^feed.stranger: dc3 is of federation another/,
    );
    test.match(await refusalOf(say(primary, HELLO, 'dc1')), /^feed.stranger: .* is of dc1 itself/);
  },
);

t.test('feed: a datacenter that was removed stands still, and says why', async (test) => {
  const { world, log, primary, secondary } = await twoDatacenters();
  const removed = new Set<string>();
  keepOutsidersFrom(primary, { isRemoved: (each) => removed.has(each) });
  log.write('one');
  secondary.subscriber.start(1);
  await world.until('it follows', () => secondary.state.cursor?.seq === 1);
  removed.add('dc2');
  primary.feed.forget('dc2');
  log.write('two');
  await world.until('it is refused', () => secondary.subscriber.state().kind === 'refused');
  test.match(
    secondary.subscriber.state().lastError?.text,
    /an operator has removed datacenter dc2 .* operator datacenter allow dc2/,
  );
  test.same(primary.feed.followers(), []);
  await world.run(60_000);
  test.same([secondary.subscriber.state().kind, secondary.state.cursor?.seq], ['refused', 1]);
  removed.clear();
  await world.until('it is back', () => secondary.state.cursor?.seq === 2);
  test.equal(secondary.subscriber.state().kind, 'tail');
});

t.test(
  'feed: a cluster that has not the name of its datacenter counts for nothing, whatever it asks',
  async (test) => {
    const { world, log, primary, secondary } = await twoDatacenters();
    const clusters = new Map([['dc2', 'the one before']]);
    keepOutsidersFrom(primary, { clusterIdOf: (each) => clusters.get(each) });
    log.write('one');
    secondary.subscriber.start(1);
    await world.until('it is refused', () => secondary.subscriber.state().kind === 'refused');
    test.match(
      secondary.subscriber.state().lastError?.text,
      /dc2 is cluster the one before here, not cluster of dc2: .* remove dc2` and `allow dc2`/,
    );
    test.same([primary.feed.followers(), secondary.state.cursor?.seq], [[], 0]);
    clusters.delete('dc2');
    await world.until('it follows', () => secondary.state.cursor?.seq === 1);
    clusters.set('dc2', 'another one');
    log.write('two');
    await world.until('it is refused', () => secondary.subscriber.state().kind === 'refused');
    test.equal(primary.feed.acknowledgedSeq('all'), 0, 'nor do acknowledgements come in');
  },
);

/** As the node does it; what is left out speaks against nobody. */
function keepOutsidersFrom(
  primary: PrimaryNode,
  given: {
    readonly isRemoved?: (datacenter: string) => boolean;
    readonly clusterIdOf?: (datacenter: string) => string | undefined;
  },
): void {
  const { isRemoved = () => false, clusterIdOf = () => undefined } = given;
  const belonging = { datacenter: 'dc1', federationId: () => FEDERATION, clusterIdOf };
  const outsiders = { belonging, isRemoved, overhear: () => undefined };
  primary.handlers = Object.fromEntries(
    Object.entries(primary.handlers).map(([method, handler]) => [
      method,
      refusingOutsiders(handler, outsiders),
    ]),
  );
}

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

t.test('feed: who is to begin anew takes nothing that has come and is not begun', async (test) => {
  const { world, log, secondary } = await twoDatacenters();
  const { batchBytes, batchesMax } = DEFAULT_SUBSCRIBER_LIMITS;
  const total = 2 * batchesMax;
  secondary.subscriber.start(1);
  await world.until('it follows', () => secondary.subscriber.state().kind === 'tail');
  secondary.applyMs = () => 500;
  for (let number = 1; number <= total; number += 1) log.write(Buffer.alloc(batchBytes, number));
  await world.run(400);
  secondary.subscriber.beginAnew();
  for (const [from, to] of [
    ['p1', 's1'],
    ['s1', 'p1'],
  ] as const) {
    world.net.cut(from, to);
  }
  await world.run(10_000);
  test.equal(secondary.state.cursor?.seq, batchesMax, 'what was on its way');
  world.net.heal();
  await world.until('it has all', () => secondary.state.cursor?.seq === total);
  test.same(chainViolations(log, secondary.state), []);
});
