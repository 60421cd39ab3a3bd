// What is seen of two datacenters: how far the other one is, what the primary counts, which state is wrong;
// the same from every server. And a restore at the primary is there in the other datacenter, too.

import t from 'tap';
import { readSettings } from '../../../src/node/settings/settings.ts';
import { openSystemPlatform } from '../../../src/platform-node/system-platform.ts';
import { Digest } from '../../../src/state/rows/digest.ts';
import { decodeMeta, encodeMeta } from '../../../src/state/rows/meta.ts';
import { META_KEY } from '../../../src/state/rows/tables.ts';
import {
  clientOf,
  cut,
  type DatacenterUnderTest,
  heal,
  leaderIn,
  runDatacenter,
  serverOf,
} from '../../support/running/running-datacenters.ts';
import { until } from '../../support/running/running-group.ts';
import { type Client, type Fields, ROOT } from '../../support/running/running-node.ts';

async function shownBy(client: Client, name: string): Promise<Fields> {
  const { json } = await client.get('/acl/replication');
  return (json.Datacenters as Fields[]).find(({ Name }) => Name === name) ?? {};
}

async function metricOf(datacenter: DatacenterUnderTest, line: RegExp): Promise<string> {
  const { text } = await clientOf(datacenter).get('/agent/metrics?format=prometheus');
  return line.exec(text)?.[1] ?? '';
}

async function readiness(port: number, maxLag: string): Promise<number> {
  return (await fetch(`http://127.0.0.1:${port}/readyz?max_lag=${maxLag}`)).status;
}

t.test('figures: lag and indexes are those of the primary, at every server', async (t) => {
  const dc1 = await runDatacenter(t, { name: 'dc1' });
  const dc2 = await runDatacenter(t, { name: 'dc2', primary: dc1, servers: 3 });
  // What only dc2 counts must not move what it says of the primary.
  for (let count = 0; count < 3; count += 1) {
    await (await leaderIn(dc2)).client.made('PUT', '/acl/token', { Local: true });
  }
  const made = await clientOf(dc1).made('PUT', '/acl/policy', { Name: 'counted' });
  const indexOf = async (list: string): Promise<number> =>
    Number((await clientOf(dc1).get(`/acl/${list}`)).headers['x-service-index']);
  for (const { client, name, port } of dc2.servers) {
    await until(`${name} tells the indexes of the primary`, async () => {
      const { json } = await client.get('/acl/replication');
      const told = [json.ReplicatedIndex, json.ReplicatedRoleIndex, json.ReplicatedTokenIndex];
      const there = [await indexOf('policies'), await indexOf('roles'), await indexOf('tokens')];
      return told.join() === there.join();
    });
    const { json } = await client.get('/acl/replication');
    t.equal(json.ReplicatedIndex, made.ModifyIndex);
    t.match(await shownBy(client, 'dc2'), { State: 'live', LagEntries: 0, LagBytes: 0 });
    t.equal(await readiness(port, '60s'), 200, name);
  }
  cut(dc1);
  await clientOf(dc1).made('PUT', '/acl/policy', { Name: 'missed', Description: 'x'.repeat(500) });
  const behind = await shownBy(clientOf(dc1), 'dc2');
  t.equal(behind.LagEntries, 1);
  t.ok(Number(behind.LagBytes) > 500 && Number(behind.LagBytes) < 2_000, String(behind.LagBytes));
  t.equal(
    await metricOf(dc1, /^conclave_federation_lag_bytes\{datacenter="dc2"\} (\d+)$/m),
    String(behind.LagBytes),
  );
  const { port } = await leaderIn(dc2);
  await until('it is not ready for those who want it near', async () => {
    return (await readiness(port, '1s')) === 503;
  });
  heal(dc1);
  await until('it is again', async () => {
    return (await readiness(port, '1s')) === 200;
  });
});

t.test('figures: who was away before the primary had another leader is away', async (t) => {
  const dc1 = await runDatacenter(t, { name: 'dc1' });
  await runDatacenter(t, { name: 'dc2', primary: dc1 });
  await until('dc2 follows', async () => (await shownBy(clientOf(dc1), 'dc2')).State === 'live');
  cut(dc1);
  await serverOf(dc1).close();
  await serverOf(dc1).open();
  const isLive = /^conclave_federation_is_live\{datacenter="dc2"\} (\d+)$/m;
  await until('it is known to be away', async () => {
    return (await shownBy(clientOf(dc1), 'dc2')).State === 'away';
  });
  t.equal(await metricOf(dc1, isLive), '0');
  heal(dc1);
  await until('it follows again', async () => {
    return (await shownBy(clientOf(dc1), 'dc2')).State === 'live';
  });
  t.equal(await metricOf(dc1, isLive), '1');
});

