// The feed of the global log between datacenters, on simulated time and network: what a follower gets, in
// which order, what it acknowledges, and what ends a session.

import t from 'tap';
import {
  encodeAck,
  encodeHello,
  encodePull,
  decodeHelloAnswer,
  decodeFeedFrame,
  type HelloAnswer,
} from '../../../cluster/federation/feed/feed-frames.ts';
import {
  DEFAULT_SUBSCRIBER_LIMITS,
  PULLS_MAX,
} from '../../../cluster/federation/feed/feed-limits.ts';
import type { FeedHello } from '../../../cluster/federation/feed/feed-frames.ts';
import {
  decodeReportAnswer,
  encodeReport,
} from '../../../cluster/federation/feed/report-frames.ts';
import {
  type GlobalCursor,
  LOG_START,
  positionText,
} from '../../../cluster/federation/global-log.ts';
import { refusingOutsiders } from '../../../cluster/federation/refuse-outsiders.ts';
import { RpcRefusal } from '../../../cluster/transport/rpc-error.ts';
import type { RpcCaller } from '../../../cluster/transport/transport.ts';
import {
  aSecondary,
  chainViolations,
  FEDERATION,
  FeedWorld,
  PrimaryNode,
  primaryStanding,
  type SecondaryNode,
  twoDatacenters,
} from './feed-world.ts';
import { digestOf, MemoryLog, nextEntry } from './memory-log.ts';

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
    test.ok(
      secondary.states.some(({ lastError }) => /the network broke it/.test(lastError?.text ?? '')),
    );
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
  await world.until('it is fenced', () => secondary.subscriber.state().kind === 'fenced');
  test.equal(secondary.state.cursor?.seq, 1, 'what came under the old reign is not applied');
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

const HELLO: FeedHello = {
  federationId: FEDERATION,
  clusterId: 'cluster of dc2',
  term: 5,
  cursor: LOG_START,
  maxEpoch: 0,
  level: 1,
  isWitness: false,
};

function callerOf(datacenter: string): RpcCaller {
  return {
    node: 77,
    id: 'x',
    name: `${datacenter}-x`,
    version: '1',
    reads: 1,
    datacenter,
    clusterId: `cluster of ${datacenter}`,
    federationId: FEDERATION,
    remote: 'x:1',
  };
}

async function ask(primary: PrimaryNode, method: string, payload: Uint8Array, datacenter = 'dc2') {
  const from = callerOf(datacenter);
  return primary.handlers[method]!({ from, method, payload, deadlineMs: 1_000, hops: 0 });
}

async function say(
  primary: PrimaryNode,
  hello: FeedHello,
  datacenter = 'dc2',
): Promise<HelloAnswer> {
  return decodeHelloAnswer(await ask(primary, 'feed.hello', encodeHello(hello), datacenter));
}

async function sessionOf(primary: PrimaryNode, hello = HELLO): Promise<number> {
  const answer = await say(primary, hello);
  if (answer.kind !== 'tail') throw new Error(answer.kind);
  return answer.session;
}

async function refusalOf(answer: Promise<unknown>): Promise<string> {
  return answer.then(
    () => 'none',
    (error: unknown) =>
      error instanceof RpcRefusal ? `${error.code}: ${error.message}` : `${error}`,
  );
}

async function aPrimary(): Promise<{ world: FeedWorld; log: MemoryLog; primary: PrimaryNode }> {
  const world = new FeedWorld();
  const log = new MemoryLog(() => world.clock.wallMs());
  const primary = await new PrimaryNode(world, 'p1', log).start();
  return { world, log, primary };
}

t.test('sessions: only the newest one of a datacenter pulls and acknowledges', async (test) => {
  const { log, primary } = await aPrimary();
  for (let number = 1; number <= 4; number += 1) log.write(`${number}`);
  const old = await sessionOf(primary);
  await ask(primary, 'feed.pull', encodePull({ session: old, number: 0 }));
  const waiting = refusalOf(ask(primary, 'feed.pull', encodePull({ session: old, number: 1 })));
  const fresh = await sessionOf(primary, { ...HELLO, term: 6 });
  test.match(await waiting, /^feed.superseded: a newer session of the same datacenter/);
  const ack = (session: number, cursor: GlobalCursor): Promise<string> =>
    refusalOf(ask(primary, 'feed.ack', encodeAck({ session, cursor })));
  test.match(await ack(old, log.at(4)), /^feed.over: session \d+ of dc2 is over/);
  test.equal(primary.feed.followers()[0]?.acked?.seq, 0, 'what an old leader says does not count');
  test.equal(primary.feed.acknowledgedSeq('majority'), 0);
  const pulled = await ask(primary, 'feed.pull', encodePull({ session: fresh, number: 0 }));
  test.equal(decodeFeedFrame(pulled).number, 0);
  test.equal(await ack(fresh, log.at(4)), 'none');
  test.equal(primary.feed.followers()[0]?.acked?.seq, 4);
  test.equal(primary.feed.acknowledgedSeq('majority'), 4);
  const late = { ...HELLO, term: 5 };
  test.match(
    await refusalOf(say(primary, late)),
    /^feed.superseded: dc2 has a later leader, of term 6/,
  );
  test.equal(await ack(fresh, log.at(4)), 'none', 'its session stands');
});

