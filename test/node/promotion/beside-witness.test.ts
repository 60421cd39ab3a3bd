// Two datacenters of real nodes and a witness. The primary is cut off and writes on, the other one is elected with the
// witness and lost for good before the first hears of it: that one is elected again, with what the witness was given.

import t from 'tap';
import {
  clientOf,
  cut,
  type DatacenterUnderTest,
  everyoneKnows,
  heal,
  runDatacenter,
  serverOf,
} from '../../support/running/running-datacenters.ts';
import { until } from '../../support/running/running-group.ts';

const dc1 = await runDatacenter(t, { name: 'dc1' });
const dc2 = await runDatacenter(t, { name: 'dc2', primary: dc1 });
await everyoneKnows([dc1, dc2]);
await runDatacenter(t, { name: 'w', primary: dc1, flags: { 'federation-witness': 'true' } });

async function policiesOf(datacenter: DatacenterUnderTest): Promise<readonly unknown[]> {
  const { list } = await clientOf(datacenter).get('/acl/policies?stale');
  return list.map(({ Name }) => Name);
}

async function write(datacenter: DatacenterUnderTest, name: string, ack: string) {
  const body = { Name: name };
  return clientOf(datacenter).put(`/acl/policy?ack=${ack}&ack_timeout=60s`, body);
}

t.before(async () => {
  await until('all follow', async () => {
    const { json } = await clientOf(dc1).get('/operator/primary');
    return (json.Voters as string[]).length === 3;
  });
  for (const datacenter of [dc1, dc2]) {
    await until(`${datacenter.name} reaches the witness`, async () => {
      const { text } = await clientOf(datacenter).get('/acl/policies?dc=w');
      return text.includes('is a witness');
    });
  }
});

t.test('a primary that was outrun beside a witness is elected without force', async (t) => {
  const { json: changed } = await clientOf(dc1).put('/acl/policy?ack=all', { Name: 'changed' });
  const local = await clientOf(dc1).made('PUT', '/acl/token', { Local: true });
  cut(dc1);
  t.equal((await write(dc1, 'of-the-first', 'primary')).status, 200);
  const update = { Name: 'changed', Description: 'by the first' };
  await clientOf(dc1).made('PUT', `/acl/policy/${String(changed.ID)}?ack=primary`, update);
  await until('dc2 is elected', async () => {
    return (await clientOf(dc2).put('/operator/primary', { Mode: 'election' })).status === 200;
  });
  const kept = await write(dc2, 'of-the-second', 'majority');
  t.equal(kept.headers['x-service-ack'], 'majority', kept.text);
  cut(dc2);
  await serverOf(dc2).close();
  heal(dc1);
  let tries = 0;
  await until('dc1 has heard of it', async () => {
    tries += 1;
    const { text } = await write(dc1, `too-early-${tries}`, 'primary');
    return text.includes('dc2 is said to have begun epoch 2');
  });
  let said = '';
  await until('dc1 is elected', async () => {
    const moved = await clientOf(dc1).put('/operator/primary', { Mode: 'election' });
    if (moved.text !== said) t.comment(moved.text);
    said = moved.text;
    return moved.status === 200;
  });
  t.match(JSON.parse(said), { Datacenter: 'dc1', Epoch: 3, Promises: ['w'] });
  const names = await policiesOf(dc1);
  t.ok(names.includes('of-the-second'), 'what the majority had');
  t.notOk(names.includes('of-the-first'));
  const { json: policy } = await clientOf(dc1).get('/acl/policy/name/changed');
  t.equal(policy.Description, '');
  const { json: apart } = await clientOf(dc1).get('/operator/divergence');
  t.equal(apart.Count, 1 + tries, 'what nobody else had is set apart');
  const self = await clientOf(dc1).as(local.SecretID).get('/acl/token/self');
  t.equal(self.status, 200, 'local tokens stay');
  const made = await write(dc1, 'of-the-third-reign', 'majority');
  t.equal(made.headers['x-service-ack'], 'majority', made.text);
});

t.test('and whom it follows then is yielded to by the one that comes back', async (t) => {
  heal(dc2);
  await serverOf(dc2).open();
  await until('dc2 follows', async () => (await policiesOf(dc2)).includes('of-the-third-reign'));
  const { json } = await clientOf(dc2).get('/operator/divergence');
  t.equal(json.Count, 0, 'nothing of it is lost');
});
