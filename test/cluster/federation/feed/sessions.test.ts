// Sessions of the feed: who pulls and acknowledges, when one ends, what an idle one says.

import t from 'tap';
import {
  decodeEntryRun,
  decodeFeedFrame,
  encodeAck,
  encodePull,
} from '../../../../cluster/federation/feed/feed-frames.ts';
import {
  DEFAULT_FEED_LIMITS,
  DEFAULT_SUBSCRIBER_LIMITS,
  PULLS_MAX,
} from '../../../../cluster/federation/feed/feed-limits.ts';
import type { GlobalCursor } from '../../../../cluster/federation/global-log.ts';
import { watched } from '../../../support/simulated/group-actions.ts';
import { settled } from '../../../support/simulated/simulated-world.ts';
import { primaryStanding } from '../feed-world.ts';
import { aPrimary, ask, HELLO, refusalOf, say, sessionOf } from './cases.ts';

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
  'sessions: who was put back to an earlier term follows when the later is silent',
  async (test) => {
    const { world, primary } = await aPrimary();
    await sessionOf(primary, { ...HELLO, term: 9 });
    const back = { ...HELLO, term: 3 };
    await world.run(DEFAULT_FEED_LIMITS.silentMs);
    test.match(await refusalOf(say(primary, back)), /^feed.superseded/);
    await world.run(1);
    test.equal((await say(primary, back)).kind, 'tail');
    test.match(await refusalOf(say(primary, { ...HELLO, term: 2 })), /later leader, of term 3/);
  },
);

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
    test.match(await pull(1), /is over/, 'nothing else that it says counts');
  },
);

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

t.test(
  'sessions: who counts may change in a reign: they go on, and whoever waits hears',
  async (test) => {
    const { log, primary } = await aPrimary();
    log.write('one');
    await sessionOf(primary, { ...HELLO, cursor: log.at(1) });
    const wish = { seq: 1, level: 'all', timeoutMs: 1_000 } as const;
    const waited = watched(primary.feed.awaitAck(wish));
    await settled();
    test.equal(waited.result, undefined, 'dc3 has it not');
    primary.become(primaryStanding({ voters: ['dc1', 'dc2'] }));
    await settled();
    test.equal(waited.result, 'reached');
    test.equal(primary.feed.followers().length, 1);
    primary.become({ kind: 'elsewhere', addresses: [], says: 'it has promised that' });
    primary.become(primaryStanding({ epoch: 2, epochStartSeq: 1 }));
    test.equal(primary.feed.acknowledgedSeq('all'), 0, 'of another reign nothing is known');
    primary.become(primaryStanding({ epoch: 2, epochStartSeq: 1, voters: ['dc1'] }));
    log.write('two', 2);
    test.equal(primary.feed.acknowledgedSeq('majority'), 2, 'alone it waits for nobody');
  },
);

t.test(
  'sessions: whoever has an entry of a later reign fences a primary, promise or not',
  async (test) => {
    const { log, primary } = await aPrimary();
    const cursor = { ...log.head, epoch: 2 };
    test.match(await say(primary, { ...HELLO, cursor, maxEpoch: 1 }), { kind: 'fenced', epoch: 2 });
    test.same(primary.newerEpochs, [2]);
    test.same(primary.feed.followers(), []);
  },
);

t.test('sessions: what was acknowledged grows, and ends with the session', async (test) => {
  const { log, primary } = await aPrimary();
  for (let number = 1; number <= 3; number += 1) log.write(`${number}`);
  const session = await sessionOf(primary);
  await ask(primary, 'feed.pull', encodePull({ session, number: 0 }));
  const acked = () => primary.feed.followers()[0]?.acked?.seq;
  for (const seq of [2, 1]) {
    await ask(primary, 'feed.ack', encodeAck({ session, cursor: log.at(seq) }));
    test.equal(acked(), 2, 'an acknowledgement that comes late takes nothing back');
  }
  await say(primary, { ...HELLO, term: 6, cursor: undefined });
  test.equal(acked(), undefined, 'it has nothing any more');
});

t.test('sessions: none of a later life of the server goes on with one of before', async (test) => {
  const { log, primary } = await aPrimary();
  const before = await sessionOf(primary);
  primary.serve();
  const session = await sessionOf(primary);
  test.not(session, before);
  log.write('one');
  const late = encodeAck({ session: before, cursor: log.at(0) });
  test.match(await refusalOf(ask(primary, 'feed.ack', late)), /^feed.over/);
});

t.test('sessions: nothing is sent from memory of a log that was left', async (test) => {
  const { log, primary } = await aPrimary();
  log.write('of a reign that was lost');
  const pulled = async (): Promise<GlobalCursor> => {
    const session = await sessionOf(primary, { ...HELLO, cursor: log.at(0) });
    const bytes = await ask(primary, 'feed.pull', encodePull({ session, number: 0 }));
    const [entry] = decodeEntryRun(decodeFeedFrame(bytes).body).entries;
    return { epoch: entry!.epoch, seq: entry!.seq, hash: entry!.hash };
  };
  test.same(await pulled(), log.head);
  primary.become({ kind: 'elsewhere', addresses: [], says: 'another one is the primary' });
  log.entries.length = 0;
  log.write('of the one that was followed', 2);
  primary.become(primaryStanding({ epoch: 3, epochStartSeq: 2 }));
  test.same(await pulled(), log.head);
});

t.test('sessions: only so many datacenters follow', async (test) => {
  const { primary } = await aPrimary();
  primary.serve({ followersMax: 1 });
  await sessionOf(primary);
  test.match(await refusalOf(say(primary, HELLO, 'dc3')), /1 datacenters follow already/);
  await sessionOf(primary, { ...HELLO, term: 6 });
});

t.test(
  'sessions: one of a datacenter that was removed is over, for who waits in it',
  async (test) => {
    const { log, primary } = await aPrimary();
    const session = await sessionOf(primary);
    const pulled = refusalOf(ask(primary, 'feed.pull', encodePull({ session, number: 0 })));
    primary.feed.forget('dc2');
    log.write('what it is not told any more');
    test.match(await pulled, /an operator has made the primary forget dc2/);
  },
);
