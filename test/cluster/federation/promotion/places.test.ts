// What a datacenter that is asked how far it is tells of what is on its way into its own log.

import t from 'tap';
import { askPlaces } from '../../../../cluster/federation/promotion/ask-places.ts';
import type { PromiseAnswer } from '../../../../cluster/federation/promotion/promotion-frames.ts';
import { nextEntry } from '../memory-log.ts';
import type { Datacenter } from '../promotion-model.ts';
import { refusalOf, type Three, threeDatacenters } from './elections.ts';

/** What `asked` answers that one, which has ten entries. */
async function told({ world, one }: Three, by: Datacenter, asked: Datacenter) {
  const { name: candidate } = by;
  const asking = {
    addressesOf: (name: string) => [{ host: name, port: 1 }],
    call: (to: { readonly host: string }, request: Parameters<typeof world.call>[2]) =>
      world.call(by, to.host, request),
  };
  const question = { datacenter: asked.name, candidate, cursor: one.cursor, deadlineMs: 1_000 };
  const answers = await world.time.result(askPlaces(asking, question));
  const [{ isGranted, cursor }] = answers as [PromiseAnswer];
  return { isGranted, seq: cursor.seq };
}

t.test('places: whoever wrote the reign hears of what is coming, and nobody else', async (test) => {
  const all = threeDatacenters();
  const { one, two, three } = all;
  for (const each of [two, three]) each.follow(one, 10);
  test.same(await told(all, one, two), { isGranted: true, seq: 10 });
  test.equal(two.writerAskedCount, 1);
  // The disks of dc1 were put back: it wrote that, too.
  two.comesTo = nextEntry(two.cursor, Buffer.from('on its way'));
  test.same(await told(all, one, two), { isGranted: false, seq: 11 });
  test.same(await told(all, three, two), { isGranted: true, seq: 10 }, 'nobody has it');
  test.equal(two.writerAskedCount, 2);
});

t.test(
  'places: what comes is taken no further before the answer says how far it is',
  async (test) => {
    const all = threeDatacenters();
    const { one, two } = all;
    two.onWriterAsks = () => {
      two.comesTo = nextEntry(two.cursor, Buffer.from('begun before'));
    };
    test.same(await told(all, one, two), { isGranted: true, seq: 9 });
  },
);

t.test('places: whoever leads no more by then does not say how far it is', async (test) => {
  const { world, one, two } = threeDatacenters();
  two.haveTold = async () => {
    two.isLeader = false;
  };
  const asking = {
    addressesOf: () => [{ host: 'dc2', port: 1 }],
    call: (to: { readonly host: string }, request: Parameters<typeof world.call>[2]) =>
      world.call(one, to.host, request),
  };
  const question = { datacenter: 'dc2', candidate: 'dc1', cursor: one.cursor, deadlineMs: 1_000 };
  test.same(await world.time.result(askPlaces(asking, question)), []);
});

t.test(
  'places: what is on its way to a disk is not given yet, and nothing is given up for it',
  async (test) => {
    const { world, one, two, three } = threeDatacenters();
    for (const each of [two, three]) each.follow(one, 10);
    const coming = nextEntry(two.cursor, Buffer.from('on its way'));
    two.isWitness = true;
    two.comesTo = coming;
    test.match(
      await refusalOf(world, one.promotion.elect()),
      /^refused: dc2 can be reached and has more: .*; dc2 does not give what it has more: nothing follows 1\.10 there yet/,
    );
    test.same([one.maxEpoch, two.maxEpoch, three.maxEpoch], [1, 1, 1]);
    two.comesTo = undefined;
    two.entries = [...two.entries, coming];
    await world.time.result(one.promotion.elect());
    test.same(one.entries.slice(0, 11), two.entries, 'once it is there it is');
  },
);
