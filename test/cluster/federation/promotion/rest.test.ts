// What others have more than the candidate: it is taken first, also by way of what was there before a fork.

import t from 'tap';
import { decodeEntryRun } from '../../../../cluster/federation/feed/feed-frames.ts';
import {
  decodePromise,
  encodeAsk,
  encodeRest,
  PROMOTION_METHOD,
} from '../../../../cluster/federation/promotion/promotion-frames.ts';
import { ALL_ARE_LISTED, Datacenter, PromotionWorld } from '../promotion-model.ts';
import { refusalOf, type Three, threeDatacenters, underLoad } from './elections.ts';

/** dc1 is lost, and gave its last entries to a witness alone: dc2. dc3 lacks them. */
function witnessAhead(): Three {
  const all = threeDatacenters();
  const { one, two } = all;
  two.follow(one, 10);
  two.isWitness = true;
  one.isUp = false;
  return all;
}

t.test('rest: what only a witness has is given to whoever is elected', async (test) => {
  const { world, one, two, three } = witnessAhead();
  test.match(await refusalOf(world, two.promotion.elect()), /^refused: there is no/);
  test.same([two.maxEpoch, three.maxEpoch], [1, 1]);
  const { epoch, promises, cursor } = await world.time.result(three.promotion.elect());
  test.same([epoch, promises, cursor], [2, ['dc2'], two.cursor]);
  test.same(three.entries.slice(0, 10), one.entries, 'nothing of the lost primary is lost');
  test.ok(three.isPrimary);
  one.isUp = true;
  one.promotion.start();
  await world.time.until('dc1 knows', () => !one.isPrimary);
  one.promotion.stop();
  one.follow(three, 10);
  two.follow(three, 10);
  test.same([one.cursor, two.cursor, one.divergent], [three.cursor, three.cursor, []]);
});

t.test('rest: a promise to another one does not stand in its way', async (test) => {
  const { world, two, three } = witnessAhead();
  // dc1 wished to renew its reign, and was lost then.
  for (const each of [two, three]) [each.maxEpoch, each.votedFor] = [4, 'dc1'];
  const { epoch, cursor } = await world.time.result(three.promotion.elect());
  test.same([epoch, cursor], [5, two.cursor]);
  test.same(world.violations, []);
});

t.test('rest: is taken where an operator takes the loss, too', async (test) => {
  const { world, two, three } = witnessAhead();
  world.voters.push('dc4', 'dc5');
  test.match(await refusalOf(world, three.promotion.elect()), /^refused: there is no majority/);
  test.equal(three.cursor.seq, 6, 'nothing is taken for nothing');
  const { epoch, cursor } = await world.time.result(three.promotion.force(2));
  test.same([epoch > 2, cursor], [true, two.cursor]);
});

/** dc1 let dc2 in while dc3 was away, which knows of dc1 and itself alone; then dc1 was lost. */
function cameMeanwhile(): Three {
  const all = threeDatacenters();
  const { one, two, three } = all;
  one.write(ALL_ARE_LISTED);
  one.write('which both have');
  two.follow(one, 10);
  three.listed = ['dc1', 'dc3'];
  one.isUp = false;
  return all;
}

t.test('rest: who came while the candidate was away is asked, and counts', async (test) => {
  const { world, two, three } = cameMeanwhile();
  two.isWitness = true;
  const { epoch, promises, cursor } = await world.time.result(three.promotion.elect());
  test.same([epoch, promises, cursor], [2, ['dc2'], two.cursor]);
  test.same(three.voters, ['dc1', 'dc2', 'dc3'], 'by the list that came with it');
  test.same(world.violations, []);
});

