// Which reign counts: epochs that were promised and not begun, those of others, and those that are forced.

import t from 'tap';
import { forcedEpoch } from '../../../../cluster/federation/promotion/candidacy/forced-epoch.ts';
import {
  decodeEpochs,
  decodeEpochsAsk,
  encodeEpochsAsk,
  PROMOTION_METHOD,
} from '../../../../cluster/federation/promotion/promotion-frames.ts';
import { WireDamage } from '../../../../cluster/wire/wire-damage.ts';
import { PromotionWorld } from '../promotion-model.ts';
import { forcedAndLost, outrun, refusalOf, threeDatacenters, underLoad } from './elections.ts';

t.test('renewal: goes on where it is written to all the time, too', async (test) => {
  for (let seed = 1; seed <= 20; seed += 1) {
    const world = new PromotionWorld(seed);
    const [one, three] = [world.named('dc1'), world.named('dc3')];
    const written = underLoad(world);
    await world.time.until('some is written', () => written() > 50);
    Object.assign(three, { maxEpoch: 2, votedFor: 'dc3' });
    await world.time.result(one.promotion.onNewerEpoch(2));
    test.same([one.epochs.at(-1)!.epoch, one.isPrimary], [3, true], `seed ${seed}`);
    test.same([one.sealCount, world.violations], [0, []]);
  }
});

t.test('renewal: a primary that a promise has outrun begins the next epoch', async (test) => {
  const { world, one, two, three } = threeDatacenters();
  two.maxEpoch = 5;
  two.votedFor = 'dc2';
  two.follow(one, 10);
  test.equal(two.cursor.seq, 8, 'it takes nothing of epoch 1');
  await world.time.result(one.promotion.onNewerEpoch(5));
  test.same(one.state().epoch, 6);
  test.ok(one.isPrimary);
  two.follow(one, 10);
  three.follow(one, 10);
  test.same([two.cursor, three.cursor], [one.cursor, one.cursor]);
  await world.time.result(one.promotion.onNewerEpoch(5));
  test.equal(one.state().epoch, 6, 'what is old news changes nothing');
});

t.test(
  'renewal: where no majority can be asked, the primary takes writes meanwhile',
  async (test) => {
    const { world, one, three } = threeDatacenters();
    Object.assign(three, { maxEpoch: 2, votedFor: 'dc3' });
    // It is asked by the others, and reaches none of them.
    world.cuts.add('dc1 dc2').add('dc1 dc3');
    const { seal } = one;
    let seals = 0;
    one.seal = () => {
      seals += 1;
      return seal.call(one);
    };
    await world.time.result(one.promotion.onNewerEpoch(2));
    test.same([one.state().epoch, one.isPrimary, seals], [1, true, 0]);
    world.cuts.delete('dc1 dc2');
    await world.time.result(one.promotion.onNewerEpoch(2));
    test.same([one.state().epoch, one.isPrimary, seals], [3, true, 1]);
  },
);

t.test("renewal: one that is tried again and again is in nobody's way", async (test) => {
  const { world, one, three } = threeDatacenters();
  Object.assign(three, { maxEpoch: 2, votedFor: 'dc3' });
  world.cuts.add('dc1 dc2').add('dc1 dc3');
  const wishes = [
    () => one.promotion.elect(),
    () => one.promotion.handOver('dc2'),
    () => one.promotion.force(2),
  ];
  // While it hears all, and while it asks who would promise.
  for (const afterMs of [1, 22, 32]) {
    for (const wish of wishes) {
      const renewal = one.promotion.onNewerEpoch(2);
      await world.time.run(afterMs);
      const says = await refusalOf(world, wish());
      test.notMatch(says, /under way/);
      await renewal;
    }
  }
});

t.test('renewal: is tried again where it came to nothing behind the own promise', async (test) => {
  const { world, one, two, three } = threeDatacenters();
  Object.assign(three, { maxEpoch: 2, votedFor: 'dc3' });
  const hangs = () => {
    throw new Error('its disk hangs');
  };
  for (const each of [two, three]) each.promiseFirst = hangs;
  one.promotion.start();
  await world.time.result(one.promotion.onNewerEpoch(2));
  test.same([one.isPrimary, one.maxEpoch, one.votedFor], [false, 3, 'dc1'], 'nobody is primary');
  for (const each of [two, three]) each.promiseFirst = () => undefined;
  one.isLeader = false;
  await world.time.run(10_000);
  test.equal(one.isPrimary, false, 'it is for the leader to do');
  one.isLeader = true;
  await world.time.until('dc1 goes on', () => one.isPrimary);
  test.equal(one.state().epoch, 4);
  two.follow(one, 10);
  test.same(two.cursor, one.cursor);
  one.promotion.stop();
  test.same(world.violations, []);
});

