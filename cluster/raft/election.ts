// Campaigns and votes: who may ask, who is answered how, and when a campaign is won or lost.
// A vote is queued behind the disk by its type (state.ts), never sent before it is written.

import { unreachable } from '../base/unreachable.ts';
import { broadcastAppend } from './leading/replication.ts';
import type { EntryId } from './log/entry.ts';
import { membersOf, votersOf } from './membership/membership.ts';
import { quorumVote } from './membership/quorum.ts';
import { membershipInLog } from './membership/reconfiguration.ts';
import type { VoteMessage, VoteReply } from './message.ts';
import { NO_NODE, unionOf } from './node-id.ts';
import { becomeCandidate, becomeFollower, becomeLeader, becomePreCandidate } from './standing.ts';
import { type CampaignKind, envelope, observe, type Raft, send } from './state.ts';

/** Campaigns, unless this node leads, has no vote, or has a membership change still to apply. */
export function startElection(raft: Raft, kind: CampaignKind): void {
  if (raft.standing === 'leader') {
    observe(raft, { kind: 'campaign-needless' });
    return;
  }
  if (!isPromotable(raft)) {
    observe(raft, { kind: 'campaign-unpromotable' });
    return;
  }
  // Its quorum might be one that the committed change has done away with.
  if (raft.log.hasUnappliedMembershipChange()) {
    observe(raft, { kind: 'campaign-barred-by-change', term: raft.term });
    // The leader has chosen this node and takes no proposals meanwhile. A timeout comes again by itself.
    if (kind === 'forced') postpone(raft, kind);
    return;
  }
  observe(raft, { kind: 'election-started', term: raft.term });
  if (kind === 'election' && raft.config.preVote) campaignForPreVotes(raft);
  else campaignForVotes(raft, { forced: kind === 'forced' });
}

/**
 * Whether this node could lead: with no snapshot still to install, and a voter, or a learner that its log
 * has made one. If the others have applied that and it has the longest log, nobody else can win: it asks
 * the voters that it knows, of whom a quorum meets every quorum of the next membership, and its own vote
 * does not count.
 */
export function isPromotable(raft: Raft): boolean {
  const own = raft.progressByNode.get(raft.id);
  if (own === undefined || raft.log.unstable.snapshot !== undefined) return false;
  return !own.isLearner || votersOf(membershipInLog(raft)).includes(raft.id);
}

/**
 * Whether a higher-term request must go unanswered: this node has heard its leader within the
 * shortest election timeout, so nobody who is well connected can have reason to campaign.
 */
export function isBarredByLease(raft: Raft, message: VoteMessage): boolean {
  const { checkQuorum, electionTicks } = raft.config;
  const inLease = checkQuorum && raft.leader !== NO_NODE && raft.electionElapsed < electionTicks;
  if (!inLease || message.forced) return false;
  const remainingTicks = electionTicks - raft.electionElapsed;
  const { vote, term } = raft;
  const last = raft.log.lastId;
  observe(raft, { kind: 'vote-ignored-by-lease', message, last, vote, term, remainingTicks });
  return true;
}

/** Grants or refuses a vote. Learners vote too: they may be voters who have not heard of it yet. */
export function onVoteRequest(raft: Raft, message: VoteMessage): void {
  const isRepeat = raft.vote === message.from;
  const isFree = raft.vote === NO_NODE && raft.leader === NO_NODE;
  const asksForFuture = message.type === 'pre-vote' && message.term > raft.term;
  const theirs: EntryId = { term: message.lastTerm, index: message.lastIndex };
  if (!(isRepeat || isFree || asksForFuture) || !raft.log.isUpToDate(theirs)) {
    refuseVote(raft, message);
    return;
  }
  const { vote, term } = raft;
  observe(raft, { kind: 'vote-cast', message, last: raft.log.lastId, vote, term });
  // The answer carries the term asked for: a node that lags behind would drop one of an older term.
  send(raft, {
    type: replyTypeOf(message),
    from: raft.id,
    to: message.from,
    term: message.term,
    rejected: false,
    committed: raft.log.committedId,
  });
  if (message.type === 'vote') {
    raft.electionElapsed = 0;
    raft.vote = message.from;
  }
}

/** Refuses and tells the own term, so that a node that lags behind can catch up. */
export function refuseVote(raft: Raft, message: VoteMessage): void {
  const { vote, term } = raft;
  observe(raft, { kind: 'vote-refused', message, last: raft.log.lastId, vote, term });
  send(raft, {
    type: replyTypeOf(message),
    ...envelope(raft, message.from),
    rejected: true,
    committed: raft.log.committedId,
  });
}

/**
 * Takes in what the other side of a vote knows to be committed. Whoever has the longest log may have missed
 * which of it is committed, and nobody else can be elected then: without this it would go on to ask the
 * voters of a membership that is over. A campaign that turns out to have asked them ends.
 */
