// Two datacenters that are forced with one epoch, each while it reaches nobody else: neither writes what all share once
// it hears of the other one, and a person says which of them goes on.

import t from 'tap';
import {
  clientOf,
  cut,
  type DatacenterUnderTest,
  everyoneKnows,
  heal,
  runDatacenter,
  serverOf,
} from '../support/running-datacenters.ts';
import { until } from '../support/running-group.ts';

const dc1 = await runDatacenter(t, { name: 'dc1' });
const dc2 = await runDatacenter(t, { name: 'dc2', primary: dc1 });
const dc3 = await runDatacenter(t, { name: 'dc3', primary: dc1 });
await everyoneKnows([dc1, dc2, dc3]);

const primaryAt = async (datacenter: DatacenterUnderTest) =>
  (await clientOf(datacenter).get('/operator/primary')).json;
const has = async (datacenter: DatacenterUnderTest, name: string) =>
  (await clientOf(datacenter).get(`/acl/policy/name/${name}`)).status === 200;
const write = (datacenter: DatacenterUnderTest, Name: string) =>
  clientOf(datacenter).put('/acl/policy?ack=primary', { Name });

t.test('rivals: two of one epoch write nothing, until one of them is elected', async (t) => {
  await serverOf(dc1).close();
  for (const each of [dc2, dc3]) cut(each);
  for (const each of [dc2, dc3]) {
    const wish = { Mode: 'forced', Epoch: 2, AcceptLoss: true };
    const forced = await clientOf(each).put('/operator/primary', wish);
    t.equal(forced.json.Epoch, 2, forced.text);
    t.equal((await write(each, `of-${each.name}`)).status, 200);
  }
  t.equal((await write(dc2, 'also-of-dc2')).status, 200);
  for (const each of [dc2, dc3]) heal(each);
  for (const [each, other] of [
    [dc2, dc3],
    [dc3, dc2],
  ] as const) {
    const says = new RegExp(
      `${other.name} is said to have begun epoch 2, as ${each.name} has.* promote ${each.name} --election`,
    );
    await until('it is closed', async () => says.test(String((await primaryAt(each)).Closed)));
    const refused = await write(each, 'of-neither');
    t.equal(refused.status, 503);
    t.match(refused.text, says);
  }
  const moved = await clientOf(dc2).put('/operator/primary', { Mode: 'election' });
  t.equal(moved.json.Epoch, 3, moved.text);
  await until('the other one yields', async () => {
    const { DivergentEntries, Datacenter } = await primaryAt(dc3);
    return Number(DivergentEntries) === 2 && Datacenter === 'dc2';
  });
  await serverOf(dc1).open();
  await everyoneKnows([dc2, dc1, dc3]);
  t.equal((await write(dc2, 'behind')).status, 200);
  for (const name of ['of-dc2', 'also-of-dc2', 'behind']) {
    await until(`${name} is there`, () => has(dc3, name));
  }
  for (const each of [dc1, dc2, dc3]) t.equal(await has(each, 'of-dc3'), false, each.name);
});
