// Who is let in to follow, and who may be followed.

import t from 'tap';
import {
  decodeHelloAnswer,
  encodeHelloAnswer,
  FEED_METHOD,
  type HelloAnswer,
} from '../../../../cluster/federation/feed/feed-frames.ts';
import { refusingOutsiders } from '../../../../cluster/federation/refuse-outsiders.ts';
import { FEDERATION, type PrimaryNode, primaryStanding, twoDatacenters } from '../feed-world.ts';
import { HELLO, refusalOf, say } from './cases.ts';

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

t.test('feed: whom the log has removed it is not given to, whoever follows it', async (test) => {
  const { primary } = await twoDatacenters();
  primary.become(primaryStanding({ removed: ['dc2'] }));
  const refusal = /^federation.removed: an operator has removed datacenter dc2 /;
  for (const cursor of [undefined, HELLO.cursor]) {
    test.match(await refusalOf(say(primary, { ...HELLO, cursor })), refusal);
  }
  test.same(primary.feed.followers(), [], 'nor is it waited for');
  const later = await say(primary, { ...HELLO, maxEpoch: 4 });
  test.same(later, { kind: 'fenced', epoch: 4 }, 'what it knows of a later reign counts');
  test.equal((await say(primary, HELLO, 'dc3')).kind, 'tail');
  primary.become(primaryStanding());
  test.equal((await say(primary, HELLO)).kind, 'tail', 'it was allowed');
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