t.test('restore: what the primary restored is there in the other datacenter', async (t) => {
  const dc1 = await runDatacenter(t, { name: 'dc1' });
  const dc2 = await runDatacenter(t, { name: 'dc2', primary: dc1 });
  await clientOf(dc1).made('PUT', '/acl/policy', { Name: 'saved' });
  const url = `http://127.0.0.1:${serverOf(dc1).port}/v1/snapshot`;
  const headers = { 'X-Service-Token': ROOT };
  const archive = await (await fetch(url, { headers })).arrayBuffer();
  await clientOf(dc1).made('PUT', '/acl/policy', { Name: 'made-since' });
  const has = async (name: string) =>
    (await clientOf(dc2).get(`/acl/policy/name/${name}?stale`)).status === 200;
  await until('it has what was made since', () => has('made-since'));
  const local = await clientOf(dc2).made('PUT', '/acl/token', { Local: true });
  const restored = await fetch(url, { method: 'PUT', headers, body: archive });
  t.equal(restored.status, 200);
  await until('it has what was restored, and no more', async () => !(await has('made-since')));
  t.ok(await has('saved'));
  t.equal((await clientOf(dc2).as(local.SecretID).get('/acl/token/self')).status, 200);
  await clientOf(dc1).made('PUT', '/acl/policy', { Name: 'after' });
  await until('it goes on', () => has('after'));
});

t.test('digests: a state that is wrong is named, and mended', async (t) => {
  const dc1 = await runDatacenter(t, { name: 'dc1' });
  const dc2 = await runDatacenter(t, { name: 'dc2', primary: dc1 });
  await clientOf(dc1).made('PUT', '/acl/policy', { Name: 'before' });
  await until('it has all', async () => (await shownBy(clientOf(dc1), 'dc2')).LagEntries === 0);
  await serverOf(dc2).close();
  await damage(serverOf(dc2).dataFolder);
  await serverOf(dc2).open();
  await until('the primary names it', async () => {
    return (await shownBy(clientOf(dc1), 'dc2')).Differences === 1;
  });
  const metric = /^conclave_federation_differences\{datacenter="dc2"\} (\d+)$/m;
  t.equal(await metricOf(dc1, metric), '1');
  await until('it is mended', async () => {
    const digests = await Promise.all([dc1, dc2].map((each) => digestOf(each)));
    return digests[0] !== undefined && digests[0] === digests[1];
  });
  await until('it follows, and says what it was', async () => {
    const { State, LastErrorMessage } = await shownBy(clientOf(dc1), 'dc2');
    const says = /^what this datacenter has is not what the primary has at 1\.\d+$/;
    return State === 'live' && says.test(String(LastErrorMessage));
  });
});

/** Undefined while it does not answer. */
async function digestOf(datacenter: DatacenterUnderTest): Promise<string | undefined> {
  const { status, text } = await clientOf(datacenter).get('/agent/self');
  return status === 200 ? /"digest_global":"(\w+)"/.exec(text)?.[1] : undefined;
}

/** Makes it the state of a server that holds one global object more than it should. */
async function damage(dataFolder: string): Promise<void> {
  const platform = openSystemPlatform(
    readSettings({ flags: { 'data-dir': dataFolder }, files: [], environment: {} }),
  );
  const kv = await platform.openKv('state', 0, (cause) => {
    throw cause;
  });
  const meta = decodeMeta(kv.get(META_KEY)!);
  const more = (digest: Uint8Array): Uint8Array => {
    const sum = new Digest(digest);
    sum.add(Buffer.alloc(32, 5));
    return sum.bytes();
  };
  const { globalDigest, fullDigest } = meta;
  const value = encodeMeta({
    ...meta,
    globalDigest: more(globalDigest),
    fullDigest: more(fullDigest),
  });
  await kv.write([{ type: 'put', key: META_KEY, value }]);
  await kv.close();
}
