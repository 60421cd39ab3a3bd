// What a candidate lacks lies behind a restore, and a witness alone has it, which has nothing of what was restored:
// nobody gives anything up for a candidate that cannot come to that, and the refusal names what can be done.

import t from 'tap';
import { Datacenter, PromotionWorld } from '../promotion-model.ts';
import { refusalOf, type Three, threeDatacenters } from './elections.ts';

/** dc1 has restored, and dc3, a witness, has heard of it. dc2, and dc1, whose disks were put back, end before that. */
function restored({ hasAll = true } = {}): Three {
  const all = threeDatacenters();
  const { one, two, three } = all;
  if (hasAll) two.follow(one, 10);
  three.isWitness = true;
  three.follow(one, 10);
  one.restore();
  three.follow(one, 1);
  one.entries = one.entries.slice(0, 4);
  one.trimmedSeq = 0;
  one.ahead = [{ datacenter: 'dc3', upTo: { epoch: 1, seq: 11 } }];
  return all;
}

const HAS = 'dc3 has more, behind a restore, and nothing of what was restored';
const LOST = 'Nobody with objects has it any more, not dc1 either, which wrote it';
const WAY_ON =
  'stop dc3, then `conclave operator promote dc2 --force …`, and restore the archive once more, at dc1 when it is the primary again';

t.test('restore: an election is refused, and nobody gives anything up', async (test) => {
  for (const hasAll of [true, false]) {
    const { world, one, two, three } = restored({ hasAll });
    const why = hasAll
      ? 'a restore follows 1.10'
      : 'dc3 does not keep what follows 1.8 any more: a restore came behind it';
    const answers = ['dc1 promises (at 1.4, knows of epoch 1)', 'dc3 promises (at 1.11, knows'];
    for (let tries = 0; tries < 2; tries += 1) {
      const says = await refusalOf(world, two.promotion.elect());
      test.ok(says.startsWith(`refused: ${HAS}. ${LOST}: ${WAY_ON}. ${answers.join('; ')}`), says);
      test.ok(says.endsWith(`; dc3 does not give what it has more: ${why}`), says);
    }
    test.equal(two.promotion.nextEpoch(), 2, 'no epoch is used up');
    test.same(
      [one, two, three].map(({ maxEpoch }) => maxEpoch),
      [1, 1, 1],
    );
    const forced = await refusalOf(world, two.promotion.force(2));
    test.ok(forced.startsWith(`refused: ${HAS}. ${LOST}: ${WAY_ON}`), forced);
  }
});

t.test('restore: behind the way that is named all follow the new reign', async (test) => {
  const { world, one, two, three } = restored();
  three.isUp = false;
  test.match(await refusalOf(world, two.promotion.elect()), /^refused: there is no majority/);
  const { epoch, cursor } = await world.time.result(two.promotion.force(2));
  test.ok(epoch >= 2 && two.isPrimary);
  test.equal(cursor.seq, 10, 'with all from before the restore');
  three.isUp = true;
  await world.time.result(three.fence(two.epochs));
  await world.time.result(one.fence(two.epochs));
  two.write('of the new reign');
  for (const each of [one, three]) {
    each.follow(two, 20);
    test.same(each.cursor, two.cursor);
  }
  const next = await world.time.result(two.promotion.handOver('dc1'));
  test.ok(next > epoch && one.isPrimary);
  test.ok(one.write('restored once more'), 'though it was just asked for a promise');
  test.same(world.violations, []);
});

t.test('restore: what lies before it is taken from whoever has that', async (test) => {
  const { world, one, two, three } = restored({ hasAll: false });
  const four = new Datacenter(world, 'dc4');
  world.all.push(four);
  world.voters.push('dc4');
  four.entries = three.entries.slice(0, 10);
  four.epochs = two.epochs;
  const says = await refusalOf(world, two.promotion.elect());
  test.ok(says.startsWith(`refused: ${HAS}. ${LOST}`), says);
  test.equal(four.maxEpoch, 1);
  three.isUp = false;
  one.isUp = false;
  const { cursor } = await world.time.result(two.promotion.force(2));
  test.same(cursor, four.cursor);
});

