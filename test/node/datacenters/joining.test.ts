// A datacenter that joins a primary which has been there alone, and one that was away for longer than the
// log is kept: both take a snapshot, keep what is theirs alone, and go on entry by entry.

import t from 'tap';
import {
  clientOf,
  cut,
  type DatacenterUnderTest,
  heal,
  planned,
  runDatacenter,
  serverOf,
} from '../../support/running/running-datacenters.ts';
import { until } from '../../support/running/running-group.ts';
import { ROOT, runNode } from '../../support/running/running-node.ts';

async function digestOf(datacenter: DatacenterUnderTest): Promise<string> {
  const { Stats } = (await clientOf(datacenter).get('/agent/self')).json as {
    Stats: { state: { digest_global: string; position: string } };
  };
  return `${Stats.state.position} ${Stats.state.digest_global}`;
}

async function areSame(one: DatacenterUnderTest, other: DatacenterUnderTest): Promise<void> {
  await until('both datacenters have the same', async () => {
    return (await digestOf(one)) === (await digestOf(other));
  });
}

t.test('joining: a lone datacenter becomes primary when another one follows it', async (t) => {
  const dc1 = await runDatacenter(t, { name: 'dc1', flags: { 'primary-datacenter': '' } });
  const policies = Array.from({ length: 40 }, (_, number) => `before-${number}`);
  for (const name of policies) await clientOf(dc1).made('PUT', '/acl/policy', { Name: name });
  const local = await clientOf(dc1).made('PUT', '/acl/token', { Local: true, Description: 'home' });

  const dc2 = await planned(t, { name: 'dc2', primary: dc1 });
  await serverOf(dc2).open();
  await until('it has the state of the primary', async () => {
    const { status, text } = await clientOf(dc2).get('/acl/policies?stale');
    return status === 200 && text.includes('"before-39"');
  });
  await areSame(dc1, dc2);
  t.equal((await clientOf(dc2).as(local.SecretID).get('/acl/token/self')).status, 403);
  const made = await clientOf(dc2).put('/acl/policy', { Name: 'after' });
  t.equal(made.status, 200, made.text);
  await areSame(dc1, dc2);
  const both = await Promise.all([dc1, dc2].map((each) => clientOf(each).get('/acl/policies')));
  t.equal(both[0]?.text, both[1]?.text);
  await serverOf(dc2).close();
  await serverOf(dc2).open();
  await clientOf(dc1).made('PUT', '/acl/policy', { Name: 'while-it-was-down' });
  await areSame(dc1, dc2);
});

t.test('joining: a data folder of another datacenter is refused at the start', async (t) => {
  const dc1 = await runDatacenter(t, { name: 'dc1' });
  await clientOf(dc1).made('PUT', '/acl/policy', { Name: 'before' });
  const { dataFolder } = serverOf(dc1);
  await serverOf(dc1).close();
  await t.rejects(
    runNode(t, { 'data-dir': dataFolder, datacenter: 'dc5', 'primary-datacenter': 'dc5' }),
    /the data folder is of datacenter dc1, and this server is started as one of dc5: /,
  );
  await serverOf(dc1).open();
  await until('it is what it was', async () => {
    return (await clientOf(dc1).get('/acl/policy/name/before')).status === 200;
  });
});

t.test('joining: a restore in the primary is there in the others, too', async (t) => {
  const dc1 = await runDatacenter(t, { name: 'dc1' });
  const dc2 = await runDatacenter(t, { name: 'dc2', primary: dc1 });
  const local = await clientOf(dc2).made('PUT', '/acl/token', { Local: true });
  await clientOf(dc1).made('PUT', '/acl/policy', { Name: 'saved' });
  const url = `http://127.0.0.1:${serverOf(dc1).port}/v1/snapshot`;
  const headers = { 'X-Service-Token': ROOT };
  const archive = await (await fetch(url, { headers })).arrayBuffer();
  await clientOf(dc1).made('PUT', '/acl/policy', { Name: 'forgotten' });
  await areSame(dc1, dc2);
  const restored = await fetch(url, { method: 'PUT', headers, body: archive });
  t.equal(restored.status, 200, await restored.text());
  await areSame(dc1, dc2);
  const { list } = await clientOf(dc2).get('/acl/policies?stale');
  const names = new Set(list.map(({ Name }) => Name));
  t.same([names.has('saved'), names.has('forgotten')], [true, false]);
  t.equal((await clientOf(dc2).as(local.SecretID).get('/acl/token/self')).status, 200);
});

t.test('joining: who was away for longer than the log is kept takes a snapshot', async (t) => {
  const flags = { 'federation-log-max-age': '1s' };
  const dc1 = await runDatacenter(t, { name: 'dc1', flags });
  const dc2 = await runDatacenter(t, { name: 'dc2', primary: dc1 });
  const gone = await clientOf(dc2).made('PUT', '/acl/policy', { Name: 'gone' });
  const local = await clientOf(dc2).made('PUT', '/acl/token', {
    Local: true,
    Policies: [{ ID: gone.ID }],
  });
  cut(dc1);
  t.equal((await clientOf(dc1).delete(`/acl/policy/${String(gone.ID)}`)).text, 'true');
  for (let number = 0; number < 150; number += 1) {
    await clientOf(dc1).made('PUT', '/acl/token', { Description: `missed ${number}` });
  }
  await until('the log waits no longer', async () => {
    const { text } = await clientOf(dc1).get('/agent/metrics?format=prometheus');
    return /^conclave_federation_dropped_slots 1$/m.test(text);
  });
  const during = await clientOf(dc2).made('PUT', '/acl/token', { Local: true });
  heal(dc1);
  await areSame(dc1, dc2);
  for (const token of [local, during]) {
    const self = await clientOf(dc2).as(token.SecretID).get('/acl/token/self');
    t.equal(self.status, 200, 'local tokens are where they were');
  }
  const self = await clientOf(dc2).as(local.SecretID).get('/acl/token/self');
  t.same(self.json.Policies ?? [], [], 'and what was deleted gives nothing any more');
});
