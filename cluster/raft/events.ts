// What raft did and why, told as values while it happens. Raft never waits for or asks its observer;
// whoever watches picks words. Values are as of the moment of the call.

import type { ProgressView } from './leading/progress.ts';
import type { EntryId } from './log/entry.ts';
import type { Membership } from './membership/membership.ts';
import type { MembershipChange } from './membership/membership-change.ts';
import type { AppendMessage, AppendReply, MessageType, VoteMessage, VoteReply } from './message.ts';
import type { NodeId } from './node-id.ts';
import type { Refusal } from './refusal.ts';

/** Where a log stands; told when a snapshot replaces it. */
export interface LogPositions {
  readonly commitIndex: number;
  readonly appliedIndex: number;
  readonly applyingIndex: number;
  readonly unstableFrom: number;
  readonly unstableInProgressBefore: number;
  readonly unstableCount: number;
}

/** Why a membership change entered the log as an empty entry instead. */
export type ChangeIgnored =
  | { readonly reason: 'unapplied-change'; readonly atIndex: number; readonly appliedIndex: number }
  | { readonly reason: 'must-leave-joint-first' }
  | { readonly reason: 'not-joint' };

export type RaftEvent =
  | {
      readonly kind: 'started';
      readonly voters: readonly NodeId[];
      readonly term: number;
      readonly commitIndex: number;
      readonly appliedIndex: number;
      readonly last: EntryId;
    }
  // Standing and elections
  | { readonly kind: 'became-follower'; readonly term: number }
  | { readonly kind: 'became-pre-candidate'; readonly term: number }
  | { readonly kind: 'became-candidate'; readonly term: number }
  | { readonly kind: 'became-leader'; readonly term: number }
  | { readonly kind: 'campaign-needless' }
  | { readonly kind: 'campaign-unpromotable' }
  | { readonly kind: 'campaign-barred-by-change'; readonly term: number }
  | { readonly kind: 'election-started'; readonly term: number }
  | {
      readonly kind: 'vote-asked';
      readonly type: VoteMessage['type'];
      readonly voter: NodeId;
      readonly last: EntryId;
      readonly term: number;
    }
  | {
      readonly kind: 'vote-received';
      readonly type: VoteReply['type'];
      readonly voter: NodeId;
      readonly granted: boolean;
      readonly term: number;
    }
  | {
      readonly kind: 'votes-counted';
      readonly type: VoteReply['type'];
      readonly granted: number;
      readonly rejected: number;
    }
  | {
      readonly kind: 'vote-cast' | 'vote-refused';
      readonly message: VoteMessage;
      readonly last: EntryId;
      readonly vote: NodeId;
      readonly term: number;
    }
  | {
      readonly kind: 'vote-ignored-by-lease';
      readonly message: VoteMessage;
      readonly last: EntryId;
      readonly vote: NodeId;
      readonly term: number;
      readonly remainingTicks: number;
    }
  | {
      readonly kind: 'commit-learned-by-vote';
      readonly from: NodeId;
      readonly commitIndex: number;
    }
  | { readonly kind: 'campaign-ended-by-change'; readonly term: number }
  | { readonly kind: 'quorum-lost' }
  | { readonly kind: 'leader-forgotten'; readonly leader: NodeId; readonly term: number }
  | { readonly kind: 'forget-leader-refused-by-lease' }
  // Terms
  | {
      readonly kind: 'higher-term-seen' | 'lower-term-ignored';
      readonly type: MessageType;
      readonly from: NodeId;
      readonly messageTerm: number;
      readonly term: number;
    }
  | {
      readonly kind: 'stale-storage-append-ignored';
      readonly messageTerm: number;
      readonly term: number;
    }
  | { readonly kind: 'message-from-stranger'; readonly from: NodeId }
  // Replication
  | { readonly kind: 'append-malformed'; readonly message: AppendMessage }
  | { readonly kind: 'append-rejected'; readonly message: AppendMessage; readonly ownTerm: number }
  | {
      readonly kind: 'rejection-received';
      readonly from: NodeId;
      readonly index: AppendReply['index'];
      readonly hintIndex: number;
      readonly hintTerm: number;
    }
  | { readonly kind: 'progress-decreased'; readonly node: NodeId; readonly progress: ProgressView }
  | {
      readonly kind: 'log-conflict';
      readonly index: number;
      readonly ownTerm: number;
      readonly otherTerm: number;
    }
  | { readonly kind: 'unstable-replaced' | 'unstable-truncated'; readonly fromIndex: number }
  | { readonly kind: 'stable-entry-missing' | 'stable-entry-in-snapshot'; readonly index: number }
  | {
      readonly kind: 'stable-entry-differs';
      readonly stable: EntryId;
      readonly unstableTerm: number;
    }
  | { readonly kind: 'node-unreachable'; readonly node: NodeId; readonly progress: ProgressView }
  // Snapshots
  | { readonly kind: 'snapshot-skipped-inactive'; readonly node: NodeId }
  | { readonly kind: 'snapshot-not-ready'; readonly node: NodeId }
  | {
      readonly kind: 'snapshot-sent';
      readonly node: NodeId;
      readonly snapshot: EntryId;
      readonly firstIndex: number;
      readonly commitIndex: number;
      readonly progress: ProgressView;
    }
  | { readonly kind: 'replication-paused'; readonly node: NodeId; readonly progress: ProgressView }
  | {
      readonly kind: 'snapshot-caught-up' | 'snapshot-succeeded' | 'snapshot-failed';
      readonly node: NodeId;
      readonly progress: ProgressView;
    }
  | { readonly kind: 'snapshot-restoring'; readonly snapshot: EntryId; readonly log: LogPositions }
  | {
      readonly kind: 'snapshot-fast-forwarded' | 'snapshot-restored';
      readonly snapshot: EntryId;
      readonly commitIndex: number;
      readonly last: EntryId;
    }
  | {
      readonly kind: 'snapshot-accepted' | 'snapshot-ignored';
      readonly snapshot: EntryId;
      readonly commitIndex: number;
    }
  | { readonly kind: 'snapshot-without-self'; readonly membership: Membership }
  // Proposals and membership
  | { readonly kind: 'proposal-dropped'; readonly reason: Refusal; readonly term: number }
  | { readonly kind: 'uncommitted-limit-reached' }
  | { readonly kind: 'proposal-not-forwarded'; readonly leader: NodeId; readonly term: number }
  | {
      readonly kind: 'proposal-dropped-by-transfer';
      readonly target: NodeId;
      readonly term: number;
    }
  | {
      readonly kind: 'change-ignored';
      readonly change: MembershipChange;
      readonly membership: Membership;
      readonly why: ChangeIgnored;
    }
  | { readonly kind: 'membership-switched'; readonly membership: Membership }
  | { readonly kind: 'auto-leave-started'; readonly membership: Membership }
  | {
      readonly kind: 'auto-leave-postponed';
      readonly membership: Membership;
      readonly reason: Refusal;
    }
  | { readonly kind: 'read-dropped'; readonly term: number }
  | { readonly kind: 'read-not-handed-on'; readonly from: NodeId }
  // Leadership transfer
  | { readonly kind: 'transfer-dropped'; readonly term: number }
  | { readonly kind: 'transfer-to-learner-ignored' }
  | { readonly kind: 'transfer-to-self-ignored' }
  | {
      readonly kind:
        | 'transfer-already-running'
        | 'transfer-replaced'
        | 'transfer-started'
        | 'transfer-immediate'
        | 'transfer-caught-up';
      readonly target: NodeId;
      readonly term: number;
    }
  | { readonly kind: 'timeout-now-received'; readonly from: NodeId; readonly term: number }
  | {
      readonly kind: 'timeout-now-ignored';
      readonly from: NodeId;
      readonly term: number;
      readonly standing: 'candidate' | 'pre-candidate';
    };

