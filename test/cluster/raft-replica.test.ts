// A group of replicas, one situation at a time: elections, lost leaders, partitions, restarts, reads, bad
// disks, late clocks, bounds. What must hold everywhere is checked by the group itself.

import t from 'tap';
import { DurableLog } from '../../cluster/log/durable-log.ts';
import { NO_ENTRY } from '../../cluster/raft/entry.ts';
import type { MembershipChange } from '../../cluster/raft/membership-change.ts';
import { NO_MEMBERS } from '../../cluster/raft/membership.ts';
import type { Message } from '../../cluster/raft/message.ts';
import { AppendWorker } from '../../cluster/replica/append-worker.ts';
import { DEFAULT_GROUP_LIMITS } from '../../cluster/replica/group-limits.ts';
import { PendingProposals } from '../../cluster/replica/pending-proposals.ts';
import type { ReplicaError } from '../../cluster/replica/replica.ts';
import { encodeGroupRecord } from '../../cluster/replica/group-record.ts';
import { StoredLog } from '../../cluster/replica/stored-log.ts';
import { Ticker } from '../../cluster/replica/ticker.ts';
import { FailingKv } from '../support/failing-kv.ts';
import { FakeClock } from '../support/fake-clock.ts';
import {
  begin,
  electedGroup,
  othersOf,
  read,
  startedGroup,
  watched,
  write,
} from '../support/group-actions.ts';
import { CALM, type GroupOptions, type Wire } from '../support/in-memory-group.ts';
import { MemoryKv } from '../support/memory-kv.ts';
import { settled } from '../support/simulated-world.ts';

const IDS = [1, 2, 3];
const EMPTY_LOG = { lastTerm: 0, lastIndex: 0 };

t.test('group: elects one leader, and every node applies what it takes', async (test) => {
  for (const size of [1, 3, 5]) {
    const group = await startedGroup({ size });
    const leader = await group.elected();
    test.same(new Set(await write(group, leader.id, 20)), new Set(['acked']));
    await group.run(300);
    for (const { register, replica } of group.nodes) {
      test.equal(register.applied.length, size + 21, 'the founding, the leader, the writes');
      test.equal(replica?.groupStatus().leader, leader.id);
    }
    await group.settle();
    test.same(group.violations, []);
  }
});

t.test('follower: refuses a write, naming the leader, and nothing comes of it', async (test) => {
  const group = await startedGroup();
  const leader = await group.elected();
  await group.run(300);
  const [other] = othersOf(group, leader.id);
  const refused = test.rejects(group.node(other!).replica!.propose(Buffer.from('x')), {
    name: 'GroupRefusal',
    code: 'not-leader',
    leader: leader.id,
  });
  await group.run(10);
  await refused;
  await group.settle();
  test.same(group.violations, []);
});

t.test('leader: is replaced in a fraction of a second when it is killed', async (test) => {
  const group = await startedGroup();
  const leader = await group.elected();
  await write(group, leader.id, 5);
  const killedAtMs = group.nowMs;
  group.crash(leader.id);
  await group.until(() => group.leader() !== undefined);
  test.ok(group.nowMs - killedAtMs < 500, `it took ${group.nowMs - killedAtMs} ms`);
  test.same(await write(group, group.leader()!.id), ['acked']);
  await group.settle();
  test.same(group.violations, []);
});

t.test(
  'leader: votes that were split after its death are settled before the timeout',
  async (test) => {
    // The wire is slow for so short a spread: two begin before they hear of each other.
    for (let seed = 1; seed <= 25; seed += 1) {
      const timing = { campaignSpreadMs: 30 };
      const tookMs = await succession({ size: 3, seed, timing }, { ...CALM, minMs: 8, maxMs: 12 });
      if (tookMs >= 1000) test.fail(`seed ${seed} took ${tookMs} ms`);
    }
  },
);

t.test(
  'leader: who gave its vote lets that candidate win before it campaigns itself',
  async (test) => {
    for (let seed = 30; seed <= 50; seed += 1) {
      const tookMs = await succession({ size: 5, seed }, { ...CALM, minMs: 2.4, maxMs: 3.6 });
      if (tookMs >= 1000) test.fail(`seed ${seed} took ${tookMs} ms`);
    }
  },
);

