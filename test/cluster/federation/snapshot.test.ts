// Snapshots between datacenters: lent chunk by chunk, gone on with after a change of leaders, begun anew when
// they are gone, never taken when they are wrong.

import t from 'tap';
import { FEED_METHOD } from '../../../cluster/federation/feed/feed-frames.ts';
import { Slots } from '../../../cluster/federation/slots/slots.ts';
import {
  type BorrowOptions,
  borrowSnapshot,
  PIECES_AHEAD,
} from '../../../cluster/federation/snapshot/borrow-snapshot.ts';
import {
  decodeChunk,
  decodeWish,
  encodeChunk,
  encodeOpen,
  SNAPSHOT_METHOD,
} from '../../../cluster/federation/snapshot/snapshot-frames.ts';
import type { SnapshotSink } from '../../../cluster/federation/snapshot/snapshot-sink.ts';
import { RpcError } from '../../../cluster/transport/calls/rpc-error.ts';
import { bigPrimary } from './big-primary.ts';
import { ask, refusalOf } from './feed/cases.ts';
import {
  aSecondary,
  chainViolations,
  FEDERATION,
  type FeedWorld,
  PrimaryNode,
  primaryStanding,
  SecondaryNode,
  twoDatacenters,
} from './feed-world.ts';
import { SecondaryState } from './secondary-state.ts';

const NO_SINK: SnapshotSink = {
  staged: () => undefined,
  begin: async () => undefined,
  add: async () => undefined,
  commit: async () => undefined,
};

/** By a leader that goes on leading, of the right federation; nothing is kept unless `more` says how. */
function borrowing(
  world: FeedWorld,
  more: Pick<BorrowOptions, 'call'> & Partial<BorrowOptions>,
): ReturnType<typeof borrowSnapshot> {
  return borrowSnapshot({
    clock: world.clock,
    logger: world.logger('x'),
    federationId: FEDERATION,
    epochMin: 0,
    isOver: () => false,
    onStaged: () => undefined,
    sink: NO_SINK,
    ...more,
  });
}

t.test('snapshot: a new leader goes on where the one before was killed', async (test) => {
  const { world, log, primary } = await bigPrimary();
  const first = await aSecondary(world, 'dc2', 's1', [primary]);
  const second = new SecondaryNode(world, 'dc2', 's2', first.state);
  await second.start();
  second.addresses = first.addresses;
  first.subscriber.start(1);
  await world.until('some of it is staged', () => (first.state.staged?.pieces.length ?? 0) >= 10);
  const begun = first.state.staged?.offer.snapshotId;
  world.net.kill('s1');
  first.subscriber.stop();
  second.subscriber.start(2);
  await world.until('it has all', () => second.state.cursor?.seq === 200);
  test.same(
    primary.lender.loans().map(({ snapshotId }) => snapshotId),
    [begun],
    'no other one',
  );
  test.equal(second.state.snapshotCount, 1);
  test.same(chainViolations(log, second.state), []);
});

t.test('snapshot: who is to begin anew puts nothing in place before it has asked', async (test) => {
  const { world, log, primary } = await bigPrimary();
  const secondary = await aSecondary(world, 'dc2', 's1', [primary]);
  const { handlers } = primary;
  const hellos: string[] = [];
  primary.handlers = {
    ...handlers,
    [FEED_METHOD.hello]: (request) => {
      hellos.push(`${secondary.state.snapshotCount} in place`);
      return handlers[FEED_METHOD.hello]!(request);
    },
  };
  secondary.subscriber.start(1);
  await world.until('some is staged', () => (secondary.state.staged?.pieces.length ?? 0) >= 10);
  secondary.subscriber.beginAnew();
  await world.until('it has all', () => secondary.state.cursor?.seq === 200);
  await world.until('it follows', () => secondary.subscriber.state().kind === 'tail');
  test.same(hellos, ['0 in place', '0 in place', '1 in place']);
  test.equal(primary.lender.loans().length, 1, 'it goes on with what is staged');
  const says = 'the primary asks how far this datacenter is, and is followed anew';
  test.ok(
    world.log.some((line) => line.includes(says)),
    'and says why',
  );
  test.equal(secondary.state.snapshotCount, 1);
  test.same(chainViolations(log, secondary.state), []);
});

t.test('snapshot: begins anew when the primary has another leader', async (test) => {
  const { world, log, primary } = await bigPrimary();
  const other = await new PrimaryNode(world, 'p2', log).start();
  other.become({ kind: 'elsewhere', addresses: [], says: 'p1 leads' });
  const secondary = await aSecondary(world, 'dc2', 's1', [primary, other]);
  secondary.subscriber.start(1);
  await world.until('some is staged', () => (secondary.state.staged?.pieces.length ?? 0) >= 10);
  const begun = secondary.state.staged?.offer.snapshotId;
  primary.become({ kind: 'elsewhere', addresses: [other.address], says: 'p2 leads' });
  test.same(primary.lender.loans(), [], 'it lends nothing any more');
  other.become(primaryStanding());
  await world.until('it has all', () => secondary.state.cursor?.seq === 200);
  test.not(other.lender.loans()[0]?.snapshotId, begun);
  test.equal(secondary.state.snapshotCount, 1, 'nothing of the first was ever seen');
  test.same(chainViolations(log, secondary.state), []);
});

