// Handing leadership over: proposals stop, the target is brought up to date, then told to campaign.
// Given up after one election timeout, or when the target stops being a voter.

import { unreachable } from '../../base/unreachable.ts';
import { NO_NODE, type NodeId } from '../node-id.ts';
import type { Refusal } from '../refusal.ts';
import { envelope, observe, progressOf, type Raft, send } from '../state.ts';
import { sendAppend } from './replication.ts';

/** Starts a transfer as leader, or hands the wish on to the leader. */
export function transferLeadership(raft: Raft, target: NodeId): Refusal | undefined {
  switch (raft.standing) {
    case 'leader':
      return startTransfer(raft, target);
    case 'follower':
      if (raft.leader === NO_NODE) {
        observe(raft, { kind: 'transfer-dropped', term: raft.term });
        return 'no-leader';
      }
      send(raft, { type: 'transfer-leader', ...envelope(raft, raft.leader), target });
      return undefined;
    case 'candidate':
    case 'pre-candidate':
      return 'no-leader';
    default:
      return unreachable(raft.standing);
  }
}

/** The target may have caught up now; if so it is told to campaign. */
export function maybeFinishTransfer(raft: Raft, target: NodeId): void {
  if (raft.transferTarget !== target) return;
  if (progressOf(raft, target).matchIndex !== raft.log.lastIndex) return;
  observe(raft, { kind: 'transfer-caught-up', target, term: raft.term });
  sendTimeoutNow(raft, target);
}

export function abortTransfer(raft: Raft): void {
  raft.transferTarget = NO_NODE;
}

function startTransfer(raft: Raft, target: NodeId): Refusal | undefined {
  const { term, transferTarget: earlier } = raft;
  const progress = raft.progressByNode.get(target);
  if (progress === undefined) {
    observe(raft, { kind: 'message-from-stranger', from: target });
    return 'unknown-member';
  }
  if (progress.isLearner) {
    observe(raft, { kind: 'transfer-to-learner-ignored' });
    return 'unknown-member';
  }
  if (earlier === target) {
    observe(raft, { kind: 'transfer-already-running', target, term });
    return undefined;
  }
  if (earlier !== NO_NODE) {
    abortTransfer(raft);
    observe(raft, { kind: 'transfer-replaced', target: earlier, term });
  }
  if (target === raft.id) {
    observe(raft, { kind: 'transfer-to-self-ignored' });
    return undefined;
  }
  observe(raft, { kind: 'transfer-started', target, term });
  // From here the transfer has one election timeout, after which the leader takes proposals again.
  raft.electionElapsed = 0;
  raft.transferTarget = target;
  if (progress.matchIndex === raft.log.lastIndex) {
    sendTimeoutNow(raft, target);
    observe(raft, { kind: 'transfer-immediate', target, term });
  } else {
    sendAppend(raft, target);
  }
  return undefined;
}

function sendTimeoutNow(raft: Raft, target: NodeId): void {
  send(raft, { type: 'timeout-now', ...envelope(raft, target) });
}
