// Snapshots between nodes of a group, one situation at a time: logs that are too short, transfers that
// break off, come twice or too late, nodes that end in the middle. What must hold everywhere is checked
// by the group and by its machine.

import t from 'tap';
import { EMPTY_GROUP, encodeGroupRecord } from '../../../cluster/replica/group-record.ts';
import { SnapshotSender } from '../../../cluster/replica/snapshots/snapshot-sender.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import {
  change,
  electedGroup,
  othersOf,
  read,
  watched,
  write,
} from '../../support/simulated/group-actions.ts';
import { changeOf } from '../../support/simulated/group-members.ts';
import { CALM } from '../../support/simulated/in-memory-group.ts';
import { settled } from '../../support/simulated/simulated-world.ts';
import { isEven, laggingGroup, SHORT } from './lagging-group.ts';

t.test(
  'snapshot: a node that lacks what is gone gets the state, and then the log goes on',
  async (test) => {
    const lagging = await laggingGroup();
    const { group, leader, laggard } = lagging;
    const lacked = laggard.register.applied.length + 1;
    test.ok(leader.replica!.status().firstIndex > lacked, 'the leader no longer has its entries');
    await group.start(laggard.id);
    test.ok(await group.until(() => isEven(lagging), 3000));
    test.equal(laggard.register.adoptedCount, 1);
    test.equal(laggard.register.generation, 1);
    test.ok(laggard.replica!.status().firstIndex > lacked);
    test.same(
      await write(group, leader.id, 5),
      Array.from({ length: 5 }, () => 'acked'),
    );
    await group.until(() => isEven(lagging));
    test.equal(laggard.register.adoptedCount, 1, 'once is enough');
    test.equal(await read(group, laggard.id), 'done');
    group.crash(laggard.id);
    await group.start(laggard.id);
    test.equal(laggard.register.generation, 1, 'the log says which state is its own');
    await group.settle();
    test.same(group.violations, []);
  },
);

t.test('snapshot: brings a newcomer the group record too', async (test) => {
  const { group, leader } = await electedGroup({ limits: SHORT, size: 1 });
  for (let round = 0; round < 4; round += 1) await write(group, leader.id, 20);
  const joiner = group.addNode();
  await group.start(joiner.id);
  let toldAt = '';
  joiner.replica!.onGroupChanged(() => {
    toldAt = joiner
      .replica!.groupRecord()
      .members.map(({ name }) => name)
      .join();
  });
  await change(group, leader.id, changeOf(['add-learner', joiner.id]));
  await group.until(() => joiner.register.adoptedCount === 1);
  await group.run(200);
  test.equal(toldAt, 'n1,n2');
  test.equal(joiner.replica!.status().standing, 'learner');
  await change(group, leader.id, changeOf(['add-voter', joiner.id]));
  await group.settle();
  test.same(group.violations, []);
});

t.test('trimming: waits for no dead follower, and within a bound for a slow one', async (test) => {
  const limits = { ...SHORT, heldCountMax: 300 };
  const { group, leader } = await electedGroup({ limits });
  const [dead, slow] = othersOf(group, leader.id);
  const keptOf = (): number => {
    const { firstIndex, lastIndex } = leader.replica!.status();
    return lastIndex - firstIndex + 1;
  };
  group.slowDiskId = slow!;
  group.diskMs = [20, 40];
  group.linksClose = false;
  await write(group, leader.id, 50);
  group.crash(dead!);
  await group.run(3100);
  group.slowDiskId = 0;
  group.diskMs = [1, 5];
  for (let round = 0; round < 5; round += 1) await write(group, leader.id, 20);
  test.ok(keptOf() < 60, `${keptOf()} are kept`);

  // The last entries that it acknowledged are a while ago, but it is heard all the time.
  await group.start();
  await group.settle();
  group.onSend = ({ type, from }) => {
    if (type === 'append-reply' && from === slow) test.fail('its disk stands');
  };
  group.node(slow!).queue.stall();
  for (let round = 0; round < 7; round += 1) {
    await write(group, group.leader()!.id, 20);
    if (round === 4) test.ok(keptOf() >= 100, `${keptOf()} are kept for the slow one`);
  }
  group.onSend = () => undefined;
  for (let round = 0; round < 20; round += 1) await write(group, group.leader()!.id, 20);
  test.ok(keptOf() <= 330, `${keptOf()} are kept, the bound is 300`);
  await group.settle();
  test.same(group.violations, []);
});

