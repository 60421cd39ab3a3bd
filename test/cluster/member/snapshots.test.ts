// Snapshots between the servers of a datacenter: when one is needed, how fast it goes, what ends it.

import t from 'tap';
import {
  DEFAULT_MEMBER_LIMITS,
  DEFAULT_MEMBER_TIMING,
} from '../../../cluster/member/member-timing.ts';
import {
  encodeBegin,
  encodeBegun,
  encodePiece,
} from '../../../cluster/member/snapshots/snapshot-frames.ts';
import { SnapshotInbox } from '../../../cluster/member/snapshots/snapshot-inbox.ts';
import { SnapshotOutbox } from '../../../cluster/member/snapshots/snapshot-outbox.ts';
import { NO_MEMBERS } from '../../../cluster/raft/membership/membership.ts';
import type { SnapshotMessage } from '../../../cluster/raft/message.ts';
import { GroupRefusal } from '../../../cluster/replica/group-refusal.ts';
import {
  type MachineSnapshot,
  ReplicaError,
  SnapshotDamage,
} from '../../../cluster/replica/replica.ts';
import { RpcError } from '../../../cluster/transport/calls/rpc-error.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { type MemberNode, MemberWorld } from '../../support/simulated/member-world.ts';
import { settled } from '../../support/simulated/simulated-world.ts';
import { clean, followersOf, leaderOf } from './cases.ts';

/** So short a log that whoever misses a few entries needs a snapshot. */
const SHORT_LOG = { keptCount: 5, heldCountMax: 10 };

t.test('snapshots: a server that joins a short log gets the whole state', async (test) => {
  const world = new MemberWorld();
  const nodes = await world.group(3, { groupLimits: SHORT_LOG });
  await world.writes(leaderOf(nodes), 100);
  const d = world.node('d', { join: ['a'], groupLimits: SHORT_LOG });
  await world.start(d);
  await world.settled([...nodes, d]);
  test.ok(d.hasLogged(/a snapshot is in place/));
  await world.writes(leaderOf(nodes), 3);
  await world.checkEven([...nodes, d]);
  await world.until('d votes', () => d.group === 'a b c d');
  clean(test, world);
});

t.test('snapshots: a server whose disk does not take the state says so', async (test) => {
  const world = new MemberWorld();
  const nodes = await world.group(3, { groupLimits: SHORT_LOG });
  await world.writes(leaderOf(nodes), 100);
  const d = world.node('d', { join: ['a'], groupLimits: SHORT_LOG });
  d.machine.beginInstall = () => Promise.reject(new Error('no space left on device'));
  await world.start(d);
  await world.until('it says so', () => /, and could not keep it: its log says why$/.test(d.says));
  Reflect.deleteProperty(d.machine, 'beginInstall');
  await world.settled([...nodes, d]);
  test.equal(d.says, '');
});

t.test('snapshots: a follower that was away for long gets the whole state', async (test) => {
  const world = new MemberWorld();
  const nodes = await world.group(3, { groupLimits: SHORT_LOG });
  const [away] = followersOf(nodes) as [MemberNode];
  world.crash(away);
  await world.writes(leaderOf(nodes), 100);
  await world.start(away);
  await world.settled(nodes);
  await world.checkEven(nodes);
  test.ok(away.hasLogged(/a snapshot is in place/));
  test.equal(away.machine.adoptedCount, 1);
  clean(test, world);
});

t.test('snapshots: whoever dies under way, the next try gets through', async (test) => {
  for (const victim of ['sender', 'receiver'] as const) {
    for (let chunks = 1; chunks <= 6; chunks += 2) {
      const world = new MemberWorld(chunks);
      const nodes = await world.group(3, { groupLimits: SHORT_LOG });
      const sender = leaderOf(nodes);
      const [away] = followersOf(nodes) as [MemberNode];
      world.crash(away);
      await world.writes(sender, 120);
      world.net.delayMs = 10;
      await world.start(away);
      await world.until('it comes in', () => away.hasLogged(/a snapshot comes in/));
      await world.run(chunks * 12);
      const dying = victim === 'sender' ? sender : away;
      world.crash(dying);
      await world.run(1_000);
      await world.start(dying);
      await world.settled(nodes);
      await world.checkEven(nodes);
      await world.until('every snapshot is let go of', () =>
        nodes.every(({ machine }) => machine.snapshotCount === 0),
      );
      clean(test, world);
    }
  }
});

