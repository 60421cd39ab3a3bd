// A primary of three datacenters that hears none of the others takes no global write after a while, and
// says so; what is local goes on. When it hears a majority again, it takes them again.

import t from 'tap';
import {
  everyoneKnows,
  runDatacenter,
  serverOf,
} from '../../support/running/running-datacenters.ts';
import { until } from '../../support/running/running-group.ts';

const flags = { 'federation-primary-lease': '5s' };
const dc1 = await runDatacenter(t, { name: 'dc1', flags });
const dc2 = await runDatacenter(t, { name: 'dc2', primary: dc1, flags });
const dc3 = await runDatacenter(t, { name: 'dc3', primary: dc1, flags });
const OTHERS = [dc2, dc3];
await everyoneKnows([dc1, ...OTHERS]);

let count = 0;
function write() {
  count += 1;
  return serverOf(dc1).client.put('/acl/policy?ack=primary', { Name: `p-${count}` });
}

t.test('alone: a primary that hears one of two others goes on', async (t) => {
  await serverOf(dc3).close();
  const atMs = Date.now();
  await until('its lease would be over', async () => Date.now() - atMs > 6_000);
  const made = await write();
  t.equal(made.status, 200, made.text);
});

t.test('alone: one that hears nobody takes no global write, and local tokens', async (t) => {
  await serverOf(dc2).close();
  await until('its lease is over', async () => (await write()).status === 503);
  const refused = await write();
  t.match(
    refused.text,
    /^Nothing was written: datacenter dc1 is the primary, but has not heard a majority of the 3 datacenters for \d+s/,
  );
  t.ok(refused.headers['retry-after']);
  const { json } = await serverOf(dc1).client.get('/operator/primary');
  t.equal(json.Closed?.toString().replace(/\d+s/, 'Ns'), refused.text.replace(/\d+s/, 'Ns'));
  const local = await serverOf(dc1).client.put('/acl/token', { Local: true });
  t.equal(local.status, 200, local.text);
  const { client } = serverOf(dc1);
  const nothing = await client.delete('/acl/token/6f2a8a2e-4f0d-4f0e-9d61-1b8f6b1f3c11');
  t.equal(nothing.status, 503, 'whether there is such a token another primary may know');
  const gone = await client.delete(`/acl/token/${String(local.json.AccessorID)}`);
  t.same([gone.status, gone.text], [200, 'true']);
  t.equal((await serverOf(dc1).client.get('/acl/policies')).status, 200, 'reads go on');
});

t.test('alone: when it hears a majority again, it takes them again', async (t) => {
  await serverOf(dc2).open();
  await until('it hears dc2', async () => (await write()).status === 200);
  t.equal((await serverOf(dc1).client.get('/operator/primary')).json.Closed, '');
});

t.test('alone: whom an operator removes by force it does not wait for', async (t) => {
  await serverOf(dc2).close();
  await until('its lease is over again', async () => (await write()).status === 503);
  const remove = (force: string) => serverOf(dc1).client.delete(`/operator/datacenter/dc3${force}`);
  const refused = await remove('');
  t.same([refused.status, /^Nothing was written: /.test(refused.text)], [503, true], refused.text);
  const removed = await remove('?force');
  t.equal(removed.status, 200, removed.text);
  const made = await write();
  t.equal(made.status, 200, 'of two, one goes on alone');
});