t.test('snapshot: lines that break in the middle cost no other snapshot', async (test) => {
  const { world, log, primary } = await bigPrimary();
  const secondary = await aSecondary(world, 'dc2', 's1', [primary]);
  let loanCount = 0;
  const { handlers } = primary;
  primary.handlers = {
    ...handlers,
    [SNAPSHOT_METHOD.open]: (request) => {
      loanCount += 1;
      return handlers[SNAPSHOT_METHOD.open]!(request);
    },
  };
  secondary.subscriber.start(1);
  for (const pieces of [5, 15, 25]) {
    await world.until('more', () => (secondary.state.staged?.pieces.length ?? 0) >= pieces);
    world.net.breakAll('p1', 's1');
  }
  await world.until('it has all', () => secondary.state.cursor?.seq === 200);
  test.equal(secondary.state.snapshotCount, 1);
  test.equal(primary.lender.loans().length, 1);
  test.equal(loanCount, 1, 'it was gone on with, each time');
  test.same(chainViolations(log, secondary.state), []);
});

t.test('snapshot: entries that cannot be taken one by one are taken as one', async (test) => {
  const { world, log, secondary } = await twoDatacenters();
  log.write('one');
  secondary.subscriber.start(1);
  await world.until('it follows', () => secondary.state.cursor?.seq === 1);
  secondary.answersApply = () => 'snapshot-needed';
  log.write('everything is another now');
  await world.until('it takes a snapshot', () => secondary.state.snapshotCount === 1);
  secondary.answersApply = undefined;
  log.write('three');
  await world.until('it follows again', () => secondary.state.cursor?.seq === 3);
  test.same(chainViolations(log, secondary.state), []);
});

t.test('snapshot: who wants one says all the same where it stands', async (test) => {
  const { world, log, primary, secondary } = await twoDatacenters();
  for (let number = 1; number <= 3; number += 1) log.write(`${number}`);
  secondary.subscriber.start(1);
  await world.until('it follows', () => secondary.state.cursor?.seq === 3);
  secondary.answersApply = () => 'snapshot-needed';
  primary.handlers = primary.feed.handlers;
  log.write('everything is another now');
  const { subscriber } = secondary;
  const isRefused = () => /feed\.snapshot/.test(subscriber.state().lastError?.text ?? '');
  await world.until('it wants one, and is lent none', isRefused);
  // The operator takes that back, with data folders of the day before.
  log.entries.splice(1);
  primary.serve();
  await world.until('the primary is told what it has lost', () => primary.feed.ahead().length > 0);
  test.match(primary.feed.ahead(), [{ datacenter: 'dc2', cursor: { epoch: 1, seq: 3 } }]);
  await world.run(10_000);
  test.match(subscriber.state(), { kind: 'diverged', forkSeq: 1 });
  test.same([secondary.state.snapshotCount, secondary.state.cursor?.seq], [0, 3]);
});

t.test('snapshot: who takes one is heard all the while', async (test) => {
  const { world, log, primary } = await bigPrimary();
  const secondary = await aSecondary(world, 'dc2', 's1', [primary]);
  secondary.applyMs = () => 500;
  const alarms = new Slots({
    ...{ clock: world.clock, logger: world.logger('slots'), datacenter: 'dc1', source: log },
    ...{ datacenters: () => ['dc1', 'dc2'], followers: () => primary.feed.followers() },
    ...{ pinnedSeq: () => primary.lender.pinnedSeq, majoritySeq: () => log.head.seq },
    unusedTimeMs: () => undefined,
    ...{ trim: async () => undefined, limits: { maxBytes: 0 }, reviewMs: 1_000 },
  });
  secondary.subscriber.start(1);
  await world.until('it begins', () => secondary.state.staged !== undefined);
  alarms.start();
  test.teardown(() => alarms.stop());
  const seen = new Set<string>();
  let silentMs = 0;
  while (secondary.state.snapshotCount === 0) {
    const [follower] = primary.feed.followers();
    seen.add([follower!.state, ...alarms.alarms().map(({ says }) => says)].join());
    silentMs = Math.max(silentMs, follower!.lastHeardMs);
    log.write('more');
    await world.run(500);
  }
  test.same([...seen], ['snapshot'], 'and nobody says that it will need what it takes');
  test.ok(silentMs < 3_000, `${silentMs} ms`);
});

interface WrongCase {
  readonly title: string;
  readonly given?: Partial<BorrowOptions>;
  readonly chunk?: (chunk: Uint8Array) => Uint8Array;
  readonly says: RegExp;
}