t.test('snapshots: one of which nothing is heard is abandoned', async (test) => {
  const world = new MemberWorld();
  const timing = { intakeIdleMs: 3_000 };
  const nodes = await world.group(3, { groupLimits: SHORT_LOG, timing });
  const sender = leaderOf(nodes);
  const [away] = followersOf(nodes) as [MemberNode];
  world.crash(away);
  await world.writes(sender, 120);
  world.net.delayMs = 10;
  await world.start(away);
  await world.until('it comes in', () => away.hasLogged(/a snapshot comes in/));
  await world.run(30);
  world.cut(
    [away],
    nodes.filter((node) => node !== away),
  );
  await world.run(10_000);
  test.ok(away.hasLogged(/a snapshot was abandoned.*nothing was heard/));
  world.net.heal();
  await world.settled(nodes);
  await world.checkEven(nodes);
  clean(test, world);
});

t.test(
  'snapshots: no more than two leave at once, none faster than allowed, and writes go on',
  async (test) => {
    const world = new MemberWorld();
    const limits = { snapshotBytesPerSecond: 20_000, snapshotGentleBytesPerSecond: 20_000 };
    // What a server that joins has still to get is kept for it.
    const groupLimits = { keptCount: 5, heldCountMax: 10_000 };
    const nodes = await world.group(5, { groupLimits, limits });
    const leader = leaderOf(nodes);
    await world.writes(leader, 100);
    const fresh = ['f', 'g', 'h'].map((name) =>
      world.node(name, { join: ['a'], groupLimits, limits }),
    );
    await world.start(...fresh);
    let most = 0;
    const comingIn = (): number =>
      fresh.filter(
        (node) =>
          node.hasLogged(/a snapshot comes in/) && !node.hasLogged(/a snapshot is in place/),
      ).length;
    const fromMs = world.nowMs;
    let writeCount = 0;
    while (!fresh.every((node) => node.hasLogged(/a snapshot is in place/))) {
      most = Math.max(most, comingIn());
      await world.write(leader);
      writeCount += 1;
      await world.run(20);
    }
    test.equal(most, 2);
    const bytes = 100 * 100;
    test.ok(world.nowMs - fromMs >= (bytes / 20_000) * 1000, 'not faster');
    test.ok(writeCount > 10);
    await world.settled([...nodes, ...fresh]);
    await world.checkEven([...nodes, ...fresh]);
    clean(test, world);
  },
);

interface Inbox {
  readonly inbox: SnapshotInbox;
  readonly clock: FakeClock;
  /** What was done with what comes in. */
  readonly did: string[];
}

function inboxOf(fails: { readonly add?: Error; readonly begin?: Error } = {}): Inbox {
  const clock = new FakeClock();
  const did: string[] = [];
  const silent = (): void => undefined;
  const inbox = new SnapshotInbox({
    clock,
    logger: { debug: silent, info: silent, warn: silent, error: silent },
    timing: DEFAULT_MEMBER_TIMING,
    begin: async ({ snapshot }) => {
      if (fails.begin !== undefined) throw fails.begin;
      did.push(`begin ${snapshot.index}`);
      return {
        add: async (chunk) => {
          if (fails.add !== undefined) throw fails.add;
          did.push(`add ${chunk.length}`);
        },
        finish: async () => void did.push('finish'),
        abandon: async () => void did.push('abandon'),
      };
    },
  });
  return { inbox, clock, did };
}

