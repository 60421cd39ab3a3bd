// How clients of several datacenters ask a server, and what is no answer at all.

import type { Violations } from '../../checks/violations.ts';
import type { SimGroup } from '../../run/sim-group.ts';
import type { Site } from '../../run/site.ts';
import type { HttpQuestion, LiveServer } from '../../subject/node-subject.ts';
import type { SimHost } from '../../world/sim-host.ts';
import { type Came, cameFrom } from '../came.ts';
import type { Asked } from './global/global-history.ts';

export interface AskingOptions {
  readonly group: SimGroup;
  readonly sites: readonly Site[];
  readonly violations: Violations;
  readonly timeoutMs: number;
}

export class Asking {
  readonly #options: AskingOptions;

  constructor(options: AskingOptions) {
    this.#options = options;
  }

  async ask(host: SimHost, question: HttpQuestion): Promise<Came> {
    const { group, timeoutMs } = this.#options;
    const reply = await group.ask(host, timeoutMs, (node) => (node as LiveServer).http(question));
    return cameFrom(host, reply);
  }

  complain(path: string, host: SimHost, came: Came): void {
    const shown = typeof came === 'string' ? came : `${came.status} ${came.text}`;
    this.#options.violations.add('answers', `${path} at ${host.name} was answered ${shown}`);
  }

  askedOf(host: SimHost): Asked {
    return { host: host.name, life: host.lifeCount, site: this.siteOf(host) };
  }

  siteOf(host: SimHost): number {
    return this.#options.sites.findIndex(({ hosts }) => hosts.includes(host));
  }
}
