// A group of replicas whose disks are slow, hang or fail.

import t from 'tap';
import { DurableLog } from '../../../cluster/log/durable-log.ts';
import { NO_MEMBERS } from '../../../cluster/raft/membership/membership.ts';
import type { Message } from '../../../cluster/raft/message.ts';
import { DEFAULT_GROUP_LIMITS } from '../../../cluster/replica/group-limits.ts';
import { PendingProposals } from '../../../cluster/replica/requests/pending-proposals.ts';
import { AppendWorker } from '../../../cluster/replica/workers/append-worker.ts';
import { StoredLog } from '../../../cluster/replica/workers/stored-log.ts';
import { FailingKv } from '../../support/failing-kv.ts';
import { MemoryKv } from '../../support/memory-kv.ts';
import {
  begin,
  electedGroup,
  othersOf,
  read,
  startedGroup,
  watched,
  write,
} from '../../support/simulated/group-actions.ts';
import { settled } from '../../support/simulated/simulated-world.ts';

t.test(
  'disk: a leader whose disk does not answer hands over, and its writes end as unknown',
  async (test) => {
    const group = await startedGroup();
    const slow = await group.elected();
    await write(group, slow.id, 3);
    slow.queue.stall();
    const lost = begin(group, slow.id);
    const stalledAtMs = group.nowMs;
    await group.until(() => group.leader() !== undefined && group.leader() !== slow);
    test.ok(group.nowMs - stalledAtMs < 3000, `it took ${group.nowMs - stalledAtMs} ms`);
    test.ok(slow.replica!.groupStatus().isDiskStalled);
    await group.until(() => lost.result !== undefined);
    test.equal(lost.result, 'unknown');
    const next = group.leader()!;
    test.same(await write(group, next.id), ['acked']);
    await group.run(10_000);
    test.equal(group.leader()?.id, next.id, 'the stalled node does not campaign');
    await group.settle();
    test.same(group.violations, []);
  },
);

t.test('disk: a leader that cannot hand over falls silent, so that others elect', async (test) => {
  const group = await startedGroup();
  const slow = await group.elected();
  await write(group, slow.id, 3);
  group.onSend = (message) => {
    // Nothing that asks for a campaign arrives.
    if (message.type === 'timeout-now') group.partition([slow.id], othersOf(group, slow.id));
    else group.heal();
  };
  slow.queue.stall();
  begin(group, slow.id);
  test.ok(await group.until(() => group.leader() !== undefined && group.leader() !== slow, 9000));
  await group.settle();
  test.same(group.violations, []);
});

t.test('disk: a follower whose disk does not answer campaigns for nothing', async (test) => {
  const group = await startedGroup();
  const leader = await group.elected();
  await group.run(300);
  const follower = group.node(othersOf(group, leader.id)[0]!);
  follower.queue.stall();
  await write(group, leader.id);
  await group.until(() => follower.replica!.groupStatus().isDiskStalled);
  group.onSend = ({ type, from }) => {
    if (from === follower.id && type.includes('vote')) test.fail(`it sent ${type}`);
  };
  group.partition([follower.id], othersOf(group, follower.id));
  await group.run(10_000);
  group.heal();
  await group.settle();
  test.same(group.violations, []);
});

t.test('disk: a machine that does not answer is a disk that does not', async (test) => {
  const group = await startedGroup();
  const slow = await group.elected();
  await write(group, slow.id, 3);
  slow.stateQueue.stall();
  const lost = begin(group, slow.id);
  const stalledAtMs = group.nowMs;
  await group.until(() => group.leader() !== undefined && group.leader() !== slow);
  test.ok(group.nowMs - stalledAtMs < 3000, `it took ${group.nowMs - stalledAtMs} ms`);
  test.ok(slow.replica!.lead().isDiskStalled, 'it can be told at every request');
  await group.until(() => lost.result !== undefined);
  test.equal(lost.result, 'unknown', 'it is in the log, and nobody can tell what came of it');
  test.same(await write(group, group.leader()!.id), ['acked']);
  await group.run(5000);
  test.not(group.leader(), slow, 'the stalled node does not campaign');
  slow.stateQueue.resume();
  await group.until(() => !slow.replica!.groupStatus().isDiskStalled);
  await group.settle();
  test.same(group.violations, []);
});