const SNAPSHOT: SnapshotMessage = {
  type: 'snapshot',
  from: 1,
  to: 2,
  term: 1,
  snapshot: {
    term: 1,
    index: 7,
    membership: { ...NO_MEMBERS, voters: [1, 2] },
    data: new Uint8Array(0),
  },
};

function beginOfSnapshot(index: number): Uint8Array {
  return encodeBegin({ ...SNAPSHOT, snapshot: { ...SNAPSHOT.snapshot, index } });
}

t.test('snapshots coming in: in order, whole, from one sender, one at a time', async (test) => {
  const { inbox, did } = inboxOf();
  const piece = (transfer: number, number: number, size = 3): Uint8Array =>
    encodePiece({ transfer, number, bytes: new Uint8Array(size) });
  await inbox.begin(1, beginOfSnapshot(7));
  await inbox.chunk(1, piece(1, 0));
  await inbox.chunk(1, piece(1, 1, 4));
  await test.rejects(inbox.chunk(9, piece(1, 2)), /not under way/, 'another sender');
  await test.rejects(inbox.chunk(1, piece(2, 2)), /not under way/, 'another transfer');
  await inbox.finish(1, piece(1, 2, 0));
  test.same(did.splice(0), ['begin 7', 'add 3', 'add 4', 'finish']);
  await test.rejects(inbox.chunk(1, piece(1, 2)), /not under way/, 'after the end');
  await inbox.begin(1, beginOfSnapshot(8));
  await test.rejects(inbox.chunk(1, piece(2, 1)), /chunk 1 came where 0 was expected/);
  test.same(did.splice(0), ['begin 8', 'abandon']);
  await inbox.begin(1, beginOfSnapshot(9));
  await inbox.chunk(1, piece(3, 0));
  await test.rejects(inbox.finish(1, piece(3, 2, 0)), /1 chunks of 2 came/);
  test.same(did.splice(0), ['begin 9', 'add 3', 'abandon']);
  await inbox.begin(1, beginOfSnapshot(10));
  await inbox.begin(1, beginOfSnapshot(11));
  test.same(did.splice(0), ['begin 10', 'begin 11', 'abandon'], 'a newer one takes its place');
  await inbox.abandon(9, piece(5, 0, 0));
  test.same(did.splice(0), [], 'another gives up nothing');
  await inbox.abandon(1, piece(5, 0, 0));
  test.same(did.splice(0), ['abandon']);
  await test.rejects(
    async () => inbox.begin(5, beginOfSnapshot(12)),
    /node 5 sends a snapshot of node 1/,
  );
});

t.test(
  'snapshots going out: no faster than allowed, and given up where one fails',
  async (test) => {
    const clock = new FakeClock();
    const calls: string[] = [];
    let failing = '';
    const outbox = new SnapshotOutbox({
      clock,
      timing: DEFAULT_MEMBER_TIMING,
      limits: { ...DEFAULT_MEMBER_LIMITS, snapshotBytesPerSecond: 1_000 },
      lastIndex: () => 0,
      bytesBehind: () => 0,
      held: { heldCountMax: 1_000, heldBytesMax: 1_000 },
      call: async (_to, method) => {
        calls.push(method.replace('member.snapshot-', ''));
        if (method.endsWith(failing)) throw new RpcError('lost', 'the link ended');
        return encodeBegun(1);
      },
    });
    let isClosed = false;
    async function* chunks(): AsyncGenerator<Uint8Array> {
      try {
        for (let count = 0; count < 3; count += 1) yield new Uint8Array(2_000);
      } finally {
        isClosed = true;
      }
    }
    const snapshot: MachineSnapshot = {
      appliedEntry: undefined,
      groupRecord: undefined,
      chunks,
      close: async () => undefined,
    };
    failing = 'nothing';
    const sent = outbox.send(2, SNAPSHOT, snapshot);
    for (const expected of [1, 2, 3]) {
      await settled();
      test.equal(calls.filter((call) => call === 'chunk').length, expected);
      clock.advance(1_999);
      await settled();
      test.equal(calls.filter((call) => call === 'chunk').length, expected, 'not before its time');
      clock.advance(1);
    }
    await sent;
    test.same(calls.splice(0), ['begin', 'chunk', 'chunk', 'chunk', 'finish']);
    failing = 'chunk';
    isClosed = false;
    await test.rejects(outbox.send(2, SNAPSHOT, snapshot), /the link ended/);
    test.same(calls.splice(0), ['begin', 'chunk', 'abandon']);
    test.equal(isClosed, true, 'nothing is read any more');
    failing = 'begin';
    await test.rejects(outbox.send(2, SNAPSHOT, snapshot), /the link ended/);
    test.same(calls.splice(0), ['begin']);
  },
);

