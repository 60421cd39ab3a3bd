// A node as a member of its group, as the program around it sees it: from the first start, when it
// looks for the others, to the end. What it promises is here; ../member.ts opens it.

import type { RequireStill } from '../base/require-still.ts';
import type { Clock } from '../platform/clock.ts';
import type { Kv } from '../platform/kv.ts';
import type { Logger } from '../platform/logger.ts';
import type { Net, NetAddress } from '../platform/net.ts';
import type { Random } from '../platform/random.ts';
import type { NodeId } from '../raft/node-id.ts';
import type { GroupLimits, GroupTiming } from '../replica/group-limits.ts';
import type { AutopilotSettings, GroupRecord, MemberRecord } from '../replica/group-record.ts';
import type { Machine, Replica } from '../replica/replica.ts';
import type { RpcCall, RpcServer } from '../transport/transport.ts';
import type { TransportLimits, TransportTiming } from '../transport/transport-limits.ts';
import type { ServiceCallers } from './member-calls.ts';
import type { MemberLimits, MemberTiming } from './member-timing.ts';

export interface MemberSelf {
  /** The uuid in the data folder. */
  readonly id: string;
  readonly name: string;
  readonly datacenter: string;
  /** Of the program. */
  readonly version: string;
  /** Up to which level it reads what the log says. */
  readonly reads: number;
  /** host:port that is shown to people; empty while there is none. */
  readonly httpAddress: () => string;
}

/** Digests of the machine's state at indexes that are the same on every node. */
export interface Checkpoint {
  readonly index: number;
  readonly digest: string;
}

export interface DigestedMachine<Outcome> extends Machine<Outcome> {
  /** The level of what its log may say: whoever reads less cannot be a member. */
  readonly usesLevel: number;
  readonly lastCheckpoint?: Checkpoint | undefined;
  /** Undefined where it is not known (any more). */
  digestAt?(index: number): string | undefined;
}

export interface MemberOptions<Outcome> {
  readonly net: Net;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Called once, with the first failure. The process should end. */
  readonly onFatal: (cause: Error) => void;
  readonly self: MemberSelf;
  readonly logKv: Kv;
  /** Opens the state of that generation. */
  readonly openMachine: (generation: number) => Promise<DigestedMachine<Outcome>>;
  /** Undefined: a node alone, whom no other can reach. */
  readonly listen: NetAddress | undefined;
  /** Under which others dial it; undefined: where it listens. */
  readonly advertise: NetAddress | undefined;
  /** So many nodes found the group together. 1: this one alone, unless it is told whom to join. */
  readonly bootstrapExpect: number;
  readonly retryJoin: readonly NetAddress[];
  readonly clusterKey: Uint8Array | undefined;
  /** Keys that are taken from whoever dials, besides. */
  readonly acceptedKeys?: readonly Uint8Array[];
  /** Which datacenters belong together, as far as this one knows: asked at every handshake. */
  readonly federationId?: () => string | undefined;
  readonly timing?: Partial<MemberTiming>;
  readonly limits?: Partial<MemberLimits>;
  readonly groupTiming?: Partial<GroupTiming>;
  readonly groupLimits?: Partial<GroupLimits>;
  readonly transportTiming?: Partial<TransportTiming>;
  readonly transportLimits?: Partial<TransportLimits>;
}

export type MemberStanding =
  /** It belongs to no group yet; `says` is for people. */
  | { readonly kind: 'joining'; readonly says: string }
  | {
      readonly kind: 'member';
      readonly isLeader: boolean;
      /** As far as this node knows. */
      readonly leader: MemberRecord | undefined;
      /** 0 on the leader, undefined while none is known. */
      readonly lastContactMs: number | undefined;
      readonly term: number;
      /** It hears what the group decides, and has nothing of it on its disk: no read comes through. */
      readonly isDiskStalled: boolean;
    }
  /** The group has removed it: it neither votes nor follows any more. */
  | { readonly kind: 'removed'; readonly says: string }
  /** Its state is not that of the others: it serves nobody. */
  | { readonly kind: 'quarantined'; readonly says: string };

export interface MemberView extends MemberRecord {
  readonly isSelf: boolean;
  readonly isLeader: boolean;
  readonly isVoter: boolean;
  /** Up to which level it reads what the log says; undefined while this node has no link with it. */
  readonly reads: number | undefined;
  /** Heard of within a few seconds. */
  readonly isAlive: boolean;
  /** Since this node heard it; 0 for itself, undefined when never. */
  readonly lastContactMs: number | undefined;
  /** Up to where its log equals the leader's; known on the leader, and of itself. */
  readonly lastIndex: number | undefined;
}

/** Servers at addresses of retry_join that are of another cluster of this datacenter. */
export interface OtherCluster {
  readonly clusterId: string;
  /** Name and address, for people. */
  readonly servers: readonly string[];
}

export interface ServerHealth {
  readonly member: MemberView;
  readonly isHealthy: boolean;
  readonly lastTerm: number;
  /** Wall clock, when its health last changed. */
  readonly stableSinceMs: number;
}

export interface AutopilotState {
  readonly isHealthy: boolean;
  /** So many voters may fail and a quorum is left. */
  readonly failureTolerance: number;
  readonly servers: readonly ServerHealth[];
}

/** propose, readBarrier and what changes the group reject with ReplicaError or GroupRefusal. */
export interface Member<Outcome> extends Replica<Outcome> {
  readonly machine: DigestedMachine<Outcome>;
  readonly node: NodeId;
  /** Where it listens for other nodes; undefined when nowhere. */
  readonly address: NetAddress | undefined;
  standing(): MemberStanding;
  groupRecord(): GroupRecord;
  members(): readonly MemberView[];
  /** Those that the addresses of retry_join lead to, as this node found while it leads; empty on others. */
  otherClusters(): readonly OtherCluster[];
  /**
   * Calls a service of another member, of this one, or, by its address, of a server of another
   * datacenter. Rejects with RpcError.
   */
  call(to: NodeId | NetAddress, request: RpcCall): Promise<Uint8Array>;
  /**
   * Answers calls of that name, one handler a name: those of members, and only with `from` those of
   * servers of the other datacenters of the federation.
   */
  serve(method: string, handler: RpcServer, options?: { readonly from: ServiceCallers }): void;
  /** Leader only. To that voter, or to the best one. Resolves when another node leads. */
  transferLeadership(to: NodeId | undefined): Promise<void>;
  /** Leader only. Resolves when the node is out of the group. `requireStill` is asked in the turn of each proposal. */
  removeMember(node: NodeId, requireStill?: RequireStill): Promise<void>;
  /**
   * Leader only. False, and nothing is proposed, when `ifIndex` is given and is not the record's
   * autopilotIndex in the turn of the proposal.
   */
  setAutopilot(
    settings: AutopilotSettings,
    ifIndex?: number,
    requireStill?: RequireStill,
  ): Promise<boolean>;
  /** Leader only, else GroupRefusal 'not-leader': no other knows. */
  autopilotState(): AutopilotState;
  /** Called when the standing towards a leader changes. Gives what takes the listener away. */
  onLeaderChanged(listener: () => void): () => void;
  /** Hands leadership over, then closes everything in reverse order. */
  close(): Promise<void>;
}
