// What is remembered of those that were removed.

import t from 'tap';
import { encodeHello, FEED_METHOD } from '../../../cluster/federation/feed/feed-frames.ts';
import { OutsidePlaces } from '../../../src/node/federation/gate/outside-places.ts';
import type { Replication } from '../../../src/state/global-log/replication.ts';

const hash = new Uint8Array(32);
/** dc1 wrote epochs 1, 3 and 4, the last of them up to where it is now; dc2 epoch 2. */
const EPOCHS = [
  { epoch: 1, startSeq: 1, startHash: hash, primary: 'dc1' },
  { epoch: 2, startSeq: 6, startHash: hash, primary: 'dc2' },
  { epoch: 3, startSeq: 8, startHash: hash, primary: 'dc1' },
  { epoch: 4, startSeq: 21, startHash: hash, primary: 'dc1' },
];

t.test('outside: who has more of a reign of this datacenter than it has is told of', (test) => {
  let seq = 30;
  const removed = new Set(['dc3']);
  const replication = (): Replication =>
    ({
      ...{ datacenter: 'dc1', federationId: 'f', epochs: EPOCHS },
      cursor: { epoch: 4, seq, hash },
    }) as unknown as Replication;
  const outside = new OutsidePlaces({
    clock: { wallMs: () => 7 },
    machine: { replication },
    isRemoved: (each) => removed.has(each),
  });
  const says = (place: readonly [number, number] | undefined, federationId = 'f'): unknown => {
    const cursor = place && { epoch: place[0], seq: place[1], hash };
    const told = { clusterId: 'c', term: 1, maxEpoch: 4, level: 1, isWitness: false };
    const payload = encodeHello({ ...told, federationId, cursor });
    const from = { datacenter: 'dc3' } as never;
    outside.overhear({ from, method: FEED_METHOD.hello, payload, deadlineMs: 1, hops: 0 } as never);
    return outside.ahead().map(({ upTo, end }) => [upTo.epoch, upTo.seq, end.seq]);
  };
  test.same(says([1, 12]), [], 'more of a reign that another one has left behind');
  test.same(says([4, 30]), [], 'as much');
  test.same(says([4, 31]), [[4, 31, 30]], 'more of the last reign');
  test.same(says([3, 20]), [], 'as much of an earlier one');
  test.same(says([3, 22]), [[3, 22, 20]], 'more of that');
  test.same(says([9, 40]), [[3, 22, 20]], 'a reign of its own stands behind what it had');
  test.same(says([2, 25]), [[3, 22, 20]], 'of what another one wrote this one says nothing');
  test.same(says([3, 22], 'g'), [], 'it is of another federation now');
  says([4, 35]);
  test.same(says(undefined), [], 'it is empty');
  test.same(says([4, 35]), [[4, 35, 30]]);
  test.same(says([1, 12]), [], 'its own disks are of an earlier day, too');
  says([4, 35]);
  test.equal(outside.ahead()[0]?.heardAtMs, 7);
  seq = 35;
  test.same(outside.ahead(), [], 'there is as much here by now');
  seq = 34;
  removed.clear();
  test.same(outside.ahead(), [], 'it takes part again, and is heard as all others');
  removed.add('dc3');
  outside.forgetOthers(['dc3']);
  test.equal(outside.ahead().length, 1);
  outside.forgetOthers(['dc4']);
  test.same(outside.ahead(), [], 'what it said before it was let back counts no more');
  test.end();
});
