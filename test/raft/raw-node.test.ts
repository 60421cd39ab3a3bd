// A node as its driver uses it: what is refused, what a proposal answers, and the order of Ready and advance.

import t from 'tap';
import { must } from '../../cluster/base/assert.ts';
import { type Entry, NO_ENTRY } from '../../cluster/raft/log/entry.ts';
import { NO_MEMBERS } from '../../cluster/raft/membership/membership.ts';
import {
  decodeMembershipChange,
  LEAVE_JOINT,
  type MembershipChange,
} from '../../cluster/raft/membership/membership-change.ts';
import type { Message } from '../../cluster/raft/message.ts';
import { createRaft } from '../../cluster/raft/raft.ts';
import { RawNode } from '../../cluster/raft/raw-node.ts';
import { DEFAULT_OPTIONS, type NodeOptions } from './support/group.ts';
import { MemoryStorage } from './support/memory-storage.ts';

const DATA = new TextEncoder().encode('data');

/** Node 1 of a group whose log begins after index 10; the disk is written with each Ready. */
function nodeOf({
  voters = [1],
  ...options
}: Partial<NodeOptions> & { voters?: readonly number[] } = {}) {
  const storage = new MemoryStorage();
  const membership = { ...NO_MEMBERS, voters };
  storage.applySnapshot({ term: 1, index: 10, membership, data: new Uint8Array() });
  storage.membership = membership;
  storage.hardState = { term: 1, vote: 0, commitIndex: 10 };
  const config = { ...DEFAULT_OPTIONS, appliedIndex: 10, ...options };
  const node = new RawNode(createRaft({ ...config, id: 1, storage, random: () => 0 }));
  return { node, storage };
}

/** Carries out all that the node wants done, and returns what it sent and applied. */
function run({ node, storage }: ReturnType<typeof nodeOf>) {
  const sent: Message[] = [];
  const applied: Entry[] = [];
  while (node.hasReady()) {
    const ready = node.ready();
    if (ready.hardState !== undefined) storage.hardState = ready.hardState;
    storage.append(ready.entries);
    sent.push(...ready.messages);
    applied.push(...ready.committedEntries);
    node.advance();
  }
  return { sent, applied };
}

t.test('node: messages that cannot be meant are refused', (t) => {
  const { node } = nodeOf({ voters: [1, 2] });
  const route = { from: 2, to: 1, term: 1 };
  const refused = (message: Message) => node.step(message);
  t.equal(
    refused({ type: 'heartbeat-reply', ...route, from: 9, readCount: 0 }),
    'unknown-member',
    'a reply of a stranger',
  );
  t.equal(
    refused({ type: 'storage-append-reply', ...route, lastStable: { term: 1, index: 10 } }),
    'local-message',
    'news of this node’s disk from somebody else',
  );
  t.equal(
    refused({ type: 'heartbeat', ...route, term: 0, commitIndex: 0, readCount: 0 }),
    'message-without-term',
  );
  t.equal(
    refused({ type: 'heartbeat', ...route, from: -1, commitIndex: 0, readCount: 0 }),
    'local-message',
  );
  t.equal(refused({ type: 'heartbeat', ...route, commitIndex: 10, readCount: 0 }), undefined);
  t.equal(node.status().leader, 2);
  t.end();
});

t.test('node: a malformed append is neither taken nor answered', (t) => {
  const subject = nodeOf({ voters: [1, 2] });
  const gap: Entry = { term: 1, index: 13, type: 'normal', data: DATA };
  subject.node.step({
    type: 'append',
    from: 2,
    to: 1,
    term: 1,
    prevTerm: 1,
    prevIndex: 10,
    entries: [gap],
    commitIndex: 13,
  });
  t.same(run(subject).sent, []);
  t.equal(subject.storage.lastIndex(), 10);
  t.end();
});

