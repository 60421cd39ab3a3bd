// How payloads get into the log: appended by the leader, handed on by followers, refused by the rest.
// Membership changes are looked at on the way, since two of them must never be under way at once.

import { unreachable } from '../../base/unreachable.ts';
import type { ChangeIgnored } from '../events.ts';
import { NO_DATA, type ProposedEntry } from '../log/entry.ts';
import { isJoint } from '../membership/membership.ts';
import { decodeMembershipChange, type MembershipChange } from '../membership/membership-change.ts';
import { NO_NODE, type NodeId } from '../node-id.ts';
import type { Refusal } from '../refusal.ts';
import { observe, type Raft, send } from '../state.ts';
import { appendToOwnLog, broadcastAppend } from './replication.ts';

/**
 * appended: the first entry is at (term, index) and will be committed there or never; `changeIgnored`
 * says why a membership change became an empty entry. forwarded: nothing is known any more.
 */
export type ProposalResult =
  | {
      readonly kind: 'appended';
      readonly term: number;
      readonly index: number;
      readonly changeIgnored?: ChangeIgnored;
    }
  | { readonly kind: 'forwarded'; readonly to: NodeId }
  | { readonly kind: 'refused'; readonly reason: Refusal };

/** Proposes one or more entries on behalf of `from`. */
export function propose(
  raft: Raft,
  from: NodeId,
  entries: readonly ProposedEntry[],
): ProposalResult {
  switch (raft.standing) {
    case 'leader':
      return proposeAsLeader(raft, entries);
    case 'follower':
      return forward(raft, from, entries);
    case 'candidate':
    case 'pre-candidate':
      return dropped(raft);
    default:
      return unreachable(raft.standing);
  }
}

/** Appends to the own log and sends to all; the leader's part of propose. */
export function proposeAsLeader(raft: Raft, entries: readonly ProposedEntry[]): ProposalResult {
  const reason = refusalOf(raft, entries);
  if (reason !== undefined) return { kind: 'refused', reason };
  const firstIndex = raft.log.lastIndex + 1;
  const accepted: ProposedEntry[] = [];
  let changeIgnored: ChangeIgnored | undefined;
  let pendingChangeIndex = raft.pendingChangeIndex;
  for (const entry of entries) {
    const change = entry.type === 'membership' ? decodeMembershipChange(entry.data) : undefined;
    const why = change && reasonToIgnore(raft, change, pendingChangeIndex);
    if (change !== undefined && why !== undefined && raft.config.validateChanges) {
      observe(raft, { kind: 'change-ignored', change, membership: raft.membership, why });
      changeIgnored = why;
      accepted.push({ type: 'normal', data: NO_DATA });
      continue;
    }
    if (change !== undefined) pendingChangeIndex = firstIndex + accepted.length;
    accepted.push(entry);
  }
  if (!appendToOwnLog(raft, accepted)) return { kind: 'refused', reason: 'uncommitted-limit' };
  raft.pendingChangeIndex = pendingChangeIndex;
  broadcastAppend(raft);
  const place = { kind: 'appended', term: raft.term, index: firstIndex } as const;
  return changeIgnored === undefined ? place : { ...place, changeIgnored };
}

function refusalOf(raft: Raft, entries: readonly ProposedEntry[]): Refusal | undefined {
  if (!raft.progressByNode.has(raft.id)) return 'not-a-member';
  if (raft.transferTarget !== NO_NODE) {
    const { transferTarget: target, term } = raft;
    observe(raft, { kind: 'proposal-dropped-by-transfer', target, term });
    return 'transfer-in-progress';
  }
  // Nobody could ever apply such an entry, so it must not be committed by anybody.
  const malformed = entries.some(
    ({ type, data }) => type === 'membership' && decodeMembershipChange(data) === undefined,
  );
  return malformed ? 'malformed-change' : undefined;
}

/** Best effort: the membership that counts is the one when the change is applied, not this one. */
function reasonToIgnore(
  raft: Raft,
  change: MembershipChange,
  pendingChangeIndex: number,
): ChangeIgnored | undefined {
  const { appliedIndex } = raft.log;
  if (pendingChangeIndex > appliedIndex) {
    return { reason: 'unapplied-change', atIndex: pendingChangeIndex, appliedIndex };
  }
  // Any change without steps is meant to leave, whatever its transition says.
  const wantsToLeave = change.changes.length === 0;
  if (isJoint(raft.membership) && !wantsToLeave) return { reason: 'must-leave-joint-first' };
  if (!isJoint(raft.membership) && wantsToLeave) return { reason: 'not-joint' };
  return undefined;
}

function forward(raft: Raft, from: NodeId, entries: readonly ProposedEntry[]): ProposalResult {
  const { leader, term } = raft;
  if (leader === NO_NODE) return dropped(raft);
  if (!raft.config.forwardProposals) {
    observe(raft, { kind: 'proposal-not-forwarded', leader, term });
    return { kind: 'refused', reason: 'forwarding-off' };
  }
  send(raft, { type: 'propose', from, to: leader, term: 0, entries });
  return { kind: 'forwarded', to: leader };
}

function dropped(raft: Raft): ProposalResult {
  observe(raft, { kind: 'proposal-dropped', reason: 'no-leader', term: raft.term });
  return { kind: 'refused', reason: 'no-leader' };
}
