// A datacenter that has objects, and no global log, is its own primary: settings, which one of its servers alone may
// have, make it no secondary, by which it would lose them for those of the other one, and no part of a federation.

import t from 'tap';
import {
  clientOf,
  type DatacenterUnderTest,
  everyoneKnows,
  runDatacenter,
  serverOf,
} from '../../support/running/running-datacenters.ts';
import { allReady, until } from '../../support/running/running-group.ts';
import { ROOT } from '../../support/running/running-node.ts';

const ALONE = { 'primary-datacenter': '' };

function seedsOf({ lines }: DatacenterUnderTest): string {
  return lines.map(({ address }) => address).join();
}

async function make(datacenter: DatacenterUnderTest, name: string): Promise<void> {
  const made = await clientOf(datacenter).put('/acl/policy', { Name: name });
  if (made.status !== 200) throw new Error(made.text);
}

async function has(datacenter: DatacenterUnderTest, name: string): Promise<boolean> {
  return (await clientOf(datacenter).get(`/acl/policy/name/${name}`)).status === 200;
}

async function openedWith(
  datacenter: DatacenterUnderTest,
  flags: Readonly<Record<string, string>>,
): Promise<void> {
  await serverOf(datacenter).close();
  await serverOf(datacenter).open(flags);
}

/** Resolves when it is not ready for that reason. */
async function saysAtReadyz(datacenter: DatacenterUnderTest, says: RegExp): Promise<void> {
  await until(`it says ${says.source}`, async () => {
    const answer = await fetch(`http://127.0.0.1:${serverOf(datacenter).port}/readyz`);
    return answer.status === 503 && says.test(await answer.text());
  });
}

t.test('own objects: the name of another primary does not give them away', async (t) => {
  const other = await runDatacenter(t, { name: 'dc9', flags: ALONE });
  for (const name of ['nine-1', 'nine-2', 'nine-3']) await make(other, name);
  const own = await runDatacenter(t, { name: 'dc1', flags: ALONE });
  await make(own, 'before');

  const wrong = { 'primary-datacenter': 'dc9', 'retry-join-wan': seedsOf(other) };
  await openedWith(own, wrong);
  await saysAtReadyz(own, /primary_datacenter is dc9, and dc1 has objects .* empty data folders/);
  await make(own, 'behind');
  t.equal((await clientOf(own).get('/operator/primary')).json.Datacenter, 'dc1');
  t.ok(await has(own, 'before'));
  t.notOk(await has(own, 'nine-1'));
  t.notOk(await has(other, 'behind'), 'nothing was sent there');

  await openedWith(own, { ...wrong, 'federation-witness': 'true' });
  await saysAtReadyz(own, /primary_datacenter is dc9/);
  t.ok(await has(own, 'behind'), 'nor does it become a witness, who has none');

  await openedWith(own, {});
  await allReady(own.servers);
  t.ok(await has(own, 'before'));
});

t.test('own objects: addresses of a federation do not close their datacenter', async (t) => {
  const other = await runDatacenter(t, { name: 'dc9' });
  const own = await runDatacenter(t, { name: 'dc1', flags: ALONE });
  await make(own, 'before');

  await openedWith(own, { 'retry-join-wan': seedsOf(other) });
  const says =
    /dc1 begins no global log of its own: dc9 is of federation .* goes on alone: take retry_join_wan back/;
  await saysAtReadyz(own, says);
  await make(own, 'behind');
  t.ok(await has(own, 'before'));
});

t.test('own objects: nor does an archive of the epoch of one, which closes nobody', async (t) => {
  const headers = { 'X-Service-Token': ROOT };
  const archiveOf = (datacenter: DatacenterUnderTest) =>
    `http://127.0.0.1:${serverOf(datacenter).port}/v1/snapshot`;
  const first = await runDatacenter(t, { name: 'dc1' });
  const lost = await runDatacenter(t, { name: 'dc2', primary: first });
  for (const [to, all] of [
    ['dc2', [lost, first]],
    ['dc1', [first, lost]],
  ] as const) {
    await everyoneKnows([first, lost]);
    const moved = await clientOf(first).put('/operator/primary', { Datacenter: to });
    t.equal(moved.status, 200, moved.text);
    await everyoneKnows(all);
  }
  const archive = await (await fetch(archiveOf(lost), { headers })).arrayBuffer();
  await serverOf(lost).close();
  const { client } = serverOf(first);
  t.equal((await client.delete('/operator/datacenter/dc2?force')).text, 'true');
  t.equal((await client.put('/operator/datacenter/dc2', undefined)).text, 'true');

  const own = await runDatacenter(t, { name: 'dc2', flags: ALONE });
  const restored = await fetch(archiveOf(own), { method: 'PUT', headers, body: archive });
  t.equal(restored.status, 200, await restored.text());
  await openedWith(own, { 'retry-join-wan': seedsOf(first), 'primary-datacenter': 'dc1' });
  t.equal((await clientOf(own).get('/operator/primary')).json.Epoch, 3);
  for (const [one, other] of [
    [first, 'dc2'],
    [own, 'dc1'],
  ] as const) {
    await until('they have heard of each other', async () => {
      const { Datacenters: all } = (await clientOf(one).get('/acl/replication')).json;
      return (all as { Name: string }[]).some(({ Name }) => Name === other);
    });
    await make(one, 'behind');
  }
  // It takes no part, so nobody waits for it.
  for (const level of ['majority', 'all']) {
    const made = await client.put(`/acl/policy?ack=${level}&ack_timeout=5s`, { Name: level });
    t.equal(made.status, 200, made.text);
  }
});

t.test('own objects: who began with objects becomes no witness, and says so', async (t) => {
  const first = await runDatacenter(t, { name: 'dc1' });
  const own = await runDatacenter(t, { name: 'dc2', primary: first });
  await make(first, 'before');
  await openedWith(own, { 'federation-witness': 'true' });
  const says =
    /^federation\.witness is true, and dc2 began with objects, and stays so: make it false/;
  await saysAtReadyz(own, says);
  await until('it serves as before', () => has(own, 'before'));
  await openedWith(own, {});
  await allReady(own.servers);

  const flags = { 'federation-witness': 'true' };
  const witness = await runDatacenter(t, { name: 'w', primary: first, flags });
  await openedWith(witness, { 'federation-witness': 'false' });
  await saysAtReadyz(
    witness,
    /^federation\.witness is false, and w began as a witness, and stays so/,
  );
});
