// Two datacenters that are forced, each while it reaches nobody else: the later reign goes on. Where both have one
// epoch, by chance or from an older release, neither writes what all share once it hears of the other one, and a person
// says which of them goes on.

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
const dc3 = await runDatacenter(t, { name: 'dc3', primary: dc1 });
await everyoneKnows([dc1, dc2, dc3]);

const primaryAt = async (datacenter: DatacenterUnderTest) =>
  (await clientOf(datacenter).get('/operator/primary')).json;
const has = async (datacenter: DatacenterUnderTest, name: string) =>
  (await clientOf(datacenter).get(`/acl/policy/name/${name}`)).status === 200;
const write = (datacenter: DatacenterUnderTest, Name: string) =>
  clientOf(datacenter).put('/acl/policy?ack=primary', { Name });

const forced = async (datacenter: DatacenterUnderTest, Epoch: number): Promise<number> => {
  const wish = { Mode: 'forced', Epoch, AcceptLoss: true };
  const { json, text } = await clientOf(datacenter).put('/operator/primary', wish);
  return Number(json.Epoch ?? t.fail(text));
};

t.test('rivals: of two that are forced the later goes on, and the other yields', async (t) => {
  await serverOf(dc1).close();
  for (const each of [dc2, dc3]) cut(each);
  const epochs: number[] = [];
  for (const each of [dc2, dc3]) {
    epochs.push(await forced(each, 2));
    t.equal((await write(each, `forced-${each.name}`)).status, 200);
  }
  for (const each of [dc2, dc3]) heal(each);
  const [later, earlier] = epochs[0]! > epochs[1]! ? [dc2, dc3] : [dc3, dc2];
  await until('the earlier one yields', async () => {
    const { DivergentEntries, Datacenter, Epoch } = await primaryAt(earlier);
    const isItsReign = Datacenter === later.name && Epoch === Math.max(...epochs);
    return isItsReign && Number(DivergentEntries) > 0;
  });
  t.equal((await primaryAt(later)).Closed, '');
  t.equal((await write(later, 'behind-both')).status, 200);
  await until('it follows', () => has(earlier, 'behind-both'));
  t.equal(await has(earlier, `forced-${later.name}`), true);
  t.equal(await has(earlier, `forced-${earlier.name}`), false);
  await serverOf(dc1).open();
  await until('so does dc1', () => has(dc1, 'behind-both'));
  const moved = await clientOf(later).put('/operator/primary', { Datacenter: 'dc1' });
  t.equal(moved.json.Epoch, Math.max(...epochs) + 1, moved.text);
  t.equal((await clientOf(earlier).delete('/operator/divergence?all')).status, 200);
});

t.test('rivals: two of one epoch write nothing, until one of them is elected', async (t) => {
  await everyoneKnows([dc1, dc2, dc3]);
  const next = Number((await primaryAt(dc1)).PromisedEpoch) + 1;
  const both = next + 1000;
  await serverOf(dc1).close();
  for (const each of [dc2, dc3]) cut(each);
  for (const each of [dc2, dc3]) {
    serverOf(each).fraction = 0;
    t.equal(await forced(each, next), both);
    serverOf(each).fraction = undefined;
    t.equal((await write(each, `of-${each.name}`)).status, 200);
  }
  t.equal((await write(dc2, 'also-of-dc2')).status, 200);
  for (const each of [dc2, dc3]) heal(each);
  for (const [each, other] of [
    [dc2, dc3],
    [dc3, dc2],
  ] as const) {
    const says = new RegExp(
      `${other.name} is said to have begun epoch ${both}, as ${each.name} has.* promote ${each.name} --election`,
    );
    await until('it is closed', async () => says.test(String((await primaryAt(each)).Closed)));
    const refused = await write(each, 'of-neither');
    t.equal(refused.status, 503);
    t.match(refused.text, says);
  }
  const moved = await clientOf(dc2).put('/operator/primary', { Mode: 'election' });
  t.equal(moved.json.Epoch, both + 1, moved.text);
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
