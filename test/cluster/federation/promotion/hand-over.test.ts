// A primary that gives up for a successor, and what becomes of it where that fails.

import t from 'tap';
import type { RequireStill } from '../../../../cluster/base/require-still.ts';
import { successorOf } from '../../../../cluster/federation/promotion/promotion-port.ts';
import type { PromotionWorld } from '../promotion-model.ts';
import { refusalOf, type Three, threeDatacenters } from './elections.ts';

t.test('hand-over: the successor has everything before the primary gives up', async (test) => {
  const { world, one, two, three } = threeDatacenters();
  let isSealed = false;
  const following = setImmediateLoop(world, () => {
    isSealed ||= one.sealCount > 0;
    two.follow(one, 1);
    three.follow(one, 1);
    one.write('more');
  });
  const epoch = await world.time.result(one.promotion.handOver('dc2'));
  following.stop();
  test.ok(isSealed, 'it took no writes meanwhile');
  test.equal(epoch, 2);
  test.same([one.isPrimary, two.isPrimary, one.sealCount], [false, true, 0]);
  const lost = one.entries.length - two.entries.filter(({ epoch: each }) => each === 1).length;
  test.equal(lost, 0, 'nothing is lost');
  one.follow(two, 100);
  test.same(one.cursor, two.cursor);
  test.same(one.divergent, []);
});

t.test(
  'hand-over: leaves nobody behind who cannot read what the successor writes',
  async (test) => {
    const { world, one, two, three } = threeDatacenters();
    one.leavesBehind.set('dc2', 'dc2 writes what dc3 cannot read');
    for (const other of [two, three]) other.follow(one, 10);
    const why = await refusalOf(world, one.promotion.handOver('dc2'));
    test.equal(why, 'refused: dc2 writes what dc3 cannot read');
    test.same([one.isPrimary, one.maxEpoch, two.maxEpoch, one.sealCount], [true, 1, 1, 0]);
    test.equal(await world.time.result(one.promotion.handOver('dc3')), 2);
  },
);

t.test('hand-over: fails without harm when the successor is behind or away', async (test) => {
  const { world, one, two } = threeDatacenters();
  const behind = await refusalOf(world, one.promotion.handOver('dc2'));
  test.match(behind, /^refused: dc2 has acknowledged 8 of 10, and was waited for/);
  two.follow(one, 10);
  two.isUp = false;
  test.match(await refusalOf(world, one.promotion.handOver('dc2')), /^undecided: dc2 is silent/);
  two.isUp = true;
  two.isLeader = false;
  test.match(
    await refusalOf(world, one.promotion.handOver('dc2')),
    /^refused: .* does not lead dc2/,
  );
  test.match(
    await refusalOf(world, one.promotion.handOver('dc1')),
    /^refused: dc1 is the primary already/,
  );
  test.match(
    await refusalOf(world, two.promotion.handOver('dc1')),
    /^refused: this server does not lead/,
  );
  test.ok(one.isPrimary);
  test.ok(one.write('it goes on') !== undefined);
});

t.test('hand-over: a successor that is away keeps no write waiting', async (test) => {
  const { world, one, two } = threeDatacenters();
  let sealedAtMs: number | undefined;
  let sealedForMs = 0;
  const watching = setImmediateLoop(world, () => {
    if (one.sealCount === 0) {
      one.write('more');
      return;
    }
    const nowMs = world.time.clock.monotonicMs();
    sealedAtMs ??= nowMs;
    sealedForMs = nowMs - sealedAtMs;
  });
  const away = await refusalOf(world, one.promotion.handOver('dc2'));
  test.match(away, /^refused: dc2 has acknowledged 8 of 11, and was waited for/);
  test.equal(sealedAtMs, undefined, 'writes were taken all the time');
  // It follows until the primary gives up, and dies then.
  const following = setImmediateLoop(world, () => {
    if (one.sealCount === 0) two.follow(one, 100);
    else one.ackedSeqs.set('dc2', one.cursor.seq - 1);
  });
  const died = await refusalOf(world, one.promotion.handOver('dc2'));
  following.stop();
  watching.stop();
  test.match(died, /^refused: dc2 has acknowledged \d+ of \d+, and was waited for/);
  test.ok(sealedForMs > 2_000 && sealedForMs < 4_000, `no writes for ${sealedForMs} ms`);
  test.ok(one.write('it goes on') !== undefined);
});