t.test(
  'crash: at any write of an install there is the old node or the new one, whole',
  async (test) => {
    const counts = await installWrites();
    test.ok(counts.queue >= 1 && counts.stateQueue >= 5, JSON.stringify(counts));
    for (const store of ['queue', 'stateQueue'] as const) {
      for (let at = 1; at <= counts[store]; at += 1) {
        for (const lands of [false, true]) {
          const lagging = await laggingGroup();
          const { group, laggard } = lagging;
          await group.start(laggard.id);
          const ownIndex = laggard.replica!.status().lastIndex;
          const queue = laggard[store];
          const atCount = queue.writeCount + at;
          queue.onWrite = (count) => {
            if (count === atCount) void settled().then(() => group.crash(laggard.id, { lands }));
          };
          await group.until(() => laggard.replica === undefined, 5000);
          test.equal(laggard.replica, undefined, `${store} ${at}: it ended`);
          await group.start(laggard.id);
          const { length } = laggard.register.applied;
          const isWhole = length <= ownIndex || length > ownIndex + 50;
          test.ok(isWhole, `${length} entries: nothing in between`);
          await group.settle();
          test.ok(isEven(lagging));
          test.same(group.violations, [], `${store} ${at}, ${lands ? 'landed' : 'lost'}`);
        }
      }
    }
  },
);

/** How many writes an undisturbed install takes. */
async function installWrites(): Promise<{ readonly queue: number; readonly stateQueue: number }> {
  const lagging = await laggingGroup();
  const { group, laggard } = lagging;
  await group.start(laggard.id);
  const before = { queue: laggard.queue.writeCount, stateQueue: laggard.stateQueue.writeCount };
  await group.until(() => laggard.register.adoptedCount === 1);
  return {
    queue: laggard.queue.writeCount - before.queue,
    stateQueue: laggard.stateQueue.writeCount - before.stateQueue,
  };
}

t.test(
  'transfer: one that breaks off is begun again after a pause, and holds nothing',
  async (test) => {
    const lagging = await laggingGroup();
    const { group, leader, laggard } = lagging;
    const triesAtMs: number[] = [];
    group.onChunk = (_, count) => {
      if (count === 1) triesAtMs.push(group.nowMs);
      if (count === 3 && triesAtMs.length < 4) throw new Error('the wire broke');
      if (leader.register.snapshotCount !== 1) test.fail('one is held, for one follower');
    };
    await group.start(laggard.id);
    test.ok(await group.until(() => isEven(lagging), 9000));
    test.equal(triesAtMs.length, 4);
    for (const [place, atMs] of triesAtMs.slice(1).entries()) {
      const pauseMs = atMs - triesAtMs[place]!;
      test.ok(pauseMs > 900 && pauseMs < 1500, `again after ${pauseMs} ms`);
    }
    await group.settle();
    test.equal(leader.register.snapshotCount, 0);
    test.same(group.violations, []);
  },
);

t.test(
  'transfer: writes go on meanwhile, and what they add to the log is kept for it',
  async (test) => {
    const lagging = await laggingGroup();
    const { group, leader, laggard } = lagging;
    group.wire = { ...CALM, minMs: 100, maxMs: 130 };
    let isUnderWay = false;
    group.onChunk = () => {
      isUnderWay = true;
    };
    await group.start(laggard.id);
    await group.until(() => isUnderWay);
    const atMs = group.nowMs;
    for (let round = 0; round < 4; round += 1) await write(group, leader.id, 20);
    test.equal(laggard.register.adoptedCount, 0, `still under way after ${group.nowMs - atMs} ms`);
    test.ok(await group.until(() => isEven(lagging), 5000));
    test.equal(laggard.register.adoptedCount, 1, 'the log goes on from the snapshot');
    await group.settle();
    test.same(group.violations, []);
  },
);

t.test('transfer: a leader that closes lets go of it', async (test) => {
  const { group, leader, laggard } = await laggingGroup();
  group.onChunk = (_, count) => {
    if (count === 3) group.pause(laggard.id, 60_000);
  };
  await group.start(laggard.id);
  await group.until(() => laggard.pausedUntilMs > 0);
  await group.run(500);
  test.equal(leader.register.snapshotCount, 1);
  const closed = watched(leader.replica!.close());
  await group.until(() => leader.register.snapshotCount === 0, 2000);
  test.equal(leader.register.snapshotCount, 0);
  await group.run(2000);
  test.notOk(closed.result, 'it closed without a failure');
  group.crash(leader.id);
  await group.settle();
  test.same(group.violations, []);
});

