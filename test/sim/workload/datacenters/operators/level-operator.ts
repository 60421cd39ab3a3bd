// The operator of several datacenters, when nothing breaks any more: a datacenter uses a feature level only when all
// its servers read it, and one that uses less than the primary is refused the log. Servers that are left are
// upgraded, one after the other, and whoever is gone for good and holds the level back is removed; or replaced,
// where nothing has come to the datacenter yet: then no token is known there by which anybody could be removed.

import type { SimGroup } from '../../../run/sim-group.ts';
import { isInOlderLife } from '../../../subject/datacenters-subject.ts';
import {
  type HttpAnswer,
  type LiveServer,
  MANAGEMENT_SECRET,
} from '../../../subject/node-subject.ts';
import type { SimHost } from '../../../world/sim-host.ts';
import type { World } from '../../../world/world.ts';

export interface LevelOperatorOptions {
  readonly world: World;
  readonly group: SimGroup;
  readonly sites: readonly (readonly SimHost[])[];
  /** Servers, by number, that are of an older release in their first life. */
  readonly olderHosts: readonly number[];
  /** A disk is about to be emptied. */
  readonly onLosing: (host: SimHost) => void;
}

/** Corners that a long series of runs must have been in. */
export const MARKS = {
  behind: 'a server was removed that kept its datacenter behind',
  replaced: 'a server was replaced that kept its datacenter from the global log',
  upgraded: 'a server was upgraded when nothing broke any more',
} as const;

const EVERY_MS = 3000;
/** A server answers after five seconds at the latest. */
const TIMEOUT_MS = 8000;

/** Of a datacenter whose level is below that of the global log: which servers are to be upgraded or replaced. */
const IS_KEPT_FROM =
  /^nothing has come from the primary datacenter yet: feature level .*: upgrade and start (.*), and replace /;

interface Level {
  readonly leader: SimHost;
  readonly active: number;
  readonly readable: number;
  readonly waitsFor: readonly string[];
}

export class LevelOperator {
  readonly #options: LevelOperatorOptions;
  readonly #replaced = new Set<SimHost>();

  constructor(options: LevelOperatorOptions) {
    this.#options = options;
  }

  /** Never resolves; these hosts are well, and nobody else is ever again. */
  async settle(hosts: readonly SimHost[]): Promise<void> {
    const { group, sites, world } = this.#options;
    for (;;) {
      await world.time.pause(EVERY_MS);
      if (await this.#upgradeOne(hosts)) continue;
      const leaders = sites.flatMap((site) => {
        const leader = group.leader(site.filter((host) => hosts.includes(host)));
        return leader === undefined ? [] : [leader];
      });
      const asked = leaders.map((leader) => this.#levelAt(leader, hosts));
      const levels = (await Promise.all(asked)).flat();
      for (const level of levels) {
        if (level.active < level.readable) await this.#remove(level, hosts);
      }
    }
  }

  /** Whether there was one. */
  async #upgradeOne(hosts: readonly SimHost[]): Promise<boolean> {
    const { group, olderHosts, world } = this.#options;
    const next = hosts.find((host) => isInOlderLife(host, olderHosts));
    if (next === undefined) return false;
    world.trace.mark(MARKS.upgraded);
    await group.stop(next);
    group.start(next);
    return true;
  }

  async #levelAt(leader: SimHost, well: readonly SimHost[]): Promise<readonly Level[]> {
    const answer = await this.#ask(leader, 'GET', 'autopilot/state');
    const names = IS_KEPT_FROM.exec(answer?.text ?? '')?.[1];
    if (names !== undefined) this.#replace(names.split(', '), well);
    if (answer?.status !== 200) return [];
    const { FeatureLevel: level } = JSON.parse(answer.text) as {
      readonly FeatureLevel: {
        readonly Active: number;
        readonly Readable: number;
        readonly WaitsFor: readonly string[];
      };
    };
    const { Active: active, Readable: readable, WaitsFor: waitsFor } = level;
    return [{ leader, active, readable, waitsFor }];
  }

  /** Another machine of its name takes the place of one of these that is gone. */
  #replace(names: readonly string[], well: readonly SimHost[]): void {
    const { group, onLosing, sites, world } = this.#options;
    const isGone = (host: SimHost): boolean => !well.includes(host) && !this.#replaced.has(host);
    const gone = sites.flat().find((host) => names.includes(host.name) && isGone(host));
    if (gone === undefined) return;
    this.#replaced.add(gone);
    group.crash(gone, 'process');
    onLosing(gone);
    gone.replaceDisk();
    group.damaged.delete(gone);
    for (const other of well) {
      world.net.link(gone.name, other.name).heal();
      world.net.link(other.name, gone.name).heal();
    }
    group.start(gone);
    world.trace.mark(MARKS.replaced);
  }

  async #remove({ leader, waitsFor }: Level, well: readonly SimHost[]): Promise<void> {
    const answer = await this.#ask(leader, 'GET', 'raft/configuration');
    if (answer?.status !== 200) return;
    const { Servers: servers } = JSON.parse(answer.text) as {
      readonly Servers: readonly { readonly ID: string; readonly Node: string }[];
    };
    for (const { ID: id, Node: name } of servers) {
      if (!waitsFor.includes(name) || well.some((host) => host.name === name)) continue;
      const removed = await this.#ask(leader, 'DELETE', `raft/peer?id=${id}`);
      if (removed?.status === 200) this.#options.world.trace.mark(MARKS.behind);
    }
  }

  async #ask(
    host: SimHost,
    method: 'GET' | 'DELETE',
    what: string,
  ): Promise<HttpAnswer | undefined> {
    const headers = { 'X-Service-Token': MANAGEMENT_SECRET };
    const path = `/v1/operator/${what}`;
    const reply = await this.#options.group.ask(host, TIMEOUT_MS, (node) =>
      (node as LiveServer).http({ method, path, headers }),
    );
    return reply.kind === 'answered' ? reply.value : undefined;
  }
}
