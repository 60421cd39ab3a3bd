// What operators hear of a primary that takes no writes, and of the entries that one left behind, where settling them
// fails half-way.

import t from 'tap';
import { AclError } from '../../src/acl/error.ts';
import type { AccessorId } from '../../src/acl/ids.ts';
import { type Asker, MovingPrimary } from '../../src/service/operators/moving-primary.ts';
import type { MoveWish } from '../../src/service/operators/operator-operations.ts';
import { markOfEntry } from '../../src/service/operators/resubmission.ts';
import { LeaderAway } from '../../src/service/remote.ts';
import type { Change, Command } from '../../src/state/commands/commands.ts';
import {
  decodeEntry,
  encodeEntry,
  type GlobalEntry,
} from '../../src/state/global-log/global-entry.ts';
import { entryOfReaped, entryOfToken, UNKNOWN } from '../http/operator/cases.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { CALL, refusalOf } from './harness.ts';

function verdictOf(verdict: string): object {
  return { kind: 'applied', answer: { type: 'verdict', verdict } };
}

t.test('primary: one that has not begun what it promised itself says how it goes on', async (t) => {
  const replication = {
    datacenter: 'dc1',
    epochs: [{ epoch: 1, startSeq: 1, startHash: new Uint8Array(32), primary: 'dc1' }],
    maxEpochPromised: 3,
    votedFor: 'dc1',
    isDiverged: false,
    datacenters: [],
  };
  const position = { epoch: 1, seq: 9 };
  const closed = (given: Partial<typeof replication>): string =>
    new MovingPrimary({
      view: { replication: () => ({ ...replication, ...given }), position: () => position },
      federation: {
        primary: () => ({ datacenter: 'dc1', epoch: 1 }),
        status: () => ({ head: position, datacenters: [{ name: 'dc1', lastError }] }),
      },
      settings: { datacenter: 'dc1' },
      primary: { closedBecause: () => undefined, lostReign: () => lost },
    } as never).status().closedBecause;
  let lost: string | undefined;
  let lastError = '';
  t.match(
    closed({}),
    /^dc1 has promised epoch 3 to itself, .*`conclave operator promote dc1 --election` tries again/,
  );
  const promised = 'dc1 has promised epoch 3 to dc2, and has heard of no entry of it';
  t.match(closed({ votedFor: 'dc2' }), new RegExp(`^${promised}: if dc2 does not begin, `));
  lastError = 'upgrade all servers of dc1';
  t.match(
    closed({ votedFor: 'dc2' }),
    new RegExp(`^${promised} \\(last error: ${lastError}\\): if dc2 does not begin, `),
    'whoever has begun and cannot be followed is not taken for one that has not begun',
  );
  t.equal(closed({ isDiverged: true }), '', 'it waits for a snapshot');
  t.equal(closed({ maxEpochPromised: 1 }), '', 'it has begun');
  lost = 'dc2 has epoch 4';
  t.equal(closed({}), lost, 'the last one to begin a reign has lost it');
  t.equal(closed({ datacenter: 'dc3' }), lost, 'so it does elsewhere');
  t.equal(closed({ maxEpochPromised: 1 }), '', 'who is primary does not ask');
});

