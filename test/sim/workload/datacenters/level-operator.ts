// The operator of several datacenters, when nothing breaks any more: a datacenter that reads less than another
// one uses follows it only when its servers read that, too, and whoever of them is gone for good is removed,
// as the refusal says.

import type { SimGroup } from '../../run/sim-group.ts';
import { type HttpAnswer, type LiveServer, MANAGEMENT_SECRET } from '../../subject/node-subject.ts';
import type { SimHost } from '../../world/sim-host.ts';
import type { World } from '../../world/world.ts';

export interface LevelOperatorOptions {
  readonly world: World;
  readonly group: SimGroup;
  readonly sites: readonly (readonly SimHost[])[];
}

/** A corner that a long series of runs must have been in. */
export const BEHIND = 'a server was removed that kept its datacenter behind';

const EVERY_MS = 3000;
const TIMEOUT_MS = 5000;

interface Level {
  readonly leader: SimHost;
  readonly active: number;
  readonly waitsFor: readonly string[];
}

export class LevelOperator {
  readonly #options: LevelOperatorOptions;

  constructor(options: LevelOperatorOptions) {
    this.#options = options;
  }

  /** Never resolves; these hosts are well, and nobody else is ever again. */
  async settle(hosts: readonly SimHost[]): Promise<void> {
    const { group, sites, world } = this.#options;
    for (;;) {
      await new Promise<void>((resolve) => {
        world.time.after(EVERY_MS, resolve);
      });
      const leaders = sites.flatMap((site) => {
        const leader = group.leader(site.filter((host) => hosts.includes(host)));
        return leader === undefined ? [] : [leader];
      });
      const levels = (await Promise.all(leaders.map((leader) => this.#levelAt(leader)))).flat();
      const most = Math.max(...levels.map(({ active }) => active));
      for (const level of levels) if (level.active < most) await this.#remove(level, hosts);
    }
  }

  async #levelAt(leader: SimHost): Promise<readonly Level[]> {
    const answer = await this.#ask(leader, 'GET', 'autopilot/state');
    if (answer?.status !== 200) return [];
    const { FeatureLevel: level } = JSON.parse(answer.text) as {
      readonly FeatureLevel: { readonly Active: number; readonly WaitsFor: readonly string[] };
    };
    return [{ leader, active: level.Active, waitsFor: level.WaitsFor }];
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
      if (removed?.status === 200) this.#options.world.trace.mark(BEHIND);
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