t.test('node: a leader without what is committed here is not followed', (t) => {
  const subject = nodeOf({ voters: [1, 2] });
  const route = { from: 2, to: 1, prevTerm: 1, prevIndex: 10, commitIndex: 12 } as const;
  const entries: readonly Entry[] = [11, 12].map((index) => ({
    ...{ term: 2, index, type: 'normal', data: DATA },
  }));
  subject.node.step({ type: 'append', ...route, term: 2, entries });
  t.match(run(subject).sent.at(-1), { type: 'append-reply', index: 12 });
  // Late, and of one history: what is committed here is the leader's too.
  const late = { type: 'append', ...route, term: 3, prevIndex: 11, entries: [] } as const;
  t.equal(subject.node.step({ ...late, prevTerm: 2 }), undefined);
  t.match(run(subject).sent, [{ type: 'append-reply', index: 12 }]);
  // Elected by one that was given an old copy of its data.
  t.throws(() => subject.node.step({ ...late, prevTerm: 3 }), {
    message: /^the leader contradicts a committed entry .*"index":11,"term":2,"leaderTerm":3/,
  });
  t.end();
});

t.test('node: who has committed more than the leader has counts for nothing', (t) => {
  const subject = nodeOf({ voters: [1, 2], preVote: false });
  const { node } = subject;
  const route = { from: 2, to: 1, term: 2 } as const;
  node.campaign();
  run(subject);
  node.step({ type: 'vote-reply', ...route, rejected: false, committed: { term: 1, index: 10 } });
  run(subject);
  t.equal(node.status().standing, 'leader');
  node.step({ type: 'append-reply', ...route, index: 40 });
  run(subject);
  t.equal(node.status().commitIndex, 10, 'it has not said that it has entry 11');
  t.match(node.progress()[1], [2, { matchIndex: 0 }]);
  node.step({ type: 'heartbeat-reply', ...route, readCount: 0 });
  const wanted = { type: 'append', to: 2, prevIndex: 11, prevTerm: 2 };
  t.match(run(subject).sent, [wanted], 'it is told of an entry that it cannot have');
  t.end();
});

t.test('node: a proposal says where its entry will be, or why not', (t) => {
  const subject = nodeOf();
  const { node } = subject;
  t.same(node.propose(DATA), { kind: 'refused', reason: 'no-leader' });
  node.campaign();
  run(subject);
  t.same(node.propose(DATA), { kind: 'appended', term: 2, index: 12 });
  const { applied } = run(subject);
  t.same(
    applied.map(({ term, index, data }) => [term, index, new TextDecoder().decode(data)]),
    [[2, 12, 'data']],
  );
  t.end();
});

t.test('node: a follower hands a proposal on and promises nothing', (t) => {
  const { node } = nodeOf({ voters: [1, 2] });
  node.step({ type: 'heartbeat', from: 2, to: 1, term: 1, commitIndex: 10, readCount: 0 });
  t.same(node.propose(DATA), { kind: 'forwarded', to: 2 });
  const messages = node.ready().messages.filter(({ type }) => type === 'propose');
  t.equal(messages.length, 1);
  t.end();
});

t.test('node: a membership change that must wait is answered as ignored', (t) => {
  const subject = nodeOf();
  const { node } = subject;
  node.campaign();
  run(subject);
  const change: MembershipChange = {
    transition: 'auto',
    changes: [{ kind: 'add-learner', node: 2 }],
    context: DATA,
  };
  t.same(node.proposeMembership(change), { kind: 'appended', term: 2, index: 12 });
  t.same(node.proposeMembership(change), {
    kind: 'appended',
    term: 2,
    index: 13,
    changeIgnored: { reason: 'unapplied-change', atIndex: 12, appliedIndex: 11 },
  });
  run(subject);
  t.equal(node.applyMembership(12, change), 'switched');
  t.equal(node.applyMembership(12, change), 'overtaken', 'once is enough');
  t.same(node.status().membership.learners, [2]);
  t.equal(node.applyMembership(14, LEAVE_JOINT), 'not-joint');
  t.end();
});

