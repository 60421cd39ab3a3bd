// Two datacenters of real processes, and an auth method that is deleted in the primary while the other one is
// cut off: who logs in there works on without the primary, and is out as soon as it is heard again.

import t from 'tap';
import { askNode, type NodeAnswer, type Question } from '../../scripts/cluster/ask-node.ts';
import { nodesNamed } from '../../scripts/cluster/cluster-plan.ts';
import { jwtIssuer } from '../support/running/jwt-issuer.ts';
import { until } from '../support/running/running-group.ts';
import { allShareOne, runCluster } from './cluster-under-test.ts';

const PRIMARY = 'dc1';
const SECONDARY = 'dc2';
const METHOD = 'people';
const ASK_MAX_MS = 60_000;

t.setTimeout(350_000);

t.test('logins: an auth method that is deleted while a datacenter is cut off', async (t) => {
  const cluster = await runCluster(t, { datacenters: 2, servers: 1, wanDelayMs: 5 });
  await allShareOne(cluster);
  const { management_token: management, nodes } = cluster.describe();
  const ask = (
    datacenter: string,
    path: string,
    more: Partial<Question> = {},
  ): Promise<NodeAnswer> => {
    const [first] = nodesNamed(cluster.plan, datacenter);
    const { http } = nodes.find(({ name }) => name === first)!;
    return askNode({
      ...{ http, path: `/v1${path}`, secret: management, timeoutMs: ASK_MAX_MS },
      ...more,
    });
  };
  const issuer = await jwtIssuer();
  const makeMethod = async (): Promise<void> => {
    const method = { Name: METHOD, Type: 'jwt', TokenLocality: 'local', Config: issuer.config };
    const rule = { AuthMethod: METHOD, BindType: 'service', BindName: 'web' };
    for (const [path, body] of [
      ['/acl/auth-method', method],
      ['/acl/binding-rule', rule],
    ] as const) {
      const made = await ask(PRIMARY, path, { method: 'PUT', body });
      t.equal(made.status, 200, made.text);
    }
    await allShareOne(cluster);
  };
  const logIn = async (datacenter: string): Promise<NodeAnswer> => {
    const body = { AuthMethod: METHOD, BearerToken: await issuer.sign() };
    return await ask(datacenter, '/acl/login', { method: 'POST', body });
  };
  const tokenOf = async (datacenter: string): Promise<{ accessor: string; secret: string }> => {
    const came = await logIn(datacenter);
    t.equal(came.status, 200, came.text);
    const { AccessorID, SecretID, Local } = JSON.parse(came.text) as Record<string, unknown>;
    t.equal(Local, true);
    return { accessor: String(AccessorID), secret: String(SecretID) };
  };
  const self = async (secret: string): Promise<number> =>
    (await ask(SECONDARY, '/acl/token/self', { secret })).status;
  const position = async (datacenter: string): Promise<string> =>
    String((await ask(datacenter, '/status/leader')).headers['x-service-position']);

  await makeMethod();
  const before = await tokenOf(SECONDARY);
  const own = await ask(SECONDARY, '/acl/token', { method: 'PUT', body: { Local: true } });
  t.equal(own.status, 200, own.text);
  const { SecretID: kept } = JSON.parse(own.text) as { SecretID: string };

  cluster.partition({ from: PRIMARY, to: SECONDARY, isOneWay: false });
  const deleted = await ask(PRIMARY, `/acl/auth-method/${METHOD}`, { method: 'DELETE' });
  t.equal(deleted.text.trim(), 'true');
  t.equal((await logIn(PRIMARY)).status, 403, 'the primary lets nobody in any more');
  const missed = await position(PRIMARY);
  t.not(await position(SECONDARY), missed, 'the other one has not heard of it');
  t.equal(await self(before.secret), 200, 'there its tokens work on');
  const during = await tokenOf(SECONDARY);
  t.equal(await self(during.secret), 200, 'and those that it makes meanwhile');

  cluster.heal();
  await until('the deletion has come', async () => (await position(SECONDARY)) === missed);
  for (const { secret } of [before, during]) {
    t.equal(await self(secret), 403, 'with the entry they are void, whoever reaps them later');
  }
  const refused = await logIn(SECONDARY);
  t.equal(refused.status, 403, refused.text);
  t.equal(await self(kept), 200, 'a local token that nobody logged in for is where it was');
  await makeMethod();
  for (const { secret } of [before, during]) {
    t.equal(await self(secret), 403, 'a later method of that name is another one');
  }
  const after = await tokenOf(SECONDARY);
  t.equal(await self(after.secret), 200);
  await until('the void ones are reaped', async () => {
    const list = JSON.parse((await ask(SECONDARY, '/acl/tokens')).text) as { AccessorID: string }[];
    const listed = new Set(list.map(({ AccessorID }) => AccessorID));
    return !listed.has(before.accessor) && !listed.has(during.accessor);
  });
});
