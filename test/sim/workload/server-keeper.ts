// The operator of a group of servers: tells autopilot to be quick, because runs are short. What else
// changes who belongs to the group, autopilot does itself: new servers are taken in and promoted.

import type { SimGroup } from '../run/sim-group.ts';
import { type LiveServer, MANAGEMENT_SECRET } from '../subject/node-subject.ts';
import type { SimHost } from '../world/sim-host.ts';
import type { World } from '../world/world.ts';

export interface ServerKeeperOptions {
  readonly world: World;
  readonly group: SimGroup;
  /** The servers of the group. */
  readonly hosts: readonly SimHost[];
}

const RETRY_MS = 500;
const TIMEOUT_MS = 5000;

export class ServerKeeper {
  readonly #options: ServerKeeperOptions;
  #isStopped = false;
  changeCount = 0;

  constructor(options: ServerKeeperOptions) {
    this.#options = options;
  }

  begin(): void {
    void this.#hurryAutopilot();
  }

  stop(): void {
    this.#isStopped = true;
  }

  async #hurryAutopilot(): Promise<void> {
    const { world, group, hosts } = this.#options;
    const stream = world.stream.fork('keeper');
    while (!this.#isStopped) {
      const reply = await group.ask(stream.pick(hosts), TIMEOUT_MS, (node) =>
        (node as LiveServer).http({
          method: 'PUT',
          path: '/v1/operator/autopilot/configuration',
          headers: { 'X-Service-Token': MANAGEMENT_SECRET },
          body: { ServerStabilizationTime: '500ms' },
        }),
      );
      if (reply.kind === 'answered' && reply.value.status === 200) {
        this.changeCount += 1;
        return;
      }
      await new Promise<void>((resolve) => {
        world.time.after(RETRY_MS, resolve);
      });
    }
  }
}