t.test('node: a joint state is left behind a transfer that failed, though nobody writes', (t) => {
  const subject = nodeOf({ voters: [1, 2, 3], preVote: false });
  const { node, storage } = subject;
  const carryOut = (): void => {
    while (node.hasReady()) {
      const { entries, committedEntries } = node.ready();
      storage.append(entries);
      for (const { type, index, data } of committedEntries) {
        if (type === 'membership')
          node.applyMembership(index, must(decodeMembershipChange(data), 'it'));
      }
      node.advance();
    }
  };
  const says = { from: 2, to: 1, term: 2 } as const;
  node.campaign();
  carryOut();
  node.step({ type: 'vote-reply', ...says, rejected: false, committed: NO_ENTRY });
  carryOut();
  node.step({ type: 'append-reply', ...says, index: 11 });
  carryOut();
  node.proposeMembership({
    transition: 'auto',
    changes: [
      { kind: 'remove', node: 3 },
      { kind: 'add-voter', node: 4 },
    ],
    context: DATA,
  });
  node.transferLeadership(3);
  node.step({ type: 'append-reply', ...says, index: 12 });
  carryOut();
  t.same(node.status().membership.votersOutgoing, [1, 2, 3]);
  t.equal(node.status().lastIndex, 12, 'nothing is proposed during a transfer');
  for (let ticks = 0; ticks < DEFAULT_OPTIONS.electionTicks; ticks += 1) {
    node.step({ type: 'heartbeat-reply', ...says, readCount: 0 });
    node.tick();
  }
  carryOut();
  t.equal(node.status().standing, 'leader');
  t.equal(node.status().lastIndex, 13, 'the joint state is being left');
  t.end();
});

t.test('node: bytes that say no membership change never enter the log', (t) => {
  const subject = nodeOf({ voters: [1, 2] });
  const { node } = subject;
  node.campaign();
  run(subject);
  node.step({ type: 'vote-reply', from: 2, to: 1, term: 2, rejected: false, committed: NO_ENTRY });
  const entries = [{ type: 'membership', data: new Uint8Array([9, 9]) }] as const;
  const refusal = node.step({ type: 'propose', from: 2, to: 1, term: 0, entries });
  t.equal(refusal, 'malformed-change');
  t.end();
});

t.test('node: Ready and advance come in turn, and advance only without storage workers', (t) => {
  const { node } = nodeOf();
  node.campaign();
  node.ready();
  t.throws(() => node.ready(), /without advance/);
  node.advance();
  node.ready();
  const { node: asyncNode } = nodeOf({ asyncStorage: true });
  t.throws(() => asyncNode.advance(), /asyncStorage/);
  t.end();
});

t.test('node: only promises and entries must be synced', (t) => {
  const subject = nodeOf();
  const { node, storage } = subject;
  node.campaign();
  const voted = node.ready();
  t.ok(voted.mustSync, 'a vote');
  storage.hardState = voted.hardState!;
  node.advance();
  const appended = node.ready();
  t.ok(appended.mustSync, 'an entry');
  storage.append(appended.entries);
  node.advance();
  const committed = node.ready();
  t.same([committed.mustSync, committed.hardState?.commitIndex], [false, 11]);
  t.end();
});

t.test('node: a new leader says when its term has begun', (t) => {
  const subject = nodeOf();
  const { node } = subject;
  node.campaign();
  node.ready();
  node.advance();
  t.same([node.status().standing, node.status().hasCommittedInTerm], ['leader', false]);
  run(subject);
  t.equal(node.status().hasCommittedInTerm, true);
  t.end();
});

t.test('node: a configuration that contradicts itself does not start', (t) => {
  const table: readonly [Partial<NodeOptions>, RegExp][] = [
    [{ heartbeatTicks: 0 }, /heartbeats/],
    [{ electionTicks: 1 }, /election/],
    [{ maxInflightMessages: 0 }, /sent/],
    [{ maxMessageBytes: 10, maxInflightBytes: 9 }, /window/],
    [{ maxApplyingBytes: 0 }, /applied/],
    [{ readMode: 'lease', checkQuorum: false }, /checkQuorum/],
  ];
  for (const [options, expected] of table) t.throws(() => nodeOf(options), expected);
  t.end();
});