/** Between the pieces of a snapshot, of which from the third on 60 entries are written for each. */
async function waitsOf(
  held: { readonly heldCountMax: number; readonly heldBytesMax: number },
  entryBytes: number,
): Promise<readonly number[]> {
  const clock = new FakeClock();
  const sentAtMs: number[] = [];
  const { index } = SNAPSHOT.snapshot;
  let lastIndex = index;
  let writesAPiece = 0;
  const outbox = new SnapshotOutbox({
    clock,
    timing: DEFAULT_MEMBER_TIMING,
    limits: {
      ...DEFAULT_MEMBER_LIMITS,
      snapshotBytesPerSecond: 1_000,
      snapshotGentleBytesPerSecond: 500,
    },
    lastIndex: () => lastIndex,
    bytesBehind: (from) => (lastIndex - from) * entryBytes,
    held,
    call: async (_to, method) => {
      if (!method.endsWith('chunk')) return encodeBegun(1);
      sentAtMs.push(clock.monotonicMs());
      lastIndex += writesAPiece;
      return encodeBegun(1);
    },
  });
  async function* chunks(): AsyncGenerator<Uint8Array> {
    for (let count = 0; count < 6; count += 1) yield new Uint8Array(2_000);
  }
  const sent = outbox.send(2, SNAPSHOT, {
    appliedEntry: undefined,
    groupRecord: undefined,
    chunks,
    close: async () => undefined,
  });
  const nextPiece = async (): Promise<void> => {
    const before = sentAtMs.length;
    for (let waitedMs = 0; sentAtMs.length === before && waitedMs < 10_000; waitedMs += 500) {
      await settled();
      if (sentAtMs.length === before) clock.advance(500);
    }
  };
  await nextPiece();
  await nextPiece();
  writesAPiece = 60;
  await nextPiece();
  await nextPiece();
  await nextPiece();
  await nextPiece();
  clock.advance(4_000);
  await sent;
  return sentAtMs.slice(1).map((atMs, place) => atMs - (sentAtMs[place] ?? 0));
}

t.test('snapshots going out: gently while others write, as long as there is time', async (test) => {
  const bounds = {
    number: [{ heldCountMax: 400, heldBytesMax: 1e9 }, 10],
    size: [{ heldCountMax: 100_000, heldBytesMax: 400_000 }, 1_000],
  } as const;
  for (const [bound, [held, entryBytes]] of Object.entries(bounds)) {
    const waitsMs = await waitsOf(held, entryBytes);
    test.same(waitsMs.slice(0, 2), [2_000, 2_000], 'nobody writes');
    test.same(waitsMs.slice(2, 3), [4_000], `others write: 60 of 100, by ${bound}`);
    test.same(waitsMs.slice(3), [2_000, 2_000], `more of them than may pass, by ${bound}`);
  }
});