export type RaftEventKind = RaftEvent['kind'];

/** Told of every event, synchronously. Must neither throw nor call back into raft. */
export type Observe = (event: RaftEvent) => void;

export type EventLevel = 'debug' | 'info' | 'warn' | 'error';

/** How much each event matters to an operator. */
export const LEVEL_OF_EVENT: Readonly<Record<RaftEventKind, EventLevel>> = {
  started: 'info',
  'became-follower': 'info',
  'became-pre-candidate': 'info',
  'became-candidate': 'info',
  'became-leader': 'info',
  'campaign-needless': 'debug',
  'campaign-unpromotable': 'warn',
  'campaign-barred-by-change': 'warn',
  'election-started': 'info',
  'vote-asked': 'info',
  'vote-received': 'info',
  'votes-counted': 'info',
  'vote-cast': 'info',
  'vote-refused': 'info',
  'vote-ignored-by-lease': 'info',
  'commit-learned-by-vote': 'info',
  'campaign-ended-by-change': 'info',
  'quorum-lost': 'warn',
  'leader-forgotten': 'info',
  'forget-leader-refused-by-lease': 'error',
  'higher-term-seen': 'info',
  'lower-term-ignored': 'info',
  'stale-storage-append-ignored': 'info',
  'message-from-stranger': 'debug',
  'append-malformed': 'error',
  'append-rejected': 'debug',
  'rejection-received': 'debug',
  'progress-decreased': 'debug',
  'log-conflict': 'info',
  'unstable-replaced': 'info',
  'unstable-truncated': 'info',
  'stable-entry-missing': 'info',
  'stable-entry-in-snapshot': 'info',
  'stable-entry-differs': 'info',
  'node-unreachable': 'debug',
  'snapshot-skipped-inactive': 'debug',
  'snapshot-not-ready': 'debug',
  'snapshot-sent': 'debug',
  'replication-paused': 'debug',
  'snapshot-caught-up': 'debug',
  'snapshot-succeeded': 'debug',
  'snapshot-failed': 'debug',
  'snapshot-restoring': 'info',
  'snapshot-fast-forwarded': 'info',
  'snapshot-restored': 'info',
  'snapshot-accepted': 'info',
  'snapshot-ignored': 'info',
  'snapshot-without-self': 'warn',
  'proposal-dropped': 'info',
  'uncommitted-limit-reached': 'warn',
  'proposal-not-forwarded': 'info',
  'proposal-dropped-by-transfer': 'debug',
  'change-ignored': 'info',
  'membership-switched': 'info',
  'auto-leave-started': 'info',
  'auto-leave-postponed': 'debug',
  'read-dropped': 'info',
  'read-not-handed-on': 'info',
  'transfer-dropped': 'info',
  'transfer-to-learner-ignored': 'debug',
  'transfer-to-self-ignored': 'debug',
  'transfer-already-running': 'info',
  'transfer-replaced': 'info',
  'transfer-started': 'info',
  'transfer-immediate': 'info',
  'transfer-caught-up': 'info',
  'timeout-now-received': 'info',
  'timeout-now-ignored': 'debug',
};
