// The operator of a group of servers: tells autopilot to be quick, because runs are short; in some runs also
// takes servers out, at any moment, and has them come back with empty disks. What else changes who belongs to
// the group, autopilot does itself: new servers are taken in and promoted.

import type { SimGroup } from '../run/sim-group.ts';
import type { HttpQuestion, LiveServer, NodeSubject } from '../subject/node-subject.ts';
import { MANAGEMENT_SECRET } from '../subject/node-subject.ts';
import type { SimHost } from '../world/sim-host.ts';
import type { Stream } from '../world/stream.ts';
import type { World } from '../world/world.ts';

export interface ServerKeeperOptions {
  readonly world: World;
  readonly group: SimGroup;
  /** The servers of the group. */
  readonly hosts: readonly SimHost[];
  /** Left out: nobody is taken out. */
  readonly removals?: Removals;
}

export interface Removals {
  readonly subject: Pick<NodeSubject, 'idOf'>;
  /** Between two of them, on average. */
  readonly everyMs: number;
  /** Whether the group, as far as it has committed, has no server on that host. */
  readonly isOut: (host: SimHost) => boolean;
  /** A disk is about to be emptied. */
  readonly onLosing: (host: SimHost) => void;
}

const RETRY_MS = 500;
const TIMEOUT_MS = 5000;
/** Whoever was asked tries for so long, also when nobody waits for its answer any more. */
const TRIES_MS = 11_000;
/** In so many runs servers are taken out. */
const REMOVALS_RATE = 0.3;
/** So many of those that are out keep their old disk for longer, and may come back with it. */
const KEPT_RATE = 0.4;

export class ServerKeeper {
  readonly #options: ServerKeeperOptions;
  #isStopped = false;
  changeCount = 0;
  quietAtMs = 0;

  constructor(options: ServerKeeperOptions) {
    this.#options = options;
  }

  begin(): void {
    void this.#hurryAutopilot();
    const { removals, world } = this.#options;
    const stream = world.stream.fork('removals');
    if (removals !== undefined && stream.chance(REMOVALS_RATE)) void this.#remove(removals, stream);
  }

  stop(): void {
    this.#isStopped = true;
  }

  async #hurryAutopilot(): Promise<void> {
    const { world, hosts } = this.#options;
    const stream = world.stream.fork('keeper');
    while (!this.#isStopped) {
      const status = await this.#ask(stream.pick(hosts), {
        method: 'PUT',
        path: '/v1/operator/autopilot/configuration',
        body: { ServerStabilizationTime: '500ms' },
      });
      if (status === 200) {
        this.changeCount += 1;
        return;
      }
      await this.#options.world.time.pause(RETRY_MS);
    }
  }

  async #remove(removals: Removals, stream: Stream): Promise<void> {
    const { world, hosts } = this.#options;
    const { everyMs, subject, isOut } = removals;
    for (;;) {
      await this.#options.world.time.pause(stream.exponential(everyMs / 4, everyMs));
      if (this.#isStopped) return;
      const out = hosts.filter((host) => isOut(host));
      for (const host of out) if (!stream.chance(KEPT_RATE)) this.#renew(host, removals);
      const id = subject.idOf(stream.pick(hosts));
      const path = `/v1/operator/raft/peer?id=${id}`;
      this.quietAtMs = world.time.nowMs + TRIES_MS;
      const status = await this.#ask(stream.pick(hosts), { method: 'DELETE', path });
      if (status !== 200) continue;
      world.trace.mark('a server was taken out');
      this.changeCount += 1;
    }
  }

  /** As an operator does who is told that a server was removed. */
  #renew(host: SimHost, { onLosing }: Removals): void {
    const { group, world } = this.#options;
    group.crash(host, 'process');
    onLosing(host);
    host.replaceDisk();
    group.damaged.delete(host);
    group.start(host);
    world.trace.mark('a server that was taken out is back, empty');
  }

  async #ask(host: SimHost, question: Omit<HttpQuestion, 'headers'>): Promise<number> {
    const reply = await this.#options.group.ask(host, TIMEOUT_MS, (node) =>
      (node as LiveServer).http({
        ...question,
        headers: { 'X-Service-Token': MANAGEMENT_SECRET },
      }),
    );
    return reply.kind === 'answered' ? reply.value.status : 0;
  }
}