/** A follower in term 2 that has entries 11 to 13 of term 1, of which 11 is committed. */
function followerOf13() {
  const subject = nodeOf({ voters: [1, 2, 3] });
  const entryAt = (index: number): Entry => ({ term: 1, index, type: 'normal', data: DATA });
  const entries = [11, 12, 13].map(entryAt);
  const prev = { prevTerm: 1, prevIndex: 10 };
  const route = { from: 2, to: 1 };
  subject.node.step({ type: 'append', ...route, term: 1, ...prev, entries, commitIndex: 11 });
  run(subject);
  /** The leader of term 2 sends it; gives the answer, and what is to be done. */
  const take = (index: number, term: number, voters = [1, 2, 3]) => {
    const snapshot = { index, term, membership: { ...NO_MEMBERS, voters }, data: DATA };
    subject.node.step({ type: 'snapshot', ...route, from: 3, term: 2, snapshot });
    const ready = subject.node.ready();
    const { commitIndex, lastIndex } = subject.node.status();
    const answers = ready.messages.map((message) => 'index' in message && message.index);
    return [answers, ready.snapshot === snapshot, commitIndex, lastIndex];
  };
  return { take };
}

t.test('node: to a snapshot of what is here it tells what is committed, and no more', (t) => {
  for (const [index, term] of [
    [10, 1],
    [11, 1],
  ] as const) {
    // The entries behind may be none of the leader's.
    t.same(followerOf13().take(index, term), [[11], false, 11, 13], `${index}`);
  }
  t.end();
});

t.test('node: a snapshot up to an entry that is here takes away none behind it', (t) => {
  t.same(followerOf13().take(12, 1), [[12], false, 12, 13]);
  t.same(followerOf13().take(13, 1), [[13], false, 13, 13]);
  t.same(followerOf13().take(12, 2), [[12], true, 12, 12], 'another entry is replaced with all');
  t.same(followerOf13().take(20, 2), [[20], true, 20, 20]);
  t.end();
});

t.test('node: a snapshot of a group without it changes nothing', (t) => {
  t.same(followerOf13().take(20, 2, [2, 3]), [[11], false, 11, 13]);
  t.end();
});

t.test('node: whoever leads no more sends nothing as a leader on what comes late', (t) => {
  const subject = nodeOf({ voters: [1, 2, 3], checkQuorum: true });
  const { node } = subject;
  node.campaign();
  run(subject);
  const { term } = node.status();
  const route = { from: 2, to: 1, term };
  node.step({ type: 'vote-reply', ...route, rejected: false, committed: NO_ENTRY });
  run(subject);
  t.equal(node.status().standing, 'leader');
  for (let ticks = 0; ticks < 100 && node.status().standing === 'leader'; ticks += 1) {
    node.tick();
    run(subject);
  }
  t.same([node.status().standing, node.status().term], ['follower', term], 'nobody answered');
  node.step({ type: 'heartbeat-reply', ...route, readCount: 0 });
  node.step({ type: 'append-reply', ...route, index: node.status().lastIndex });
  t.same([run(subject).sent, node.status().commitIndex], [[], 10]);
  t.end();
});

t.test('node: whatever says that a later term has begun ends what was of an earlier one', (t) => {
  const route = { from: 2, to: 1, term: 5 } as const;
  const committed = { term: 1, index: 10 };
  const messages: readonly Message[] = [
    { type: 'append-reply', ...route, index: 0 },
    { type: 'append-reply', ...route, index: 11 },
    { type: 'heartbeat-reply', ...route, readCount: 1 },
    { type: 'vote-reply', ...route, rejected: false, committed },
    { type: 'vote-reply', ...route, rejected: true, committed },
    { type: 'pre-vote-reply', ...route, rejected: true, committed },
  ];
  for (const message of messages) {
    const of = JSON.stringify(message);
    for (const standing of ['leader', 'candidate'] as const) {
      const subject = nodeOf({ voters: [1, 2], preVote: false });
      const { node } = subject;
      node.campaign();
      run(subject);
      const won = { ...route, term: 2, rejected: false, committed };
      if (standing === 'leader') node.step({ type: 'vote-reply', ...won });
      run(subject);
      t.equal(node.status().standing, standing);
      node.step(message);
      run(subject);
      const expected = { standing: 'follower', term: 5, leader: 0, vote: 0, commitIndex: 10 };
      t.match(node.status(), expected, `${standing}: ${of}`);
    }
  }
  t.end();
});

