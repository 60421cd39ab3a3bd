// Whether servers of another cluster of this datacenter stand at the addresses of retry_join: a server that was
// started without them once has founded a cluster of its own, and nothing joins the two. It is told to whoever
// operates them, and nothing is done: either may be the rightful one.

import type { Logger } from '../../platform/logger.ts';
import { addressText, type NetAddress } from '../../platform/net.ts';
import type { RpcCaller } from '../../transport/transport.ts';
import type { OtherCluster } from '../group-member.ts';

/** So many addresses are asked at most. */
const ADDRESSES_MAX = 64;

export interface OtherClustersOptions {
  readonly logger: Logger;
  readonly clusterId: string;
  readonly datacenter: string;
  readonly retryJoin: readonly NetAddress[];
  /** Where this node is, and those that it has a link with: they are of its cluster. */
  readonly own: () => readonly NetAddress[];
  /** Who is there, as the handshake proves it. Rejects with RpcError. */
  readonly whoIsAt: (address: NetAddress) => Promise<RpcCaller>;
}

interface Found {
  readonly clusterId: string;
  /** Name and address. */
  readonly server: string;
}

export class OtherClusters {
  readonly #options: OtherClustersOptions;
  readonly #foundByAddress = new Map<string, Found>();
  /** Those that were told of; one that is found no more, and then again, is told of again. */
  #told: ReadonlySet<string> = new Set();

  constructor(options: OtherClustersOptions) {
    this.#options = options;
  }

  /** As of the last look. */
  get found(): readonly OtherCluster[] {
    const all = [...this.#foundByAddress.values()];
    return [...new Set(all.map(({ clusterId }) => clusterId))].map((clusterId) => ({
      clusterId,
      servers: all.filter((each) => each.clusterId === clusterId).map(({ server }) => server),
    }));
  }

  /** To be done now and then while this node leads. */
  async look(): Promise<void> {
    const { retryJoin, own } = this.#options;
    const ours = new Set(own().map(addressText));
    const addresses = retryJoin.slice(0, ADDRESSES_MAX);
    await Promise.all(addresses.map((address) => this.#ask(address, ours)));
    this.#tell();
  }

  async #ask(address: NetAddress, ours: ReadonlySet<string>): Promise<void> {
    const { clusterId, datacenter, whoIsAt } = this.#options;
    const at = addressText(address);
    const who = ours.has(at) ? undefined : await whoIsAt(address).catch(() => 'nobody' as const);
    // Who does not answer has not become another one.
    if (who === 'nobody') return;
    this.#foundByAddress.delete(at);
    if (who === undefined || who.datacenter !== datacenter) return;
    if (who.clusterId === '' || who.clusterId === clusterId) return;
    this.#foundByAddress.set(at, { clusterId: who.clusterId, server: `${who.name} at ${at}` });
  }

  #tell(): void {
    const { logger, clusterId: cluster } = this.#options;
    const { found } = this;
    for (const { clusterId: other, servers } of found) {
      if (this.#told.has(other)) continue;
      logger.error(
        { cluster, other, servers },
        'retry_join names servers of another cluster: stop the wrong ones, empty their data folders and start them again',
      );
    }
    this.#told = new Set(found.map(({ clusterId }) => clusterId));
  }
}
