// The management token of the settings is made once, as any bootstrap: who deletes it has revoked it, whichever server
// leads next, whatever is on its disk, and however often servers are started with the same settings.

import t from 'tap';
import { runDatacenter, serverOf } from '../support/running/running-datacenters.ts';
import {
  allReady,
  leaderOf,
  runServers,
  type ServerUnderTest,
  until,
} from '../support/running/running-group.ts';
import { type Client, ROOT } from '../support/running/running-node.ts';

/** Each has servers of its own, and waits for them most of the time. */
t.jobs = 3;

interface Peer {
  readonly ID: string;
  readonly Voter: boolean;
}

type Checker = Pick<typeof t, 'equal'>;

async function statusAt(server: ServerUnderTest, secret: string): Promise<number> {
  return (await server.client.as(secret).get('/acl/token/self')).status;
}

/** Deletes the token of the settings. Gives the secret of another management token. */
async function revoke(t: Checker, client: Client): Promise<string> {
  const own = (await client.get('/acl/token/self')).json.AccessorID;
  const policies = { Policies: [{ Name: 'global-management' }] };
  const { SecretID: mine } = await client.made('PUT', '/acl/token', policies);
  t.equal((await client.as(mine).delete(`/acl/token/${own}`)).text, 'true');
  return mine as string;
}

async function passReign(t: Checker, server: ServerUnderTest, secret: string): Promise<void> {
  const made = await server.client.as(secret).put('/acl/policy', { Name: `by-${server.name}` });
  t.equal(made.status, 200, 'its reign has begun');
}

t.test('made once: an election and a start leave it revoked everywhere', async (t) => {
  const servers = await runServers(t, 3);
  const leader = await leaderOf(servers);
  const mine = await revoke(t, leader.client);

  await leader.close();
  await until('another one leads', async () => (await leaderOf(servers)) !== leader);
  const next = await leaderOf(servers);
  await passReign(t, next, mine);
  t.equal(await statusAt(next, ROOT), 403);

  await leader.open();
  await Promise.all(servers.filter((each) => each !== leader).map((each) => each.close()));
  for (const each of servers) if (!each.isOpen) await each.open();
  await allReady(servers);
  for (const each of servers) t.equal(await statusAt(each, ROOT), 403, each.name);
});

t.test('made once: nor is it made by a leader that came when it was gone', async (t) => {
  const servers = await runServers(t, 3);
  const leader = await leaderOf(servers);
  const mine = await revoke(t, leader.client);
  const admin = leader.client.as(mine);
  const soon = { ServerStabilizationTime: '100ms', LastContactThreshold: '5s' };
  await admin.made('PUT', '/operator/autopilot/configuration', soon);
  const newcomer = servers.find((each) => each !== leader)!;
  const { nodeId: before } = newcomer.node.info;
  await newcomer.close();
  newcomer.loseDisk();
  await newcomer.open({ 'bootstrap-expect': '1' });
  const { nodeId: id } = newcomer.node.info;
  t.not(id, before, 'its disk is another one');
  await until('it has a vote', async () => {
    const { json } = await admin.get('/operator/raft/configuration');
    return (json.Servers as readonly Peer[]).some(({ ID, Voter }) => ID === id && Voter);
  });

  t.equal((await admin.send('POST', `/operator/raft/transfer-leader?id=${id}`)).status, 200);
  await until('it leads', async () => (await leaderOf(servers)) === newcomer);
  await passReign(t, newcomer, mine);
  t.equal(await statusAt(newcomer, ROOT), 403);
});

t.test('made once: nor by another datacenter that becomes the primary', async (t) => {
  const dc1 = await runDatacenter(t, { name: 'dc1' });
  const mine = await revoke(t, serverOf(dc1).client);
  const dc2 = await runDatacenter(t, { name: 'dc2', primary: dc1 });
  const admin = serverOf(dc2).client.as(mine);
  let moved = '';
  await until('dc2 is the primary', async () => {
    const { status, text } = await admin.put('/operator/primary', { Datacenter: 'dc2' });
    moved = text;
    return status === 200;
  });
  t.match(moved, /"Epoch":2/);
  await serverOf(dc2).close();
  await serverOf(dc2).open();
  await allReady(dc2.servers);
  await passReign(t, serverOf(dc2), mine);
  t.equal(await statusAt(serverOf(dc2), ROOT), 403);
});