t.test('node: who hears its leader gives no vote away, but to whom that one has chosen', (t) => {
  const asked = { to: 1, lastTerm: 9, lastIndex: 99, committed: { term: 1, index: 10 } } as const;
  for (const type of ['vote', 'pre-vote'] as const) {
    const subject = nodeOf({ voters: [1, 2, 3], preVote: true, checkQuorum: true });
    const { node } = subject;
    node.step({ type: 'heartbeat', from: 2, to: 1, term: 1, commitIndex: 10, readCount: 0 });
    run(subject);
    node.step({ type, ...asked, from: 3, term: 2, forced: false });
    t.same(run(subject).sent, [], type);
    t.match(node.status(), { term: 1, leader: 2 });
    node.step({ type, ...asked, from: 3, term: 2, forced: true });
    t.match(run(subject).sent, [{ type: `${type}-reply`, term: 2, rejected: false }]);
  }
  t.end();
});

t.test('node: a leader that others have outrun is told so, and what it says is not taken', (t) => {
  const subject = nodeOf({ voters: [1, 2, 3], preVote: true, checkQuorum: true });
  const { node, storage } = subject;
  const committed = { term: 1, index: 10 };
  const asked = { to: 1, lastTerm: 1, lastIndex: 10, committed, forced: false } as const;
  const entries: readonly Entry[] = [{ term: 2, index: 11, type: 'normal', data: DATA }];
  const ofTwo = { from: 2, to: 1, term: 2, prevTerm: 1, prevIndex: 10, commitIndex: 10 } as const;
  node.step({ type: 'append', ...ofTwo, entries });
  for (let tick = 0; tick < 3; tick += 1) node.tick();
  node.step({ type: 'vote', ...asked, from: 3, term: 5, lastTerm: 2, lastIndex: 11 });
  run(subject);
  t.match(node.status(), { term: 5, vote: 3, leader: 0, lastIndex: 11 });
  const late = [
    { type: 'heartbeat', ...{ from: 2, to: 1, term: 2 }, commitIndex: 11, readCount: 1 },
    { type: 'append', ...ofTwo, commitIndex: 11, entries: [] },
  ] as const;
  for (const message of late) {
    node.step(message);
    t.same(run(subject).sent, [{ type: 'append-reply', from: 1, to: 2, term: 5, index: 0 }]);
    t.match(node.status(), { term: 5, leader: 0, commitIndex: 10 }, message.type);
  }
  // Whoever asks in an earlier term may all the same know more of what is committed.
  const known = { term: 2, index: 11 };
  node.step({ type: 'pre-vote', ...asked, from: 2, term: 3, committed: known });
  t.match(run(subject).sent, [{ type: 'pre-vote-reply', to: 2, term: 5, rejected: true }]);
  t.equal(node.status().commitIndex, 11);
  t.equal(storage.hardState.term, 5);
  t.end();
});

t.test('node: a snapshot that is on disk counts, in whatever term it was handed out', (t) => {
  for (const laterTerm of [2, 3]) {
    const { node } = nodeOf({ voters: [1, 2], asyncStorage: true });
    const membership = { ...NO_MEMBERS, voters: [1, 2] };
    const snapshot = { index: 20, term: 2, membership, data: new Uint8Array() };
    node.step({ type: 'snapshot', from: 2, to: 1, term: 2, snapshot });
    const work = node.ready().messages.find(({ type }) => type === 'storage-append')!;
    const heard = { type: 'heartbeat', from: 2, to: 1, commitIndex: 20, readCount: 0 } as const;
    node.step({ ...heard, term: laterTerm });
    node.campaign();
    t.match(node.status(), { standing: 'follower', appliedIndex: 10 }, 'not before it is there');
    for (const reply of must('replies' in work ? work.replies : undefined, 'replies')) {
      if (reply.to === 1) node.step(reply);
    }
    t.equal(node.status().appliedIndex, 20, `in term ${laterTerm}`);
    node.campaign();
    t.equal(node.status().standing, 'candidate');
  }
  t.end();
});

