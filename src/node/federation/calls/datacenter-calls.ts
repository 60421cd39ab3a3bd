// Calls from and to other datacenters, for all that this server does between them. Whoever is at the other end,
// as the handshake proved it, must have a part in the federation: what others say in the name of a datacenter
// counts for promises, acknowledgements and clients, and a cluster that lost its disks knows nothing any more.

import {
  type Belonging,
  refusingOutsiders,
  strangerText,
} from '../../../../cluster/federation/refuse-outsiders.ts';
import type { Member } from '../../../../cluster/member/group-member.ts';
import type { NetAddress } from '../../../../cluster/platform/net.ts';
import type { RpcCall, RpcRequest, RpcServer } from '../../../../cluster/transport/transport.ts';
import type { FederationView } from '../federation-view.ts';

export interface DatacenterCallsOptions {
  readonly member: Pick<Member<unknown>, 'call' | 'serve'>;
  /** The own one. */
  readonly datacenter: string;
  /** Empty while none is known. */
  readonly federationId: () => string;
  /** Asked at every call. */
  readonly view: () => Pick<FederationView, 'clusterIdOf' | 'isFollowed' | 'isRemoved'>;
  /** What one that was removed asked, before it is refused. */
  readonly overhear: (request: RpcRequest) => void;
}

/** Rejects with RpcError. */
export type CallAddress = (to: NetAddress, request: RpcCall) => Promise<Uint8Array>;

export class DatacenterCalls {
  /** To whom a word is taken from: only the cluster that has the name of its datacenter is asked. */
  readonly call: CallAddress;
  /**
   * To who may be a primary that the own log knows nothing of: a later reign may have let another cluster have
   * that name. What counts for a majority is not asked this way.
   */
  readonly callFollowed: CallAddress;
  readonly #options: DatacenterCallsOptions;
  readonly #belonging: Belonging;

  constructor(options: DatacenterCallsOptions) {
    const { datacenter, federationId, view } = options;
    this.#options = options;
    const clusterIdOf = (each: string) => view().clusterIdOf(each);
    this.#belonging = { datacenter, federationId, clusterIdOf };
    this.call = this.#callingThose(this.#belonging);
    this.callFollowed = this.#callingThose({
      ...this.#belonging,
      clusterIdOf: (each) => (view().isFollowed(each) ? undefined : clusterIdOf(each)),
    });
  }

  /** For all datacenters that have a part in the federation. */
  serve(method: string, handler: RpcServer): void {
    const { member, overhear, view } = this.#options;
    const served = refusingOutsiders(handler, {
      belonging: this.#belonging,
      isRemoved: (datacenter) => view().isRemoved(datacenter),
      overhear,
    });
    member.serve(method, served, { from: 'datacenters' });
  }

  #callingThose(belonging: Belonging): CallAddress {
    const refuses = (who: RpcRequest['from']) => strangerText(who, belonging);
    return (to, request) => this.#options.member.call(to, { ...request, refuses });
  }
}
