// The token that a server takes for requests without one counts for what comes in at that server, and goes
// along wherever that is carried; whoever answers for another server puts in none of its own.

import t from 'tap';
import { runDatacenter, serverOf } from '../support/running/running-datacenters.ts';
import { joiningServer, type ServerUnderTest, until } from '../support/running/running-group.ts';

const DEFAULT = '22222222-0000-4000-8000-000000000000';
const WITH_DEFAULT = { 'acl-tokens-default': DEFAULT };

const dc1 = await runDatacenter(t, { name: 'dc1', flags: WITH_DEFAULT });
const dc2 = await runDatacenter(t, { name: 'dc2', primary: dc1 });
const leader = serverOf(dc1);
const follower = await joiningServer(t, 'dc1-2', dc1.servers);
await follower.open();
await until('it is ready', () => follower.node.info.notReadyReasons().length === 0);
const elsewhere = serverOf(dc2);
await leader.client.made('PUT', '/acl/token', {
  SecretID: DEFAULT,
  Policies: [{ Name: 'global-management' }],
});

/** What a client without a token is answered. */
async function told(server: ServerUnderTest, ask: string): Promise<string> {
  const [method = '', path = ''] = ask.split(' ');
  const body = method === 'PUT' ? { Name: `made-by-${server.name}` } : undefined;
  const { status, text } = await server.client.as('').send(method, path, { body });
  return status === 200 ? 'ok' : `${status} ${text}`;
}

const CARRIED_TO_THE_LEADER = ['PUT /acl/policy', 'GET /operator/raft/configuration'];
const READS_CARRIED_TO_DC1 = ['GET /acl/policies?dc=dc1', 'GET /operator/primary?dc=dc1'];
const CARRIED_TO_DC1 = ['PUT /acl/policy', ...READS_CARRIED_TO_DC1];

t.test('default token: nobody has that of the server that answers for another one', async (t) => {
  for (const ask of CARRIED_TO_THE_LEADER) t.equal(await told(leader, ask), 'ok', ask);
  for (const ask of CARRIED_TO_THE_LEADER) {
    t.match(await told(follower, ask), /^403 Permission denied: anonymous token/, ask);
  }
  for (const ask of CARRIED_TO_DC1) {
    t.match(await told(elsewhere, ask), /^403 Permission denied: anonymous token/, ask);
  }
});

t.test('default token: that of the server that is asked counts elsewhere, too', async (t) => {
  for (const server of [follower, elsewhere]) {
    await server.close();
    await server.open(WITH_DEFAULT);
    await until('it is ready', () => server.node.info.notReadyReasons().length === 0);
  }
  await until(
    'the token has arrived',
    async () => (await told(elsewhere, 'GET /acl/policies')) === 'ok',
  );
  for (const ask of CARRIED_TO_THE_LEADER) t.equal(await told(follower, ask), 'ok', ask);
  for (const ask of CARRIED_TO_DC1) t.equal(await told(elsewhere, ask), 'ok', ask);
});

t.test('default token: one that is set counts at that server, until it ends', async (t) => {
  await elsewhere.close();
  await elsewhere.open();
  await until('it is ready', () => elsewhere.node.info.notReadyReasons().length === 0);
  const set = (secret: string) =>
    elsewhere.client.send('PUT', '/agent/token/default', { body: { Token: secret } });
  t.match(await told(elsewhere, 'PUT /acl/policy'), /^403 Permission denied: anonymous token/);
  t.equal((await set(DEFAULT)).status, 200);
  for (const ask of READS_CARRIED_TO_DC1) t.equal(await told(elsewhere, ask), 'ok', ask);
  t.equal((await set('')).status, 200);
  t.match(await told(elsewhere, 'PUT /acl/policy'), /^403 Permission denied: anonymous token/);
  t.equal((await set(DEFAULT)).status, 200);
  await elsewhere.close();
  await elsewhere.open();
  await until('it is ready again', () => elsewhere.node.info.notReadyReasons().length === 0);
  t.match(await told(elsewhere, 'PUT /acl/policy'), /^403 Permission denied: anonymous token/);
});
