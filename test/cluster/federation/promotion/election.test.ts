// Elections of a primary: who may be elected, by whom, and what the old one does.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  decodeAsk,
  decodeEpochs,
  decodePromise,
  decodeRest,
  decodeTake,
  decodeTaken,
  encodeAsk,
  encodeEpochs,
  encodePromise,
  encodeRest,
  encodeTake,
  encodeTaken,
  PROMOTION_METHOD,
  PROMOTION_REFUSAL,
} from '../../../../cluster/federation/promotion/promotion-frames.ts';
import { WireDamage } from '../../../../cluster/wire/wire-damage.ts';
import { bytesFrom } from '../feed-samples.ts';
import { type Datacenter, PromotionWorld } from '../promotion-model.ts';
import {
  forcedAndLost,
  outrun,
  refusalOf,
  SEED,
  threeDatacenters,
  underLoad,
} from './elections.ts';

const CURSOR = { epoch: 3, seq: 70_000, hash: bytesFrom(1, 32) };

const EPOCH = { epoch: 4, startSeq: 9, startHash: bytesFrom(1, 32), primary: 'dc2' };

const CURSOR_HEX =
  '9303ce00011170c4200102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20';

/** Format 1. Never edit the bytes. */
const GOLDEN: readonly (readonly [string, Uint8Array, string, (bytes: Uint8Array) => unknown])[] = [
  [
    'ask',
    encodeAsk({ epoch: 4, candidate: 'dc2', cursor: CURSOR, isTrial: true }),
    `950104a3646332${CURSOR_HEX}c3`,
    decodeAsk,
  ],
  [
    'promise',
    encodePromise({ isGranted: true, cursor: CURSOR, maxEpoch: 4 }),
    `9401c3${CURSOR_HEX}04`,
    decodePromise,
  ],
  ['take', encodeTake(CURSOR), `9201${CURSOR_HEX}`, decodeTake],
  ['rest', encodeRest({ after: CURSOR, isTrial: true }), `9301${CURSOR_HEX}c3`, decodeRest],
  ['taken', encodeTaken(5), '920105', decodeTaken],
  [
    'epochs',
    encodeEpochs([EPOCH], undefined),
    '920191940409c4200102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20a3646332',
    decodeEpochs,
  ],
  [
    'epochs of a federation',
    encodeEpochs([EPOCH], 'fed'),
    '930191940409c4200102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20a3646332a3666564',
    decodeEpochs,
  ],
];

