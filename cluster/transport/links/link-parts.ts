// What all links of one transport share.

import type { Clock } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logger.ts';
import type { Random } from '../../platform/random.ts';
import type { Message } from '../../raft/message.ts';
import type { NodeId } from '../../raft/node-id.ts';
import type { Hello } from '../../wire/frame.ts';
import { CallServer } from '../calls/call-server.ts';
import { CallTable } from '../calls/call-table.ts';
import type { DialAttempt, DialRequest } from '../handshake/dial-attempt.ts';
import type { RpcCaller, RpcServer, TransportSelf } from '../transport.ts';
import type { TransportLimits, TransportTiming } from '../transport-limits.ts';

export interface LinkParts {
  readonly self: TransportSelf;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly timing: TransportTiming;
  readonly limits: TransportLimits;
  readonly dial: (request: DialRequest) => DialAttempt;
  readonly nextCallId: () => number;
  /** What the own node belongs to, as its next handshake says. */
  readonly belonging: () => string;
  readonly serve: RpcServer;
  readonly onMessage: (message: Message) => void;
  readonly onLinkClosed: (node: NodeId) => void;
}

export function newCallTable({ clock, limits, nextCallId }: LinkParts): CallTable {
  return new CallTable({ clock, callsMax: limits.callsMax, nextId: nextCallId });
}

export function newCallServer({ serve, logger, limits }: LinkParts): CallServer {
  return new CallServer({ serve, logger, ...limits });
}

/** How a handler sees who asks. */
export function callerOf(peer: Hello, remote: string): RpcCaller {
  const { node, id, name, programVersion: version, reads, datacenter, ...ids } = peer;
  const { clusterId, federationId } = ids;
  return { node, id, name, version, reads, datacenter, clusterId, federationId, remote };
}
