// The primary is moved among three datacenters of real nodes: handed over while clients write, and elected
// by a majority when it is gone.

import t from 'tap';
import { namesAt, PolicyWriter } from '../../support/running/policy-writer.ts';
import {
  type DatacenterUnderTest,
  everyoneKnows,
  runDatacenter,
  serverOf,
} from '../../support/running/running-datacenters.ts';
import { until } from '../../support/running/running-group.ts';
import type { Reply } from '../../support/running/running-node.ts';

const dc1 = await runDatacenter(t, { name: 'dc1' });
const dc2 = await runDatacenter(t, { name: 'dc2', primary: dc1 });
const dc3 = await runDatacenter(t, { name: 'dc3', primary: dc1 });
const ALL = [dc1, dc2, dc3];
await everyoneKnows(ALL);

/** Any server may be asked. */
function move(asked: DatacenterUnderTest, body: object): Promise<Reply> {
  return serverOf(asked).client.put('/operator/primary', body);
}

async function hasAll(datacenter: DatacenterUnderTest, names: readonly string[]): Promise<void> {
  await until(`${datacenter.name} has all that was written`, async () => {
    const found = await namesAt(serverOf(datacenter));
    return names.every((name) => found.has(name));
  });
}

async function isPrimaryEverywhere(
  { name }: DatacenterUnderTest,
  datacenters: readonly DatacenterUnderTest[],
): Promise<void> {
  for (const datacenter of datacenters) {
    await until(`${datacenter.name} knows that ${name} is primary`, async () => {
      const { json } = await serverOf(datacenter).client.get('/acl/replication');
      return json.PrimaryDatacenter === name;
    });
  }
}

t.test('promotion: handed over, it loses nothing and doubles nothing', async (t) => {
  const local = await serverOf(dc1).client.made('PUT', '/acl/token', { Local: true });
  const writers = ALL.map((each) => new PolicyWriter(`by-${each.name}`, each.servers));
  const goOn = async (): Promise<void> => {
    const before = writers.map(({ names }) => names.length);
    await until('everybody goes on writing', () =>
      writers.every(({ names }, place) => names.length > before[place]! + 10),
    );
  };
  await goOn();
  const there = await move(dc3, { Datacenter: 'dc2' });
  t.equal(there.status, 200, there.text);
  t.match(there.json, { Datacenter: 'dc2', Epoch: 2, Promises: ['dc1'] });
  await goOn();
  const back = await move(dc1, {});
  t.equal(back.status, 200, back.text);
  t.match(back.json, { Datacenter: 'dc1', Epoch: 3 });
  await goOn();
  for (const writer of writers) await writer.stop();
  t.same(
    writers.flatMap(({ failures }) => failures),
    [],
  );
  const wanted = writers.flatMap(({ names }) => names);
  for (const datacenter of ALL) {
    await hasAll(datacenter, wanted);
    const found = await namesAt(serverOf(datacenter));
    t.equal(found.size, wanted.length + 2, 'with the two that are built in, and no more');
  }
  const self = await serverOf(dc1).client.as(local.SecretID).get('/acl/token/self');
  t.equal(self.status, 200, 'a local token stays where it is');
});

t.test('promotion: when the primary is gone, a majority makes another one', async (t) => {
  const local = await serverOf(dc2).client.made('PUT', '/acl/token', { Local: true });
  const kept = await serverOf(dc1).client.put('/acl/policy?ack=majority&ack_timeout=60s', {
    Name: 'kept',
  });
  t.equal(kept.headers['x-service-ack'], 'majority', kept.text);
  await serverOf(dc1).close();
  const promote = async (datacenter: DatacenterUnderTest): Promise<number> => {
    const answer = await move(datacenter, { Mode: 'election' });
    if (answer.status === 200) return Number(answer.json.Epoch);
    t.match(answer.text, /^(The primary stays where it is|Whether the primary has moved is not)/);
    return 0;
  };
  let [two, three] = await Promise.all([promote(dc2), promote(dc3)]);
  t.ok(two !== three || two === 0, 'two at once: at most one wins an epoch');
  // Each may have had the promise that the other one lacks.
  await until('one of them has won', async () => {
    if (two === 0 && three === 0) two = await promote(dc2);
    return two !== 0 || three !== 0;
  });
  const winner = two > three ? dc2 : dc3;
  await isPrimaryEverywhere(winner, [dc2, dc3]);
  for (const datacenter of [dc2, dc3]) {
    const made = await serverOf(datacenter).client.put('/acl/policy?ack=majority&ack_timeout=60s', {
      Name: `after-${datacenter.name}`,
    });
    t.equal(made.status, 200, made.text);
    await hasAll(datacenter, ['kept']);
  }
  const self = await serverOf(dc2).client.as(local.SecretID).get('/acl/token/self');
  t.equal(self.status, 200, 'local tokens stay where they are');
  await serverOf(dc1).open();
  await isPrimaryEverywhere(winner, [dc1]);
  await hasAll(dc1, ['kept', 'after-dc2', 'after-dc3']);
});