t.test(
  'election: nobody gets the promise of a primary who lacks what it has lost and others have',
  async (test) => {
    const { world, one, two, three } = threeDatacenters();
    two.follow(one, 10);
    // The disks of dc1 were put back.
    for (const each of [one, three]) each.entries = two.entries.slice(0, 6);
    one.ahead = [{ datacenter: 'dc2', upTo: { epoch: 1, seq: 10 } }];
    two.isUp = false;
    test.match(
      await refusalOf(world, three.promotion.elect()),
      /^refused: there is no majority: dc1 does not answer \(dc1 has lost what dc2 has of its reigns, .*: start dc2, or, .* remove dc2 --force`\); dc2 does not answer/,
    );
    test.same([one.maxEpoch, three.maxEpoch, one.sealCount], [1, 1, 0], 'nothing is given up');
    two.isUp = true;
    const { epoch, promises } = await world.time.result(three.promotion.elect());
    test.same([epoch, promises], [2, ['dc1', 'dc2']], 'it takes that first');
    test.same(three.entries.slice(0, 10), two.entries);
    test.same(world.violations, []);
  },
);

t.test(
  'election: nor who has an earlier reign alone, but whoever is meant itself',
  async (test) => {
    const { world, one, two, three } = threeDatacenters();
    for (const each of [two, three]) each.follow(one, 10);
    one.ahead = [{ datacenter: 'dc2', upTo: { epoch: 3, seq: 0 } }];
    two.isUp = false;
    test.match(await refusalOf(world, three.promotion.elect()), /^refused: there is no majority/);
    two.isUp = true;
    three.isUp = false;
    const { promises } = await world.time.result(two.promotion.elect());
    test.same(promises, ['dc1'], 'it has lost that too by now');
  },
);

t.test(
  'election: nor who may lack what others have of a later reign, as long as they do not say',
  async (test) => {
    const { world, one, two, three } = threeDatacenters();
    for (const each of [two, three]) each.follow(one, 10);
    await world.time.result(two.promotion.elect());
    for (const each of [one, three]) each.follow(two, 10);
    await world.time.result(one.promotion.elect());
    one.write('dc3 has it');
    three.follow(one, 10);
    one.write('a majority has it');
    two.follow(one, 10);
    // The disks of dc1 were put back to before its reign: who follows it there is known, and not how far.
    one.entries = one.entries.slice(0, 11);
    Object.assign(one, { epochs: one.epochs.slice(0, 2), maxEpoch: 2, votedFor: 'dc2' });
    one.ahead = ['dc2', 'dc3'].map((datacenter) => ({ datacenter, upTo: { epoch: 3, seq: 0 } }));
    const mayLack = async (each: Datacenter): Promise<string> => {
      two.isUp = false;
      const says = await refusalOf(world, each.promotion.elect());
      two.isUp = true;
      return says;
    };
    test.match(
      await mayLack(three),
      /^refused: there is no majority: dc1 does not answer \(dc1 has lost what dc2 has of its reigns, .*: start dc2, or, /,
    );
    test.match(await mayLack(one), /^refused: dc2 has what dc1 wrote and has lost, .*: start dc2/);
    test.same([one.maxEpoch, three.maxEpoch], [2, 3], 'nothing is given up');
    const { promises } = await world.time.result(three.promotion.elect());
    test.same(promises, ['dc1', 'dc2'], 'it has that too by now');
    test.same(three.entries.slice(0, 14), two.entries);
    test.same(world.violations, []);
  },
);

t.test(
  'election: why there is no promise is said before nobody waits for it any more',
  async (test) => {
    const { world, one, two } = threeDatacenters();
    two.follow(one, 10);
    one.ahead = [{ datacenter: 'dc2', upTo: { epoch: 1, seq: 0 } }];
    for (const host of ['dc2-old', 'dc2']) world.mute.add(host);
    const { clock } = world.time;
    const ask = { epoch: 2, candidate: 'dc3', cursor: one.cursor, isTrial: true };
    const request = {
      datacenter: 'dc1',
      method: PROMOTION_METHOD.promise,
      payload: encodeAsk(ask),
      deadlineMs: 5_000,
      hops: 0,
    };
    const fromMs = clock.monotonicMs();
    const asked = world.call(world.named('dc3'), 'dc1', request);
    await test.rejects(world.time.result(asked), /dc1 has lost what dc2 has of its reigns/);
    test.ok(clock.monotonicMs() - fromMs < 5_000);
  },
);

t.test('promise: to nobody who lacks what others tell of while some are asked', async (test) => {
  const { world, one, two, three } = threeDatacenters();
  three.follow(one, 10);
  world.cuts.add('dc3 dc2');
  one.ahead = [{ datacenter: 'dc2', upTo: { epoch: 1, seq: 0 } }];
  two.mayPromiseFirst = () => {
    one.ahead = [...one.ahead, { datacenter: 'dc4', upTo: { epoch: 1, seq: 12 } }];
  };
  test.match(
    await refusalOf(world, three.promotion.elect()),
    /dc1 does not answer \(dc1 has lost what dc4 has of its reigns/,
  );
  test.equal(two.maxEpoch, 1, 'and asking has them promise nothing');
});

t.test(
  'promise: to nobody who lacks what is told while those who are there are heard',
  async (test) => {
    const { world, one, three } = threeDatacenters();
    three.follow(one, 10);
    world.cuts.add('dc3 dc2');
    one.haveTold = async () => {
      await world.pause();
      one.ahead = [{ datacenter: 'dc4', upTo: { epoch: 1, seq: 12 } }];
    };
    test.match(
      await refusalOf(world, three.promotion.elect()),
      /dc1 does not answer \(dc1 has lost what dc4 has of its reigns/,
    );
  },
);

t.test('promise: of several that lead one datacenter the furthest counts', async (test) => {
  for (const first of [0, 1]) {
    const { world, one, two, three } = threeDatacenters();
    for (const each of [two, three]) each.follow(one, 10);
    const { cursor } = two;
    world.cuts.add('dc3 dc2');
    world.moved.set('dc2-old', 'dc2');
    one.ahead = [{ datacenter: 'dc2', upTo: { epoch: 1, seq: 0 } }];
    let askedCount = 0;
    two.onWriterAsks = () => {
      two.comesTo = askedCount % 2 === first ? { ...cursor, seq: 11 } : undefined;
      askedCount += 1;
    };
    test.match(
      await refusalOf(world, three.promotion.elect()),
      /dc1 does not answer \(dc1 has lost what dc2 has of its reigns/,
    );
    test.equal(askedCount % 2, 0, 'at both addresses');
  }
});

t.test('election: begins behind what others alone were told of', async (test) => {
  for (const isForced of [false, true]) {
    const { world, one, two, three } = threeDatacenters();
    one.isUp = false;
    three.toldEpoch = 4;
    if (!isForced) {
      test.equal((await world.time.result(two.promotion.elect())).epoch, 5);
      continue;
    }
    test.match(
      await refusalOf(world, two.promotion.force(2)),
      /^refused: the next epoch is 5, not 2/,
    );
    test.same([two.maxEpoch, three.maxEpoch], [1, 1], 'nothing is given up');
    test.ok((await world.time.result(two.promotion.force(5))).epoch > 5);
  }
});

t.test('election: nobody promises an epoch that is said to have begun', async (test) => {
  const { world, one, two, three } = threeDatacenters();
  one.isUp = false;
  // Whom somebody forced behind a cut is heard in this very moment, and not by the candidate.
  two.promiseFirst = () => {
    three.toldEpoch = 2;
  };
  test.match(
    await refusalOf(world, two.promotion.elect()),
    /^undecided: epoch 2 does not begin: .*dc3 does not promise \(.* knows of epoch 2\)/,
  );
  test.same([three.maxEpoch, two.isPrimary], [1, false]);
  test.equal((await world.time.result(two.promotion.elect())).epoch, 3);
  test.same(world.violations, []);
});

t.test('election: nor does anybody begin one that is heard of while it asks', async (test) => {
  for (const isForced of [false, true]) {
    const { world, one, two, three } = threeDatacenters();
    one.isUp = false;
    const told = isForced ? 2_000_000 : 2;
    three.promiseFirst = () => {
      two.toldEpoch = told;
    };
    const moved = () => (isForced ? two.promotion.force(2) : two.promotion.elect());
    test.match(
      await refusalOf(world, moved()),
      new RegExp(`^undecided: epoch \\d+ does not begin: others tell of epoch ${told} by now$`),
    );
    test.equal(two.isPrimary, false);
    test.equal((await world.time.result(two.promotion.elect())).epoch, told + 1);
    test.same(world.violations, []);
  }
});

t.test('election: nor beside whoever answers that it was told of it', async (test) => {
  const world = new PromotionWorld(SEED, ['dc1', 'dc2', 'dc3', 'dc4', 'dc5']);
  const [two, four, five] = [world.named('dc2'), world.named('dc4'), world.named('dc5')];
  const one = world.named('dc1');
  one.write('all have it');
  for (const each of world.all) if (each !== one) each.follow(one, 1);
  one.isUp = false;
  two.promiseFirst = () => {
    two.promiseFirst = () => undefined;
    five.toldEpoch = 7;
  };
  test.match(
    await refusalOf(world, two.promotion.elect()),
    /^undecided: epoch 2 does not begin: .*dc4 promises .*; dc5 does not promise \(.* of epoch 7\)/,
    'three of five promise',
  );
  test.same([two.isPrimary, four.votedFor], [false, 'dc2']);
  five.isUp = false;
  test.equal((await world.time.result(two.promotion.elect())).epoch, 8, 'nor is that forgotten');
  test.same(world.violations, []);
});

t.test(
  'election: the promise of one that has nothing counts where it is known who that is',
  async (test) => {
    const { world, one, two, three } = threeDatacenters();
    for (const each of [two, three]) each.follow(one, 10);
    one.write('dc3 and a majority have it');
    three.follow(one, 11);
    one.isUp = false;
    const { entries } = three;
    // It comes back without its disks while the only other one that has the entry cannot be heard.
    three.entries = [];
    two.namesClusters = false;
    test.match(
      await refusalOf(world, two.promotion.elect()),
      /^refused: there is no majority: .*dc3 has nothing yet, and promises \(at 0\.0/,
    );
    test.same([two.maxEpoch, three.maxEpoch], [1, 1], 'nothing is given up');
    three.entries = entries;
    const { epoch, cursor } = await world.time.result(two.promotion.elect());
    test.same([epoch, cursor.seq], [2, 11], 'with what both have');
    test.same(world.violations, []);
    // A newcomer that waits for its first snapshot has lost nothing.
    const newcomer = threeDatacenters();
    newcomer.three.entries = [];
    newcomer.two.follow(newcomer.one, 10);
    newcomer.one.isUp = false;
    const { promises } = await newcomer.world.time.result(newcomer.two.promotion.elect());
    test.same(promises, ['dc3']);
  },
);

t.test('promise: not of what is heard while writes end, or while it is written', async (test) => {
  for (const when of ['writes end', 'it is written']) {
    const { world, one, two, three } = threeDatacenters();
    for (const each of [two, three]) each.follow(one, 10);
    const settled = one.settled.bind(one);
    const hear = () => {
      one.toldEpoch = 2;
    };
    one.settled = () => {
      if (when === 'writes end') hear();
      return settled();
    };
    if (when === 'it is written') one.promiseFirst = hear;
    test.match(
      await refusalOf(world, two.promotion.elect()),
      /^undecided: epoch 2 does not begin: dc1 does not promise \(at 1\.10, knows of epoch 2\)/,
      when,
    );
    test.equal(one.maxEpoch, when === 'writes end' ? 1 : 2);
    test.same([two.isPrimary, one.sealCount], [false, when === 'writes end' ? 1 : 0]);
  }
});

t.test('promise: no write waits for who asks for one of an epoch that has begun', async (test) => {
  const { world, one, two, three } = threeDatacenters();
  for (const each of [two, three]) each.follow(one, 10);
  const { time } = world;
  // Of somebody who was removed: that stops no writes here, and the candidate was not told in its trial.
  one.toldEpoch = 2;
  const promiseOf = async (epoch: number) => {
    const payload = encodeAsk({ epoch, candidate: 'dc2', cursor: two.cursor, isTrial: false });
    const request = { method: PROMOTION_METHOD.promise, payload, deadlineMs: 100, hops: 0 };
    return decodePromise(await time.result(world.call(two, 'dc1', request)));
  };
  test.match(await promiseOf(2), { isGranted: false, maxEpoch: 2 });
  test.same([one.sealCount, one.maxEpoch], [0, 1]);
  test.ok(one.write('it goes on'));
  test.match(await promiseOf(3), { isGranted: false, maxEpoch: 2 }, 'it has more by now');
  test.equal(one.sealCount, 1, 'which is taken before it is asked again');
});

t.test('promise: to nobody who lacks what is heard of while writes end', async (test) => {
  const { world, one, two, three } = threeDatacenters();
  for (const each of [two, three]) each.follow(one, 10);
  world.cuts.add('dc2 dc3');
  const settled = one.settled.bind(one);
  one.settled = () => {
    one.ahead = [{ datacenter: 'dc3', upTo: { epoch: 1, seq: 12 } }];
    return settled();
  };
  test.match(
    await refusalOf(world, two.promotion.elect()),
    /^undecided: epoch 2 does not begin: dc1 does not promise \(at 1\.10, knows of epoch 1\)/,
  );
  test.same([one.maxEpoch, two.isPrimary], [1, false]);
});

t.test(
  'election: nor does such a primary begin a reign itself, but by force, before it has that',
  async (test) => {
    const { world, one, two, three } = threeDatacenters();
    two.follow(one, 10);
    // The disks of dc1 were put back, and dc3 has promised epoch 2 to somebody who is gone.
    for (const each of [one, three]) each.entries = two.entries.slice(0, 6);
    Object.assign(three, { maxEpoch: 2, votedFor: undefined });
    one.ahead = [{ datacenter: 'dc2', upTo: { epoch: 1, seq: 10 } }];
    two.isUp = false;
    const elected = () => refusalOf(world, one.promotion.elect());
    test.match(
      await elected(),
      /^refused: dc2 has what dc1 wrote and has lost, .*`conclave operator datacenter remove dc2 --force`/,
    );
    test.same([one.maxEpoch, one.isPrimary, one.sealCount], [1, true, 0], 'nothing is given up');
    two.isUp = true;
    // It would have given that, and is away by then.
    one.promiseFirst = () => {
      two.isUp = false;
    };
    const says = /dc2 has what dc1 .*`conclave operator promote dc1 --force …`/;
    test.match(await elected(), new RegExp(`^undecided: epoch 3 does not begin: ${says.source}`));
    test.match(await elected(), new RegExp(`^refused: ${says.source}`));
    test.same([one.maxEpoch, one.isPrimary], [3, false]);
    one.promiseFirst = () => undefined;
    two.isUp = true;
    const { epoch, promises } = await world.time.result(one.promotion.elect());
    test.same([epoch, promises], [4, ['dc2', 'dc3']]);
    test.same(one.entries.slice(0, 10), two.entries);
    one.ahead = [{ datacenter: 'dc2', upTo: { epoch: 5, seq: 0 } }];
    one.toldEpoch = 5;
    two.isUp = false;
    const forced = await world.time.result(one.promotion.force(6));
    test.same([one.state().epoch, world.violations], [forced.epoch, []]);
  },
);

t.test(
  'promotion frames: have the bytes of the first release, and nothing else is one',
  async (test) => {
    for (const [name, bytes, golden, decode] of GOLDEN) {
      test.equal(Buffer.from(bytes).toString('hex'), golden, name);
      const good = new Uint8Array(Buffer.from(golden, 'hex'));
      test.same(decode(good), decode(bytes), name);
      for (let length = 0; length < good.length; length += 1) {
        test.throws(() => decode(good.slice(0, length)), WireDamage, `${name}, ${length} bytes`);
      }
    }
    const text = readFileSync(join(import.meta.dirname, '../../../../../docs/WIRE.md'), 'utf8');
    for (const name of [...Object.values(PROMOTION_METHOD), ...Object.values(PROMOTION_REFUSAL)]) {
      test.ok(text.includes(`\`${name}\``), name);
    }
  },
);