t.test(
  'disk: where those of all followers hang and heartbeats are answered, no more is taken',
  async (test) => {
    const { group, leader } = await electedGroup();
    const followers = othersOf(group, leader.id).map((id) => group.node(id));
    for (const { queue } of followers) queue.stall();
    const underWay = begin(group, leader.id);
    await group.run(2000);
    const alsoUnderWay = begin(group, leader.id);
    await group.run(1500);
    const refusal = { code: 'queue-full', message: /2 writes are under way, and none of them/ };
    const refused = test.rejects(leader.replica!.propose(Buffer.from('x')), refusal);
    await group.run(10);
    await refused;
    await group.run(60_000);
    test.equal(group.leader()?.id, leader.id, 'it leads on');
    test.equal(await read(group, leader.id), 'done', 'as reads need it');
    test.equal(underWay.result, undefined, 'nobody knows what comes of it');
    for (const { queue } of followers) queue.resume();
    await group.until(() => alsoUnderWay.result !== undefined);
    test.equal(underWay.result, 'acked');
    test.same(await write(group, leader.id), ['acked'], 'and then it takes writes again');
    await group.settle();
    test.same(group.violations, []);
  },
);

t.test('disk: as long as writes come through, however late, more are taken', async (test) => {
  const proposals = new PendingProposals<string>({
    limits: DEFAULT_GROUP_LIMITS,
    patienceTicks: 2,
  });
  const add = (): { result: string | undefined } => watched(proposals.add(Buffer.from('x')));
  const all = Array.from({ length: 9 }, add);
  proposals.appended(proposals.takeBatch(), { index: 1, term: 1 });
  for (let index = 1; index < 9; index += 1) {
    const steps = [proposals.onTick(), proposals.onTick()];
    test.same(steps, ['none', 'none']);
    proposals.applied({ index, term: 1 }, 'through');
  }
  await settled();
  test.same(new Set(all.map(({ result }) => result)), new Set(['through', undefined]));
  const steps = [proposals.onTick(), proposals.onTick(), proposals.onTick(), proposals.onTick()];
  test.same(steps, ['none', 'none', 'stand-still', 'none']);
  const refused = add();
  await settled();
  test.match(refused.result, /^1 writes are under way, and none of them/);
  proposals.applied({ index: 9, term: 1 }, 'through');
  const taken = add();
  test.equal(proposals.onTick(), 'go-on');
  await settled();
  test.equal(taken.result, undefined);
});

t.test('disk: what queued while a batch was in flight goes into the next one', async (test) => {
  const kv = new FailingKv(new MemoryKv());
  const log = await DurableLog.open(kv, undefined);
  const stored = new StoredLog({
    log,
    membership: NO_MEMBERS,
    appliedIndex: 0,
    snapshot: () => undefined,
    limits: DEFAULT_GROUP_LIMITS,
  });
  const delivered: number[] = [];
  const appends = new AppendWorker({
    log,
    stored,
    limits: DEFAULT_GROUP_LIMITS,
    spare: () => ({ onDiskThrough: 0, inMemoryThrough: 0 }),
    install: () => Promise.reject(new Error('no snapshot came')),
    onDone: (replies) => delivered.push(...replies.map(({ to }) => to)),
    onFailed: (error) => test.fail(String(error)),
  });
  const push = (term: number, from: number, through: number, to: number): void => {
    const entries = Array.from({ length: through - from + 1 }, (_, place) => {
      const data = Buffer.from(`${term}/${from + place}`);
      return { term, index: from + place, type: 'normal', data } as const;
    });
    const envelope = { from: 1, to, term };
    appends.push({
      type: 'storage-append',
      ...envelope,
      hardState: { term, vote: 1, commitIndex: 0 },
      entries,
      replies: [{ type: 'append-reply', ...envelope, index: through }],
    });
  };
  push(1, 1, 3, 11);
  appends.start();
  push(1, 4, 6, 12);
  // A new leader replaces what is queued, and some of what is being written.
  push(2, 5, 5, 13);
  push(3, 3, 7, 14);
  push(4, 7, 7, 15);
  test.equal(appends.start(), undefined, 'one batch in flight');
  await appends.idle();
  test.same(delivered, [11]);
  appends.start();
  await appends.idle();
  test.same(delivered, [11, 12, 13, 14, 15]);
  test.equal(kv.writeCount, 2);
  const again = await DurableLog.open(kv, undefined);
  const texts = Array.from({ length: again.lastIndex }, (_, place) =>
    Buffer.from(again.entry(place + 1).payload).toString(),
  );
  test.same(texts, ['1/1', '1/2', '3/3', '3/4', '3/5', '3/6', '4/7']);
  test.same(again.hardState, { term: 4, vote: 1, commit: 0 });
  test.same([stored.lastIndex(), stored.term(6), stored.term(7)], [7, 3, 4]);
});