/** Of term 2, by the votes of 2 and 3. */
function leaderOfFour() {
  const subject = nodeOf({ voters: [1, 2, 3, 4], preVote: false });
  const from = (member: number) => ({ from: member, to: 1, term: 2 }) as const;
  subject.node.campaign();
  run(subject);
  for (const voter of [2, 3]) {
    subject.node.step({ type: 'vote-reply', ...from(voter), rejected: false, committed: NO_ENTRY });
  }
  run(subject);
  return { subject, from };
}

t.test('node: what the quorum of a new membership has already counts when it is applied', (t) => {
  const { subject, from } = leaderOfFour();
  const { node } = subject;
  for (const voter of [2, 3]) node.step({ type: 'append-reply', ...from(voter), index: 11 });
  run(subject);
  const changes = [{ kind: 'remove', node: 4 }] as const;
  const change: MembershipChange = { transition: 'auto', changes, context: DATA };
  node.proposeMembership(change);
  node.propose(DATA);
  node.readIndex('a read');
  run(subject);
  node.step({ type: 'append-reply', ...from(2), index: 13 });
  node.step({ type: 'append-reply', ...from(3), index: 12 });
  node.step({ type: 'heartbeat-reply', ...from(2), readCount: 1 });
  t.match(run(subject).applied, [{ index: 12, type: 'membership' }]);
  t.equal(node.status().commitIndex, 12, 'three of four have no more');
  node.applyMembership(12, change);
  t.equal(node.status().commitIndex, 13, 'two of three have it');
  const { readStates, messages } = node.ready();
  t.match(readStates, [{ context: 'a read', index: 11 }]);
  for (const to of [2, 3]) {
    const told = messages.filter((each) => each.type === 'append' && each.to === to);
    t.match(told.at(-1), { commitIndex: 13 }, `node ${to} is told`);
  }
  t.end();
});

t.test('node: reads that wait for the first commit of a term are answered by a new quorum', (t) => {
  const { subject, from } = leaderOfFour();
  const { node } = subject;
  node.step({ type: 'append-reply', ...from(2), index: 11 });
  node.readIndex('a read');
  run(subject);
  const changes = [{ kind: 'remove', node: 4 }] as const;
  node.applyMembership(11, { transition: 'auto', changes, context: DATA });
  t.equal(node.status().commitIndex, 11, 'two of three have the first entry of the term');
  t.match(
    run(subject).sent.filter(({ type }) => type === 'heartbeat'),
    [{ readCount: 1 }, { readCount: 1 }],
  );
  node.step({ type: 'heartbeat-reply', ...from(2), readCount: 1 });
  t.match(node.ready().readStates, [{ context: 'a read', index: 11 }]);
  t.end();
});

t.test('node: a leader whose vote is taken away, or that is removed, leads no more', (t) => {
  for (const kind of ['add-learner', 'remove'] as const) {
    const subject = nodeOf({ voters: [1, 2], preVote: false, stepDownOnRemoval: true });
    const { node } = subject;
    node.campaign();
    run(subject);
    const vote = { from: 2, to: 1, term: 2, rejected: false, committed: NO_ENTRY } as const;
    node.step({ type: 'vote-reply', ...vote });
    t.equal(node.status().standing, 'leader');
    const changes = [{ kind, node: 1 }];
    node.applyMembership(12, { transition: 'auto', changes, context: DATA });
    t.equal(node.status().standing, 'follower', kind);
  }
  t.end();
});