t.test('primary: is moved where that can be meant, by whom that is for to do', async (t) => {
  const names = ['dc1', 'dc2', 'dc3', 'dc4'];
  const datacenters = names.map((name) => ({
    ...{ name, isVoter: true },
    ...{ isRemoved: name === 'dc3', isWitness: name === 'dc4' },
  }));
  const replication = { datacenter: 'dc1', epochs: [{ epoch: 1, primary: 'dc2' }], datacenters };
  const asked: unknown[] = [];
  const moved = (asking: unknown) => {
    asked.push(asking);
    return { epoch: 3, promises: ['dc1'], position: { epoch: 1, seq: 9 } };
  };
  const moving = new MovingPrimary({
    view: { replication: () => replication },
    federation: {
      primary: () => ({ datacenter: 'dc2', epoch: 1 }),
      status: () => ({ head: { epoch: 1, seq: 9 } }),
    },
    settings: { datacenter: 'dc1', visibleWaitMs: 2_000 },
    primary: {
      closedBecause: () => undefined,
      nextEpoch: () => 3,
      force: async (next: number) => moved({ force: next }),
    },
    runInDatacenter: async (datacenter: string) => moved({ at: datacenter }),
    arrives: async (place: object, limitMs: number) => void asked.push({ ...place, limitMs }),
  } as never);
  const forced: MoveWish = {
    ...{ datacenter: undefined, epoch: 3, acceptsLoss: true, from: undefined },
    mode: 'forced',
  };
  const plain: MoveWish = { ...forced, mode: 'hand-over', epoch: undefined, acceptsLoss: false };
  const refused: readonly (readonly [MoveWish, string])[] = [
    [
      { ...plain, datacenter: 'dc3' },
      'invalid: dc3 is none of the datacenters of the federation: dc1, dc2, dc4',
    ],
    [
      { ...plain, datacenter: 'dc4' },
      'invalid: dc4 is a witness: it has no objects, and cannot be the primary',
    ],
    [
      { ...plain, from: 'dc3' },
      'unavailable: nothing was changed: dc3 asks dc1, and this is for dc2 to do by now',
    ],
    [{ ...forced, epoch: 2 }, 'invalid: The next epoch is 3, not 2'],
    [{ ...forced, epoch: undefined }, 'invalid: A forced move must name the next Epoch'],
    [{ ...plain, acceptsLoss: true }, 'invalid: Epoch and AcceptLoss are for a forced move alone'],
  ];
  for (const [wish, says] of refused) t.equal(await refusalOf(moving.move(wish, ASKER)), says);
  t.same(asked, []);
  const begun = { epoch: 3, seq: 10, limitMs: 2_000 };
  await moving.move(forced, ASKER);
  t.same(asked.splice(0), [{ force: 3 }, begun], 'the first entry of the reign is waited for');
  await moving.move(plain, ASKER);
  t.same(asked, [{ at: 'dc2' }, begun]);
});

const ASKER: Asker = { by: '', call: CALL, reign: 1, requireAllowed: () => undefined };

/** dc1 was the primary, and has 3,000 entries that dc2, which is, has not. */
async function leftBehind() {
  const entry: GlobalEntry | undefined = decodeEntry((await entryOfToken({})).entry);
  const state = { divergent: [{ epoch: 1, first: 1, last: 3_000 }], gone: [] };
  const made: string[] = [];
  const left = {
    entry: entry as GlobalEntry | undefined,
    state,
    made,
    says: verdictOf('applied'),
    /** In place of the log. */
    proposes: (_change: Change): void => undefined,
    moving: undefined as unknown as MovingPrimary,
  };
  left.moving = new MovingPrimary({
    view: { replication: () => left.state, divergentEntry: () => left.entry },
    propose: async ({ change }: { readonly change: Change }) => {
      left.proposes(change);
      return left.says;
    },
    clock: new FakeClock(0),
    federation: { primary: () => ({ datacenter: 'dc2', epoch: 2 }) },
    settings: { datacenter: 'dc1', leaderWaitMs: 5_000 },
    runInDatacenter: async (datacenter: string, name: string) => {
      made.push(`${name} at ${datacenter}`);
      return { index: 9, position: { epoch: 2, seq: 5 } };
    },
  } as never);
  return left;
}

t.test(
  'divergence: what was made anew is said to be, where it is not known to be settled',
  async (t) => {
    for (const why of [new LeaderAway(), new AclError('permission-denied', 'Permission denied')]) {
      const left = await leftBehind();
      left.proposes = () => {
        throw why;
      };
      const wish = { position: { epoch: 1, seq: 7 }, cas: undefined };
      const said = await refusalOf(left.moving.resubmit(wish, ASKER));
      t.same(left.made, ['divergence-take at dc2']);
      t.match(
        said,
        /^outcome-unknown: the change was made anew, at position 2\.5, .* makes nothing twice/,
      );
      t.ok(said.endsWith(`(${why.message})`), said);
    }
  },
);