/** Milliseconds from the death of a leader, noticed by all, until another one leads. */
async function succession(given: Partial<GroupOptions>, wire: Wire): Promise<number> {
  const group = await startedGroup(given);
  group.wire = wire;
  const leader = await group.elected();
  await group.run(400);
  const killedAtMs = group.nowMs;
  group.crash(leader.id);
  await group.until(() => group.leader() !== undefined);
  return group.nowMs - killedAtMs;
}

t.test('leader: is replaced after the timeout when it dies without a sign', async (test) => {
  const group = await startedGroup();
  group.linksClose = false;
  const leader = await group.elected();
  group.crash(leader.id);
  test.ok(await group.until(() => group.leader() !== undefined, 6500));
  await group.settle();
  test.same(group.violations, []);
});

t.test('follower: whose link alone breaks disturbs nobody', async (test) => {
  const group = await startedGroup();
  const leader = await group.elected();
  await group.run(500);
  const { term } = leader.replica!.status();
  group.node(othersOf(group, leader.id)[0]!).replica!.linkClosed(leader.id);
  await group.run(3000);
  test.equal(group.leader()?.id, leader.id);
  test.equal(leader.replica!.status().term, term);
});

t.test('partition: the cut-off leader answers nothing, the others go on', async (test) => {
  const group = await startedGroup();
  const old = await group.elected();
  await write(group, old.id, 3);
  group.partition([old.id], othersOf(group, old.id));
  const lost = begin(group, old.id);
  const staleRead = read(group, old.id);
  await group.until(() => group.leader() !== undefined && group.leader() !== old);
  test.same(await write(group, group.leader()!.id, 3), ['acked', 'acked', 'acked']);
  test.equal(await staleRead, 'refused', 'no read without a quorum');
  await group.until(() => lost.result !== undefined);
  test.equal(lost.result, 'unknown', 'another leader may have it');
  test.same(await write(group, old.id), ['refused']);
  await group.settle();
  test.same(group.violations, []);
});

t.test(
  'restart: everything that was answered is there again, and no vote is forgotten',
  async (test) => {
    const group = await startedGroup();
    for (let round = 0; round < 4; round += 1) {
      const leader = await group.elected();
      await write(group, leader.id, 5);
      const { term } = leader.replica!.status();
      for (const id of IDS) group.crash(id, { lands: round % 2 === 0 });
      await group.start();
      for (const { replica } of group.nodes) {
        test.ok(replica!.status().term >= term - 1, 'the term is on disk');
      }
      await group.until(() => group.leader() !== undefined);
    }
    await group.settle();
    test.equal(group.acked.size, 21);
    test.same(group.violations, []);
  },
);

t.test('restart: a term that was answered for is never gone back on', async (test) => {
  const group = await startedGroup();
  const spoken = new Map<number, number>();
  group.onSend = ({ type, from, term }) => {
    if (type !== 'append-reply' && type !== 'vote-reply') return;
    if (term < (spoken.get(from) ?? 0)) test.fail(`${from} went back to term ${term}`);
    spoken.set(from, term);
  };
  for (let round = 0; round < 5; round += 1) {
    const leader = await group.elected();
    await write(group, leader.id, 2);
    group.crash(leader.id);
    await group.elected();
    await group.start();
    await group.run(500);
  }
  for (const { id, replica } of group.nodes) {
    test.ok(replica!.status().term >= (spoken.get(id) ?? 0));
  }
  await group.settle();
  test.same(group.violations, []);
});

t.test('read barrier: on any node, it shows what was answered before', async (test) => {
  const group = await startedGroup({ size: 5 });
  const leader = await group.elected();
  // One follower is slow to apply: its barrier has to wait for it.
  group.wire = { ...CALM, maxMs: 60 };
  for (let round = 0; round < 10; round += 1) {
    await write(group, leader.id, 3);
    for (const { id } of group.nodes) test.equal(await read(group, id), 'done');
  }
  test.same(group.violations, []);
});