t.test('rest: who came meanwhile loses nothing where an operator takes the loss', async (test) => {
  const { world, two, three } = cameMeanwhile();
  const { epoch, cursor } = await world.time.result(three.promotion.force(2));
  test.same([epoch > 2, cursor], [true, two.cursor]);
  const trimmed = cameMeanwhile();
  trimmed.two.trimmedSeq = 11;
  test.match(
    await refusalOf(trimmed.world, trimmed.three.promotion.force(2)),
    /^refused: dc2 can be reached and has more: promote that one/,
  );
  const promised = cameMeanwhile();
  promised.two.promiseFirst = () => {
    promised.two.maxEpoch = 2_000_000;
  };
  test.match(
    await refusalOf(promised.world, promised.three.promotion.force(2)),
    /^undecided: epoch \d+ does not begin: .*dc2 does not promise/,
  );
});

t.test('rest: who is not listed goes first where it gives nothing', async (test) => {
  const { world, one, two, three } = cameMeanwhile();
  // By its list the candidate has a majority with one that was removed meanwhile.
  const four = new Datacenter(world, 'dc4');
  world.all.push(four);
  four.follow(one, 1);
  three.listed = ['dc1', 'dc3', 'dc4'];
  two.trimmedSeq = 11;
  test.match(
    await refusalOf(world, three.promotion.elect()),
    /^refused: dc2 can be reached and has more: promote that one/,
  );
  test.same([three.maxEpoch, four.maxEpoch], [1, 1], 'nobody gives anything up');
  two.isUp = false;
  test.equal((await world.time.result(three.promotion.elect())).epoch, 2);
});

t.test('rest: nothing is given up where those who came are no majority either', async (test) => {
  const { world, three } = cameMeanwhile();
  three.listed = ['dc1', 'dc3', 'dc4', 'dc5'];
  test.match(await refusalOf(world, three.promotion.elect()), /^refused: there is no majority/);
  test.same([three.cursor.seq, three.maxEpoch], [6, 1]);
});

t.test('rest: a refusal says why what a witness has could not be taken', async (test) => {
  const { world, three } = witnessAhead();
  three.take = async () => {
    throw new Error('a restore follows');
  };
  test.match(
    await refusalOf(world, three.promotion.elect()),
    /^undecided: epoch 2 does not begin: .*; what dc2 has more could not be taken: a restore follows$/,
  );
});

t.test(
  'rest: nothing is given to whom cannot read it, and nobody gives anything up',
  async (test) => {
    const { world, two, three } = witnessAhead();
    const says = 'dc3 uses feature level 3, and what it lacks is of 4';
    two.unreadable.set('dc3', says);
    const refusals = async (): Promise<readonly string[]> => [
      await refusalOf(world, three.promotion.elect()),
      await refusalOf(world, three.promotion.force(2)),
    ];
    const refused = `refused: dc2 has more, and ${says}`;
    test.same(await refusals(), [refused, refused]);
    world.all.push(new Datacenter(world, 'dc4'));
    three.listed = ['dc2', 'dc3', 'dc4'];
    test.same(await refusals(), [refused, refused], 'nor is it passed over with a majority');
    test.same([three.cursor.seq, two.maxEpoch, three.maxEpoch], [6, 1, 1]);
    two.unreadable.delete('dc3');
    // The log of dc2 comes to something new when it would have given all.
    three.promiseFirst = () => two.unreadable.set('dc3', says);
    test.equal(
      await refusalOf(world, three.promotion.elect()),
      `undecided: dc2 has more, and ${says}`,
    );
    three.promiseFirst = () => undefined;
    two.unreadable.delete('dc3');
    const { cursor } = await world.time.result(three.promotion.elect());
    test.same(cursor, two.cursor, 'upgraded, it takes that');
  },
);

t.test('rest: a primary takes back what it has lost, where a person says so', async (test) => {
  const world = new PromotionWorld(1, ['dc1', 'dc2']);
  const [one, two] = [world.named('dc1'), world.named('dc2')];
  two.isWitness = true;
  for (let number = 1; number <= 10; number += 1) one.write(`${number}`);
  two.follow(one, 10);
  one.entries = one.entries.slice(0, 6);
  await world.time.result(one.promotion.onNewerEpoch(2));
  test.equal(one.state().epoch, 1, 'by itself it begins nothing');
  two.isUp = false;
  test.equal(
    await refusalOf(world, one.promotion.elect()),
    'refused: dc1 is the primary already, and not all answer: dc2 does not answer (dc2 is silent)',
  );
  two.isUp = true;
  const { epoch, cursor } = await world.time.result(one.promotion.elect());
  test.same([epoch, cursor, one.isPrimary], [2, two.cursor, true]);
  two.follow(one, 10);
  test.same([two.cursor, world.violations], [one.cursor, []]);
  test.match(await refusalOf(world, one.promotion.elect()), /is the primary already/);
});