t.test('divergence: says how many were forgotten where not all could be', async (t) => {
  const left = await leftBehind();
  left.proposes = () => {
    const { first } = left.state.divergent[0]!;
    if (first > 2_000) throw new AclError('unavailable', 'nothing was written');
    left.state = { ...left.state, divergent: [{ epoch: 1, first: first + 1_024, last: 3_000 }] };
  };
  const says = '2048 of 3000 entries are forgotten, and the same command goes on with the others';
  t.equal(
    await refusalOf(left.moving.discard(undefined, ASKER)),
    `unavailable: ${says}: nothing was written`,
  );
  t.equal(
    await refusalOf(left.moving.discard(undefined, ASKER)),
    'unavailable: nothing was written',
    'where none was, nothing is said of it',
  );
  left.proposes = () => {
    left.state = { ...left.state, divergent: [{ epoch: 1, first: 2_001, last: 4_000 }] };
    throw new AclError('unavailable', 'nothing was written');
  };
  t.equal(
    await refusalOf(left.moving.discard(undefined, ASKER)),
    'unavailable: nothing was written',
    'nor where there are more than before',
  );
  left.proposes = () => {
    left.state = { ...left.state, divergent: [] };
  };
  t.equal(await left.moving.discard(undefined, ASKER), 'done');
});

t.test('divergence: all that is forgotten was there when it was asked for', async (t) => {
  const left = await leftBehind();
  const later = { epoch: 1, first: 3_001, last: 3_002 };
  left.state.gone = [{ epoch: 1, first: 1, last: 5 }] as never;
  const forgotten: unknown[] = [];
  left.proposes = (change) => {
    forgotten.push(change);
    const [next] = left.state.divergent;
    // So many go at once; and meanwhile more is left behind.
    const divergent =
      next!.first < 2_000 ? [{ ...next!, first: next!.first + 2_000 }, later] : [later];
    left.state = { divergent, gone: [] };
  };
  t.equal(await left.moving.discard(undefined, ASKER), 'done');
  const change = { type: 'divergent.discard', epoch: 1, upTo: 3_000 };
  t.same(forgotten, [change, change], 'what came meanwhile nobody has looked at');
  const alone = await leftBehind();
  alone.state = { divergent: [], gone: [{ epoch: 1, first: 7, last: 9 }] as never };
  alone.proposes = (each) => {
    forgotten.push(each);
    alone.state = { divergent: [], gone: [] };
  };
  t.equal(await alone.moving.discard(undefined, ASKER), 'done');
  t.same(forgotten.at(-1), { type: 'divergent.discard', epoch: 1, upTo: 9 });
});

t.test('divergence: a refusal of the log settles nothing, and keeps its words', async (t) => {
  const left = await leftBehind();
  left.says = { kind: 'refused', code: 'level-too-low', message: 'not before the upgrade' };
  const position = { epoch: 1, seq: 7 };
  t.equal(
    await refusalOf(left.moving.discard(position, ASKER)),
    'level-too-low: not before the upgrade',
  );
  left.says = verdictOf('not-allowed');
  t.equal(
    await refusalOf(left.moving.discard(position, ASKER)),
    'not-found: Entry 1.7 is not set apart any more: nothing was forgotten',
    'an election with it has made it part of the log again',
  );
  left.says = verdictOf('applied');
  left.proposes = () => {
    const { first } = left.state.divergent[0]!;
    if (first > 1) throw new LeaderAway();
    left.state = { ...left.state, divergent: [{ epoch: 1, first: 1_025, last: 3_000 }] };
  };
  const away: unknown = await left.moving
    .discard(undefined, ASKER)
    .catch((error: unknown) => error);
  t.ok(away instanceof LeaderAway, 'the next leader goes on');
});

