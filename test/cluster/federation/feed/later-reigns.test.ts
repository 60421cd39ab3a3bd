// What a follower and the primary tell each other of what one of them has and the other has not, and of later reigns.

import t from 'tap';
import type { FeedHello } from '../../../../cluster/federation/feed/feed-frames.ts';
import {
  DEFAULT_FEED_LIMITS,
  DEFAULT_SUBSCRIBER_LIMITS,
} from '../../../../cluster/federation/feed/feed-limits.ts';
import type { FeedStanding } from '../../../../cluster/federation/feed/feed-server.ts';
import {
  chainViolations,
  FEDERATION,
  PrimaryNode,
  primaryStanding,
  twoDatacenters,
} from '../feed-world.ts';
import { nextEntry } from '../memory-log.ts';
import { HELLO, say } from './cases.ts';

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
