// Clients that make tokens which live in one datacenter alone, and use them there at once: whatever happens to
// the other datacenters, that goes on.

import { Agent } from 'node:http';
import { askNode, type NodeAnswer, type Question } from '../../scripts/cluster/ask-node.ts';
import type { ClusterDescription, NodeDescription } from '../../scripts/cluster/cluster-files.ts';

const ANSWER_MAX_MS = 10_000;
const REST_MS = 30;

export class LocalClients {
  /** Whatever must not be, in words. */
  readonly faults: string[] = [];
  readonly #cluster: ClusterDescription;
  readonly #datacenter: string;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #made: string[] = [];
  #working: Promise<unknown> = Promise.resolve();
  #isOn = true;

  constructor(cluster: ClusterDescription, datacenter: string) {
    this.#cluster = cluster;
    this.#datacenter = datacenter;
  }

  /** Tokens that were acknowledged. */
  get count(): number {
    return this.#made.length;
  }

  start(): void {
    const own = this.#cluster.nodes.filter(({ datacenter }) => datacenter === this.#datacenter);
    this.#working = Promise.all(own.map((node) => this.#work(node)));
  }

  async stop(): Promise<void> {
    this.#isOn = false;
    await this.#working;
    this.#agent.destroy();
  }

  /** What a list of all tokens of a server says against what was acknowledged. */
  holdAgainst(
    { name, datacenter }: Pick<NodeDescription, 'name' | 'datacenter'>,
    accessorIds: readonly string[],
  ): void {
    const found = new Set(accessorIds);
    const isHome = datacenter === this.#datacenter;
    for (const id of this.#made) {
      if (found.has(id) === isHome) continue;
      this.faults.push(
        `${name}: token ${id} of ${this.#datacenter} is ${isHome ? 'lost' : 'here'}`,
      );
    }
  }

  async #work({ name, http }: NodeDescription): Promise<void> {
    while (this.#isOn) {
      const body = { Local: true };
      const made = await this.#asked({ http, path: '/v1/acl/token', method: 'PUT', body });
      if (made?.status === 200) {
        const { AccessorID, SecretID } = JSON.parse(made.text) as Record<string, string>;
        this.#made.push(AccessorID!);
        const used = await this.#asked({ http, path: '/v1/acl/token/self', secret: SecretID! });
        if (used?.status === 403)
          this.faults.push(`${name}: a local token is refused: ${used.text}`);
      }
      await new Promise((resolve) => setTimeout(resolve, REST_MS));
    }
  }

  /** Undefined: no answer came. */
  #asked(question: Omit<Question, 'timeoutMs'>): Promise<NodeAnswer | undefined> {
    const secret = this.#cluster.management_token;
    const asked = { secret, timeoutMs: ANSWER_MAX_MS, agent: this.#agent, ...question };
    return askNode(asked).catch(() => undefined);
  }
}