t.test('node: whoever is removed and let in anew by one change is sent all anew', (t) => {
  const subject = nodeOf();
  const { node } = subject;
  node.campaign();
  run(subject);
  const learner = { kind: 'add-learner', node: 2 } as const;
  node.applyMembership(12, { transition: 'auto', changes: [learner], context: DATA });
  node.step({ type: 'append-reply', from: 2, to: 1, term: 2, index: 11 });
  t.match(node.progress()[1], [2, { matchIndex: 11 }]);
  const changes = [{ kind: 'remove', node: 2 } as const, learner];
  node.applyMembership(13, { transition: 'auto', changes, context: DATA });
  t.match(node.progress()[1], [2, { matchIndex: 0 }]);
  t.end();
});

t.test(
  'node: whoever is made a voter may be handed the leadership, and who is none may not',
  (t) => {
    const subject = nodeOf({ voters: [1] });
    const { node } = subject;
    node.campaign();
    run(subject);
    const changeOf = (kind: 'add-learner' | 'add-voter'): MembershipChange => {
      return { transition: 'auto', changes: [{ kind, node: 2 }], context: DATA };
    };
    node.applyMembership(12, changeOf('add-learner'));
    t.match(node.progress()[1], [2, { isLearner: true, recentlyActive: true }]);
    t.equal(node.transferLeadership(2), 'unknown-member');
    node.applyMembership(13, changeOf('add-voter'));
    t.match(node.progress()[1], [2, { isLearner: false }]);
    t.equal(node.transferLeadership(2), undefined);
    t.equal(node.status().transferTarget, 2);
    node.applyMembership(14, changeOf('add-learner'));
    t.equal(node.status().transferTarget, 0, 'the transfer ends with its vote');
    t.end();
  },
);

t.test(
  'node: a successor is told to campaign when it has all, and has an election timeout for it',
  (t) => {
    const subject = nodeOf({ voters: [1, 2, 3], preVote: false, checkQuorum: false });
    const { node } = subject;
    const from = (member: number) => ({ from: member, to: 1, term: 2 }) as const;
    node.campaign();
    run(subject);
    node.step({ type: 'vote-reply', ...from(2), rejected: false, committed: NO_ENTRY });
    run(subject);
    node.step({ type: 'append-reply', ...from(2), index: 11 });
    node.propose(DATA);
    run(subject);
    t.equal(node.transferLeadership(9), 'unknown-member');
    for (let ticks = 1; ticks < DEFAULT_OPTIONS.electionTicks; ticks += 1) node.tick();
    t.equal(node.transferLeadership(3), undefined);
    const isTold = () =>
      run(subject).sent.some(({ type, to }) => type === 'timeout-now' && to === 3);
    node.tick();
    t.equal(node.status().transferTarget, 3, 'its time begins with the transfer');
    node.step({ type: 'append-reply', ...from(3), index: 11 });
    t.notOk(isTold(), 'entry 12 is not there yet');
    node.step({ type: 'append-reply', ...from(3), index: 12 });
    t.ok(isTold());
    for (let ticks = 1; ticks < DEFAULT_OPTIONS.electionTicks; ticks += 1) node.tick();
    t.equal(node.status().transferTarget, 0, 'it did not campaign');
    t.end();
  },
);

t.test('node: a later term goes to the disk, whatever says that it has begun', (t) => {
  const works = (message: Message): readonly Message[] => {
    const { node } = nodeOf({ voters: [1, 2], asyncStorage: true });
    node.step(message);
    return node.ready().messages.filter(({ type }) => type === 'storage-append');
  };
  const route = { from: 2, to: 1, term: 7 } as const;
  const late = { rejected: true, committed: NO_ENTRY };
  const promised = { hardState: { term: 7, vote: 0 } };
  t.match(works({ type: 'heartbeat', ...route, commitIndex: 0, readCount: 0 }), [promised]);
  t.match(works({ type: 'vote-reply', ...route, ...late }), [promised]);
  const membership = { ...NO_MEMBERS, voters: [1, 2] };
  const snapshot = { index: 20, term: 2, membership, data: new Uint8Array() };
  t.match(works({ type: 'snapshot', ...route, snapshot }), [{ ...promised, snapshot }]);
  t.end();
});