t.test('snapshots coming in: silence ends one, a word keeps it', async (test) => {
  const { inbox, clock, did } = inboxOf();
  const { intakeIdleMs } = DEFAULT_MEMBER_TIMING;
  await inbox.begin(1, beginOfSnapshot(7));
  clock.advance(intakeIdleMs - 1);
  await inbox.chunk(1, encodePiece({ transfer: 1, number: 0, bytes: new Uint8Array(3) }));
  clock.advance(intakeIdleMs - 1);
  await inbox.chunk(1, encodePiece({ transfer: 1, number: 1, bytes: new Uint8Array(3) }));
  test.notOk(did.includes('abandon'));
  clock.advance(intakeIdleMs + 1);
  await inbox.close();
  test.equal(did.filter((each) => each === 'abandon').length, 1);
  test.equal(clock.pendingCount, 0);
});

t.test('snapshots coming in: what is wrong with one is told to its sender', async (test) => {
  const damaged = inboxOf({ add: new SnapshotDamage('it is torn') });
  await damaged.inbox.begin(1, beginOfSnapshot(7));
  const piece = encodePiece({ transfer: 1, number: 0, bytes: new Uint8Array(3) });
  await test.rejects(damaged.inbox.chunk(1, piece), { code: 'damaged', message: 'it is torn' });
  test.same(damaged.did, ['begin 7', 'abandon']);
  const unwanted = inboxOf({ begin: new GroupRefusal('refused', 'it is not needed') });
  await test.rejects(unwanted.inbox.begin(1, beginOfSnapshot(7)), {
    code: 'refused',
    message: 'it is not needed',
  });
  const closing = inboxOf({ begin: new ReplicaError('closed', 'the log is closing') });
  await test.rejects(closing.inbox.begin(1, beginOfSnapshot(7)), { code: 'closed' });
  test.equal(closing.inbox.couldNotKeep, false, 'that is no matter of the disk');
});

t.test('snapshots coming in: one that is not needed ends none that comes in', async (test) => {
  const fails: { begin?: Error } = {};
  const { inbox, did } = inboxOf(fails);
  const piece = (number: number): Uint8Array =>
    encodePiece({ transfer: 1, number, bytes: new Uint8Array(3) });
  await inbox.begin(1, beginOfSnapshot(7));
  await inbox.chunk(1, piece(0));
  fails.begin = new GroupRefusal('refused', 'it is of term 1, this node is at 2');
  const late = encodeBegin({ ...SNAPSHOT, from: 9 });
  await test.rejects(inbox.begin(9, late), /of term 1/, 'of who leads no more');
  await inbox.chunk(1, piece(1));
  await inbox.finish(1, piece(2));
  test.same(did, ['begin 7', 'add 3', 'add 3', 'finish']);
});

t.test('snapshots coming in: one that the own disk does not take is known here', async (test) => {
  const fails: { add?: Error; begin?: Error } = {};
  const { inbox } = inboxOf(fails);
  const piece = (transfer: number, number: number): Uint8Array =>
    encodePiece({ transfer, number, bytes: new Uint8Array(3) });
  await inbox.begin(1, beginOfSnapshot(7));
  fails.add = new SnapshotDamage('it is torn');
  await test.rejects(inbox.chunk(1, piece(1, 0)), /torn/);
  fails.begin = new GroupRefusal('refused', 'it is not needed');
  await test.rejects(inbox.begin(1, beginOfSnapshot(7)), /not needed/);
  test.equal(inbox.couldNotKeep, false, 'that is told to its sender');
  fails.begin = new Error('no space left on device');
  await test.rejects(inbox.begin(1, beginOfSnapshot(7)), /no space/);
  test.equal(inbox.couldNotKeep, true);
  delete fails.begin;
  delete fails.add;
  await inbox.begin(1, beginOfSnapshot(7));
  await inbox.chunk(1, piece(2, 0));
  test.equal(inbox.couldNotKeep, true, 'until one is in place');
  await inbox.finish(1, piece(2, 1));
  test.equal(inbox.couldNotKeep, false);
  await inbox.begin(1, beginOfSnapshot(8));
  fails.add = new Error('no space left on device');
  await test.rejects(inbox.chunk(1, piece(3, 0)), /no space/);
  test.equal(inbox.couldNotKeep, true);
});