t.test('renewal: is not tried again by whom it is nothing to', async (test) => {
  const { world, one, two, three } = threeDatacenters();
  const hangs = () => {
    throw new Error('its disk hangs');
  };
  one.isUp = false;
  three.promiseFirst = hangs;
  two.promotion.start();
  await refusalOf(world, two.promotion.elect());
  three.promiseFirst = () => undefined;
  await world.time.run(10_000);
  test.same([two.isPrimary, two.maxEpoch], [false, 2], 'a candidate waits for a person');
  two.promotion.stop();
  one.isUp = true;
  Object.assign(one, { maxEpoch: 2, votedFor: 'dc2' });
  one.promotion.start();
  await world.time.run(10_000);
  test.same([one.isPrimary, one.maxEpoch], [false, 2], 'the one that is promised may have begun');
  one.promotion.stop();
  // A person had it stand for election on its fork, and it came to nothing.
  Object.assign(one, { maxEpoch: 3, votedFor: 'dc1', isDiverged: true });
  one.promotion.start();
  await world.time.run(10_000);
  test.same([one.isPrimary, one.maxEpoch], [false, 3], 'nobody goes on from a fork by itself');
  one.promotion.stop();
});

t.test(
  'renewal: begins nothing behind what a person has begun while it heard the others',
  async (test) => {
    const { world, one, two, three } = threeDatacenters();
    for (const each of [two, three]) each.follow(one, 10);
    Object.assign(three, { maxEpoch: 2, votedFor: 'dc3' });
    const renewed = one.promotion.onNewerEpoch(2);
    await world.time.until('it hears them', () => one.askedAllCount === 1);
    const { seq, hash } = one.cursor;
    const begun = { epoch: 3, startSeq: seq + 1, startHash: hash, primary: 'dc1' };
    Object.assign(one, { epochs: [...one.epochs, begun], maxEpoch: 3 });
    await world.time.result(renewed);
    test.same([one.state().epoch, one.maxEpoch, two.maxEpoch], [3, 3, 1]);
  },
);

t.test('renewal: takes back nothing that was promised while it asked', async (test) => {
  const candidate = { maxEpoch: 2, votedFor: 'dc2' };
  for (const isRenewing of [false, true]) {
    const { world, one, two, three } = threeDatacenters();
    for (const each of [two, three]) each.follow(one, 10);
    const outrun = isRenewing ? { maxEpoch: 4, votedFor: 'dc2' } : candidate;
    for (const each of [two, three]) Object.assign(each, outrun);
    if (isRenewing) Object.assign(one, { maxEpoch: 3, votedFor: 'dc1' });
    // It is asked for its promise by dc2 while it asks dc3.
    three.mayPromiseFirst = () => {
      three.mayPromiseFirst = () => undefined;
      Object.assign(one, outrun);
    };
    one.promotion.start();
    if (!isRenewing) await world.time.result(one.promotion.onNewerEpoch(2));
    else await world.time.run(10_000);
    test.same([one.maxEpoch, one.votedFor], [outrun.maxEpoch, 'dc2']);
    one.promotion.stop();
  }
});

t.test('renewal: begins nothing beside whom it has yet to give its promise', async (test) => {
  const { world, one, two, three } = threeDatacenters();
  for (const each of [two, three]) each.follow(one, 10);
  Object.assign(one, { maxEpoch: 3, votedFor: 'dc1' });
  Object.assign(two, { maxEpoch: 4, votedFor: 'dc2' });
  const hangs = () => {
    throw new Error('its disk hangs');
  };
  for (const each of [one, three]) each.promiseFirst = hangs;
  one.promotion.start();
  test.match(await refusalOf(world, two.promotion.elect()), /^undecided: epoch 5 does not begin/);
  for (const each of [one, three]) each.promiseFirst = () => undefined;
  await world.time.run(8_000);
  test.same([one.maxEpoch, one.sealCount], [3, 1]);
  await world.time.until('it goes on', () => one.isPrimary);
  one.promotion.stop();
  test.same(world.violations, []);
});