t.test('election: a majority makes the one that lacks nothing of theirs primary', async (test) => {
  const { world, one, two, three } = threeDatacenters();
  one.isUp = false;
  two.trimmedSeq = 7;
  const behind = await refusalOf(world, three.promotion.elect());
  test.match(
    behind,
    /^refused: there is no majority: dc1 does not answer .*; dc2 does not promise \(at 1.8, knows of epoch 1\); dc2 does not give what it has more: dc2 does not keep what follows 1.6 any more\. dc2 can be elected itself: `conclave operator promote dc2 --election`, asked at dc2$/,
  );
  test.equal(three.maxEpoch, 1, 'nothing was given up for nothing');
  const { epoch, promises, cursor } = await world.time.result(two.promotion.elect());
  test.same([epoch, promises, cursor.seq], [2, ['dc3'], 8]);
  test.ok(two.isPrimary);
  test.equal(three.maxEpoch, 2);
  three.follow(one, 10);
  test.equal(three.cursor.seq, 6, 'nothing of the old reign is taken after a promise');
  three.follow(two, 10);
  test.same([three.cursor.seq, three.cursor.epoch], [9, 2]);
  test.same(world.violations, []);
});

t.test(
  'election: the old primary ends its reign when it is back, and loses nothing',
  async (test) => {
    const { world, one, two } = threeDatacenters();
    one.isUp = false;
    await world.time.result(two.promotion.elect());
    one.isUp = true;
    one.promotion.start();
    one.write('nobody else will have it');
    await world.time.until('it knows', () => one.isDiverged);
    test.equal(one.isPrimary, false);
    const own = one.divergent.map(({ bytes }) => Buffer.from(bytes).toString());
    test.same(own, ['9', '10', 'nobody else will have it']);
    one.follow(two, 10);
    test.same([one.cursor, one.isDiverged], [two.cursor, false]);
    one.promotion.stop();
  },
);

