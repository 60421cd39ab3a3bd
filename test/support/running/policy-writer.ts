// A client of real nodes that goes on writing whatever happens to them, and knows what it was promised.

import { type ServerUnderTest, until } from './running-group.ts';

/** Makes policies at the servers in turns until it is told to stop; what failed is kept. */
export class PolicyWriter {
  readonly names: string[] = [];
  readonly failures: string[] = [];
  #isOn = true;
  readonly #done: Promise<void>;

  constructor(prefix: string, servers: readonly ServerUnderTest[]) {
    this.#done = this.#write(prefix, servers);
  }

  async stop(): Promise<void> {
    this.#isOn = false;
    await this.#done;
  }

  async #write(prefix: string, servers: readonly ServerUnderTest[]): Promise<void> {
    for (let number = 0; this.#isOn; number += 1) {
      const name = `${prefix}-${number}`;
      const open = servers.filter((server) => server.isOpen);
      const server = open[number % open.length]!;
      const made = await server.client.put('/acl/policy', { Name: name }, requestId(name));
      // Without a leader for longer than a write waits nothing is promised; it is made again.
      if (made.status === 503 || made.status === 504) await again(server, name, this.failures);
      else if (made.status !== 200) this.failures.push(`${name}: ${made.status} ${made.text}`);
      this.names.push(name);
    }
  }
}

async function again(server: ServerUnderTest, name: string, failures: string[]): Promise<void> {
  await until(`${name} is written`, async () => {
    const made = await server.client.put('/acl/policy', { Name: name }, requestId(name));
    if (made.status === 200) return true;
    if (made.status !== 503 && made.status !== 504) failures.push(`${made.status} ${made.text}`);
    return made.status !== 503 && made.status !== 504;
  });
}

function requestId(name: string) {
  return { headers: { 'X-Service-Request-Id': name } };
}

/** Of the policies that it has, the two that are built in among them. */
export async function namesAt(server: ServerUnderTest): Promise<ReadonlySet<unknown>> {
  const { list } = await server.client.get('/acl/policies?stale');
  return new Set(list.map(({ Name }) => Name));
}