t.test(
  'read barrier: readers of one moment share one round; no round has the name of another',
  async (test) => {
    const group = await startedGroup();
    const leader = await group.elected();
    await group.run(300);
    const contexts: string[] = [];
    group.onSend = (message) => {
      if (message.type === 'read-index') contexts.push(message.context);
    };
    const follower = group.node(othersOf(group, leader.id)[0]!);
    for (let life = 0; life < 3; life += 1) {
      const before = contexts.length;
      const reads = Array.from({ length: 50 }, () => read(group, follower.id));
      test.same(new Set(await Promise.all(reads)), new Set(['done']));
      test.equal(contexts.length, before + 1);
      group.crash(follower.id);
      await group.start();
      await group.run(1000);
    }
    test.equal(new Set(contexts).size, contexts.length);
  },
);

t.test('read barrier: begins again under the next leader', async (test) => {
  const group = await startedGroup();
  const leader = await group.elected();
  await write(group, leader.id, 3);
  const follower = group.node(othersOf(group, leader.id)[0]!);
  let result: string | undefined;
  void group.read(follower.id).then((done) => {
    result = done;
  });
  group.crash(leader.id);
  await group.until(() => result !== undefined);
  test.equal(result, 'done');
  test.same(group.violations, []);
});

t.test(
  'bounds: too many or too large writes and too many reads are refused at once',
  async (test) => {
    const limits = {
      pendingCountMax: 5,
      pendingBytesMax: 100,
      payloadBytesMax: 60,
      readCountMax: 2,
    };
    const group = await startedGroup({ limits });
    const { replica } = await group.elected();
    const under = Array.from({ length: 5 }, () => replica!.propose(Buffer.from('x')));
    await test.rejects(replica!.propose(Buffer.from('x')), { code: 'queue-full' });
    await test.rejects(replica!.propose(Buffer.alloc(61)), { code: 'too-large' });
    await group.run(200);
    await Promise.all(under);
    const large = replica!.propose(Buffer.alloc(60));
    await test.rejects(replica!.propose(Buffer.alloc(60)), { code: 'queue-full' });
    const reads = [replica!.readBarrier(), replica!.readBarrier()];
    await test.rejects(replica!.readBarrier(), { code: 'queue-full' });
    await group.run(200);
    await Promise.all([large, ...reads]);
    test.equal(replica!.status().pendingBytes, 0);
  },
);

t.test(
  'bounds: messages that find the inbox full are lost, counted, and made up for',
  async (test) => {
    const group = await startedGroup({ limits: { inboxCountMax: 2 } });
    const leader = await group.elected();
    const follower = group.node(othersOf(group, leader.id)[0]!);
    const term = leader.replica!.status().term;
    const message = { type: 'heartbeat', from: leader.id, to: follower.id, term } as const;
    for (let each = 0; each < 5; each += 1) {
      follower.replica!.receive({ ...message, commitIndex: 0, readCount: 0 });
    }
    test.equal(follower.replica!.groupStatus().lostMessageCount, 3);
    await write(group, leader.id, 30);
    await group.settle();
    test.same(group.violations, []);
  },
);

t.test(
  'message: for another node, or of a kind that does not come as one, is ignored',
  async (test) => {
    const group = await startedGroup();
    const leader = await group.elected();
    const follower = group.node(othersOf(group, leader.id)[0]!);
    await group.run(500);
    const { term } = follower.replica!.status();
    const envelope = { from: leader.id, to: follower.id, term };
    const last = { lastTerm: 99, lastIndex: 99, committed: NO_ENTRY };
    const vote = { type: 'vote', ...last, forced: true } as const;
    const membership = { ...NO_MEMBERS, voters: [1, 2, 3] };
    const snapshot = { index: 99, term, membership, data: new Uint8Array() };
    const strange = [
      { ...vote, ...envelope, term: 99, to: leader.id },
      { ...vote, ...envelope, term: 99, from: follower.id },
      { type: 'propose', ...envelope, term: 0, entries: [] } as const,
      { type: 'storage-append-reply', ...envelope, from: -1 } as const,
      { type: 'snapshot', ...envelope, snapshot } as const,
    ];
    for (const message of strange) follower.replica!.receive(message);
    await settled();
    test.equal(follower.replica!.status().term, term);
    test.equal(follower.log.filter((line) => line.includes('a message was ignored')).length, 5);
  },
);