t.test(
  'election: no datacenter counts for another one, whoever is at its address',
  async (test) => {
    const world = new PromotionWorld(SEED, ['dc1', 'dc2', 'dc3', 'dc4', 'dc5']);
    for (const away of ['dc1', 'dc4', 'dc5']) world.named(away).isUp = false;
    // What a server knows after a start: the addresses of its settings, for whoever is primary.
    world.moved.set('dc1', 'dc3');
    const says = await refusalOf(world, world.named('dc2').promotion.elect());
    test.match(
      says,
      /^refused: there is no majority: dc1 does not answer \(dc1 is of dc3, not of dc1\)/,
    );
    test.equal(world.named('dc2').isPrimary, false);
  },
);

t.test('election: a primary that is written to all the time passes over gossip', async (test) => {
  for (let seed = 1; seed <= 20; seed += 1) {
    const world = new PromotionWorld(seed, ['dc1', 'dc2']);
    const one = world.named('dc1');
    const written = underLoad(world);
    await world.time.until('some is written', () => written() > 50);
    one.toldEpoch = 4;
    const { epoch } = await world.time.result(one.promotion.elect());
    test.equal(epoch, 5, `seed ${seed}`);
    test.same([one.isPrimary, one.sealCount, world.violations], [true, 0, []]);
  }
});

