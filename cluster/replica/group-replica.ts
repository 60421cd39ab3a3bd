// A replica in a group of several, as the transport, operators and whoever opens it see it. What it
// promises beyond a replica's promises is here; how it keeps them is in raft-replica.ts.

import type { DurableLog } from '../log/durable-log.ts';
import type { Clock } from '../platform/clock.ts';
import type { Logger } from '../platform/logger.ts';
import type { Random } from '../platform/random.ts';
import type { Membership } from '../raft/membership.ts';
import type { Message } from '../raft/message.ts';
import type { NodeId } from '../raft/node-id.ts';
import type { GroupLimits, GroupTiming } from './group-limits.ts';
import type { Machine, Replica } from './replica.ts';

export interface RaftReplicaOptions<Outcome> {
  /** This node's number: one that no other node of the group ever had. */
  readonly nodeId: NodeId;
  /** Who belongs to the group, as of the machine's last applied entry. */
  readonly membership: Membership;
  /** Opened with the machine's last applied entry as its witness. */
  readonly log: DurableLog;
  readonly machine: Machine<Outcome>;
  /** Sends to another node or loses it; neither waits nor throws. Keeps the order of one node's messages. */
  readonly send: (to: NodeId, message: Message) => void;
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
  groupStatus(): GroupStatus;
}

export interface GroupStatus {
  readonly leader: NodeId | undefined;
  /** Only a leader knows any. */
  readonly followers: readonly FollowerStatus[];
  /** The write in flight takes longer than an election: this node neither leads nor campaigns. */
  readonly isDiskStalled: boolean;
  /** Messages of other nodes that found the inbox full. */
  readonly lostMessageCount: number;
}

export interface FollowerStatus {
  readonly node: NodeId;
  readonly matchIndex: number;
  readonly isActive: boolean;
  /** It lacks entries that this log no longer has: it stays behind until it is set up anew. */
  readonly needsSnapshot: boolean;
}