export function learnCommit(raft: Raft, { from, committed }: VoteMessage | VoteReply): void {
  if (raft.standing === 'leader' || !raft.log.commitKnown(committed)) return;
  observe(raft, { kind: 'commit-learned-by-vote', from, commitIndex: committed.index });
  if (raft.standing === 'follower' || !raft.log.hasUnappliedMembershipChange()) return;
  observe(raft, { kind: 'campaign-ended-by-change', term: raft.term });
  becomeFollower(raft, raft.term, NO_NODE);
  postpone(raft, 'election');
}

/** After an election timeout others have a reason to campaign, or the leader has gone on by itself. */
function postpone(raft: Raft, kind: CampaignKind): void {
  raft.postponed = { kind, ticksLeft: raft.config.electionTicks };
}

/** One unit of time, for what waits. */
export function tickPostponed(raft: Raft): void {
  if (raft.postponed === undefined) return;
  const { kind, ticksLeft } = raft.postponed;
  raft.postponed = ticksLeft > 1 ? { kind, ticksLeft: ticksLeft - 1 } : undefined;
}

/**
 * Begins the campaign that has waited for a membership change, once nothing of one is left to apply. Of what was to be
 * applied before a snapshot that is still to be installed, the log has nothing any more.
 */
export function resumeCampaign(raft: Raft): void {
  const { postponed, standing, leader } = raft;
  if (postponed === undefined || !isPromotable(raft)) return;
  if (raft.log.hasUnappliedMembershipChange()) return;
  raft.postponed = undefined;
  const isWanted = standing === 'follower' && (postponed.kind === 'forced' || leader === NO_NODE);
  if (isWanted) startElection(raft, postponed.kind);
}

/** Counts an answer to the present campaign; answers to an earlier kind of campaign are void. */
export function onVoteReply(raft: Raft, message: VoteReply): void {
  const expected = raft.standing === 'pre-candidate' ? 'pre-vote-reply' : 'vote-reply';
  const isCampaigning = raft.standing === 'pre-candidate' || raft.standing === 'candidate';
  if (!isCampaigning || message.type !== expected) return;
  recordVote(raft, message);
  const result = quorumVote(raft.membership, raft.votes);
  switch (result) {
    case 'won':
      if (raft.standing === 'pre-candidate') {
        campaignForVotes(raft, { forced: false });
        return;
      }
      // Whoever leads before its vote is on disk might, after a crash, win the same term once more.
      if (raft.votes.get(raft.id) !== true) return;
      becomeLeader(raft);
      broadcastAppend(raft);
      return;
    case 'lost':
      becomeFollower(raft, raft.term, NO_NODE);
      return;
    case 'pending':
      return;
    default:
      unreachable(result);
  }
}

function campaignForPreVotes(raft: Raft): void {
  becomePreCandidate(raft);
  askForVotes(raft, { type: 'pre-vote', term: raft.term + 1, forced: false });
}

function campaignForVotes(raft: Raft, { forced }: { readonly forced: boolean }): void {
  becomeCandidate(raft);
  askForVotes(raft, { type: 'vote', term: raft.term, forced });
}

function askForVotes(raft: Raft, asked: Pick<VoteMessage, 'type' | 'term' | 'forced'>): void {
  const { lastId: last, committedId: committed } = raft.log;
  for (const voter of unionOf(votersOf(raft.membership), [raft.id])) {
    const route = { from: raft.id, to: voter };
    if (voter === raft.id) {
      // The own vote counts like all others, if it does: when it is on disk.
      const type = replyTypeOf(asked);
      send(raft, { type, ...route, term: asked.term, rejected: false, committed });
      continue;
    }
    observe(raft, { kind: 'vote-asked', type: asked.type, voter, last, term: raft.term });
    send(raft, { ...asked, ...route, lastTerm: last.term, lastIndex: last.index, committed });
  }
}

function recordVote(raft: Raft, { from, type, rejected }: VoteReply): void {
  observe(raft, { kind: 'vote-received', type, voter: from, granted: !rejected, term: raft.term });
  if (!raft.votes.has(from)) raft.votes.set(from, !rejected);
  const { learners } = raft.membership;
  const counted = membersOf(raft.membership).filter((member) => !learners.includes(member));
  const granted = counted.filter((member) => raft.votes.get(member) === true).length;
  const refused = counted.filter((member) => raft.votes.get(member) === false).length;
  observe(raft, { kind: 'votes-counted', type, granted, rejected: refused });
}

function replyTypeOf({ type }: Pick<VoteMessage, 'type'>): VoteReply['type'] {
  return type === 'vote' ? 'vote-reply' : 'pre-vote-reply';
}
