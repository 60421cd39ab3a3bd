// Two datacenters of three servers each: any server of any of them takes any write, and neither side's
// leader is missed when it goes in the middle of the work.

import t from 'tap';
import { allReady, type ServerUnderTest, until } from '../support/running-group.ts';
import { leaderIn, runDatacenter } from '../support/running-datacenters.ts';

const dc1 = await runDatacenter(t, { name: 'dc1', servers: 3 });
const dc2 = await runDatacenter(t, { name: 'dc2', servers: 3, primary: dc1 });

/** Makes policies at the servers in turns until it is told to stop; what failed is kept. */
class Writer {
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

async function namesAt(server: ServerUnderTest): Promise<ReadonlySet<unknown>> {
  const { list } = await server.client.get('/acl/policies?stale');
  return new Set(list.map(({ Name }) => Name));
}

async function goesAway(server: ServerUnderTest, work: () => Promise<void>): Promise<void> {
  await server.close();
  await work();
  await server.open();
}

t.test('leaders: any server of any datacenter takes any write', async (t) => {
  for (const server of [...dc1.servers, ...dc2.servers]) {
    const made = await server.client.put('/acl/token', { Description: server.name });
    t.equal(made.status, 200, `${server.name} ${made.text}`);
    const path = `/acl/token/${String(made.json.AccessorID)}?stale`;
    t.equal((await server.client.get(path)).status, 200, 'and has it at once');
  }
  const follower = dc2.servers.find((server) => !server.node.info.leader()?.endsWith(`:${server}`));
  t.match((await follower!.client.get('/acl/replication')).json, {
    Running: true,
    Datacenters: [{ Name: 'dc2', State: 'live' }],
  });
});

t.test('leaders: changes on both sides lose nothing and double nothing', async (t) => {
  const writers = [new Writer('here', dc1.servers), new Writer('there', dc2.servers)];
  for (const datacenter of [dc1, dc2]) {
    const leader = await leaderIn(datacenter);
    await goesAway(leader, async () => {
      const before = writers.map(({ names }) => names.length);
      await until('both go on without it', () =>
        writers.every(({ names }, place) => names.length > before[place]! + 3),
      );
    });
    await allReady(datacenter.servers);
  }
  for (const writer of writers) await writer.stop();
  const wanted = writers.flatMap(({ names }) => names);
  t.same(
    writers.flatMap(({ failures }) => failures),
    [],
  );
  for (const server of [...dc1.servers, ...dc2.servers]) {
    await until(`${server.name} has all of them`, async () => {
      const found = await namesAt(server);
      return wanted.every((name) => found.has(name));
    });
    const found = await namesAt(server);
    t.equal(found.size, wanted.length + 2, 'with the two that are built in, and no more');
  }
  const digests = new Set<unknown>();
  for (const server of [...dc1.servers, ...dc2.servers]) {
    const self = (await server.client.get('/agent/self')).json as {
      Stats: { state: { digest_global: string } };
    };
    digests.add(self.Stats.state.digest_global);
  }
  t.equal(digests.size, 1, 'the same global objects everywhere');
});