t.test('disk: a snapshot is written between what comes before and behind it', async (test) => {
  const kv = new FailingKv(new MemoryKv());
  const log = await DurableLog.open(kv, undefined);
  const done: string[] = [];
  const stored = new StoredLog({
    log,
    membership: NO_MEMBERS,
    appliedIndex: 0,
    snapshot: () => undefined,
    limits: DEFAULT_GROUP_LIMITS,
  });
  const appends = new AppendWorker({
    log,
    stored,
    limits: DEFAULT_GROUP_LIMITS,
    spare: () => ({ onDiskThrough: 0, inMemoryThrough: 0 }),
    install: async ({ index, term }, { vote }) => {
      done.push(`install ${index} behind ${log.lastIndex}`);
      const start = { index, term, hash: new Uint8Array(32) };
      await log.reset({ start, hardState: { term, vote, commit: index }, generation: 1 });
      stored.wasReset();
    },
    onDone: (replies) => done.push(...replies.map(describe)),
    onFailed: (error) => test.fail(String(error)),
  });
  const envelope = { from: 1, to: 1, term: 1 };
  const snapshot = { index: 50, term: 1, membership: NO_MEMBERS, data: new Uint8Array() };
  const push = (index: number, given: object = {}): void => {
    const entries = [{ term: 1, index, type: 'normal', data: Buffer.from(`${index}`) } as const];
    const lastStable = { term: 1, index };
    appends.push({
      type: 'storage-append',
      ...envelope,
      hardState: { term: 1, vote: 1, commitIndex: 'snapshot' in given ? 50 : 0 },
      entries: 'snapshot' in given ? [] : entries,
      replies: [{ type: 'storage-append-reply', ...envelope, lastStable, ...given }],
      ...given,
    });
  };
  push(1);
  push(50, { snapshot });
  push(51);
  push(52);
  for (let each = 0; each < 4; each += 1) {
    done.push(...(appends.start() ?? []).map(describe));
    await appends.idle();
  }
  test.same(done, ['stored 1', 'install 50 behind 1', 'installed 50', 'stored 52']);
  test.equal((await DurableLog.open(kv, log.start)).lastIndex, 52);
});

function describe(reply: Message): string {
  if (reply.type !== 'storage-append-reply') return reply.type;
  const { snapshot, lastStable } = reply;
  return snapshot === undefined ? `stored ${lastStable?.index}` : `installed ${snapshot.index}`;
}

t.test('disk: the first failed write ends the replica', async (test) => {
  const group = await startedGroup();
  const leader = await group.elected();
  const { replica } = leader;
  await write(group, leader.id);
  leader.disk.failure = new Error('the disk is full');
  const proposed = test.rejects(replica!.propose(Buffer.from('x')), { code: 'outcome-unknown' });
  const read = test.rejects(replica!.readBarrier(), { code: 'closed' });
  await group.run(10);
  await Promise.all([proposed, read]);
  await test.rejects(replica!.propose(Buffer.from('x')), { code: 'closed' });
  test.match(leader.fatal, { message: 'the disk is full' });
  leader.disk.failure = undefined;
  await group.settle();
  test.same(group.violations, []);
});