t.test('renewal: passes over nobody who begins while it asks for promises', async (test) => {
  const { world, one, two, three } = threeDatacenters();
  for (const each of [two, three]) {
    each.follow(one, 10);
    Object.assign(each, { maxEpoch: 2, votedFor: 'dc2' });
  }
  two.promiseFirst = () => {
    two.promiseFirst = () => undefined;
    const { seq, hash } = two.cursor;
    const start = { epoch: 2, startSeq: seq + 1, startHash: hash, primary: 'dc2' };
    two.epochs = [...two.epochs, start];
    test.ok(two.write('epoch 2'));
  };
  await world.time.result(one.promotion.onNewerEpoch(2));
  test.same([one.state().epoch, one.isPrimary, two.isPrimary], [1, false, true]);
  await world.time.result(two.promotion.onNewerEpoch(3));
  test.same([two.state().epoch, two.isPrimary], [4, true]);
  one.follow(two, 10);
  test.same([one.cursor, world.violations], [two.cursor, []]);
});

t.test('renewal: passes over nothing that others are known to have, asked or not', async (test) => {
  const { world, one, two, three } = threeDatacenters();
  two.follow(one, 10);
  // The disks of dc1 were put back, and dc2, which has told it what was lost, does not answer.
  for (const each of [one, three]) each.entries = two.entries.slice(0, 6);
  Object.assign(three, { maxEpoch: 2, votedFor: 'dc3' });
  world.cuts.add('dc1 dc2');
  one.passesOver = 'dc2 has 1.10 of this reign';
  one.promotion.start();
  await world.time.result(one.promotion.onNewerEpoch(2));
  await world.time.run(10_000);
  test.same([one.state().epoch, one.maxEpoch, one.isPrimary], [1, 1, true]);
  test.match(world.time.log.join('\n'), /is outrun, and no other has begun .*dc2 has 1\.10/);
  one.passesOver = undefined;
  three.mayPromiseFirst = () => {
    one.ahead = [{ datacenter: 'dc2', upTo: { epoch: 1, seq: 10 } }];
  };
  await world.time.result(one.promotion.onNewerEpoch(2));
  test.same([one.state().epoch, one.maxEpoch], [1, 1], 'as it hears meanwhile');
  three.mayPromiseFirst = () => undefined;
  one.ahead = [];
  await world.time.result(one.promotion.onNewerEpoch(2));
  test.equal(one.state().epoch, 3);
  one.promotion.stop();
});

t.test('renewal: nor over what it hears of while it asks for promises', async (test) => {
  for (const isLate of [false, true]) {
    const { world, one, two, three } = threeDatacenters();
    for (const each of [two, three]) each.follow(one, 10);
    Object.assign(three, { maxEpoch: 2, votedFor: 'dc3' });
    const hears = () => {
      one.passesOver = 'dc4 has 2.11: that reign has begun';
    };
    if (isLate) two.promiseFirst = hears;
    else two.mayPromiseFirst = hears;
    await world.time.result(one.promotion.onNewerEpoch(2));
    test.same([one.state().epoch, one.maxEpoch], [1, isLate ? 3 : 1]);
    test.match(world.time.log.join('\n'), /is outrun, and no other has begun .*dc4 has 2\.11/);
  }
});

t.test('renewal: a primary that another one has followed ends its reign instead', async (test) => {
  const { world, one, two } = threeDatacenters();
  one.isUp = false;
  await world.time.result(two.promotion.elect());
  one.isUp = true;
  await world.time.result(one.promotion.onNewerEpoch(2));
  test.same([one.isPrimary, two.isPrimary], [false, true]);
  test.equal(one.divergent.length, 2);
  const alone = threeDatacenters();
  alone.world.cuts.add('dc1 dc2').add('dc1 dc3');
  await alone.world.time.result(alone.one.promotion.onNewerEpoch(2));
  test.same([alone.one.state().epoch, alone.one.maxEpoch], [1, 1], 'without a majority it waits');
});

