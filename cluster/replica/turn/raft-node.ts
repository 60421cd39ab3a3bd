// The raft node of a replica: the replica's bounds and times in raft's terms.

import type { Random } from '../../platform/random.ts';
import type { Observe } from '../../raft/events.ts';
import type { RaftStorage } from '../../raft/log/storage.ts';
import type { NodeId } from '../../raft/node-id.ts';
import { createRaft } from '../../raft/raft.ts';
import { RawNode } from '../../raft/raw-node.ts';
import type { GroupLimits, GroupTiming } from '../group-limits.ts';

export interface RaftNodeOptions {
  readonly nodeId: NodeId;
  readonly stored: RaftStorage;
  readonly appliedIndex: number;
  readonly limits: GroupLimits;
  readonly timing: GroupTiming;
  readonly random: Random;
  readonly observe: Observe;
}

export function createRaftNode(options: RaftNodeOptions): RawNode {
  const { nodeId, stored, appliedIndex, limits, timing, random, observe } = options;
  const raft = createRaft({
    id: nodeId,
    electionTicks: timing.electionTicks,
    heartbeatTicks: timing.heartbeatTicks,
    storage: stored,
    appliedIndex,
    asyncStorage: true,
    maxMessageBytes: limits.messageBytesMax,
    maxApplyingBytes: 2 * limits.batchBytesMax,
    // The own limit of proposals is met first.
    maxUncommittedBytes: 2 * limits.pendingBytesMax,
    maxInflightMessages: limits.inflightCountMax,
    maxInflightBytes: limits.inflightBytesMax,
    // Another node's proposal is a matter between services: its outcome must find its way back.
    forwardProposals: false,
    random: (below) => Math.floor(random.fraction() * below),
    observe,
  });
  return new RawNode(raft);
}
