// The primary lends snapshots: to whom, how many, and for how long.

import t from 'tap';
import { PIECES_AHEAD } from '../../../cluster/federation/snapshot/borrow-snapshot.ts';
import {
  decodeChunk,
  decodeOffer,
  encodeOpen,
  encodeWish,
  SNAPSHOT_METHOD,
} from '../../../cluster/federation/snapshot/snapshot-frames.ts';
import { settled } from '../../support/simulated/simulated-world.ts';
import { bigPrimary } from './big-primary.ts';
import { ask, refusalOf } from './feed/cases.ts';
import { type PrimaryNode, primaryStanding } from './feed-world.ts';

async function open(primary: PrimaryNode, datacenter = 'dc2'): Promise<string> {
  const answer = await ask(primary, SNAPSHOT_METHOD.open, encodeOpen(''), datacenter);
  return decodeOffer(answer).snapshotId;
}

t.test('lender: the last chunks can be had again, the others are gone', async (test) => {
  const { primary } = await bigPrimary();
  const snapshotId = await open(primary);
  const chunk = (number: number, id = snapshotId, from = 'dc2'): Promise<Uint8Array> =>
    ask(primary, SNAPSHOT_METHOD.chunk, encodeWish({ snapshotId: id, number }), from);
  const all: Uint8Array[] = [];
  const next = PIECES_AHEAD + 3;
  for (let number = 0; number < next; number += 1) all.push(await chunk(number));
  test.same(await chunk(3), all[3], 'whoever asked for so many ahead may ask for them again');
  test.match(
    await refusalOf(chunk(2)),
    new RegExp(`^snapshot.gone: chunk 2 of .*: the next one is chunk ${next}`),
  );
  test.match(await refusalOf(chunk(next + 2)), /^snapshot.gone/);
  test.match(await refusalOf(chunk(next, 'another')), /^snapshot.gone: .*: it is not lent/);
  test.match(await refusalOf(chunk(next, snapshotId, 'dc3')), /^snapshot.gone: .*: it is not lent/);
  let last = decodeChunk(await chunk(next));
  while (!last.isEnd) last = decodeChunk(await chunk(last.number + 1));
  test.equal(last.bytes.length, 0);
});

t.test('lender: one that could not be read to its end has none', async (test) => {
  const { primary } = await bigPrimary();
  primary.brokenChunk = 2;
  const snapshotId = await open(primary);
  const chunk = (number: number) =>
    ask(primary, SNAPSHOT_METHOD.chunk, encodeWish({ snapshotId, number }));
  for (const number of [0, 1]) test.notOk(decodeChunk(await chunk(number)).isEnd);
  test.match(await refusalOf(chunk(2)), /the disk does not give it/);
  test.match(await refusalOf(chunk(2)), /^snapshot.gone: .*: it is not lent/);
  test.same(primary.lender.loans(), []);
});

t.test(
  'lender: one loan a datacenter, few at once, each as long as it is asked for',
  async (test) => {
    const { world, log, primary } = await bigPrimary();
    const first = await open(primary);
    await open(primary);
    const gone = ask(primary, SNAPSHOT_METHOD.chunk, encodeWish({ snapshotId: first, number: 0 }));
    test.match(await refusalOf(gone), /^snapshot.gone/, 'the second took its place');
    for (const datacenter of ['dc3', 'dc4', 'dc5']) await open(primary, datacenter);
    test.match(
      await refusalOf(open(primary, 'dc6')),
      /^snapshot.busy: 4 snapshots are lent already/,
    );
    test.equal(primary.lender.pinnedSeq, 200);
    log.write('more');
    await world.run(40_000);
    const kept = await open(primary, 'dc3');
    await world.run(30_000);
    test.same(
      primary.lender.loans().map(({ datacenter, snapshotId }) => [datacenter, snapshotId]),
      [['dc3', kept]],
    );
    test.equal(primary.lender.pinnedSeq, 201);
    const other = ask(primary, SNAPSHOT_METHOD.open, encodeOpen('another'), 'dc3');
    test.match(
      await refusalOf(other),
      /^snapshot.elsewhere: .* of federation fedfedfe.* not of another/,
    );
    primary.become(primaryStanding({ removed: ['dc4'] }));
    test.equal(primary.lender.loans().length, 1, 'whoever is refused, or counts, changes nothing');
    primary.become({ kind: 'elsewhere', addresses: [], says: 'p2 leads' });
    test.match(await refusalOf(open(primary)), /^snapshot.elsewhere: p2 leads/);
  },
);

t.test('lender: a loan goes on while it is asked for, and leaves nothing open', async (test) => {
  const { world, primary } = await bigPrimary();
  const snapshotId = await open(primary);
  await world.run(40_000);
  await ask(primary, SNAPSHOT_METHOD.chunk, encodeWish({ snapshotId, number: 0 }));
  await world.run(40_000);
  test.same([primary.lender.loans().length, primary.openSnapshots], [1, 1]);
  await world.run(25_000);
  test.same([primary.lender.loans().length, primary.openSnapshots], [0, 0], 'nothing was asked');
});

t.test(
  'lender: whom the log has removed nothing is lent, nor who is while it is opened',
  async (test) => {
    const { primary } = await bigPrimary();
    const removed = primaryStanding({ removed: ['dc2'] });
    const refusal = /^federation.removed: an operator has removed datacenter dc2 /;
    let goOn: () => void = () => undefined;
    primary.opening = new Promise((resolve) => (goOn = resolve));
    const meanwhile = refusalOf(open(primary));
    await settled();
    primary.become(removed);
    goOn();
    test.match(await meanwhile, refusal);
    test.match(await refusalOf(open(primary)), refusal);
    test.same([primary.lender.loans().length, primary.openSnapshots], [0, 0]);
    await open(primary, 'dc3');
  },
);

t.test('lender: a reign that ends while one is opened lends none', async (test) => {
  const { primary } = await bigPrimary();
  let goOn: () => void = () => undefined;
  primary.opening = new Promise((resolve) => (goOn = resolve));
  const refusal = refusalOf(open(primary));
  await settled();
  primary.become({ kind: 'elsewhere', addresses: [], says: 'p2 leads' });
  goOn();
  test.match(await refusal, /^snapshot.elsewhere: p2 leads/);
  test.same([primary.lender.loans().length, primary.openSnapshots], [0, 0]);
});