t.test('rest: a primary that is written to has lost nothing that others have', async (test) => {
  for (let seed = 1; seed <= 20; seed += 1) {
    const world = new PromotionWorld(seed);
    const written = underLoad(world);
    await world.time.until('some is written', () => written() > 50);
    const says = await refusalOf(world, world.named('dc1').promotion.elect());
    test.match(says, /is the primary already/, `seed ${seed}`);
  }
});

t.test('rest: a giver that is gone before all has come is asked anew', async (test) => {
  const { world, two, three } = witnessAhead();
  const { take } = three;
  three.take = async (batch) => {
    const reached = await take.call(three, batch);
    two.isUp = false;
    return reached;
  };
  const says = await refusalOf(world, three.promotion.elect());
  test.match(says, /^undecided: epoch 2 does not begin/);
  test.ok(three.cursor.seq > 6 && three.cursor.seq < 10, `${three.cursor.seq}`);
  test.equal(three.isPrimary, false);
  three.take = take;
  two.isUp = true;
  const { epoch, cursor } = await world.time.result(three.promotion.elect());
  test.same([epoch, cursor], [3, two.cursor]);
});

t.test('rest: a primary that writes on while it is elected away loses nothing', async (test) => {
  const { world, one, two, three } = threeDatacenters();
  two.isUp = false;
  let slipped = 0;
  one.mayPromiseFirst = () => {
    slipped += 1;
    if (slipped < 3) one.write('while it is asked');
  };
  const { epoch, cursor } = await world.time.result(three.promotion.elect());
  test.same([epoch, cursor.seq, three.entries.slice(0, 12)], [2, 12, one.entries]);
  test.same([one.isPrimary, three.isPrimary], [false, true]);
});

t.test('rest: a primary of two that is written to all the time gives way', async (test) => {
  for (let seed = 1; seed <= 20; seed += 1) {
    for (const voters of [
      ['dc1', 'dc2'],
      ['dc1', 'dc2', 'dc3', 'dc4', 'dc5'],
    ]) {
      const world = new PromotionWorld(seed, voters);
      const [one, two] = [world.named('dc1'), world.named('dc2')];
      const written = underLoad(world);
      await world.time.until('some is written', () => written() > 50);
      const { epoch } = await world.time.result(two.promotion.elect());
      const before = written();
      test.same([epoch, one.isPrimary, two.isPrimary], [2, false, true], `seed ${seed}`);
      const own = one.entries.length;
      test.same(two.entries.slice(0, own), one.entries, 'and nothing is lost');
      await world.time.until('it goes on', () => written() > before + 50);
      test.equal(one.sealCount, 0);
      test.same(world.violations, []);
    }
  }
});

t.test('rest: whom a candidate has left, writes on after a while', async (test) => {
  const { world, one, two } = threeDatacenters();
  const payload = encodeAsk({ epoch: 2, candidate: 'dc2', cursor: two.cursor, isTrial: false });
  const request = { method: PROMOTION_METHOD.promise, payload, deadlineMs: 100, hops: 0 };
  const ask = () => world.time.result(world.call(two, 'dc1', request));
  const { isGranted, cursor } = decodePromise(await ask());
  test.same([isGranted, cursor, one.sealCount], [false, one.cursor, 1]);
  await ask();
  test.equal(one.sealCount, 1, 'once, however often it is asked');
  await one.promotion.onNewerEpoch(2);
  test.same([one.isPrimary, one.maxEpoch], [true, 1], 'meanwhile it does not outrun the candidate');
  const since = world.time.clock.monotonicMs();
  await world.time.until('it takes writes again', () => one.sealCount === 0);
  test.ok(world.time.clock.monotonicMs() - since <= 10_000);
  test.ok(one.write('it goes on'));
  await ask();
  one.promotion.stop();
  test.equal(one.sealCount, 0, 'who does not lead any more holds nothing back');
});

