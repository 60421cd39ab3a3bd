// A datacenter that has objects, and no global log, is its own primary: settings, which one of its servers alone may
// have, make it no secondary, by which it would lose them for those of the other one, and no part of a federation.

import t from 'tap';
import {
  clientOf,
  type DatacenterUnderTest,
  runDatacenter,
  serverOf,
} from '../support/running-datacenters.ts';
import { allReady, until } from '../support/running-group.ts';

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