t.test(
  'message: a stranger is heard, since a newcomer knows nobody, but not believed',
  async (test) => {
    const group = await startedGroup();
    const leader = await group.elected();
    await group.run(500);
    const { term } = leader.replica!.status();
    const stranger = { from: 9, to: leader.id, term };
    leader.replica!.receive({ type: 'append-reply', ...stranger, index: 99 });
    leader.replica!.receive({
      type: 'pre-vote',
      ...stranger,
      term: 99,
      ...EMPTY_LOG,
      forced: false,
      committed: NO_ENTRY,
    });
    await group.run(3000);
    test.equal(group.leader()?.id, leader.id);
    test.equal(leader.replica!.status().term, term);
    test.same(await write(group, leader.id), ['acked']);
    await group.settle();
    test.same(group.violations, []);
  },
);

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

t.test('ticks: a follower that stood still hears its leader before it campaigns', async (test) => {
  const group = await startedGroup();
  const leader = await group.elected();
  await group.run(500);
  const follower = group.node(othersOf(group, leader.id)[0]!);
  const linesBefore = follower.log.length;
  group.diskMs = [50, 50];
  for (const pauseMs of [400, 1600, 5000, 30_000]) {
    // A write is under way meanwhile: it is not the disk that is slow.
    begin(group, leader.id);
    await group.run(20);
    group.pause(follower.id, pauseMs);
    await group.run(pauseMs + 1000);
  }
  const lines = follower.log.slice(linesBefore);
  test.ok(lines.some((line) => line.includes('the process stood still')));
  test.notOk(lines.some((line) => line.includes('election-started')));
  test.notOk(lines.some((line) => line.includes('the disk does not answer')));
});

t.test('ticks: a late one lets what waits go first, and counts once', async (test) => {
  const clock = new FakeClock();
  const seen: string[] = [];
  const ticker = new Ticker({
    clock,
    tickMs: 100,
    lateMs: 200,
    onTick: () => seen.push('tick'),
    onPause: (lateByMs) => seen.push(`late by ${lateByMs}`),
  });
  clock.advance(100);
  clock.advance(130);
  test.same(seen.splice(0), ['tick', 'tick'], 'a little late is no pause');
  clock.advance(70);
  test.same(seen.splice(0), ['tick'], 'and is made up for');
  clock.advance(5000);
  test.same(seen.splice(0), ['late by 4900']);
  clock.advance(1);
  test.same(seen.splice(0), ['tick']);
  clock.advance(100);
  test.same(seen.splice(0), ['tick']);
  ticker.stop();
  test.equal(clock.pendingCount, 0);
});

t.test('ticks: a leader that stood still gives no stale read', async (test) => {
  const group = await startedGroup();
  const old = await group.elected();
  await write(group, old.id, 3);
  group.pause(old.id, 6000);
  await group.until(() => group.leader() !== undefined && group.leader()?.id !== old.id);
  const next = group.nodes.find(
    ({ id, replica }) => id !== old.id && replica?.status().standing === 'leader',
  );
  test.same(await write(group, next!.id, 3), ['acked', 'acked', 'acked']);
  // The old one wakes, and takes a reader before it hears anything.
  const early = read(group, old.id);
  await group.settle();
  test.equal(await early, 'done');
  test.same(group.violations, []);
});

