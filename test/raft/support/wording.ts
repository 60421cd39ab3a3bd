// Events in the words that the published transcripts expect. Only tests speak this way: raft itself
// tells values, and whoever runs it chooses words.

import { unreachable } from '../../../cluster/base/unreachable.ts';
import type { ChangeIgnored, RaftEvent } from '../../../cluster/raft/events.ts';
import type { EntryId } from '../../../cluster/raft/log/entry.ts';
import type { VoteMessage } from '../../../cluster/raft/message.ts';
import type { NodeId } from '../../../cluster/raft/node-id.ts';
import {
  describeChange,
  describeMembership,
  describeMessageType,
  describeProgress,
  describeStanding,
} from './describe.ts';

/** One log line of node `id`, without its level. */
export function wordsFor(id: NodeId, event: RaftEvent): string {
  const me = hex(id);
  switch (event.kind) {
    case 'started': {
      const { voters, term, commitIndex, appliedIndex, last } = event;
      const peers = voters.map(hex).join(',');
      return `newRaft ${me} [peers: [${peers}], term: ${term}, commit: ${commitIndex}, applied: ${appliedIndex}, lastindex: ${last.index}, lastterm: ${last.term}]`;
    }
    case 'became-follower':
    case 'became-pre-candidate':
    case 'became-candidate':
    case 'became-leader':
      return `${me} became ${event.kind.slice('became-'.length)} at term ${event.term}`;
    case 'campaign-needless':
      return `${me} ignoring MsgHup because already leader`;
    case 'campaign-unpromotable':
      return `${me} is unpromotable and can not campaign`;
    case 'campaign-barred-by-change':
      return `${me} cannot campaign at term ${event.term} since there are still pending configuration changes to apply`;
    case 'election-started':
      return `${me} is starting a new election at term ${event.term}`;
    case 'vote-asked':
      return `${me} ${logEnd(event.last)} sent ${describeMessageType(event.type)} request to ${hex(event.voter)} at term ${event.term}`;
    case 'vote-received': {
      const what = `${describeMessageType(event.type)}${event.granted ? '' : ' rejection'}`;
      return `${me} received ${what} from ${hex(event.voter)} at term ${event.term}`;
    }
    case 'votes-counted':
      return `${me} has received ${event.granted} ${describeMessageType(event.type)} votes and ${event.rejected} vote rejections`;
    case 'vote-cast':
      return `${voterLine(me, event)} cast ${describeMessageType(event.message.type)} for ${candidateLine(event.message)} at term ${event.term}`;
    case 'vote-refused':
      return `${voterLine(me, event)} rejected ${describeMessageType(event.message.type)} from ${candidateLine(event.message)} at term ${event.term}`;
    case 'vote-ignored-by-lease':
      return `${voterLine(me, event)} ignored ${describeMessageType(event.message.type)} from ${candidateLine(event.message)} at term ${event.term}: lease is not expired (remaining ticks: ${event.remainingTicks})`;
    case 'commit-learned-by-vote':
      return `${me} learned from ${hex(event.from)} that entries up to ${event.commitIndex} are committed`;
    case 'campaign-ended-by-change':
      return `${me} ended its campaign at term ${event.term} since there is a configuration change to apply first`;
    case 'quorum-lost':
      return `${me} stepped down to follower since quorum is not active`;
    case 'leader-forgotten':
      return `${me} forgetting leader ${hex(event.leader)} at term ${event.term}`;
    case 'forget-leader-refused-by-lease':
      return 'ignoring MsgForgetLeader due to ReadOnlyLeaseBased';
    case 'higher-term-seen':
      return `${me} [term: ${event.term}] received a ${describeMessageType(event.type)} message with higher term from ${hex(event.from)} [term: ${event.messageTerm}]`;
    case 'lower-term-ignored':
      return `${me} [term: ${event.term}] ignored a ${describeMessageType(event.type)} message with lower term from ${hex(event.from)} [term: ${event.messageTerm}]`;
    case 'stale-storage-append-ignored':
      return `${me} [term: ${event.term}] ignored entry appends from a MsgStorageAppendResp message with lower term [term: ${event.messageTerm}]`;
    case 'message-from-stranger':
      return `${me} no progress available for ${hex(event.from)}`;
    case 'append-malformed':
      return `${me} ignored a malformed MsgApp from ${hex(event.message.from)}`;
    case 'append-rejected': {
      const { prevIndex, prevTerm, from } = event.message;
      return `${me} ${at(event.ownTerm, prevIndex)} rejected MsgApp ${at(prevTerm, prevIndex)} from ${hex(from)}`;
    }
    case 'rejection-received':
      return `${me} received MsgAppResp(rejected, hint: (index ${event.hintIndex}, term ${event.hintTerm})) from ${hex(event.from)} for index ${event.index}`;
    case 'progress-decreased':
      return `${me} decreased progress of ${hex(event.node)} to [${describeProgress(event.progress)}]`;
    case 'log-conflict':
      return `found conflict at index ${event.index} [existing term: ${event.ownTerm}, conflicting term: ${event.otherTerm}]`;
    case 'unstable-replaced':
      return `replace the unstable entries from index ${event.fromIndex}`;
    case 'unstable-truncated':
      return `truncate the unstable entries before index ${event.fromIndex}`;
    case 'stable-entry-missing':
      return `entry at index ${event.index} missing from unstable log; ignoring`;
    case 'stable-entry-in-snapshot':
      return `entry at index ${event.index} matched unstable snapshot; ignoring`;
    case 'stable-entry-differs': {
      const { stable, unstableTerm } = event;
      return `entry at (index,term)=(${stable.index},${stable.term}) mismatched with entry at (${stable.index},${unstableTerm}) in unstable log; ignoring`;
    }
    case 'node-unreachable':
      return `${me} failed to send message to ${hex(event.node)} because it is unreachable [${describeProgress(event.progress)}]`;
    case 'snapshot-skipped-inactive':
      return `ignore sending snapshot to ${hex(event.node)} since it is not recently active`;
    case 'snapshot-not-ready':
      return `${me} failed to send snapshot to ${hex(event.node)} because snapshot is temporarily unavailable`;
    case 'snapshot-sent': {
      const { firstIndex, commitIndex, snapshot, node, progress } = event;
      return `${me} [firstindex: ${firstIndex}, commit: ${commitIndex}] sent snapshot${snap(snapshot)} to ${hex(node)} [${describeProgress(progress)}]`;
    }
    case 'replication-paused':
      return `${me} paused sending replication messages to ${hex(event.node)} [${describeProgress(event.progress)}]`;
    case 'snapshot-caught-up':
      return `${me} recovered from needing snapshot, resumed sending replication messages to ${hex(event.node)} [${describeProgress(event.progress)}]`;
    case 'snapshot-succeeded':
    case 'snapshot-failed':
      return `${me} snapshot ${event.kind.slice('snapshot-'.length)}, resumed sending replication messages to ${hex(event.node)} [${describeProgress(event.progress)}]`;
    case 'snapshot-restoring': {
      const { log, snapshot } = event;
      return `log [committed=${log.commitIndex}, applied=${log.appliedIndex}, applying=${log.applyingIndex}, unstable.offset=${log.unstableFrom}, unstable.offsetInProgress=${log.unstableInProgressBefore}, len(unstable.Entries)=${log.unstableCount}] starts to restore snapshot ${snap(snapshot)}`;
    }
    case 'snapshot-fast-forwarded':
    case 'snapshot-restored': {
      const verb = event.kind === 'snapshot-restored' ? 'restored' : 'fast-forwarded commit to';
      return `${me} [commit: ${event.commitIndex}, lastindex: ${event.last.index}, lastterm: ${event.last.term}] ${verb} snapshot ${snap(event.snapshot)}`;
    }
    case 'snapshot-accepted':
    case 'snapshot-ignored': {
      const verb = event.kind === 'snapshot-accepted' ? 'restored' : 'ignored';
      return `${me} [commit: ${event.commitIndex}] ${verb} snapshot ${snap(event.snapshot)}`;
    }
    case 'snapshot-without-self':
      return `${me} attempted to restore snapshot but it is not in the ConfState ${describeMembership(event.membership)}; should never happen`;
    case 'proposal-dropped':
      return `${me} no leader at term ${event.term}; dropping proposal`;
    case 'uncommitted-limit-reached':
      return `${me} appending new entries to log would exceed uncommitted entry size limit; dropping proposal`;
    case 'proposal-not-forwarded':
      return `${me} not forwarding to leader ${hex(event.leader)} at term ${event.term}; dropping proposal`;
    case 'proposal-dropped-by-transfer':
      return `${me} [term ${event.term}] transfer leadership to ${hex(event.target)} is in progress; dropping proposal`;
    case 'change-ignored':
      return `${me} ignoring conf change ${describeChange(event.change)} at config ${describeMembership(event.membership)}: ${whyIgnored(event.why)}`;
    case 'membership-switched':
      return `${me} switched to configuration ${describeMembership(event.membership)}`;
    case 'auto-leave-started':
      return `initiating automatic transition out of joint configuration ${describeMembership(event.membership)}`;
    case 'auto-leave-postponed':
      return `not initiating automatic transition out of joint configuration ${describeMembership(event.membership)}: raft proposal dropped`;
    case 'read-dropped':
      return `${me} no leader at term ${event.term}; dropping index reading msg`;
    case 'read-not-handed-on':
      return `${me} does not lead; dropping index reading msg from ${hex(event.from)}`;
    case 'transfer-dropped':
      return `${me} no leader at term ${event.term}; dropping leader transfer msg`;
    case 'transfer-to-learner-ignored':
      return `${me} is learner. Ignored transferring leadership`;
    case 'transfer-to-self-ignored':
      return `${me} is already leader. Ignored transferring leadership to self`;
    case 'transfer-already-running':
      return `${me} [term ${event.term}] transfer leadership to ${hex(event.target)} is in progress, ignores request to same node ${hex(event.target)}`;
    case 'transfer-replaced':
      return `${me} [term ${event.term}] abort previous transferring leadership to ${hex(event.target)}`;
    case 'transfer-started':
      return `${me} [term ${event.term}] starts to transfer leadership to ${hex(event.target)}`;
    case 'transfer-immediate':
      return `${me} sends MsgTimeoutNow to ${hex(event.target)} immediately as ${hex(event.target)} already has up-to-date log`;
    case 'transfer-caught-up':
      return `${me} sent MsgTimeoutNow to ${hex(event.target)} after received MsgAppResp`;
    case 'timeout-now-received':
      return `${me} [term ${event.term}] received MsgTimeoutNow from ${hex(event.from)} and starts an election to get leadership.`;
    case 'timeout-now-ignored':
      return `${me} [term ${event.term} state ${describeStanding(event.standing)}] ignored MsgTimeoutNow from ${hex(event.from)}`;
    default:
      return unreachable(event);
  }
}

function hex(node: NodeId): string {
  return node.toString(16);
}

function at(term: number, index: number): string {
  return `[logterm: ${term}, index: ${index}]`;
}

function logEnd(last: EntryId): string {
  return at(last.term, last.index);
}

function snap({ index, term }: EntryId): string {
  return `[index: ${index}, term: ${term}]`;
}

function voterLine(me: string, { last, vote }: { last: EntryId; vote: NodeId }): string {
  return `${me} [logterm: ${last.term}, index: ${last.index}, vote: ${hex(vote)}]`;
}

function candidateLine({ from, lastTerm, lastIndex }: VoteMessage): string {
  return `${hex(from)} ${at(lastTerm, lastIndex)}`;
}

function whyIgnored(why: ChangeIgnored): string {
  switch (why.reason) {
    case 'unapplied-change':
      return `possible unapplied conf change at index ${why.atIndex} (applied to ${why.appliedIndex})`;
    case 'must-leave-joint-first':
      return 'must transition out of joint config first';
    case 'not-joint':
      return 'not in joint state; refusing empty conf change';
    default:
      return unreachable(why);
  }
}