t.test('election: is refused where it makes no sense', async (test) => {
  const { world, one, two, three } = threeDatacenters();
  test.match(await refusalOf(world, one.promotion.elect()), /^refused: dc1 is the primary already/);
  two.isLeader = false;
  test.match(await refusalOf(world, two.promotion.elect()), /^refused: this server does not lead/);
  two.isLeader = true;
  world.cuts.add('dc2 dc1').add('dc2 dc3');
  test.match(
    await refusalOf(world, two.promotion.elect()),
    /^refused: there is no majority: .*dc3 is silent/,
  );
  world.cuts.clear();
  three.follow(one, 10);
  two.follow(one, 10);
  const twice = [two.promotion.elect(), two.promotion.elect()].map((each) =>
    refusalOf(world, each),
  );
  test.match(await Promise.all(twice), ['none', /^refused: a promotion is under way here already/]);
  const pair = new PromotionWorld(1, ['dc1', 'dc2']);
  pair.named('dc1').isUp = false;
  test.match(
    await refusalOf(pair, pair.named('dc2').promotion.elect()),
    /^refused: there is no majority/,
    'a half is none',
  );
  test.equal(pair.named('dc2').maxEpoch, 1, 'nothing was given up');
  three.promiseFirst = () => {
    three.maxEpoch = 9;
  };
  test.equal(
    await refusalOf(world, three.promotion.elect()),
    'refused: this datacenter cannot promise epoch 3 to itself',
  );
});

