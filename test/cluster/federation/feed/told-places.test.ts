// What datacenters tell of how far they are that the primary asked, before they ask it for the log themselves.

import t from 'tap';
import { FEDERATION, twoDatacenters } from '../feed-world.ts';
import { nextEntry } from '../memory-log.ts';
import { HELLO, say } from './cases.ts';

t.test('told places: who is asked tells what it has more, until it asks itself', async (test) => {
  const { log, primary } = await twoDatacenters();
  const { feed } = primary;
  log.write('kept');
  const kept = log.at(1);
  const lost = nextEntry(kept, Buffer.from('lost'));
  const later = { ...lost, epoch: 2 };
  const known = () => [feed.hasHeardOrAsked('dc2'), feed.ahead().length, feed.beyond().length];
  test.strictSame(known(), [false, 0, 0]);
  feed.told('dc2', []);
  test.strictSame(known(), [false, 0, 0], 'nobody who leads it answered');
  feed.told('dc2', [
    { cursor: kept, maxEpoch: 1 },
    { cursor: lost, maxEpoch: 1 },
    { cursor: kept, maxEpoch: 1 },
  ]);
  test.strictSame(known(), [true, 1, 0], 'one of its servers has more');
  await say(primary, { ...HELLO, cursor: kept, term: 0 });
  test.strictSame(known(), [true, 0, 0], 'whoever asks for the log knows better');
  feed.told('dc2', [{ cursor: later, maxEpoch: 2 }]);
  test.strictSame(known(), [true, 0, 0], 'an answer that comes late');
  feed.told('dc3', [{ cursor: later, maxEpoch: 2 }]);
  test.strictSame([feed.hasHeardOrAsked('dc3'), feed.beyond().length], [false, 1]);
  test.equal(feed.begunEpoch, 2, 'no other reign takes that number');
  feed.told('dc4', [
    { cursor: kept, maxEpoch: 2 },
    { cursor: kept, maxEpoch: 1 },
  ]);
  test.equal(feed.hasHeardOrAsked('dc4'), false, 'it has promised what may have begun');
  test.end();
});

t.test(
  'told places: they are known in that reign alone, and of those who are there',
  async (test) => {
    const { log, primary } = await twoDatacenters();
    const { feed } = primary;
    log.write('kept');
    const lost = nextEntry(log.at(1), Buffer.from('lost'));
    const elsewhere = { kind: 'elsewhere', addresses: [], says: 'another one leads' } as const;
    const known = () => [feed.hasHeardOrAsked('dc2'), feed.ahead().length];
    const tell = () => feed.told('dc2', [{ cursor: lost, maxEpoch: 1 }]);
    tell();
    test.strictSame(known(), [true, 1]);
    feed.forget('dc2');
    test.strictSame(known(), [false, 0], 'it was removed');
    tell();
    primary.become(elsewhere);
    test.strictSame(known(), [false, 0]);
    tell();
    test.strictSame(known(), [false, 0], 'this server leads nothing');
    primary.become({
      ...elsewhere,
      ended: { federationId: FEDERATION, epoch: 1 },
    });
    tell();
    test.strictSame(known(), [true, 1], 'behind a promise of the own datacenter');
    test.end();
  },
);

t.test('told places: what a later leader said when it asked for the log stands', async (test) => {
  const { log, primary } = await twoDatacenters();
  const { feed } = primary;
  log.write('kept');
  const lost = nextEntry(log.at(1), Buffer.from('lost'));
  await say(primary, { ...HELLO, cursor: lost, maxEpoch: 2 });
  feed.told('dc2', [{ cursor: log.at(1), maxEpoch: 1 }]);
  test.equal(feed.ahead().length, 1);
  test.end();
});

t.test(
  'told places: what one of its servers says is known before the others answer',
  async (test) => {
    const { log, primary } = await twoDatacenters();
    const { feed } = primary;
    log.write('kept');
    const places = [{ cursor: nextEntry(log.at(1), Buffer.from('lost')), maxEpoch: 1 }];
    const known = () => [feed.hasHeardOrAsked('dc2'), feed.ahead().length];
    feed.tells('dc2', places);
    test.strictSame(known(), [false, 1], 'others of it may have something of a later reign');
    await say(primary, { ...HELLO, cursor: log.at(1) });
    feed.tells('dc2', places);
    test.strictSame(known(), [true, 0], 'whoever asks for the log knows better');
  },
);