t.test(
  'ticks: a leader that stood still hears that its write was replaced, and by what',
  async (test) => {
    const addLearner: MembershipChange = {
      transition: 'auto',
      changes: [{ kind: 'add-learner', node: 9 }],
      context: new Uint8Array(0),
    };
    for (const isChange of [false, true]) {
      const { group, leader } = await electedGroup();
      group.partition([leader.id], othersOf(group, leader.id));
      const { replica } = leader;
      if (replica === undefined) throw new Error('the leader is down');
      const { term, lastIndex, commitIndex } = replica.status();
      let says = 'pending';
      const asked = isChange
        ? replica.proposeMembership(addLearner)
        : replica.propose(Buffer.from('mine'));
      asked.catch((error: ReplicaError) => {
        says = error.code;
      });
      await group.run(20);
      test.equal(replica.status().lastIndex, lastIndex + 1);
      // Another node was elected twice meanwhile, and both its first appends come at once.
      const [from = 0] = othersOf(group, leader.id);
      const append = (of: number, prevTerm: number, prevIndex: number, committed: number) =>
        replica.receive({
          ...{ type: 'append', from, to: leader.id, term: of, prevTerm, prevIndex },
          entries: [{ term: of, index: prevIndex + 1, type: 'normal', data: new Uint8Array(0) }],
          commitIndex: committed,
        });
      append(term + 1, term, lastIndex, commitIndex);
      append(term + 2, term + 1, lastIndex + 1, lastIndex + 1);
      await group.run(200);
      test.equal(says, 'outcome-unknown');
      test.equal(leader.fatal, undefined);
    }
  },
);

t.test('transfer: another voter leads, and no answered write is lost', async (test) => {
  const group = await startedGroup();
  const leader = await group.elected();
  await write(group, leader.id, 5);
  const [target] = othersOf(group, leader.id);
  leader.replica!.transferLeadership(target!);
  test.ok(await group.until(() => group.leader()?.id === target, 1000));
  test.same(await write(group, target!), ['acked']);
  await group.settle();
  test.same(group.violations, []);
});

t.test('close: answers what is under way, takes nothing more, and hands over', async (test) => {
  const group = await startedGroup();
  const leader = await group.elected();
  await group.run(300);
  const begun = [begin(group, leader.id), begin(group, leader.id)];
  const closed = leader.replica!.close();
  await test.rejects(leader.replica!.propose(Buffer.from('x')), { code: 'closed' });
  await test.rejects(leader.replica!.readBarrier(), { code: 'closed' });
  const closingAtMs = group.nowMs;
  test.ok(await group.until(() => group.leader()?.id !== leader.id, 1000), 'another one leads');
  test.ok(group.nowMs - closingAtMs <= 100, `after ${group.nowMs - closingAtMs} ms`);
  await group.run(100);
  await closed;
  test.same(
    begun.map(({ result }) => result),
    ['acked', 'acked'],
  );
  test.same(await write(group, group.leader()!.id), ['acked']);
  test.same(group.violations, []);
});

t.test('close: of a leader whom nobody can succeed ends in time', async (test) => {
  const group = await startedGroup();
  group.linksClose = false;
  const leader = await group.elected();
  await write(group, leader.id);
  for (const id of othersOf(group, leader.id)) group.crash(id);
  let isClosed = false;
  void leader.replica!.close().then(() => {
    isClosed = true;
  });
  await group.run(1400);
  test.notOk(isClosed, 'it waits for a successor');
  await group.run(200);
  test.ok(isClosed, 'for one election timeout');
  const lone = await startedGroup({ size: 1 });
  const { replica } = await lone.elected();
  await lone.run(200);
  const atMs = lone.nowMs;
  await replica!.close();
  test.equal(lone.nowMs, atMs, 'alone it waits for nobody');
});

t.test('group record: is that of the last applied entry, before raft hears of it', async (test) => {
  const group = await startedGroup({ size: 1 });
  const { replica, register } = await group.elected();
  const record = replica!.groupRecord();
  // The first batch of a group of entries has landed.
  const groupRecord = encodeGroupRecord({ ...record, autopilotIndex: 7 });
  Object.defineProperty(register, 'groupRecord', { value: groupRecord });
  test.equal(replica!.groupRecord().autopilotIndex, 7);
  test.equal(replica!.groupRecord(), replica!.groupRecord(), 'it is decoded once');
});

