// A replica in a group, as the transport, the member, operators and whoever opens it see it. What it
// promises beyond a replica's promises is here; how it keeps them is in raft-replica.ts.

import type { DurableLog } from '../log/durable-log.ts';
import type { Clock } from '../platform/clock.ts';
import type { Logger } from '../platform/logger.ts';
import type { Random } from '../platform/random.ts';
import type { ProgressState } from '../raft/leading/progress.ts';
import type { MembershipChange } from '../raft/membership/membership-change.ts';
import type { Message, SnapshotMessage } from '../raft/message.ts';
import type { NodeId } from '../raft/node-id.ts';
import type { GroupLimits, GroupTiming } from './group-limits.ts';
import type { GroupRecord } from './group-record.ts';
import type { HandOverResult } from './leading/hand-over.ts';
import type { Machine, MachineSnapshot, Replica } from './replica.ts';

export interface RaftReplicaOptions<Outcome> {
  /** This node's number: one that no other node of the group ever had. */
  readonly nodeId: NodeId;
  /** Opened with the machine's last applied entry as its witness. */
  readonly log: DurableLog;
  /** Who belongs to the group is in its group record. */
  readonly machine: Machine<Outcome>;
  /** It has just founded its group: nobody leads it, so it campaigns at once. Default false. */
  readonly isFounder?: boolean;
  /** Sends to another node or loses it; neither waits nor throws. Keeps the order of one node's messages. */
  readonly send: (to: NodeId, message: Message) => void;
  /**
   * Brings a snapshot to another node; resolves when that node has taken it in completely (its
   * SnapshotIntake.finish resolved), rejects when it has not. The snapshot is closed by the replica.
   */
  readonly sendSnapshot: (
    to: NodeId,
    message: SnapshotMessage,
    snapshot: MachineSnapshot,
  ) => Promise<void>;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Called once, with the first failure. The process should end. */
  readonly onFatal: (cause: Error) => void;
  readonly timing?: Partial<GroupTiming>;
  readonly limits?: Partial<GroupLimits>;
}

/** Beside ReplicaError, propose and readBarrier reject with GroupRefusal. */
export interface GroupReplica<Outcome> extends Replica<Outcome> {
  /** Takes a message of another node, or loses it when too many wait. */
  receive(message: Message): void;
  /** The link to a node is closed: what was sent to it may be lost, and if it leads, it may be dead. */
  linkClosed(node: NodeId): void;
  /** Asks that another voter lead; it may come to nothing. */
  transferLeadership(target: NodeId): void;
  /**
   * Hands this node's leadership to that voter, or to the best one, and to the next when that one is gone;
   * takes one election timeout at most. 'done' at once when this node does not lead.
   */
  handOver(target?: NodeId): Promise<HandOverResult>;
  /**
   * Takes in a snapshot that another node sends. One at a time: a new one takes the place of one that
   * is not finishing yet. Rejects with GroupRefusal 'refused' when it is not needed here.
   */
  beginSnapshot(message: SnapshotMessage): Promise<SnapshotIntake>;
  /**
   * Changes who belongs to the group, or what its record says; resolves with the record when it is
   * applied here and a quorum of the new membership knows. Rejects with GroupRefusal 'not-leader',
   * 'change-in-flight' or 'refused', or with ReplicaError. A leader that is to be removed hands its
   * leadership over and says 'not-leader': the next one is to be asked.
   */
  proposeMembership(change: MembershipChange): Promise<GroupRecord>;
  /** As of the machine's last applied entry. */
  groupRecord(): GroupRecord;
  /** The part of `groupStatus` that is asked with every request: it costs next to nothing. */
  lead(): GroupLead;
  groupStatus(): GroupStatus;
  /** `listener` is called when another node leads, or none, as far as this node knows; returns how to stop it. */
  onLeaderChanged(listener: () => void): () => void;
  /** `listener` is called when the group record is another one. */
  onGroupChanged(listener: () => void): () => void;
}

/** A snapshot on its way into this node; whoever began it finishes or abandons it. */
export interface SnapshotIntake {
  /** One call at a time. Rejects with SnapshotDamage, or when a newer snapshot took its place. */
  add(chunk: Uint8Array): Promise<void>;
  /** Resolves when log and machine stand at the snapshot; rejects when raft has no use for it. */
  finish(): Promise<void>;
  /** At any time; what is finished stays. */
  abandon(): Promise<void>;
}

/** Whom a node follows, as far as it knows. */
export interface GroupLead {
  readonly term: number;
  readonly isLeader: boolean;
  readonly leader: NodeId | undefined;
  /**
   * Milliseconds since this node heard its leader and had all that was committed then; undefined while none is
   * known, and before the first time. On the leader itself since it heard a quorum, 0 while one answers.
   */
  readonly lastContactMs: number | undefined;
  /** Whether the group record names this node, as voter or learner. One that is removed never campaigns. */
  readonly isMember: boolean;
  /** A store takes longer than an election: this node neither leads nor campaigns. */
  readonly isDiskStalled: boolean;
}

export interface GroupStatus extends GroupLead {
  /** A leader that has committed in its term takes changes of membership. */
  readonly hasCommittedInTerm: boolean;
  /** Only a leader knows any. */
  readonly followers: readonly FollowerStatus[];
  /** Messages of other nodes that found the inbox full. */
  readonly lostMessageCount: number;
}

export interface FollowerStatus {
  readonly node: NodeId;
  /** Up to here its log is known to equal the leader's. */
  readonly matchIndex: number;
  /** How it is sent to; 'snapshot' while it lacks entries that the leader no longer has. */
  readonly state: ProgressState;
  /** Milliseconds since it was last heard; undefined before the first time. */
  readonly lastHeardMs: number | undefined;
  /** Its link closed, and nothing came from it since: its process is gone, or the way to it. */
  readonly isLost: boolean;
}