t.test('sender: one that can make no snapshot says so once, and goes on', async (test) => {
  const { group, leader, laggard } = await laggingGroup();
  leader.register.snapshot = () => {
    throw new Error('the state cannot be read');
  };
  await group.start(laggard.id);
  await group.run(2000);
  const told = leader.log.filter((line) => line.includes('error a follower lacks entries'));
  test.equal(told.length, 1, 'once');
  test.match(told[0], new RegExp(`"node":${laggard.id}`));
  test.same(await write(group, leader.id), ['acked'], 'the others go on');
  Reflect.deleteProperty(leader.register, 'snapshot');
  await group.settle();
  test.same(group.violations, []);
});

t.test('sender: nothing that it began outlives its stop', async (test) => {
  const clock = new FakeClock();
  const silent = (): void => undefined;
  let fail: (error: Error) => void = silent;
  const machine = {
    snapshot: () => ({
      appliedEntry: { index: 1, term: 1, hash: new Uint8Array(32) },
      groupRecord: encodeGroupRecord(EMPTY_GROUP),
      async *chunks() {},
      close: () => Promise.resolve(),
    }),
  };
  const ended: number[] = [];
  const sender = new SnapshotSender({
    machine,
    send: () =>
      new Promise((_, reject) => {
        fail = reject;
      }),
    clock,
    logger: { debug: silent, info: silent, warn: silent, error: silent },
    retryMs: 1_000,
    onEnded: (node) => ended.push(node),
  });
  sender.send({ type: 'snapshot', from: 1, to: 2, term: 1, snapshot: sender.make()! });
  sender.stop();
  fail(new Error('the link is gone'));
  await settled();
  test.equal(clock.pendingCount, 0);
  test.same(ended, []);
});

t.test('sender: what is being read when it stops is let go of behind that read', async (test) => {
  const silent = (): void => undefined;
  let isOpen = true;
  let reads = 0;
  const read = async (): Promise<void> => {
    await settled();
    reads += 1;
    test.ok(isOpen, 'what is closed is not read');
  };
  const machine = {
    snapshot: () => ({
      appliedEntry: { index: 1, term: 1, hash: new Uint8Array(32) },
      groupRecord: encodeGroupRecord(EMPTY_GROUP),
      async *chunks() {
        for (;;) {
          // A chunk may be put together from several reads of the store.
          for (let part = 0; part < 3; part += 1) await read();
          yield Uint8Array.of(1);
        }
      },
      close: async () => {
        isOpen = false;
      },
    }),
  };
  let sent: { readonly result: unknown } = { result: undefined };
  const sender = new SnapshotSender({
    machine,
    send: (_to, _message, snapshot) => {
      const all = (async () => {
        for await (const _ of snapshot.chunks()) await settled();
      })();
      sent = watched(all);
      return all;
    },
    clock: new FakeClock(),
    logger: { debug: silent, info: silent, warn: silent, error: silent },
    retryMs: 1_000,
    onEnded: () => undefined,
  });
  sender.send({ type: 'snapshot', from: 1, to: 2, term: 1, snapshot: sender.make()! });
  while (reads < 4) await settled();
  sender.stop();
  while (isOpen || sent.result === undefined) await settled();
  test.equal(reads, 6, 'the chunk that was under way is read to its end');
  test.match(sent.result, /not sent any more/);
});

t.test(
  'sender: one that a leader with a hanging disk kept to itself is sent later',
  async (test) => {
    const lagging = await laggingGroup();
    const { group, leader, laggard } = lagging;
    let heardAtMs = group.nowMs;
    group.onSend = ({ type, from }) => {
      if (from === leader.id && type === 'heartbeat') heardAtMs = group.nowMs;
      // So it cannot hand over, and falls silent.
      if (type === 'timeout-now') group.partition([leader.id], othersOf(group, leader.id));
      else group.heal();
    };
    leader.queue.stall();
    void group.write(leader.id);
    await group.until(() => group.nowMs - heardAtMs > 600);
    test.equal(group.leader()?.id, leader.id, 'it leads all the same');
    // From before it was silent, late on its way.
    const route = { from: laggard.id, to: leader.id, term: leader.replica!.status().term };
    leader.replica!.receive({ type: 'heartbeat-reply', ...route, readCount: 0 });
    await group.run(10);
    leader.queue.resume();
    await group.start(laggard.id);
    test.ok(await group.until(() => isEven(lagging), 5000), 'it has the state in the end');
    test.equal(group.leader()?.id, leader.id);
    test.equal(laggard.register.adoptedCount, 1);
    await group.settle();
    test.same(group.violations, []);
  },
);