t.test('epochs: those of another federation end no reign, and are not told', async (test) => {
  const { world, one, two } = threeDatacenters();
  world.cuts.add('dc2 dc1').add('dc1 dc2');
  two.follow(one, 10);
  await world.time.result(two.promotion.elect());
  world.cuts.clear();
  two.federationId = 'another';
  const ask = (payload: Uint8Array) => {
    const request = { method: PROMOTION_METHOD.epochs, payload, deadlineMs: 100, hops: 0 };
    return world.call(one, 'dc2', request);
  };
  test.match(
    await refusalOf(world, ask(encodeEpochsAsk('fed'))),
    /dc1 is of federation fed, dc2 of another/,
  );
  const told = decodeEpochs(await world.time.result(ask(new Uint8Array(0))));
  test.same([told.federationId, told.epochs.length], ['', 2], 'to an earlier release as ever');
  one.promotion.start();
  await world.time.run(10_000);
  test.equal(one.isPrimary, true);
  two.federationId = 'fed';
  await world.time.run(10_000);
  test.equal(one.isPrimary, false, 'of its own one it learns so');
  one.promotion.stop();
});

t.test('epochs: whoever leads no more asks for none, however often it led', async (test) => {
  const { world, one } = threeDatacenters();
  const { promotion } = one;
  let looks = 0;
  const { state } = one;
  one.state = () => {
    looks += 1;
    return state.call(one);
  };
  promotion.start();
  promotion.start();
  await world.time.run(10_000);
  test.ok(looks > 4 && looks <= 20, `${looks} looks`);
  // One of them is under way.
  one.state = () => {
    promotion.stop();
    return state.call(one);
  };
  await world.time.run(3_000);
  looks = 0;
  one.state = () => {
    looks += 1;
    return state.call(one);
  };
  await world.time.run(10_000);
  promotion.start();
  promotion.stop();
  await world.time.run(10_000);
  test.equal(looks, 0);
});

t.test('epochs: what an earlier release tells is of no federation', async (test) => {
  test.equal(decodeEpochsAsk(new Uint8Array(0)), undefined);
  test.equal(decodeEpochsAsk(encodeEpochsAsk('fed')), 'fed');
  test.throws(() => decodeEpochsAsk(Uint8Array.of(1)), WireDamage);
});

t.test('renewal: nobody who has begun is passed over before it is heard of', async (test) => {
  const { world, one, two, three } = threeDatacenters();
  world.cuts.add('dc2 dc1');
  await world.time.result(two.promotion.elect());
  world.cuts.clear();
  one.hasHeard = false;
  await world.time.result(one.promotion.onNewerEpoch(2));
  test.same(
    [one.state().epoch, one.maxEpoch, three.maxEpoch],
    [1, 1, 2],
    'dc2 is there, and has more',
  );
  one.hasHeard = true;
  await world.time.result(one.promotion.onNewerEpoch(2));
  test.same([one.isPrimary, two.isPrimary], [false, true]);
  test.same(world.violations, []);
});

t.test('renewal: nor whom others have heard of, and this one has not', async (test) => {
  for (const hears of ['first', 'while it asks', 'before it begins']) {
    const { world, one, two, three } = threeDatacenters();
    world.cuts.add('dc2 dc1');
    await world.time.result(two.promotion.elect());
    two.isUp = false;
    world.cuts.clear();
    Object.assign(one, { hasHeard: false, hearsByAsking: hears === 'first' });
    const hear = () => {
      one.hasHeard = true;
    };
    if (hears === 'while it asks') three.mayPromiseFirst = hear;
    if (hears === 'before it begins') three.promiseFirst = hear;
    await world.time.result(one.promotion.onNewerEpoch(2));
    const promised = hears === 'before it begins' ? 3 : 1;
    test.same([one.state().epoch, one.maxEpoch], [1, promised], hears);
    const says = /no other has begun .*dc2 has begun epoch 2, and does not answer/;
    test.match(world.time.log.join('\n'), says);
  }
});

t.test('renewal: nor a reign of its own that it has lost itself', async (test) => {
  for (const epoch of [2, 4]) {
    const { world, one, three } = threeDatacenters();
    Object.assign(three, { maxEpoch: 2, votedFor: 'dc3' });
    // What it said before its disks were put back, as others pass it on.
    one.claim = { datacenter: 'dc1', epoch, addresses: [] };
    await world.time.result(one.promotion.onNewerEpoch(2));
    test.same([one.state().epoch, one.maxEpoch], [1, 1]);
    const says = new RegExp(`this datacenter began epoch ${epoch}, and has lost it`);
    test.match(world.time.log.join('\n'), says);
  }
});