t.test('hand-over: a write that slips in makes it fail, and is not lost', async (test) => {
  for (const [when, says] of [
    ['before the trial', /^refused: dc1 does not hand over: dc1 does not promise/],
    ['before the promise', /^undecided: epoch 2 does not begin without dc1: dc1 does not promise/],
  ] as const) {
    const { world, one, two, three } = threeDatacenters();
    two.follow(one, 10);
    three.follow(one, 10);
    const slipIn = (): void => {
      one.sealCount = 0;
      one.write('slipped in');
      one.sealCount = 1;
    };
    const { cursor } = one;
    if (when === 'before the trial') one.mayPromiseFirst = slipIn;
    else two.promiseFirst = slipIn;
    test.match(await refusalOf(world, one.promotion.handOver('dc2')), says, when);
    test.equal(two.isPrimary, false);
    test.equal(two.maxEpoch, when === 'before the trial' ? 1 : 2);
    test.equal(one.cursor.seq, cursor.seq + 1, 'the write stands');
    test.same(world.violations, []);
  }
});

t.test('hand-over: nobody says that nothing has changed behind a promise', async (test) => {
  const { world, one, two, three } = threeDatacenters();
  two.follow(one, 10);
  three.follow(one, 10);
  two.promiseFirst = () => {
    two.isLeader = false;
  };
  const says = 'undecided: this server does not lead its datacenter';
  test.equal(await refusalOf(world, one.promotion.handOver('dc2')), says);
  test.same([one.isPrimary, one.maxEpoch, two.maxEpoch], [true, 1, 2], 'it follows no more');
});

t.test('hand-over: nor where its successor fails, or its answer is lost', async (test) => {
  for (const isBegun of [false, true]) {
    const { world, one, two, three } = threeDatacenters();
    two.follow(one, 10);
    three.follow(one, 10);
    two.startFirst = () => {
      if (!isBegun) throw new Error('its disk hangs');
      world.lossPart = 1;
      return true;
    };
    const says = isBegun ? 'undecided: the answer is lost' : 'undecided: its disk hangs';
    test.equal(await refusalOf(world, one.promotion.handOver('dc2')), says);
    test.same([one.isPrimary, two.isPrimary], [false, isBegun]);
  }
});

t.test('hand-over: a successor that dies behind the promise is asked again', async (test) => {
  const { world, one, two, three } = threeDatacenters();
  two.follow(one, 10);
  three.follow(one, 10);
  // It dies when it has the promise, before it begins.
  two.startFirst = () => false;
  test.match(
    await refusalOf(world, one.promotion.handOver('dc2')),
    /^undecided: epoch 2 could not/,
  );
  test.same([one.isPrimary, two.isPrimary, one.maxEpoch], [false, false, 2]);
  test.equal(successorOf('dc1', one.state()), 'dc2');
  test.equal(one.write('nothing is taken'), undefined);
  test.equal(
    await refusalOf(world, one.promotion.handOver('dc3')),
    'refused: dc1 is not the primary: it has promised epoch 2 to dc2',
  );
  two.startFirst = () => true;
  // The disks of dc2 are put back, and who follows what it had begun does not reach it.
  one.passesOver = 'dc3 has 2.11: that reign has begun';
  test.equal(await refusalOf(world, one.promotion.handOver('dc2')), `refused: ${one.passesOver}`);
  one.passesOver = undefined;
  // Whoever is no primary hears nobody.
  one.ackedSeqs.clear();
  test.equal(await world.time.result(one.promotion.handOver('dc2')), 3);
  test.same([one.isPrimary, two.isPrimary], [false, true]);
  one.follow(two, 100);
  test.same([one.cursor, one.divergent], [two.cursor, []]);
  test.equal(successorOf('dc1', one.state()), undefined);
  test.same(world.violations, []);
});

t.test('hand-over: what the successor has begun is not begun again', async (test) => {
  const { world, one, two, three } = threeDatacenters();
  two.follow(one, 10);
  three.follow(one, 10);
  await world.time.result(one.promotion.handOver('dc2'));
  const { cursor } = two;
  test.match(
    await refusalOf(world, one.promotion.handOver('dc2')),
    /^refused: dc2 is at 2\.11, dc1/,
  );
  test.same([two.isPrimary, two.cursor], [true, cursor]);
});

t.test('hand-over: the last primary takes back what its successor did not begin', async (test) => {
  const { world, one, two, three } = threeDatacenters();
  two.follow(one, 10);
  three.follow(one, 10);
  two.startFirst = () => false;
  await refusalOf(world, one.promotion.handOver('dc2'));
  two.isUp = false;
  const { epoch, promises } = await world.time.result(one.promotion.elect());
  test.same([epoch, promises], [3, ['dc3']]);
  test.ok(one.write('it goes on') !== undefined);
  test.same(world.violations, []);
});

