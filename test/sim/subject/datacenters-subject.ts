// Several datacenters of whole nodes, one system: each has its group, all of them one global log. The
// first one writes it, until that is moved.

import type { Message } from '../../../cluster/raft/message.ts';
import type { GroupTiming } from '../../../cluster/replica/group-limits.ts';
import type { Platform } from '../../../src/node/platform.ts';
import type { SimStore } from '../world/sim-disk.ts';
import type { SimHost } from '../world/sim-host.ts';
import type { LeavingFrame } from '../world/sim-net.ts';
import type { SimProcess } from '../world/sim-process.ts';
import { CLUSTER_PORT, type LiveServer, NodeSubject } from './node-subject.ts';
import type { StoredStanding, Subject } from './subject.ts';

export interface DatacentersOptions {
  /** The hosts of each datacenter, all of which found its group. */
  readonly sites: readonly (readonly SimHost[])[];
  readonly timing: GroupTiming;
  /** Applied entries that each server keeps; left out: so many that no group needs a snapshot. */
  readonly keptCount: number | undefined;
  readonly logMaxAgeMs: number;
  readonly defaultAck: 'primary' | 'majority';
  /** By number; in their first life they are of the release before. */
  readonly olderHosts: readonly number[];
  /** By number, undefined: none. */
  readonly witnessSite: number | undefined;
  readonly https: Platform['https'];
}

/** What a datacenter is called, by its place. */
export function siteName(place: number): string {
  return `dc${place + 1}`;
}

export class DatacentersSubject implements Subject {
  readonly name = 'datacenters';
  readonly timing: GroupTiming;
  readonly #sites: readonly (readonly SimHost[])[];
  readonly #groups: readonly NodeSubject[];

  constructor(options: DatacentersOptions) {
    const { sites, timing, keptCount, logMaxAgeMs, defaultAck, olderHosts, witnessSite, https } =
      options;
    this.timing = timing;
    this.#sites = sites;
    this.#groups = sites.map((hosts, place) => {
      const others = sites.flatMap((site) => (site === hosts ? [] : site));
      return new NodeSubject({
        ...{ hosts, founderCount: hosts.length, timing, keptCount, https },
        isOlder: ({ number, lifeCount }) => lifeCount === 1 && olderHosts.includes(number),
        flags: {
          datacenter: siteName(place),
          'primary-datacenter': siteName(0),
          'retry-join-wan': others.map(({ name }) => `${name}:${CLUSTER_PORT}`).join(','),
          'federation-log-max-age': `${Math.ceil(logMaxAgeMs)}ms`,
          'federation-default-ack': defaultAck,
          'acl-token-min-ttl': '1s',
          ...(place + 1 === witnessSite && { 'federation-witness': 'true' }),
        },
      });
    });
  }

  nodeOf(host: SimHost): number {
    return this.#groupOf(host).nodeOf(host);
  }

  hostOf(node: number): SimHost | undefined {
    for (const group of this.#groups) {
      const host = group.hostOf(node);
      if (host !== undefined) return host;
    }
    return undefined;
  }

  messagesIn(leaving: LeavingFrame): readonly Message[] {
    return this.#groups[0]!.messagesIn(leaving);
  }

  standingIn(store: SimStore): StoredStanding | undefined {
    return this.#groups[0]!.standingIn(store);
  }

  start(host: SimHost, process: SimProcess, onExit: (cause: Error) => void): Promise<LiveServer> {
    return this.#groupOf(host).start(host, process, onExit);
  }

  #groupOf(host: SimHost): NodeSubject {
    return this.#groups[this.#sites.findIndex((site) => site.includes(host))]!;
  }
}