t.test('renewal: hears all again where somebody tells a number that is new', async (test) => {
  const { world, one, three } = threeDatacenters();
  Object.assign(three, { maxEpoch: 4, votedFor: 'dc3' });
  await world.time.result(one.promotion.onNewerEpoch(2));
  test.same([one.state().epoch, one.maxEpoch, one.askedAllCount], [1, 1, 1]);
  test.match(world.time.log.join('\n'), /no other has begun .*epoch 4, which may have begun/);
  await world.time.result(one.promotion.onNewerEpoch(2));
  test.same([one.state().epoch, one.isPrimary, one.askedAllCount], [5, true, 2]);
});

t.test(
  'renewal: is no more than one, whoever tells of it, and comes behind a wish',
  async (test) => {
    const { world, one, two, three } = threeDatacenters();
    for (const each of [two, three]) each.follow(one, 10);
    Object.assign(three, { maxEpoch: 2, votedFor: 'dc3' });
    const told = [one.promotion.onNewerEpoch(2), one.promotion.onNewerEpoch(2)];
    await world.time.result(Promise.all(told));
    test.same([one.state().epoch, one.askedAllCount], [3, 1]);
    Object.assign(three, { maxEpoch: 4, votedFor: 'dc3' });
    const late = one.promotion.onNewerEpoch(4);
    await world.time.result(one.promotion.elect());
    await world.time.result(late);
    test.equal(one.state().epoch, 5, 'a person has begun it meanwhile');
    test.notMatch(world.time.log.join('\n'), /no other has begun/);
  },
);

t.test(
  'renewal: whom a reign that began has outrun waits for a person, who elects it',
  async (test) => {
    const { world, one, two, three } = await outrun({ hasBegun: true });
    test.same([three.state().epoch, one.maxEpoch, two.maxEpoch], [3, 3, 2]);
    one.follow(two, 10);
    test.equal(one.cursor.seq, 10, 'nobody follows it any more');
    test.match(two.promotion.outrunBy(), { datacenter: 'dc3', epoch: 3 });
    test.equal(one.promotion.outrunBy(), undefined, 'dc1 is no primary');
    await world.time.result(two.promotion.onNewerEpoch(3));
    test.same([two.state().epoch, two.maxEpoch], [2, 2], 'dc3 may have writes of its own');
    two.trimmedSeq = 11;
    test.match(
      await refusalOf(world, one.promotion.elect()),
      /^refused: there is no majority: dc2 does not promise \(at 2\.12, knows of epoch 3\); dc3 does not/,
      'another one lacks what dc2 has',
    );
    const { epoch, promises } = await world.time.result(two.promotion.elect());
    test.same([epoch, promises], [4, ['dc1']]);
    one.follow(two, 10);
    test.same(one.cursor, two.cursor);
    test.match(
      await refusalOf(world, two.promotion.elect()),
      /^refused: .* is the primary already/,
    );
    three.isUp = true;
    world.cuts.clear();
    three.promotion.start();
    await world.time.until('dc3 knows', () => three.isDiverged);
    test.equal(three.divergent.length, 1);
    three.promotion.stop();
    test.same(world.violations, []);
  },
);

t.test('renewal: whom nobody can follow any more is said to be over', async (test) => {
  const { world, one, two } = threeDatacenters();
  world.cuts.add('dc2 dc1');
  await world.time.result(two.promotion.elect());
  // It promised dc1 the next one, and dc1 began that, and lost it with its disks.
  Object.assign(two, { maxEpoch: 3, votedFor: 'dc1' });
  const heard = { datacenter: 'dc2', epoch: 2 };
  world.cuts.add('dc1 dc2');
  await world.time.result(one.promotion.onNewerEpoch(3));
  test.match(one.promotion.outrunBy(), { ...heard, isOver: false }, 'nobody has answered');
  world.cuts.clear();
  await world.time.result(one.promotion.onNewerEpoch(3));
  test.match(one.promotion.outrunBy(), { ...heard, isOver: true });
  test.same([one.state().epoch, one.maxEpoch], [1, 1], 'only a person passes over it');
  two.isUp = false;
  await world.time.result(one.promotion.onNewerEpoch(3));
  test.match(one.promotion.outrunBy(), { ...heard, isOver: false }, 'nobody can ask it any more');
  two.isUp = true;
  await world.time.result(two.promotion.elect());
  await world.time.result(one.promotion.onNewerEpoch(4));
  test.same([one.isPrimary, two.isPrimary], [false, true]);
  test.same(world.violations, []);
});