t.test('restore: whoever may have the objects goes first', async (test) => {
  const away = restored();
  away.one.isUp = false;
  test.ok(
    (await refusalOf(away.world, away.two.promotion.elect())).startsWith(
      `refused: ${HAS}. dc1, which wrote it, may have it: start that one first, and ask again; if it is gone for good, stop dc3, then \`conclave operator promote dc2 --force …\`, and restore an archive of dc2. `,
    ),
  );
  const { world, one, two } = restored();
  const four = new Datacenter(world, 'dc4');
  world.all.push(four);
  world.voters.push('dc4');
  four.isUp = false;
  four.isWitness = true;
  test.ok(
    (await refusalOf(world, two.promotion.elect())).startsWith(`refused: ${HAS}. ${LOST}`),
    'another witness has no objects either',
  );
  four.isWitness = false;
  test.ok(
    (await refusalOf(world, two.promotion.elect())).startsWith(
      `refused: ${HAS}. dc4 may have it: start that one first, and ask again; if it is gone for good, ${WAY_ON}`,
    ),
  );
  four.entries = world.named('dc3').entries;
  four.isUp = true;
  const wanted = /^refused: dc3, dc4 can be reached and has more: promote that one/;
  test.match(await refusalOf(world, two.promotion.elect()), wanted);
  test.match(await refusalOf(world, two.promotion.force(2)), wanted);
  test.same([one.maxEpoch, two.maxEpoch, four.maxEpoch], [1, 1, 1]);
  // The writer is listed no more, and not asked.
  world.all.splice(world.all.indexOf(one), 1);
  world.voters.splice(world.voters.indexOf('dc1'), 1);
  four.isUp = false;
  const unlisted = await refusalOf(world, two.promotion.elect());
  test.match(unlisted, /\. dc4 and dc1, which wrote it, may have it: start that one first/);
});

t.test('restore: a primary that has lost it goes on without the witness', async (test) => {
  const { world, one, two, three } = restored();
  one.entries = two.entries;
  test.match(
    await refusalOf(world, one.promotion.elect()),
    `refused: ${HAS}. ${LOST}: stop dc3, then \`conclave operator promote dc1 --force …\`, and restore the archive once more. `,
  );
  three.isUp = false;
  const already = /^refused: dc1 is the primary already, and not all answer/;
  const { ahead } = one;
  one.ahead = [];
  test.match(await refusalOf(world, one.promotion.force(2)), already);
  one.ahead = ahead;
  test.match(await refusalOf(world, one.promotion.elect()), already);
  await world.time.result(one.promotion.force(2));
  three.isUp = true;
  await world.time.result(three.fence(one.epochs));
  one.write('of the new reign');
  for (const each of [two, three]) {
    each.follow(one, 20);
    test.same(each.cursor, one.cursor);
  }
});

t.test(
  'restore: with a majority it begins beside who has it, as beside who gives nothing',
  async (test) => {
    const world = new PromotionWorld(1, ['dc1', 'dc2', 'dc3', 'dc4', 'dc5']);
    const [one, two, five] = ['dc1', 'dc2', 'dc5'].map((name) => world.named(name));
    one!.write('before');
    for (const each of world.all) each.follow(one!, 10);
    five!.isWitness = true;
    one!.restore();
    five!.follow(one!, 10);
    one!.isUp = false;
    const { promises } = await world.time.result(two!.promotion.elect());
    test.same(promises, ['dc3', 'dc4'], 'a majority had none of that');
  },
);

t.test('restore: no majority passes over what the candidate itself has lost', async (test) => {
  const world = new PromotionWorld(1, ['dc1', 'dc2', 'dc3', 'dc4', 'dc5']);
  const [one, five] = [world.named('dc1'), world.named('dc5')];
  one.write('before');
  for (const each of world.all) each.follow(one, 10);
  five.isWitness = true;
  one.restore();
  five.follow(one, 10);
  [one.entries, one.trimmedSeq] = [one.entries.slice(0, 1), 0];
  [one.maxEpoch, one.votedFor] = [2, 'dc2'];
  one.ahead = [{ datacenter: 'dc5', upTo: { epoch: 1, seq: 2 } }];
  const says = await refusalOf(world, one.promotion.elect());
  test.match(says, /^refused: dc5 has more, behind a restore, .* which wrote it: stop dc5, then `/);
  test.equal(one.maxEpoch, 2);
});

t.test('restore: nobody goes back to where one follows', async (test) => {
  const { world, one, two, three } = threeDatacenters();
  two.follow(one, 10);
  three.follow(one, 10);
  three.isWitness = true;
  for (const other of ['dc2', 'dc3']) world.cuts.add(`dc1 ${other}`).add(`${other} dc1`);
  await world.time.result(two.promotion.elect());
  three.follow(two, 10);
  two.restore();
  three.follow(two, 10);
  one.write('of epoch 1');
  two.isUp = false;
  world.cuts.clear();
  const says = await refusalOf(world, one.promotion.elect());
  test.match(says, /^refused: dc3 has more, behind a restore, .*\. dc2 may have it: start that/);
  test.match(says, /gone for good, stop dc3, then `conclave operator promote dc1 --force …`, and/);
  test.same([one.isPrimary, one.maxEpoch, one.divergent.length], [true, 1, 0]);
});

t.test('restore: one that comes behind the trial is found by the next', async (test) => {
  const { world, one, two, three } = threeDatacenters();
  two.follow(one, 8);
  three.isWitness = true;
  three.follow(one, 10);
  two.promiseFirst = () => {
    if (two.maxEpoch > 1 || three.cursor.seq > 10) return;
    one.restore();
    three.follow(one, 10);
    one.isUp = false;
  };
  test.match(await refusalOf(world, two.promotion.elect()), /^undecided: epoch 2 does not begin: /);
  test.match(
    await refusalOf(world, two.promotion.elect()),
    `refused: ${HAS}. dc1, which wrote it, may have it`,
  );
});