t.test('status: says who was heard when, and who leads', async (test) => {
  const group = await startedGroup();
  const heard: string[] = [];
  for (const { id, replica } of group.nodes) {
    replica!.onLeaderChanged(() => heard.push(`${id}: ${replica!.groupStatus().leader}`));
  }
  const silenced: string[] = [];
  group.node(1).replica!.onLeaderChanged(() => silenced.push('heard'))();
  const leader = await group.elected();
  await group.run(1000);
  test.same(
    IDS.map((id) => heard.filter((line) => line.startsWith(`${id}:`)).at(-1)),
    IDS.map((id) => `${id}: ${leader.id}`),
  );
  test.same(silenced, []);
  const [dead, living] = othersOf(group, leader.id);
  const status = leader.replica!.groupStatus();
  test.equal(status.lastContactMs, 0);
  test.ok(status.hasCommittedInTerm);
  for (const { lastHeardMs, state, matchIndex } of status.followers) {
    test.ok(lastHeardMs !== undefined && lastHeardMs <= 110, `${lastHeardMs}`);
    test.equal(state, 'replicate');
    test.equal(matchIndex, leader.replica!.status().lastIndex);
  }
  const contactOf = (id: number): number | undefined =>
    group.node(id).replica!.groupStatus().lastContactMs;
  test.ok((contactOf(living!) ?? Number.NaN) <= 110);
  group.linksClose = false;
  group.crash(dead!);
  await group.run(1000);
  const gone = leader.replica!.groupStatus().followers.find(({ node }) => node === dead);
  test.ok((gone?.lastHeardMs ?? 0) >= 900);
  const isLost = (id: number): boolean | undefined =>
    leader.replica!.groupStatus().followers.find(({ node }) => node === id)?.isLost;
  test.equal(isLost(dead!), false, 'its link stands');
  leader.replica!.linkClosed(dead!);
  leader.replica!.linkClosed(living!);
  await settled();
  test.same([isLost(dead!), isLost(living!)], [true, true]);
  await group.run(200);
  test.same([isLost(dead!), isLost(living!)], [true, false], 'it was heard since');
  group.partition([leader.id], [living!]);
  await group.run(1000);
  // Not what a leader says, and not of this term.
  const { term } = leader.replica!.status();
  const words = { from: leader.id, to: living! };
  const no = { type: 'vote-reply', rejected: true, committed: NO_ENTRY } as const;
  group.node(living!).replica!.receive({ ...no, ...words, term });
  const beat = { type: 'heartbeat', ...words, commitIndex: 0, readCount: 0 } as const;
  group.node(living!).replica!.receive({ ...beat, term: term - 1 });
  await settled();
  test.ok(
    (contactOf(living!) ?? 0) >= 900,
    'it still believes, and says since when it heard nothing',
  );
  await group.run(3000);
  test.equal(contactOf(living!), undefined, 'now nobody leads');
});

t.test('status: a leader that hears no quorum says since when', async (test) => {
  const group = await startedGroup();
  const leader = await group.elected();
  await group.run(1000);
  const [one, other] = othersOf(group, leader.id);
  const contact = (): number | undefined => leader.replica!.lead().lastContactMs;
  group.partition([leader.id, one!], [other!]);
  await group.run(1000);
  test.equal(contact(), 0, 'one of two is enough');
  group.partition([leader.id], [one!, other!]);
  await group.run(1200);
  test.ok(leader.replica!.lead().isLeader, 'it does not know yet');
  test.ok((contact() ?? 0) >= 1100, `${contact()}`);
  group.heal();
  await group.run(3000);
  const leading = await group.elected();
  test.equal(leading.replica!.lead().lastContactMs, 0);
});

t.test(
  'status: a leader whose links are closed does not say that a quorum answers',
  async (test) => {
    const group = await startedGroup();
    const leader = await group.elected();
    await group.run(1000);
    group.partition([leader.id], othersOf(group, leader.id));
    for (const id of othersOf(group, leader.id)) leader.replica!.linkClosed(id);
    await group.run(50);
    test.ok((leader.replica!.lead().lastContactMs ?? 0) >= 50);
  },
);

