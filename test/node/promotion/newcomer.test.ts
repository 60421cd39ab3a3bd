// Two datacenters of real nodes, and a witness that came while the second one was away: it knows nothing of the
// witness by its log. The first one is lost for good, and the second one is back.

import t from 'tap';
import { planned, runDatacenter, serverOf } from '../../support/running/running-datacenters.ts';
import { until } from '../../support/running/running-group.ts';

const dc1 = await runDatacenter(t, { name: 'dc1' });
const dc2 = await runDatacenter(t, { name: 'dc2', primary: dc1 });
const wan = [dc1, dc2].flatMap(({ lines }) => lines.map(({ address }) => address)).join();
const flags = { 'federation-witness': 'true', 'retry-join-wan': wan };
const witness = await planned(t, { name: 'w', primary: dc1, flags });

async function voters(): Promise<readonly string[]> {
  const { json } = await serverOf(dc1).client.get('/operator/primary');
  return json.Voters as string[];
}

async function names(): Promise<readonly unknown[]> {
  const { list } = await serverOf(dc2).client.get('/acl/policies?stale');
  return list.map(({ Name }) => Name);
}

/** dc2 is away while the witness comes, and while a majority acknowledges a policy; then dc1 is lost. */
async function newcomer(): Promise<void> {
  await until('dc2 is listed', async () => (await voters()).includes('dc2'));
  await until('dc2 has everything', async () => {
    const made = await serverOf(dc1).client.put('/acl/token?ack=all&ack_timeout=1s', {});
    return made.status === 200;
  });
  await serverOf(dc2).close();
  await serverOf(witness).open();
  await until('the witness is listed', async () => (await voters()).length === 3);
  const made = await serverOf(dc1).client.put('/acl/policy?ack=majority&ack_timeout=60s', {
    Name: 'a-majority-has-it',
  });
  t.equal(made.headers['x-service-ack'], 'majority', made.text);
  await serverOf(dc1).close();
  await serverOf(dc2).open();
  await until('dc2 knows where the witness is', async () => {
    const { text } = await serverOf(dc2).client.get('/acl/policies?dc=w');
    return text.includes('is a witness');
  });
}

t.test('newcomer: it is asked by a candidate whose log does not list it', async (t) => {
  await newcomer();
  t.notOk((await names()).includes('a-majority-has-it'));
  const moved = await serverOf(dc2).client.put('/operator/primary', { Mode: 'election' });
  t.equal(moved.status, 200, moved.text);
  t.match(moved.json, { Datacenter: 'dc2', Promises: ['w'] });
  t.ok((await names()).includes('a-majority-has-it'), 'nothing that a majority has is lost');
  const { json } = await serverOf(dc2).client.get('/operator/primary');
  t.same(json.Voters, ['dc1', 'dc2', 'w']);
  const made = await serverOf(dc2).client.put('/acl/policy?ack=majority&ack_timeout=60s', {
    Name: 'without-the-first',
  });
  t.equal(made.headers['x-service-ack'], 'majority', made.text);
});
