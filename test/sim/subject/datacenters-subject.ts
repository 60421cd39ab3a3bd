// Several datacenters of whole nodes, one system: each has its group, all of them one global log. The
// first one writes it, until that is moved.

import type { Message } from '../../../cluster/raft/message.ts';
import type { GroupTiming } from '../../../cluster/replica/group-limits.ts';
import type { Platform } from '../../../src/node/platform.ts';
import { NEWEST_LEVEL } from '../../../src/state/commands/feature-levels.ts';
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
  /** By number; in their first life they read this level, which is a lower one. */
  readonly olderHosts: readonly number[];
  readonly olderLevel: number;
  /** By number, undefined: none. */
  readonly witnessSite: number | undefined;
  readonly https: Platform['https'];
}

/** What a datacenter is called, by its place. */
export function siteName(place: number): string {
  return `dc${place + 1}`;
}

/** Whether it is not upgraded yet; of one that is down, whether the life that was its last one was of before. */
export function isInOlderLife(
  { number, lifeCount }: Pick<SimHost, 'number' | 'lifeCount'>,
  olderHosts: readonly number[],
): boolean {
  return lifeCount === 1 && olderHosts.includes(number);
}

export class DatacentersSubject implements Subject {
  readonly name = 'datacenters';
  readonly timing: GroupTiming;
  readonly #sites: readonly (readonly SimHost[])[];
  readonly #groups: readonly NodeSubject[];
  /** By place of a datacenter: whom its settings name as the first primary, where it is another one than at first. */
  readonly #primaries = new Map<number, string>();
  /** By place. */
  readonly #witnesses = new Set<number>();

  constructor(options: DatacentersOptions) {
    const { sites, timing, keptCount, logMaxAgeMs, defaultAck, witnessSite, https } = options;
    const { olderHosts, olderLevel } = options;
    if (witnessSite !== undefined) this.#witnesses.add(witnessSite - 1);
    this.timing = timing;
    this.#sites = sites;
    this.#groups = sites.map((hosts, place) => {
      const others = sites.flatMap((site) => (site === hosts ? [] : site));
      return new NodeSubject({
        ...{ hosts, founderCount: hosts.length, timing, keptCount, https },
        reads: (host) => (isInOlderLife(host, olderHosts) ? olderLevel : NEWEST_LEVEL),
        flags: () => ({
          datacenter: siteName(place),
          'primary-datacenter': this.#primaries.get(place) ?? siteName(0),
          'retry-join-wan': others.map(({ name }) => `${name}:${CLUSTER_PORT}`).join(','),
          'federation-log-max-age': `${Math.ceil(logMaxAgeMs)}ms`,
          'federation-default-ack': defaultAck,
          'acl-token-min-ttl': '1s',
          ...(this.#witnesses.has(place) && { 'federation-witness': 'true' }),
        }),
      });
    });
  }

  /** From their next start on, the servers of the datacenter at this place have settings that name this primary. */
  namePrimary(place: number, primary: string): void {
    this.#primaries.set(place, primary);
  }

  /** From their next start on, the servers of the datacenter at this place are those of a witness. */
  makeWitness(place: number): void {
    this.#witnesses.add(place);
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