t.test('hand-over: passes over nothing that the primary has lost', async (test) => {
  for (const isLate of [false, true]) {
    const { world, one, two, three } = threeDatacenters();
    three.follow(one, 10);
    const { cursor } = three;
    one.entries = one.entries.slice(0, 8);
    if (isLate) {
      world.cuts.add('dc2 dc3');
      two.promiseFirst = () => world.cuts.clear();
    }
    const says = isLate
      ? /^undecided: epoch 2 does not begin: .*dc3 does not promise \(at 1\.10/
      : /^refused: dc3 has more than the primary, .*: an election takes it first\. /;
    test.match(await refusalOf(world, one.promotion.handOver('dc2')), says);
    test.same([one.isPrimary, two.isPrimary, one.sealCount], [!isLate, false, 0]);
    const { epoch } = await world.time.result(two.promotion.elect());
    test.equal(epoch, isLate ? 3 : 2);
    test.same(two.entries[9]?.hash, cursor.hash, 'it has what was lost');
    for (const other of [one, three]) other.follow(two, 10);
    test.same([one.cursor, three.cursor, world.violations], [two.cursor, two.cursor, []]);
  }
});

t.test('hand-over: nor over what is heard while it waits for its successor', async (test) => {
  const { world, one, two } = threeDatacenters();
  const following = setImmediateLoop(world, () => {
    if (two.cursor.seq === 9) one.passesOver = 'dc3 has 2.11: that reign has begun';
    two.follow(one, 1);
  });
  const refused = await refusalOf(world, one.promotion.handOver('dc2'));
  following.stop();
  test.equal(refused, `refused: ${one.passesOver}`);
  test.same([two.cursor.seq, one.isPrimary, one.sealCount, two.maxEpoch], [10, true, 0, 1]);
});

t.test('hand-over: who never was the primary gives nothing away', async (test) => {
  const { world, one, two, three } = threeDatacenters();
  for (const each of [two, three]) each.follow(one, 10);
  // All have promised it an epoch, and it does not come to begin it.
  three.startFirst = () => false;
  await refusalOf(world, three.promotion.elect());
  test.same([two.maxEpoch, two.votedFor], [2, 'dc3']);
  three.startFirst = () => true;
  const refused = await refusalOf(world, two.promotion.handOver('dc3'));
  test.equal(refused, 'refused: dc2 is not the primary');
  test.same([two.sealCount, three.isPrimary], [0, false]);
});

t.test('hand-over: a successor that is not where the primary is refuses', async (test) => {
  const { world, one, two } = threeDatacenters();
  one.ackedSeqs.set('dc2', 10);
  const says = await refusalOf(world, one.promotion.handOver('dc2'));
  test.equal(says, 'refused: dc2 is at 1.8, dc1 at 1.10');
  test.equal(two.maxEpoch, 1);
});

/** Something that goes on while virtual time passes. */
function setImmediateLoop(world: PromotionWorld, step: () => void): { stop: () => void } {
  let isOver = false;
  const next = (): void => {
    if (isOver) return;
    step();
    world.time.clock.after(5, next);
  };
  next();
  return {
    stop: () => {
      isOver = true;
    },
  };
}

t.test(
  'moves: whoever may not move the primary any more has nobody give anything up',
  async (test) => {
    const lost = new Error('the right is gone');
    for (const [mode, mover] of [
      [
        'handed over',
        (all: Three, still: RequireStill) => all.one.promotion.handOver('dc2', still),
      ],
      ['elected', (all: Three, still: RequireStill) => all.two.promotion.elect(still)],
      ['forced', (all: Three, still: RequireStill) => all.two.promotion.force(2, still)],
    ] as const) {
      const all = threeDatacenters();
      const { world, one, two, three } = all;
      three.follow(one, 10);
      let sealed = -1;
      const still = (): void => {
        sealed = one.sealCount;
        throw lost;
      };
      const following = setImmediateLoop(world, () => void two.follow(one, 1));
      test.equal(await refusalOf(world, mover(all, still)), `${lost}`, mode);
      following.stop();
      test.same(
        [one, two, three].map(({ maxEpoch }) => maxEpoch),
        [1, 1, 1],
        mode,
      );
      test.equal(sealed, mode === 'handed over' ? 1 : 0, 'asked when all else is done');
      test.same([one.isPrimary, one.sealCount], [true, 0], 'it takes writes again');
      test.ok(one.write('it goes on') !== undefined);
    }
  },
);