t.test('rest: of a fork, and by who waits for a snapshot, nothing is given', async (test) => {
  const { world, one, two, three } = threeDatacenters();
  one.isUp = false;
  world.cuts.add('dc2 dc3').add('dc3 dc2');
  await world.time.result(two.promotion.force(2));
  three.hasHeard = false;
  await world.time.result(three.promotion.force(2));
  three.hasHeard = true;
  world.cuts.clear();
  three.write('on another chain');
  const ask = (after: Datacenter, isTrial = false): Promise<string> => {
    const payload = encodeRest({ after: after.cursor, isTrial });
    const request = { method: PROMOTION_METHOD.rest, payload, deadlineMs: 100, hops: 0 };
    const asked = world.call(after, 'dc2', request).then(
      (bytes) => `${decodeEntryRun(bytes).entries.length} entries`,
      (error: Error) => error.message,
    );
    return world.time.result(asked);
  };
  test.match(await ask(three), /^\d+\.8 is on another chain than dc2$/);
  three.entries = two.entries.slice(0, 6);
  test.equal(await ask(three), '2 entries');
  test.equal(await ask(three, true), '0 entries');
  two.isDiverged = true;
  test.equal(await ask(three), 'dc2 stands on a fork, and waits for a snapshot');
});

/**
 * dc3 is a witness, and has what dc2 wrote in epoch 2, which it has elected; dc2 is gone. dc1 has not heard of that
 * epoch, and has written on in its own.
 */
async function besideWitness(): Promise<Three> {
  const all = threeDatacenters();
  const { world, one, two, three } = all;
  two.follow(one, 10);
  three.follow(one, 10);
  three.isWitness = true;
  for (const other of ['dc2', 'dc3']) world.cuts.add(`dc1 ${other}`).add(`${other} dc1`);
  await world.time.result(two.promotion.elect());
  two.write('of epoch 2');
  three.follow(two, 10);
  one.write('of epoch 1');
  two.isUp = false;
  world.cuts.clear();
  return all;
}

t.test(
  'way back: who was outrun takes from where it was, and sets apart what it has',
  async (test) => {
    const { world, one, two, three } = await besideWitness();
    const { epoch, promises } = await world.time.result(one.promotion.elect());
    test.same([epoch, promises, one.isPrimary], [3, ['dc3'], true]);
    test.same(
      one.divergent.map(({ bytes }) => Buffer.from(bytes).includes('of epoch 1')),
      [true],
    );
    test.same(one.entries.slice(0, 12), three.entries, 'all that the witness has');
    three.follow(one, 10);
    test.same(three.cursor, one.cursor);
    two.isUp = true;
    two.promotion.start();
    await world.time.until('dc2 knows', () => !two.isPrimary);
    two.promotion.stop();
    test.equal(two.divergent.length, 0, 'dc2 has nothing of its own');
    test.same(world.violations, []);
  },
);

t.test('way back: is taken where it was fenced before, and by force', async (test) => {
  const fenced = await besideWitness();
  await fenced.world.time.result(fenced.one.fence(fenced.two.epochs));
  test.ok(fenced.one.isDiverged);
  await fenced.world.time.result(fenced.one.promotion.elect());
  test.same([fenced.one.isPrimary, fenced.one.divergent.length], [true, 1]);
  const { world, one, three } = await besideWitness();
  world.voters.push('dc4', 'dc5');
  test.match(await refusalOf(world, one.promotion.elect()), /^refused: there is no majority/);
  test.same([one.isPrimary, one.divergent.length], [true, 0], 'nothing was given up for nothing');
  await world.time.result(one.promotion.force(one.promotion.nextEpoch()));
  test.same([one.isPrimary, one.divergent.length], [true, 1]);
  test.same(one.entries.slice(0, 12), three.entries);
});

