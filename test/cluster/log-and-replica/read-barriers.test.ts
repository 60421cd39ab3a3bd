// Rounds of read barriers: who shares one, when it is asked again, and which answers count.

import t from 'tap';
import { ReadBarriers } from '../../../cluster/replica/requests/read-barriers.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { FakeRandom } from '../../support/fake-random.ts';

const RETRY_MS = 300;
const TIMEOUT_MS = 5_000;

function rig() {
  const clock = new FakeClock(0);
  const barriers = new ReadBarriers({
    ...{ clock, random: new FakeRandom(), countMax: 100 },
    ...{ timeoutMs: TIMEOUT_MS, retryMs: RETRY_MS },
  });
  const results: string[] = [];
  const add = (name: string): void => {
    barriers.add().then(
      () => results.push(`${name} done`),
      () => results.push(`${name} refused`),
    );
  };
  const pass = (ms: number): void => {
    clock.advance(ms);
    barriers.onTick();
  };
  return { barriers, results, add, pass };
}

async function settled(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

t.test('reads: an answer that takes longer than a retry counts all the same', async (t) => {
  const { barriers, results, add, pass } = rig();
  add('a');
  const first = barriers.takeRound();
  pass(RETRY_MS);
  const second = barriers.takeRound();
  t.ok(
    first !== undefined && second !== undefined && first !== second,
    'asked again by another name',
  );
  t.equal(barriers.takeRound(), undefined, 'once');
  pass(RETRY_MS);
  barriers.confirm(first!, 7);
  barriers.release(6);
  await settled();
  t.same(results, [], 'not before what it names is applied');
  barriers.release(7);
  await settled();
  t.same(results, ['a done']);
  t.equal(barriers.takeRound(), undefined, 'and it is not asked for any more');
  barriers.confirm(second!, 9);
  barriers.release(9);
  await settled();
  t.same(results, ['a done']);
});

t.test('reads: whoever came after a round was asked gets nothing from its answer', async (t) => {
  const { barriers, results, add, pass } = rig();
  add('a');
  const first = barriers.takeRound();
  pass(RETRY_MS);
  add('b');
  const again = barriers.takeRound();
  const ofB = barriers.takeRound();
  t.equal(new Set([first, again, ofB]).size, 3);
  barriers.confirm(again!, 1);
  barriers.release(1);
  await settled();
  t.same(results, ['a done']);
  barriers.confirm(ofB!, 1);
  barriers.release(1);
  await settled();
  t.same(results, ['a done', 'b done']);
});

t.test(
  'reads: under another leader everything is asked anew, and old answers are void',
  async (t) => {
    const { barriers, results, add } = rig();
    add('a');
    const old = barriers.takeRound();
    barriers.askAgain();
    const fresh = barriers.takeRound();
    barriers.confirm(old!, 1);
    barriers.release(1);
    await settled();
    t.same(results, []);
    barriers.confirm(fresh!, 1);
    barriers.release(1);
    await settled();
    t.same(results, ['a done']);
  },
);

t.test('reads: what is never answered is refused in time, and makes room', async (t) => {
  const { barriers, results, add, pass } = rig();
  for (let round = 0; round < 20; round += 1) {
    add(String(round));
    barriers.takeRound();
  }
  pass(TIMEOUT_MS);
  await settled();
  t.equal(results.length, 20);
  t.ok(results.every((result) => result.endsWith('refused')));
  add('late');
  const context = barriers.takeRound();
  barriers.confirm(context!, 1);
  barriers.release(1);
  await settled();
  t.equal(results.at(-1), 'late done');
});
