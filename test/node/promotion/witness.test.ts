// Two datacenters of real nodes and a witness, which has a vote and no objects: with it, one of the two is
// elected when the other one is gone, and has what only the witness was given.

import t from 'tap';
import {
  type DatacenterUnderTest,
  runDatacenter,
  serverOf,
} from '../../support/running/running-datacenters.ts';
import { until } from '../../support/running/running-group.ts';
import { ROOT } from '../../support/running/running-node.ts';

const dc1 = await runDatacenter(t, { name: 'dc1' });
const dc2 = await runDatacenter(t, { name: 'dc2', primary: dc1 });
// A server that starts anew knows who is in its settings alone; the witness knows both.
const wan = [dc1, dc2].flatMap(({ lines }) => lines.map(({ address }) => address)).join();
const flags = { 'federation-witness': 'true', 'retry-join-wan': wan };
const witness = await runDatacenter(t, { name: 'w', primary: dc1, flags });

function write(datacenter: DatacenterUnderTest, name: string) {
  return serverOf(datacenter).client.put('/acl/policy?ack=majority&ack_timeout=60s', {
    Name: name,
  });
}

t.test('witness: it is ready, counts for majorities, and has nothing to show', async (t) => {
  await until('all follow', async () => {
    const made = await serverOf(dc1).client.put('/acl/token?ack=all&ack_timeout=1s', {});
    const { json } = await serverOf(dc1).client.get('/operator/primary');
    return made.status === 200 && (json.Voters as string[]).length === 3;
  });
  const asked = await serverOf(witness).client.get('/acl/policies');
  t.same(
    [asked.status, asked.text],
    [503, 'this datacenter is a witness: it votes, and has no objects'],
  );
  await serverOf(dc2).close();
  const made = await write(dc1, 'with-the-witness');
  t.equal(made.headers['x-service-ack'], 'majority', made.text);
  await serverOf(dc2).open();
});

t.test('witness: behind a restore it counts where another one has what was restored', async (t) => {
  const url = `http://127.0.0.1:${serverOf(dc1).port}/v1/snapshot`;
  const headers = { 'X-Service-Token': ROOT };
  const archive = await (await fetch(url, { headers })).arrayBuffer();
  await serverOf(dc2).close();
  const restored = await fetch(url, { method: 'PUT', headers, body: archive });
  t.equal(restored.status, 200, await restored.text());
  const short = '/acl/policy?ack=majority&ack_timeout=2s';
  const alone = await serverOf(dc1).client.put(short, { Name: 'with-the-witness-alone' });
  t.equal(alone.status, 504, alone.text);
  await serverOf(dc2).open();
  const made = await write(dc1, 'with-both');
  t.equal(made.headers['x-service-ack'], 'majority', made.text);
  await serverOf(dc2).close();
  const later = await write(dc1, 'with-the-witness-again');
  t.equal(later.headers['x-service-ack'], 'majority', later.text);
  await serverOf(dc2).open();
});

t.test('witness: it is never primary, and nothing is given up for it', async (t) => {
  const move = { Datacenter: 'w' };
  const refused = await serverOf(dc1).client.put('/operator/primary', move);
  t.same(
    [refused.status, refused.text],
    [400, 'w is a witness: it has no objects, and cannot be the primary'],
  );
  const { json: shown } = await serverOf(dc1).client.get('/acl/replication');
  t.match(shown.Datacenters, [
    { Witness: false },
    { Witness: false },
    { Name: 'w', Witness: true },
  ]);
  const made = await write(dc1, 'still-primary');
  t.equal(made.status, 200, made.text);
  const { json } = await serverOf(dc1).client.get('/operator/primary');
  t.match(json, { Datacenter: 'dc1', Epoch: 1, PromisedEpoch: 1 });
});

t.test(
  'witness: the other datacenter is elected with it, and takes what only it has',
  async (t) => {
    const names = async (): Promise<readonly unknown[]> => {
      const { list } = await serverOf(dc2).client.get('/acl/policies?stale');
      return list.map(({ Name }) => Name);
    };
    await until('dc2 has everything', async () => (await names()).includes('still-primary'));
    await serverOf(dc2).close();
    for (const name of ['one-that-dc2-lacks', 'another-that-dc2-lacks']) {
      const made = await write(dc1, name);
      t.equal(made.headers['x-service-ack'], 'majority', made.text);
    }
    await serverOf(dc1).close();
    await serverOf(dc2).open();
    await until('dc2 shows what it has', async () => (await names()).includes('still-primary'));
    t.notOk((await names()).includes('another-that-dc2-lacks'));
    await until('dc2 knows where the witness is', async () => {
      const { text } = await serverOf(dc2).client.get('/acl/policies?dc=w');
      return text.includes('is a witness');
    });
    let answer = '';
    await until('dc2 is elected', async () => {
      const moved = await serverOf(dc2).client.put('/operator/primary', { Mode: 'election' });
      if (moved.text !== answer) t.comment(moved.text);
      answer = moved.text;
      return moved.status === 200;
    });
    t.match(JSON.parse(answer), { Datacenter: 'dc2', Promises: ['w'] });
    t.ok((await names()).includes('one-that-dc2-lacks'));
    t.ok((await names()).includes('another-that-dc2-lacks'));
    const made = await write(dc2, 'without-the-first');
    t.equal(made.headers['x-service-ack'], 'majority', made.text);
  },
);

t.test('witness: one whose disk was lost says who refuses it, and what lets it in', async (t) => {
  const server = serverOf(witness);
  const ready = async () => (await fetch(`http://127.0.0.1:${server.port}/readyz`)).text();
  t.equal(await ready(), 'ok\n');
  await server.close();
  server.loseDisk();
  await server.open();
  const says =
    /^nothing has come .*: w is cluster .* `conclave operator datacenter remove w` and `/;
  await until('it says so', async () => says.test(await ready()));
  const { client } = serverOf(dc2);
  t.equal((await client.delete('/operator/datacenter/w?force')).text, 'true');
  t.equal((await client.put('/operator/datacenter/w', undefined)).text, 'true');
  await until('it is ready', async () => (await ready()) === 'ok\n');
  // What it promised is forgotten: the first one, which has not heard of that, may have been elected with it.
  const short = '/acl/policy?ack=majority&ack_timeout=300ms';
  t.equal((await client.put(short, { Name: 'without-the-first-one' })).status, 504);
  await serverOf(dc1).open();
  const made = await write(dc2, 'with-the-new-one');
  t.equal(made.headers['x-service-ack'], 'majority', made.text);
});