t.test(
  'way back: where there is none, the witness is stopped, and the old one forced',
  async (test) => {
    const { world, one, three } = await besideWitness();
    three.trimmedSeq = 11;
    test.match(await refusalOf(world, one.promotion.elect()), /or stop it if it is a witness/);
    three.isUp = false;
    test.match(await refusalOf(world, one.promotion.elect()), /^refused: there is no majority/);
    const { epoch } = await world.time.result(one.promotion.force(3));
    test.same(
      [epoch > 3, one.isPrimary, one.entries.length],
      [true, true, 12],
      'with what it has written',
    );
    three.isUp = true;
    await world.time.result(three.fence(one.epochs));
    three.follow(one, 10);
    test.same(three.cursor, one.cursor);
    test.same(world.violations, []);
  },
);

t.test('way back: nothing is given up where it leads nowhere', async (test) => {
  const cases: readonly (readonly [RegExp, (all: Three) => void])[] = [
    [/dc3 does not keep what follows 1\.10 any more/, ({ three }) => (three.trimmedSeq = 11)],
    [/is on another chain than dc3/, ({ three }) => (three.isWitness = false)],
    [/dc3 is not the primary/, ({ three }) => (three.isDiverged = true)],
    [/dc1 is of federation fed, dc3 of other/, ({ three }) => (three.federationId = 'other')],
    [
      /nothing says what it was/,
      ({ one }) => {
        one.forkPlaceFirst = () => {
          throw new Error('nothing says what it was');
        };
      },
    ],
  ];
  for (const [says, change] of cases) {
    const all = await besideWitness();
    change(all);
    const { world, one, three } = all;
    const why = await refusalOf(world, one.promotion.elect());
    test.match(why, /^refused: dc3 can be reached and has more: promote that one, or stop it/);
    test.match(why, says);
    test.same([one.isPrimary, one.maxEpoch, one.divergent.length], [true, 1, 0]);
    test.equal(three.maxEpoch, 2);
  }
});

t.test('way back: who did not come back asks nobody for a promise', async (test) => {
  const { world, one, three } = await besideWitness();
  const { goBack } = one;
  one.goBack = () => Promise.reject(new Error('its disk hangs'));
  test.equal(
    await refusalOf(world, one.promotion.elect()),
    'undecided: dc1 did not come back to what is shared: its disk hangs',
  );
  test.same([one.maxEpoch, three.maxEpoch], [1, 2]);
  one.goBack = goBack;
  one.mayPromiseFirst = () => {
    one.maxEpoch = 9;
  };
  const says = 'undecided: this datacenter cannot promise epoch 3 to itself';
  test.equal(await refusalOf(world, one.promotion.elect()), says, 'it has gone back');
  [one.mayPromiseFirst, one.maxEpoch] = [() => undefined, 2];
  const { promises } = await world.time.result(one.promotion.elect());
  test.same(promises, ['dc3']);
});

t.test('way back: whose primary is there is not passed over', async (test) => {
  const { world, one, two } = await besideWitness();
  two.isUp = true;
  test.match(
    await refusalOf(world, one.promotion.elect()),
    /^refused: dc2, dc3 can be reached and has more: promote that one/,
  );
  test.same([one.maxEpoch, two.isPrimary], [1, true]);
});

t.test('rest: nobody is passed over for having just been started', async (test) => {
  for (const isForced of [false, true]) {
    const world = new PromotionWorld(1, ['dc1', 'dc2', 'dc3', 'dc4', 'dc5']);
    const [one, two, three] = ['dc1', 'dc2', 'dc3'].map((name) => world.named(name));
    for (let number = 1; number <= 10; number += 1) one!.write(`${number}`);
    three!.follow(one!, 10);
    for (const each of world.all) if (each !== three) each.follow(one!, 1);
    one!.isUp = false;
    two!.lost.add('dc3');
    await world.time.result(isForced ? two!.promotion.force(2) : two!.promotion.elect());
    test.same(two!.entries.slice(0, 10), three!.entries);
    test.same(world.violations, []);
  }
});