t.test('status: heartbeats are not enough for whoever lacks what is committed', async (test) => {
  const group = await startedGroup();
  const leader = await group.elected();
  await group.run(1000);
  const [slow, away] = othersOf(group, leader.id);
  const contactOf = (id: number): number | undefined =>
    group.node(id).replica!.lead().lastContactMs;
  group.node(slow!).stateQueue.stall();
  void group.write(leader.id);
  await group.run(700);
  test.ok((contactOf(slow!) ?? 0) >= 600, `it applies nothing: ${contactOf(slow!)}`);
  group.node(slow!).stateQueue.resume();
  await group.run(300);
  test.ok((contactOf(slow!) ?? Number.NaN) <= 110, `${contactOf(slow!)}`);
  // Behind a link that was closed something is missing, and the way of what it is asked for is long.
  group.partition([leader.id, slow!], [away!]);
  group.node(away!).replica!.linkClosed(leader.id);
  leader.replica!.linkClosed(away!);
  void group.write(leader.id);
  await group.run(400);
  group.heal();
  let isTold = false;
  group.onSend = ({ type, to }) => {
    isTold ||= type === 'heartbeat' && to === away;
  };
  test.ok(await group.until(() => isTold, 200));
  group.node(away!).stateQueue.stall();
  await group.run(500);
  test.ok(
    (contactOf(away!) ?? 0) >= 900,
    `it is heard, and what it says not there: ${contactOf(away!)}`,
  );
  group.node(away!).stateQueue.resume();
  await group.run(300);
  test.ok((contactOf(away!) ?? Number.NaN) <= 110, `${contactOf(away!)}`);
  test.same(group.violations, []);
});

t.test(
  'status: heartbeats are not enough where the entries go lost, and the link stands',
  async (test) => {
    const group = await startedGroup();
    const leader = await group.elected();
    await group.run(1000);
    const [starved] = othersOf(group, leader.id);
    const contact = (): number => group.node(starved!).replica!.lead().lastContactMs ?? Number.NaN;
    group.isLost = ({ type, to }) => type === 'append' && to === starved;
    test.same(await write(group, leader.id), ['acked']);
    await group.run(4000);
    test.ok(contact() >= 1900, `it lacks what was written 4 s ago: ${contact()}`);
    group.isLost = () => false;
    await group.run(2000);
    test.ok(contact() <= 110, `${contact()}`);
    test.same(group.violations, []);
  },
);

t.test('status: what waited while the process stood still is as old as that', async (test) => {
  const group = await startedGroup();
  const leader = await group.elected();
  await group.run(1000);
  const [still, other] = othersOf(group, leader.id);
  const contactOf = (id: number): number => group.node(id).replica!.lead().lastContactMs ?? 0;
  // The leader stands still as soon as it has asked: it reads the answers of both when it goes on.
  group.onSend = ({ type, from }) => {
    if (type !== 'heartbeat' || from !== leader.id) return;
    group.onSend = () => undefined;
    group.pause(leader.id, 1300);
  };
  const isAsked = (): boolean => leader.pausedUntilMs > group.nowMs;
  test.ok(await group.until(isAsked, 500));
  await group.run(leader.pausedUntilMs - group.nowMs + 0.8);
  test.ok(leader.replica!.lead().isLeader);
  test.ok(contactOf(leader.id) >= 1200, `answers of long ago were read: ${contactOf(leader.id)}`);
  await group.run(500);
  test.equal(contactOf(leader.id), 0);
  group.pause(still!, 5000);
  await group.run(5000.8);
  test.ok(contactOf(still!) >= 4900, `heartbeats of long ago were read: ${contactOf(still!)}`);
  await group.run(500);
  test.ok(contactOf(still!) <= 110, `${contactOf(still!)}`);
  // Another leads when it wakes, which has said so while it stood still.
  group.pause(leader.id, 8000);
  await group.run(8000.1);
  test.ok(leader.replica!.lead().isLeader, 'it does not know yet');
  test.ok(contactOf(leader.id) >= 7900, `${contactOf(leader.id)}`);
  await group.run(0.7);
  test.not(leader.replica!.lead().isLeader, 'it has read');
  test.equal(
    leader.replica!.lead().lastContactMs,
    undefined,
    'and has nothing yet of what it read of',
  );
  await group.run(500);
  test.ok((leader.replica!.lead().lastContactMs ?? Number.NaN) <= 110);
  // It was the only one that stood still: the others were heard all the while.
  test.ok(contactOf(other!) <= 110);
  test.same(group.violations, []);
});
