// Who has no part in the federation, though it has the key: a datacenter that an operator removed, a server of
// another federation, and another cluster under the name of one that is known. They hear why nobody answers,
// whatever they ask, and who can change that.

import { RpcRefusal } from '../transport/calls/rpc-error.ts';
import type { RpcCaller, RpcRequest, RpcServer } from '../transport/transport.ts';
import { FEED_REFUSAL } from './feed/feed-session.ts';

/** On the wire: it gets no other meaning. */
export const REMOVED_REFUSAL = 'federation.removed';

/** What a server says of itself, as its handshake proved it. */
export type Identity = Pick<RpcCaller, 'datacenter' | 'clusterId' | 'federationId'>;

/** Who belongs here, as this server knows it. Asked at every call. */
export interface Belonging {
  /** The own one. */
  readonly datacenter: string;
  /** Empty while none is known. */
  readonly federationId: () => string;
  /** The cluster that has the name of another datacenter; undefined where nothing says so. */
  readonly clusterIdOf: (datacenter: string) => string | undefined;
}

export interface Outsiders {
  readonly belonging: Belonging;
  readonly isRemoved: (datacenter: string) => boolean;
  /** What one that was removed asked, before it is refused. */
  readonly overhear: (request: RpcRequest) => void;
}

/** The same handler for all datacenters but those that have no part in the federation. */
export function refusingOutsiders(
  handler: RpcServer,
  { belonging, isRemoved, overhear }: Outsiders,
): RpcServer {
  return async (request) => {
    const { datacenter } = request.from;
    if (isRemoved(datacenter)) {
      overhear(request);
      throw new RpcRefusal(REMOVED_REFUSAL, removedText(datacenter));
    }
    const strange = strangerText(request.from, belonging);
    if (strange !== undefined) throw new RpcRefusal(FEED_REFUSAL.stranger, strange);
    return handler(request);
  };
}

/**
 * Whom the log of this datacenter has removed is given nothing of that log, also where others follow it in a later
 * reign: it may have lost that one, with its disks. Throws RpcRefusal.
 */
export function requireNotRemoved(
  { datacenter }: Pick<Identity, 'datacenter'>,
  { removed }: { readonly removed: readonly string[] },
): void {
  if (removed.includes(datacenter)) throw new RpcRefusal(REMOVED_REFUSAL, removedText(datacenter));
}

/**
 * Why a server of another datacenter is none of this federation; undefined where nothing speaks against it. One
 * that belonged to no cluster yet when it made the connection makes another one when it does.
 */
export function strangerText(
  { datacenter, clusterId, federationId }: Identity,
  belonging: Belonging,
): string | undefined {
  if (datacenter === belonging.datacenter) return undefined;
  const own = belonging.federationId();
  if (areTwoFederations(own, federationId)) {
    return `${datacenter} is of federation ${federationId}, ${belonging.datacenter} of ${own}`;
  }
  const known = belonging.clusterIdOf(datacenter);
  if (known === undefined || known === clusterId) return undefined;
  return otherClusterText({ datacenter, clusterId, known });
}

/** Whether both are known, and not the same: what is said in one means nothing in the other. */
export function areTwoFederations(one: string, other: string): boolean {
  return one !== '' && other !== '' && one !== other;
}

/** For people: a cluster that is not the one of its name, and what to do where it shall be. */
export function otherClusterText({
  datacenter,
  clusterId,
  known,
}: {
  readonly datacenter: string;
  readonly clusterId: string;
  readonly known: string;
}): string {
  const other = clusterId === '' ? 'a server that belongs to none yet' : clusterId;
  return `${datacenter} is cluster ${known} here, not ${other}: if its disks were lost, \`conclave operator datacenter remove ${datacenter}\` and \`allow ${datacenter}\` at the primary let the new one in`;
}

function removedText(datacenter: string): string {
  return `an operator has removed datacenter ${datacenter} from the federation; \`conclave operator datacenter allow ${datacenter}\` at the primary lets it come back`;
}