t.test(
  'divergence: what cannot be made anew, or is gone, asks nothing of the primary',
  async (t) => {
    const left = await leftBehind();
    left.entry = { ...left.entry!, body: { kind: 'reset' } };
    const wish = { position: { epoch: 1, seq: 7 }, cas: undefined };
    t.match(await refusalOf(left.moving.resubmit(wish, ASKER)), /^invalid: .* changed no object/);
    left.entry = undefined;
    left.state.gone = [{ epoch: 1, first: 7, last: 9 }] as never;
    const refusalAt = (seq: number): Promise<string> =>
      refusalOf(left.moving.resubmit({ ...wish, position: { epoch: 1, seq } }, ASKER));
    t.match(await refusalAt(7), /^not-found: Entry 1\.7 is gone/);
    t.match(await refusalAt(9), /^not-found: Entry 1\.9 is gone/);
    t.match(await refusalAt(10), /^not-found: There is no divergent entry 1\.10 /);
    t.same(left.made, []);
  },
);

t.test(
  'divergence: over what somebody has changed nothing is put on account of a memory',
  async (t) => {
    const entry = decodeEntry((await entryOfToken({})).entry);
    const { key, fingerprint } = markOfEntry(entry);
    const asked: unknown[] = [];
    const outcome = { kind: 'applied', answer: { type: 'deleted', existed: true } };
    const moving = new MovingPrimary({
      view: {
        replication: () => undefined,
        request: () => ({ key, fingerprint, timeMs: 0, outcome }),
        usesLevel: 8,
      },
      // What is remembered is forgotten meanwhile: then cas is all that keeps what is there.
      propose: async (command: Command) => {
        asked.push(command.cas);
        return { ...verdictOf('applied'), index: 9, position: { epoch: 1, seq: 7 } };
      },
      clock: new FakeClock(0),
      federation: { closedBecause: () => undefined },
      settings: { datacenter: 'dc1', leaderWaitMs: 5_000 },
    } as never);
    await moving.take({ entry: encodeEntry(entry), cas: undefined }, ASKER);
    await moving.take({ entry: encodeEntry(entry), cas: 17 }, ASKER);
    t.same(asked, [0, 17]);
  },
);

t.test('divergence: who is the primary no more makes nothing anew in its own fork', async (t) => {
  const entry = decodeEntry(
    await entryOfReaped([UNKNOWN, UNKNOWN.replace(/^9/, '8')] as AccessorId[]),
  );
  const written: string[] = [];
  const gate = { closed: undefined as AclError | undefined };
  // Another one by that id, which is not void.
  let found: object | undefined = {};
  const moving = new MovingPrimary({
    view: {
      replication: () => undefined,
      divergentEntry: () => entry,
      request: () => undefined,
      token: () => found,
      usesLevel: 8,
    },
    propose: async ({ change }: { readonly change: Change }) => {
      written.push(change.type);
      return { ...verdictOf('applied'), index: 9, position: { epoch: 1, seq: 7 } };
    },
    clock: new FakeClock(0),
    federation: {
      primary: () => ({ datacenter: 'dc1', epoch: 1 }),
      closedBecause: () => gate.closed,
    },
    settings: { datacenter: 'dc1', leaderWaitMs: 5_000 },
  } as never);
  const wish = { position: { epoch: 1, seq: 7 }, cas: undefined };
  gate.closed = new AclError('not-primary', 'dc1 is not the primary (epoch 2 is promised)');
  t.equal(
    await refusalOf(moving.resubmit(wish, ASKER)),
    'not-primary: dc1 is not the primary (epoch 2 is promised)',
    'what it has deleted itself is gone here, and may be there where the primary is',
  );
  t.same(written, [], 'the entry stays in the list');
  gate.closed = undefined;
  found = undefined;
  const requireAllowed = (): void => {
    gate.closed = new AclError('not-primary', 'dc1 is not the primary any more');
  };
  t.equal(
    await refusalOf(moving.resubmit(wish, { ...ASKER, requireAllowed })),
    'not-primary: dc1 is not the primary any more',
  );
  t.same(written, []);
  gate.closed = undefined;
  await moving.resubmit(wish, ASKER);
  t.same(written, ['token.reap', 'divergent.drop']);
});