t.test('force: who was outrun is forced where nobody is left to elect it', async (test) => {
  const { world, two, one } = await outrun({ hasBegun: true });
  one.isUp = false;
  test.match(await refusalOf(world, two.promotion.elect()), /^refused: there is no majority/);
  const { epoch } = await world.time.result(two.promotion.force(4));
  test.same([epoch > 4, two.isPrimary], [true, true]);
  test.same(world.violations, []);
});

t.test('force: is nothing for a primary that nobody has outrun', async (test) => {
  const { world, one } = threeDatacenters();
  test.match(await refusalOf(world, one.promotion.force(2)), /is the primary already/);
  test.same([one.state().epoch, one.maxEpoch], [1, 1]);
});

t.test('renewal: whom nothing but a promise has outrun goes on by itself', async (test) => {
  const { world, one, two } = await outrun({ hasBegun: false });
  test.same([one.maxEpoch, two.promotion.outrunBy()], [3, undefined]);
  await world.time.result(two.promotion.onNewerEpoch(3));
  test.same([two.state().epoch, two.isPrimary], [4, true]);
  one.follow(two, 10);
  test.same(one.cursor, two.cursor);
  test.same(world.violations, []);
});

t.test('force: names its epoch, and is no way around a datacenter that has more', async (test) => {
  const { world, one, two, three } = threeDatacenters();
  one.isUp = false;
  two.trimmedSeq = 7;
  test.match(
    await refusalOf(world, three.promotion.force(2)),
    /^refused: dc2 can be reached and has more: promote that one, or stop it if it is a witness\. .* does not keep what follows 1\.6/,
  );
  two.trimmedSeq = 0;
  world.cuts.add('dc3 dc2');
  test.match(
    await refusalOf(world, three.promotion.force(3)),
    /^refused: the next epoch is 2, not 3/,
  );
  const { epoch, promises, cursor } = await world.time.result(three.promotion.force(2));
  test.same([epoch > 2, promises, cursor.seq], [true, [], 6]);
  test.ok(three.isPrimary);
  world.cuts.clear();
  two.promotion.start();
  await world.time.until('dc2 knows', () => two.isDiverged);
  test.equal(two.divergent.length, 2);
  two.promotion.stop();
});

t.test('force: the next epoch is behind one that nothing but gossip tells of', async (test) => {
  const { world, three, one } = await forcedAndLost();
  one.isUp = false;
  test.equal(three.promotion.nextEpoch(), 3);
  test.match(
    await refusalOf(world, three.promotion.force(2)),
    /^refused: the next epoch is 3, not 2/,
  );
  const { epoch } = await world.time.result(three.promotion.force(3));
  test.ok(epoch > 3);
  test.same(world.violations, []);
});

t.test('force: shares its epoch with nobody beyond a cut, elected or forced', async (test) => {
  const world = new PromotionWorld(1, ['dc1', 'dc2', 'dc3', 'dc4', 'dc5']);
  const [one, two, three, four, five] = world.all;
  one!.write('which all have');
  for (const each of [two!, three!, four!, five!]) each.follow(one!, 1);
  for (const alone of [four!, five!]) {
    for (const { name } of world.all) world.cuts.add(`${alone.name} ${name}`);
    for (const { name } of world.all) world.cuts.add(`${name} ${alone.name}`);
  }
  for (const each of world.all) each.hasHeard = false;
  const forced: number[] = [];
  for (const each of [four!, five!]) {
    forced.push((await world.time.result(each.promotion.force(2))).epoch);
  }
  test.equal((await world.time.result(two!.promotion.elect())).epoch, 2);
  test.ok(Math.min(...forced) >= 1002, `elections do not come to one of ${forced}`);
  test.ok(Math.max(...forced) < 1_000_002, `${forced}`);
  test.same(world.violations, []);
  world.cuts.clear();
  const [later, earlier] = forced[0]! > forced[1]! ? [four!, five!] : [five!, four!];
  for (const each of [two!, earlier]) {
    each.hasHeard = true;
    each.promotion.start();
    await world.time.until('it yields', () => each.isDiverged);
    each.promotion.stop();
  }
  test.equal(later.isPrimary, true, 'of the latest epoch');
});

