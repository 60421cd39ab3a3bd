// The nodes of a group to each other, as whoever opens a transport sees it: messages that may be lost,
// and calls that are answered or known not to be. What a frame looks like is cluster/wire's matter,
// what a message or a call means is the caller's.

import type { Clock } from '../platform/clock.ts';
import type { Logger } from '../platform/logger.ts';
import type { Net, NetAddress } from '../platform/net.ts';
import type { Random } from '../platform/random.ts';
import type { Message } from '../raft/message.ts';
import type { NodeId } from '../raft/node-id.ts';
import type { TransportLimits, TransportTiming } from './transport-limits.ts';

/** What a node says of itself in every handshake. */
export interface TransportSelf {
  readonly node: NodeId;
  /** The uuid of its data folder. */
  readonly id: string;
  readonly name: string;
  readonly datacenter: string;
  /** Of the program. */
  readonly version: string;
  /** Up to which level it reads what the log says. */
  readonly reads: number;
}

export interface TransportOptions {
  readonly net: Net;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly self: TransportSelf;
  /** Asked at every handshake; undefined until the node belongs to a cluster. */
  readonly clusterId: () => string | undefined;
  /**
   * Which datacenters belong together, asked at every handshake; undefined while the node knows of none.
   * A node of another federation is refused, one that knows of none yet is not.
   */
  readonly federationId?: () => string | undefined;
  /** The level that the group uses, asked at every handshake: no member reads less. */
  readonly uses: () => number;
  /** With it, both sides of every connection prove that they have it; it never leaves the node. */
  readonly clusterKey: Uint8Array | undefined;
  /** Keys that are taken from whoever dials, besides, while `clusterKey` is being replaced. */
  readonly acceptedKeys?: readonly Uint8Array[];
  readonly listen: NetAddress;
  /** Its `from` is the node that the handshake proved, its `to` is this one. */
  readonly onMessage: (message: Message) => void;
  /**
   * The connection for small messages of a link is gone, and this node did not close it; or the node came
   * back in another life. What was sent before may be lost.
   */
  readonly onLinkClosed: (node: NodeId) => void;
  readonly serve: RpcServer;
  readonly timing?: Partial<TransportTiming>;
  readonly limits?: Partial<TransportLimits>;
}

export interface Transport {
  /** Where it listens. */
  readonly address: NetAddress;
  /**
   * Whom to be linked with, by the address to dial; this node itself is passed over. Links to nodes that
   * are peers no longer are closed, and those nodes are refused from then on: so a member stays among the
   * peers until it is known to have left the group.
   */
  setPeers(peers: ReadonlyMap<NodeId, NetAddress>): void;
  /** To `message.to`; lost when there is no link, or too much waits on it. Neither waits nor throws. */
  send(message: Message): void;
  /** Rejects with RpcError. An address is for nodes that are no peers (yet), or of another datacenter. */
  call(to: NodeId | NetAddress, request: RpcCall): Promise<Uint8Array>;
  /**
   * Who is at an address, as the handshake proves it. This node keeps to itself of which cluster it is: one of
   * another cluster would refuse it, and not be told from whoever cannot be asked. Rejects with RpcError.
   */
  whoIsAt(address: NetAddress, deadlineMs: number): Promise<RpcCaller>;
  peers(): readonly PeerStatus[];
  /**
   * Takes no more calls, lets those that are under way here be answered for a while, then ends every
   * connection. Closing twice is harmless.
   */
  close(): Promise<void>;
}

export interface PeerStatus {
  readonly node: NodeId;
  readonly address: NetAddress;
  /** Both lanes stand: whatever is sent now finds its way. */
  readonly isLinked: boolean;
  /** As it said in the last handshake; empty before. */
  readonly name: string;
  readonly version: string;
  readonly datacenter: string;
  /** Up to which level it reads what the log says; undefined before the first handshake. */
  readonly reads: number | undefined;
  /** Why there is no link, as far as this node knows; undefined while it is linked. */
  readonly lastErrorText: string | undefined;
  /** Milliseconds since anything came from it; undefined before the first frame. */
  readonly lastHeardMs: number | undefined;
  /** How long the last ping took there and back; undefined while it is not linked. */
  readonly roundTripMs: number | undefined;
}

export interface RpcCall {
  readonly method: string;
  readonly payload: Uint8Array;
  /** Milliseconds from now. */
  readonly deadlineMs: number;
  /** How many nodes handed the request on before this one. */
  readonly hops: number;
  /**
   * To an address: it is one of those that bring much. They have a connection of their own, so that the answers
   * of other calls never stand behind theirs on a thin line.
   */
  readonly isBulk?: boolean;
  /**
   * To an address: only a node of this datacenter is asked, as the handshake proved it; to any other one the call
   * is 'unreachable'. Left out: whoever is there.
   */
  readonly datacenter?: string;
  /**
   * To an address: why the node that is there, as the handshake proved it, is not asked; the call is 'unreachable'
   * then. Undefined where it may be.
   */
  readonly refuses?: (who: RpcCaller) => string | undefined;
}

/** A node at the other end, as the handshake proved it. */
export interface RpcCaller {
  readonly node: NodeId;
  readonly id: string;
  readonly name: string;
  readonly version: string;
  /** Up to which level it reads what the log says. */
  readonly reads: number;
  readonly datacenter: string;
  /** As of the handshake; empty: it belonged to no cluster. */
  readonly clusterId: string;
  /** As of the handshake; empty: it knew of no federation. */
  readonly federationId: string;
  /** `host:port` of its end of the connection. */
  readonly remote: string;
}

export interface RpcRequest extends RpcCall {
  readonly from: RpcCaller;
}

/** Answers with bytes, or rejects with RpcRefusal; any other failure is this node's and is logged. */
export type RpcServer = (request: RpcRequest) => Promise<Uint8Array>;