t.test(
  'rest: with a majority it begins beside who gives nothing, by force it does not',
  async (test) => {
    for (const isForced of [false, true]) {
      const world = new PromotionWorld(1, ['dc1', 'dc2', 'dc3', 'dc4', 'dc5']);
      const [one, two, five] = ['dc1', 'dc2', 'dc5'].map((name) => world.named(name));
      for (let number = 1; number <= 10; number += 1) one!.write(`${number}`);
      five!.follow(one!, 10);
      for (const each of world.all) if (each !== five) each.follow(one!, 1);
      five!.trimmedSeq = 9;
      one!.isUp = false;
      if (!isForced) {
        const { promises } = await world.time.result(two!.promotion.elect());
        test.same(promises, ['dc3', 'dc4'], 'a majority had none of that');
        continue;
      }
      five!.isUp = false;
      // It is there again when promises are asked for.
      two!.promiseFirst = () => {
        five!.isUp = true;
      };
      const says = await refusalOf(world, two!.promotion.force(2));
      test.match(says, /^undecided: epoch \d+ does not begin: .*dc5 does not promise \(at 1\.10/);
      test.equal(two!.isPrimary, false);
    }
  },
);

t.test('rest: who has more than the one that gives it is not counted for it', async (test) => {
  const world = new PromotionWorld(1, ['dc1', 'dc2', 'dc3', 'dc4']);
  const [one, two, three, four] = world.all as [Datacenter, Datacenter, Datacenter, Datacenter];
  for (let number = 1; number <= 10; number += 1) one.write(`${number}`);
  two.follow(one, 8);
  three.follow(one, 6);
  one.trimmedSeq = 7;
  four.isUp = false;
  test.match(
    await refusalOf(world, three.promotion.elect()),
    /^refused: there is no majority: dc1 does not promise \(at 1\.10, .*; dc2 promises \(at 1\.8/,
  );
  test.same(
    [one, two, three].map(({ maxEpoch }) => maxEpoch),
    [1, 1, 1],
    'nothing is given up',
  );
});

t.test(
  'way back: what follows there is not passed over by whom cannot read it, either',
  async (test) => {
    const world = new PromotionWorld(1, ['dc1', 'dc2', 'dc3', 'dc4', 'dc5']);
    const [one, two, three, four, five] = world.all as [
      Datacenter,
      Datacenter,
      Datacenter,
      Datacenter,
      Datacenter,
    ];
    one.write('of all');
    for (const each of world.all) each.follow(one, 10);
    // A majority went on without dc1 and dc4, and a witness alone has what it wrote.
    three.isWitness = true;
    for (const here of ['dc1', 'dc4']) {
      for (const there of ['dc2', 'dc3', 'dc5']) {
        world.cuts.add(`${here} ${there}`).add(`${there} ${here}`);
      }
    }
    await world.time.result(two.promotion.elect());
    three.follow(two, 10);
    one.write('of epoch 1');
    four.follow(one, 10);
    [one.isUp, two.isUp] = [false, false];
    world.cuts.clear();
    const says = 'dc4 uses feature level 3, and what it lacks is of 4';
    three.unreadable.set('dc4', says);
    world.voters.splice(0, 2);
    const refused = `refused: dc3 has more, and ${says}`;
    test.equal(await refusalOf(world, four.promotion.elect()), refused, 'not with a majority');
    test.equal(await refusalOf(world, four.promotion.force(3)), refused);
    test.same([four.cursor.seq, four.maxEpoch, five.maxEpoch], [2, 1, 2]);
    three.unreadable.delete('dc4');
    await world.time.result(four.promotion.elect());
    test.same(four.entries.slice(0, 2), three.entries, 'upgraded, it takes that');
  },
);
