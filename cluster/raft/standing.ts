// The four standings of a node (follower, pre-candidate, candidate, leader) and the steps between them.
// Each step forgets what belonged to the standing before.

import { assert } from '../base/assert.ts';
import { ReadQueue } from './leading/read-queue.ts';
import { appendToOwnLog } from './leading/replication.ts';
import { NO_DATA } from './log/entry.ts';
import { NO_NODE, type NodeId } from './node-id.ts';
import { newProgress, observe, progressOf, type Raft } from './state.ts';

/** Follows `leader` (NO_NODE while unknown) in `term`. */
export function becomeFollower(raft: Raft, term: number, leader: NodeId): void {
  reset(raft, term);
  raft.leader = leader;
  raft.standing = 'follower';
  observe(raft, { kind: 'became-follower', term });
}

/** Asks around without touching its term or vote, so that a node nobody wants disturbs nobody. */
export function becomePreCandidate(raft: Raft): void {
  assert(raft.standing !== 'leader', 'a leader does not campaign', { term: raft.term });
  raft.votes = new Map();
  raft.leader = NO_NODE;
  raft.standing = 'pre-candidate';
  observe(raft, { kind: 'became-pre-candidate', term: raft.term });
}

/** Opens the next term and votes for itself in it. */
export function becomeCandidate(raft: Raft): void {
  assert(raft.standing !== 'leader', 'a leader does not campaign', { term: raft.term });
  reset(raft, raft.term + 1);
  raft.vote = raft.id;
  raft.standing = 'candidate';
  observe(raft, { kind: 'became-candidate', term: raft.term });
}

/** Leads from now on, and appends an empty entry whose commit will commit all before it. */
export function becomeLeader(raft: Raft): void {
  assert(raft.standing !== 'follower', 'a follower cannot win an election', { term: raft.term });
  reset(raft, raft.term);
  raft.leader = raft.id;
  raft.standing = 'leader';
  const own = progressOf(raft, raft.id);
  own.becomeReplicate();
  own.recentlyActive = true;
  // Any entry taken over from earlier terms may be a membership change that is still to be applied.
  raft.pendingChangeIndex = raft.log.lastIndex;
  raft.termStartIndex = raft.log.lastIndex + 1;
  const appended = appendToOwnLog(raft, [{ type: 'normal', data: NO_DATA }]);
  assert(appended, 'an empty entry was refused', { term: raft.term });
  observe(raft, { kind: 'became-leader', term: raft.term });
}

function reset(raft: Raft, term: number): void {
  if (raft.term !== term) {
    raft.term = term;
    raft.vote = NO_NODE;
  }
  raft.leader = NO_NODE;
  raft.electionElapsed = 0;
  raft.heartbeatElapsed = 0;
  const { electionTicks, random } = raft.config;
  raft.electionTimeoutTicks = electionTicks + random(electionTicks);
  raft.transferTarget = NO_NODE;
  raft.votes = new Map();
  raft.postponed = undefined;
  raft.pendingChangeIndex = 0;
  raft.termStartIndex = 0;
  raft.uncommittedBytes = 0;
  raft.reads = new ReadQueue();
  resetProgress(raft);
}

function resetProgress(raft: Raft): void {
  const { lastIndex } = raft.log;
  const progressByNode = new Map(raft.progressByNode);
  for (const member of raft.members) {
    const { isLearner } = progressOf(raft, member);
    const matchIndex = member === raft.id ? lastIndex : 0;
    const nextIndex = lastIndex + 1;
    progressByNode.set(
      member,
      newProgress(raft, { matchIndex, nextIndex, isLearner, recentlyActive: false }),
    );
  }
  raft.progressByNode = progressByNode;
}
