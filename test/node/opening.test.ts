// Whether a node can serve, and what it says where it cannot.

import t from 'tap';
import type { MemberStanding } from '../../cluster/member/group-member.ts';
import { Opening } from '../../src/node/opening.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { LEADER, memberOf, turns } from './standing-of.ts';

/** An opening whose surroundings are set by hand. */
function openingOf(t: { teardown(action: () => void): void }) {
  const clock = new FakeClock();
  const told: string[] = [];
  const silent = (): void => undefined;
  const world = {
    standing: { kind: 'joining', says: 'waiting for 2 more servers' } as MemberStanding,
    isPrimary: true,
    hasBuiltins: false,
    isWitness: false,
    hasGlobalLog: false,
    why: undefined as string | undefined,
    overruled: undefined as string | undefined,
    canRead: false,
    barriers: 0,
  };
  const opening = new Opening({
    standing: () => world.standing,
    onLeaderChanged: () => () => undefined,
    isPrimary: () => world.isPrimary,
    isWitness: () => world.isWitness,
    hasGlobalLog: () => world.hasGlobalLog,
    nothingComesBecause: () => world.why,
    overruledSettings: () => world.overruled,
    hasBuiltins: () => world.hasBuiltins,
    catchUp: () => {
      world.barriers += 1;
      return world.canRead ? Promise.resolve() : Promise.reject(new Error('no quorum'));
    },
    clock,
    logger: {
      debug: silent,
      warn: silent,
      error: silent,
      info: ({ reasons }, says) => told.push(`${says} ${String(reasons ?? '')}`),
    },
  });
  t.teardown(() => opening.close());
  let isOpened = false;
  void opening.opened.then(() => {
    isOpened = true;
  });
  const later = async (): Promise<void> => {
    clock.advance(250);
    await turns();
  };
  return { clock, world, opening, later, told, isOpened: () => isOpened };
}

t.test('opening: says what is missing, step by step, until it is open', async (t) => {
  const { world, opening, later, told, isOpened } = openingOf(t);
  t.equal(opening.notOpenBecause(), 'waiting for 2 more servers');
  t.same(opening.notReadyReasons(), ['waiting for 2 more servers']);

  world.standing = memberOf({ leader: undefined, lastContactMs: undefined });
  await later();
  t.equal(opening.notOpenBecause(), 'No cluster leader', 'there is nothing to read yet');
  t.same(opening.notReadyReasons(), ['no leader is known']);

  world.standing = memberOf({});
  await later();
  t.same(opening.notReadyReasons(), ['the state has not caught up with the leader yet']);

  world.canRead = true;
  await later();
  const built = 'the leader has not made the built-in objects yet';
  t.equal(opening.notOpenBecause(), built, 'an empty state is nobody to ask');
  t.equal(isOpened(), false);

  world.hasBuiltins = true;
  await later();
  t.equal(opening.notOpenBecause(), undefined);
  t.same(opening.notReadyReasons(), []);
  t.ok(isOpened());

  const { barriers } = world;
  world.standing = memberOf({ leader: undefined });
  await later();
  t.equal(opening.notOpenBecause(), undefined, 'without a leader stale reads go on');
  t.same(opening.notReadyReasons(), ['no leader is known']);
  world.standing = memberOf({});
  await later();
  t.equal(world.barriers, barriers, 'it catches up once; later each read asks');
  world.standing = memberOf({ isDiskStalled: true });
  await later();
  t.equal(opening.notOpenBecause(), undefined, 'stale reads go on');
  t.same(world.barriers, barriers, 'nothing is asked anew');
  t.same(opening.notReadyReasons(), ['the disk does not answer']);
  world.standing = memberOf({});
  await later();
  t.same(told, [
    'not ready waiting for 2 more servers',
    'not ready no leader is known',
    'not ready the state has not caught up with the leader yet',
    `not ready ${built}`,
    'ready ',
    'not ready no leader is known',
    'ready ',
    'not ready the disk does not answer',
    'ready ',
  ]);
});

t.test('opening: who asks a moment too soon waits for the built-in objects', async (t) => {
  const { world, opening, later } = openingOf(t);
  let answered = 0;
  const ask = async (): Promise<void> => {
    await opening.opens(60_000);
    answered += 1;
  };
  await ask();
  t.equal(answered, 1, 'it is no member yet: that may take for ever');

  for (const leader of [undefined, LEADER]) {
    world.standing = memberOf({ leader });
    await later();
    void ask();
    await turns();
    t.equal(answered, 1, 'a leader is soon found, and makes them');
  }
  world.hasBuiltins = true;
  await later();
  t.equal(answered, 3);
  t.equal(opening.notOpenBecause(), undefined);

  world.hasBuiltins = false;
  await later();
  void ask();
  world.standing = { kind: 'removed', says: 'it is removed' };
  await later();
  t.equal(answered, 4, 'nothing comes any more');

  world.standing = memberOf({});
  await later();
  void ask();
  opening.close();
  await turns();
  t.equal(answered, 5, 'it is stopped');
});

t.test('opening: a witness is ready when it has a place in the global log', async (t) => {
  const { world, opening, later, isOpened } = openingOf(t);
  Object.assign(world, { standing: memberOf({}), canRead: true, why: 'it is a stranger' });
  world.isPrimary = false;
  await later();
  t.match(opening.notOpenBecause(), /^nothing has come /, 'its settings do not say what it is');
  world.isWitness = true;
  await later();
  const says = 'this datacenter is a witness: it votes, and has no objects';
  t.equal(opening.notOpenBecause(), says);
  const nothing = 'nothing has come from the primary datacenter yet: it is a stranger';
  t.same([opening.notReadyReasons(), isOpened()], [[nothing], false]);
  world.hasGlobalLog = true;
  await later();
  t.same([opening.notOpenBecause(), opening.notReadyReasons()], [says, []]);
  t.ok(isOpened());
});

t.test('opening: nobody waits longer than asked', async (t) => {
  const { clock, world, opening, later } = openingOf(t);
  world.standing = memberOf({});
  await later();
  let answered = false;
  void opening.opens(5_000).then(() => {
    answered = true;
  });
  clock.advance(4_999);
  await turns();
  t.equal(answered, false);
  clock.advance(1);
  await turns();
  t.equal(answered, true);
  t.type(opening.notOpenBecause(), 'string');
});

t.test('opening: an old state may be read before a leader is known', async (t) => {
  const { world, opening, later } = openingOf(t);
  world.hasBuiltins = true;
  world.standing = memberOf({ leader: undefined, lastContactMs: undefined });
  await later();
  t.equal(opening.notOpenBecause(), undefined);
  t.same(opening.notReadyReasons(), ['no leader is known']);
});

t.test(
  'opening: who was removed, or differs from the others, serves nobody any more',
  async (t) => {
    const { world, opening, later } = openingOf(t);
    Object.assign(world, { standing: memberOf({}), hasBuiltins: true, canRead: true });
    await later();
    t.equal(opening.notOpenBecause(), undefined);
    for (const kind of ['removed', 'quarantined'] as const) {
      world.standing = { kind, says: `it is ${kind}` };
      await later();
      t.equal(opening.notOpenBecause(), `it is ${kind}`);
      t.same(opening.notReadyReasons(), [`it is ${kind}`]);
    }
  },
);