t.test('force: whoever reigned before sets its own apart, whoever reigned since', async (test) => {
  const { world, one, two, three } = threeDatacenters();
  two.follow(one, 10);
  one.ackedSeqs.set('dc2', 10);
  world.cuts.add('dc3 dc1').add('dc3 dc2').add('dc1 dc3').add('dc2 dc3');
  await world.time.result(one.promotion.handOver('dc2'));
  one.follow(two, 1);
  three.hasHeard = false;
  await world.time.result(three.promotion.force(2));
  world.cuts.clear();
  for (const each of [one, two]) each.isSentSnapshots = true;
  for (const each of [one, two]) {
    each.promotion.start();
    await world.time.until(`${each.name} yields`, () => each.isDiverged);
    each.promotion.stop();
  }
  test.same(
    one.divergent.map(({ epoch, seq }) => `${epoch}.${seq}`),
    ['1.7', '1.8', '1.9', '1.10', '2.11'],
  );
});

t.test('force: it is told of that once, as long as it takes to follow', async (test) => {
  const { world, one, two, three } = threeDatacenters();
  two.follow(one, 10);
  three.follow(one, 10);
  await world.time.result(one.promotion.handOver('dc2'));
  one.follow(two, 1);
  three.follow(two, 1);
  await world.time.result(three.promotion.elect());
  one.promotion.start();
  await world.time.until('dc1 has heard', () => one.maxEpoch === 3);
  await world.time.run(20_000);
  const told = world.time.log.filter((line) => /a later reign has begun elsewhere/.test(line));
  test.equal(told.length, 1);
  one.follow(three, 10);
  test.same([one.cursor, one.divergent], [three.cursor, []]);
  await world.time.result(two.promotion.force(4));
  await world.time.until('dc1 has heard of the next one, too', () => one.maxEpoch > 3);
  one.promotion.stop();
});

t.test('force: its number is 1,000 to 999,999 behind the one that is named', async (test) => {
  const ends = [0, 1 - Number.EPSILON].map((fraction) =>
    forcedEpoch(7, { fraction: () => fraction }),
  );
  test.same(ends, [1_007, 1_000_006]);
});

t.test('force: of two with one epoch one goes on where a person says so', async (test) => {
  for (const isForced of [false, true]) {
    const { world, one, two, three } = threeDatacenters();
    one.isUp = false;
    world.cuts.add('dc2 dc3').add('dc3 dc2');
    three.hasHeard = false;
    for (const each of [two, three]) {
      each.follow(one, 10);
      await world.time.result(each.forceAsBefore(2));
      each.write(`of ${each.name}`);
    }
    two.write('also of dc2');
    if (!isForced) world.cuts.clear();
    for (const each of [two, three]) each.hasHeard = true;
    test.equal(three.promotion.outrunBy(), undefined, 'one of the same epoch is no later one');
    const { epoch, promises } = await world.time.result(
      isForced ? two.promotion.force(3) : two.promotion.elect(),
    );
    test.same([promises, two.isPrimary], [isForced ? [] : ['dc3'], true]);
    test.equal(epoch === 3, !isForced);
  }
});

t.test('force: begins no epoch that a datacenter has promised to another', async (test) => {
  const { world, one, two, three } = threeDatacenters();
  two.isUp = false;
  // While dc3 is asked for its trial, dc1 promises the same epoch to itself.
  one.mayPromiseFirst = () => {
    one.maxEpoch = 2_000_000;
    one.votedFor = 'dc1';
  };
  three.entries = [...one.entries];
  test.match(
    await refusalOf(world, three.promotion.force(2)),
    /^undecided: epoch \d+ does not begin: .*dc1 does not promise \(at 1\.\d+, knows of epoch 2000000\)/,
  );
  test.equal(three.isPrimary, false);
  one.mayPromiseFirst = () => undefined;
  const { epoch } = await world.time.result(three.promotion.force(2_000_001));
  test.ok(epoch > 2_000_001, 'the next one is free');
});
