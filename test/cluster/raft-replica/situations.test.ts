// A group of replicas, one situation at a time: elections, lost leaders, partitions, restarts, reads, late clocks,
// bounds. What must hold everywhere is checked by the group itself.

import t from 'tap';
import { NO_ENTRY } from '../../../cluster/raft/log/entry.ts';
import { NO_MEMBERS } from '../../../cluster/raft/membership/membership.ts';
import type { MembershipChange } from '../../../cluster/raft/membership/membership-change.ts';
import type { ReplicaError } from '../../../cluster/replica/replica.ts';
import { Ticker } from '../../../cluster/replica/turn/ticker.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import {
  begin,
  electedGroup,
  othersOf,
  read,
  startedGroup,
  watched,
  write,
} from '../../support/simulated/group-actions.ts';
import { CALM, type GroupOptions, type Wire } from '../../support/simulated/in-memory-group.ts';
import { settled } from '../../support/simulated/simulated-world.ts';

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

t.test(
  'leader: where disks are slow, a candidate lets the others answer before it asks anew',
  async (test) => {
    for (const [diskMs, withinMs] of [
      [[100, 140], 550],
      [[250, 300], 1_300],
    ] as const) {
      const all: number[] = [];
      for (let seed = 1; seed <= 15; seed += 1) {
        all.push(await succession({ size: 3, seed }, CALM, diskMs));
      }
      const middleMs = all.sort((one, other) => one - other)[7]!;
      test.ok(middleMs < withinMs, `half of them take ${middleMs} ms with writes of ${diskMs}`);
    }
  },
);

/** Milliseconds from the death of a leader, noticed by all, until another one leads. */
async function succession(
  given: Partial<GroupOptions>,
  wire: Wire,
  diskMs: readonly [number, number] = [1, 5],
): Promise<number> {
  const group = await startedGroup(given);
  group.wire = wire;
  const leader = await group.elected();
  group.diskMs = diskMs;
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

t.test('transfer: right behind a change of the group, too, it takes no timeout', async (test) => {
  // The target knows that the change is committed and has not applied it, or is told so by whoever grants its vote.
  for (const behind of ['lastIndex', 'commitIndex'] as const) {
    for (let seed = 1; seed <= 20; seed += 1) {
      const { group, leader } = await electedGroup({ seed });
      const [target = 0] = othersOf(group, leader.id);
      const { replica } = leader;
      if (replica === undefined) throw new Error('the leader is down');
      const before = replica.status()[behind];
      const changed = watched(
        replica.proposeMembership({
          transition: 'auto',
          changes: [{ kind: 'update', node: target }],
          context: new Uint8Array(0),
        }),
      );
      await group.until(() => replica.status()[behind] > before);
      const askedAtMs = group.nowMs;
      replica.transferLeadership(target);
      await group.until(() => group.leader()?.id === target, 1000);
      const tookMs = group.nowMs - askedAtMs;
      if (tookMs >= 500) test.fail(`behind ${behind}, seed ${seed}: ${tookMs} ms`);
      await group.settle();
      test.not(changed.result, undefined);
      test.same(group.violations, []);
    }
  }
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