t.test('election: whom the majority leaves after the trial does not begin', async (test) => {
  const { world, one, two } = threeDatacenters();
  one.isUp = false;
  two.promiseFirst = () => {
    world.cuts.add('dc2 dc3');
  };
  const says = await refusalOf(world, two.promotion.elect());
  test.match(says, /^undecided: epoch 2 does not begin: .*dc3 does not answer/);
  test.equal(two.isPrimary, false);
  world.cuts.clear();
  two.promiseFirst = () => undefined;
  const { epoch } = await world.time.result(two.promotion.elect());
  test.equal(epoch, 3, 'trying again is the way on');
});

t.test('election: on a fork, where nobody is there who went on without it', async (test) => {
  const { world, one, two, three } = await outrun({ hasBegun: true });
  three.isUp = true;
  world.cuts.clear();
  await world.time.result(two.promotion.onNewerEpoch(3));
  test.ok(two.isDiverged);
  test.match(
    await refusalOf(world, two.promotion.elect()),
    /^refused: dc3 can be reached and has more: promote that one, .* is on another chain than dc3/,
  );
  test.equal(one.maxEpoch, 3, 'nothing was given up for nothing');
  three.isUp = false;
  const { epoch, promises } = await world.time.result(two.promotion.elect());
  test.same([epoch, promises, two.isPrimary], [4, ['dc1'], true]);
  one.follow(two, 10);
  test.same(one.cursor, two.cursor);
  three.isUp = true;
  three.promotion.start();
  await world.time.until('dc3 knows', () => three.isDiverged);
  test.equal(three.divergent.length, 1);
  three.promotion.stop();
  test.same(world.violations, []);
});

