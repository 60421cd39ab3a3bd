// What the simulator runs on its hosts: production code of some height, from the replica alone up to the
// whole node. The world, the faults and most checkers do not know which.

import type { LogWitness } from '../../../cluster/log/log-entry.ts';
import type { Message } from '../../../cluster/raft/message.ts';
import type { GroupTiming } from '../../../cluster/replica/group-limits.ts';
import type { ReplicaStatus } from '../../../cluster/replica/replica.ts';
import type { SimStore } from '../world/sim-disk.ts';
import type { SimHost } from '../world/sim-host.ts';
import type { LeavingFrame } from '../world/sim-net.ts';
import type { SimProcess } from '../world/sim-process.ts';

/** A node that is up. */
export interface LiveNode {
  status(): ReplicaStatus;
  /** As an operator's stop does: hands over, finishes, closes. */
  close(): Promise<void>;
  transferLeadership(to: SimHost): void;
}

/** What a state says of itself, as it lies on a disk. */
export interface StoredStanding {
  readonly appliedEntry: LogWitness;
  readonly groupRecord: Uint8Array | undefined;
}

export interface Subject {
  readonly name: 'replica' | 'node' | 'datacenters';
  readonly timing: GroupTiming;
  /** Rejects with what keeps the node from starting. `onExit` is called once, when the process must end. */
  start(host: SimHost, process: SimProcess, onExit: (cause: Error) => void): Promise<LiveNode>;
  /** Whose frames these are. */
  hostOf(node: number): SimHost | undefined;
  /** The raft number of the node that a host runs with its present disk. */
  nodeOf(host: SimHost): number;
  /** What raft says in a frame. */
  messagesIn(leaving: LeavingFrame): readonly Message[];
  /** Undefined for a store that is no whole state. */
  standingIn(store: SimStore): StoredStanding | undefined;
}

export const LOG_STORE = 'log';

/** What the names of all stores of state begin with. */
export const STATE_STORES = 'state';

export function stateStoreName(generation: number): string {
  return generation === 0 ? STATE_STORES : `${STATE_STORES}-${generation}`;
}

export function isStateStore(name: string): boolean {
  return name.startsWith(STATE_STORES);
}