const WRONG: readonly WrongCase[] = [
  {
    title: 'a chunk that is not what it was',
    chunk: (bytes) => {
      const chunk = decodeChunk(bytes);
      return encodeChunk({ ...chunk, bytes: Buffer.from(`${chunk.bytes}!`) });
    },
    says: /chunk 0 of the snapshot has not the hash that it came with/,
  },
  {
    title: 'another chunk than was asked for',
    chunk: (bytes) => encodeChunk({ ...decodeChunk(bytes), number: 1 }),
    says: /chunk 1 came where 0 was asked for/,
  },
  {
    title: 'another federation',
    given: { federationId: 'mine' },
    says: /of federation fed.*of mine/,
  },
  { title: 'an earlier reign', given: { epochMin: 2 }, says: /of epoch 1, and 2 is promised/ },
];

for (const { title, given, chunk = (bytes: Uint8Array) => bytes, says } of WRONG) {
  t.test(`borrow: nothing is taken of ${title}`, async (test) => {
    const { world, primary } = await bigPrimary();
    const state = new SecondaryState();
    const borrowed = borrowing(world, {
      federationId: '',
      call: async (method, payload) => {
        const isOpening = method === SNAPSHOT_METHOD.open;
        // Whoever does not look who asks.
        const answer = await ask(primary, method, isOpening ? encodeOpen('') : payload);
        return isOpening ? answer : chunk(answer);
      },
      sink: {
        ...NO_SINK,
        begin: async (offer) => state.stage(offer),
        add: async ({ snapshotId, number, bytes }) => state.add(snapshotId, number, bytes),
        commit: async ({ snapshotId, pieceCount }) => state.commit(snapshotId, pieceCount),
      },
      ...given,
    });
    test.match(await refusalOf(borrowed), says);
    test.equal(state.snapshotCount, 0);
    test.equal(state.staged?.pieces.length ?? 0, 0);
  });
}

t.test('borrow: what is unreachable is not taken for gone', async (test) => {
  const { world, primary } = await bigPrimary();
  const began: string[] = [];
  const borrowed = borrowing(world, {
    call: async (method, payload) => {
      if (method === SNAPSHOT_METHOD.open) return ask(primary, method, payload);
      throw new RpcError('timeout', 'no answer');
    },
    sink: {
      ...NO_SINK,
      staged: () => ({ snapshotId: 'x', nextNumber: 3 }),
      begin: async ({ snapshotId }) => void began.push(snapshotId),
    },
  });
  test.match(await refusalOf(borrowed), /no answer/);
  test.same(began, [], 'what is staged stays');
});

t.test('borrow: what went wrong is told when it is known how much is staged', async (test) => {
  const { world, primary } = await bigPrimary();
  const staged: number[] = [];
  let stagedWhenTold = -1;
  const borrowed = borrowing(world, {
    call: async (method, payload) => {
      const isLost = method === SNAPSHOT_METHOD.chunk && decodeWish(payload).number === 3;
      if (isLost) throw new RpcError('timeout', 'no answer');
      return ask(primary, method, payload);
    },
    sink: {
      ...NO_SINK,
      add: ({ number }) =>
        new Promise((resolve) => {
          world.clock.after(10, () => {
            staged.push(number);
            resolve();
          });
        }),
    },
  });
  borrowed.catch(() => {
    stagedWhenTold = staged.length;
  });
  test.match(await refusalOf(world.result(borrowed)), /no answer/);
  test.equal(stagedWhenTold, 3, 'the pieces before it are in the own log');
});

t.test('borrow: none is in place of which the last pieces could not be staged', async (test) => {
  const { world, primary } = await bigPrimary();
  let last = 0;
  let commits = 0;
  const borrow = (isLost: (number: number) => boolean) =>
    refusalOf(
      world.result(
        borrowing(world, {
          call: (method, payload) => ask(primary, method, payload),
          sink: {
            ...NO_SINK,
            add: async ({ number }) => {
              last = Math.max(last, number);
              if (isLost(number)) throw new Error('the own log did not take it');
            },
            commit: async () => {
              commits += 1;
            },
          },
        }),
      ),
    );
  test.equal(await borrow(() => false), 'none');
  test.equal(commits, 1);
  test.match(await borrow((number) => number === last), /the own log did not take it/);
  test.equal(commits, 1);
});

t.test('borrow: so many are asked for ahead and staged at once, until it is over', async (test) => {
  const { world, primary } = await bigPrimary();
  let isOver = false;
  let asking = 0;
  let staging = 0;
  let staged = 0;
  let commits = 0;
  const most = { ahead: 0, staging: 0 };
  const borrowed = borrowing(world, {
    call: async (method, payload) => {
      if (method === SNAPSHOT_METHOD.chunk) asking = decodeWish(payload).number + 1;
      most.ahead = Math.max(most.ahead, asking - staged);
      return ask(primary, method, payload);
    },
    isOver: () => isOver,
    onStaged: () => {
      staged += 1;
      isOver = staged >= 100;
    },
    sink: {
      ...NO_SINK,
      add: async () => {
        staging += 1;
        most.staging = Math.max(most.staging, staging);
        await new Promise<void>((resolve) => world.clock.after(10, resolve));
        staging -= 1;
      },
      commit: async () => {
        commits += 1;
      },
    },
  });
  await world.result(borrowed);
  test.same(most, { ahead: PIECES_AHEAD, staging: 4 });
  test.ok(staged < 110, `${staged} of them`);
  test.equal(commits, 0, 'this server does not lead any more');
});