t.test(
  'election: the primary passes over an epoch that nothing but gossip tells of',
  async (test) => {
    const { world, one, two, three } = await forcedAndLost();
    test.same([one.maxEpoch, three.maxEpoch], [1, 1]);
    test.match(one.promotion.outrunBy(), { datacenter: 'dc2', epoch: 2 });
    const { epoch, promises } = await world.time.result(one.promotion.elect());
    test.same([epoch, promises], [3, ['dc3']]);
    two.isUp = true;
    two.promotion.start();
    await world.time.until('dc2 knows', () => !two.isPrimary);
    two.promotion.stop();
    test.same(world.violations, []);
  },
);

t.test('election: anybody else passes over it, too; the primary is its voter', async (test) => {
  const { world, one, three } = await forcedAndLost();
  three.follow(one, 10);
  const { epoch, promises } = await world.time.result(three.promotion.elect());
  test.same([epoch, promises], [3, ['dc1']]);
  test.same(world.violations, []);
});

t.test('election: no primary passes over one that can be asked', async (test) => {
  const { world, one, two } = await forcedAndLost();
  two.isUp = true;
  test.match(
    await refusalOf(world, one.promotion.elect()),
    /^refused: dc2 can be reached and has more: promote that one/,
  );
  test.same([one.maxEpoch, one.isPrimary], [1, true], 'nothing was given up for nothing');
});

t.test('promise: is asked for by the candidate itself', async (test) => {
  const { world, one, two } = threeDatacenters();
  const ask = encodeAsk({ epoch: 9, candidate: 'dc3', cursor: one.cursor, isTrial: false });
  const request = { method: PROMOTION_METHOD.promise, payload: ask, deadlineMs: 100, hops: 0 };
  const asked = world.call(two, 'dc1', request).catch((error: Error) => error.message);
  test.equal(await world.time.result(asked), 'dc2 asks for a promise to dc3');
  test.equal(one.maxEpoch, 1);
});