t.test(
  'sessions: end with pulls out of order, too many of them, and acknowledgements of the future',
  async (test) => {
    const { log, primary } = await aPrimary();
    log.write('1');
    let session = await sessionOf(primary);
    const pull = (number: number): Promise<string> =>
      refusalOf(ask(primary, 'feed.pull', encodePull({ session, number })));
    test.match(await pull(1), /^feed.over: pull 1 came where 0 was expected/);
    test.match(await pull(0), /^feed.over: session/);
    session = await sessionOf(primary);
    const pulls = Array.from({ length: PULLS_MAX + 2 }, (_, number) => pull(number));
    // The first one is answered before the last one is too many.
    const [, ...others] = await Promise.all(pulls);
    test.match(others.pop(), /is over/);
    test.ok(others.every((each) => each.includes(`more than ${PULLS_MAX} pulls wait`)));
    session = await sessionOf(primary);
    test.equal(await pull(0), 'none');
    const future = encodeAck({ session, cursor: { epoch: 1, seq: 2, hash: log.head.hash } });
    test.match(
      await refusalOf(ask(primary, 'feed.ack', future)),
      /2 is acknowledged, and 1 was sent/,
    );
    test.equal(primary.feed.acknowledgedSeq('majority'), 0);
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

t.test('sessions: an idle one says every second where the head is', async (test) => {
  const { world, log, primary } = await aPrimary();
  log.write('1');
  const session = await sessionOf(primary);
  await ask(primary, 'feed.pull', encodePull({ session, number: 0 }));
  const waiting = ask(primary, 'feed.pull', encodePull({ session, number: 1 }));
  await world.run(990);
  const frame = decodeFeedFrame(await world.result(waiting));
  test.equal(frame.body.length, 0);
  test.match(frame.news, { epoch: 1, headSeq: 1, majoritySeq: 0 });
  test.equal(frame.news.nowMs - frame.news.headAtMs, 1_000);
});

t.test(
  'sessions: each heartbeat of an idle one answers the pull that has waited longest',
  async (test) => {
    const { world, primary } = await aPrimary();
    const session = await sessionOf(primary);
    const answered: number[] = [];
    for (let number = 0; number < PULLS_MAX; number += 1) {
      void ask(primary, 'feed.pull', encodePull({ session, number })).then(() => {
        answered.push(number);
      });
    }
    await world.run(2_100);
    test.same(answered, [0, 1]);
    const { pullMs } = DEFAULT_SUBSCRIBER_LIMITS;
    await world.run(pullMs / 2 + 8_000);
    test.equal(answered.length, PULLS_MAX, 'the last of them long before its deadline');
  },
);

t.test(
  'sessions: a log that is trimmed under one ends it, and the next hello tells',
  async (test) => {
    const { log, primary } = await aPrimary();
    for (let number = 1; number <= 9; number += 1) log.write(`${number}`);
    const session = await sessionOf(primary);
    log.trimmedSeq = 5;
    const pulled = ask(primary, 'feed.pull', encodePull({ session, number: 0 }));
    test.match(await refusalOf(pulled), /^feed.over: what follows 0 is not kept any more/);
    test.equal((await say(primary, HELLO)).kind, 'snapshot-needed');
  },
);

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

t.test('close: ends sessions, waiters and listening', async (test) => {
  const { log, primary } = await aPrimary();
  log.write('1');
  const session = await sessionOf(primary);
  await ask(primary, 'feed.pull', encodePull({ session, number: 0 }));
  const pull = refusalOf(ask(primary, 'feed.pull', encodePull({ session, number: 1 })));
  const waiter = primary.feed.awaitAck({ seq: 9, level: 'all', timeoutMs: 1_000 });
  primary.feed.close();
  test.match(await pull, /^feed.over/);
  test.equal(await waiter, 'reign-over');
  test.equal(log.listenerCount, 0);
});
