// Two datacenters of three servers each: any server of any of them takes any write, and neither side's
// leader is missed when it goes in the middle of the work.

import t from 'tap';
import { namesAt, PolicyWriter } from '../../support/running/policy-writer.ts';
import { leaderIn, runDatacenter } from '../../support/running/running-datacenters.ts';
import { allReady, type ServerUnderTest, until } from '../../support/running/running-group.ts';

const dc1 = await runDatacenter(t, { name: 'dc1', servers: 3 });
const dc2 = await runDatacenter(t, { name: 'dc2', servers: 3, primary: dc1 });

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
  const writers = [new PolicyWriter('here', dc1.servers), new PolicyWriter('there', dc2.servers)];
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
