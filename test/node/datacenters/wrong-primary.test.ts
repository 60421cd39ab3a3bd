// A new datacenter whose settings name another primary than there is, in the first epoch, of which no entry says
// whose it is: it finds the primary all the same, and leads nobody astray.

import t from 'tap';
import {
  clientOf,
  type DatacenterUnderTest,
  everyoneKnows,
  planned,
  runDatacenter,
  serverOf,
} from '../../support/running/running-datacenters.ts';
import { allReady, until } from '../../support/running/running-group.ts';

const first = await runDatacenter(t, { name: 'dc1' });
const second = await runDatacenter(t, { name: 'dc2', primary: first });
await everyoneKnows([first, second]);
const third = await planned(t, { name: 'dc3', primary: second });

async function primaryAt(datacenter: DatacenterUnderTest): Promise<unknown> {
  return (await clientOf(datacenter).get('/operator/primary')).json.Datacenter;
}

t.test('wrong primary: the newcomer follows the one that there is', async (t) => {
  await clientOf(first).made('PUT', '/acl/policy', { Name: 'before' });
  await serverOf(third).open();
  await allReady(third.servers);
  await everyoneKnows([first, second, third]);
  for (const each of [first, second, third]) {
    const made = await clientOf(each).put('/acl/policy?ack=all', { Name: `by-${each.name}` });
    t.equal(made.status, 200, made.text);
  }
  for (const each of [first, second, third]) t.equal(await primaryAt(each), 'dc1', each.name);
});

t.test('wrong primary: after restarts nobody takes another one for it', async (t) => {
  for (const each of [third, second, first]) {
    await serverOf(each).close();
    await serverOf(each).open();
  }
  for (const each of [first, second, third]) await allReady(each.servers);
  await everyoneKnows([first, second, third]);
  for (const each of [first, second, third]) t.equal(await primaryAt(each), 'dc1', each.name);
  const made = await clientOf(third).put('/acl/policy?ack=all', { Name: 'after' });
  t.equal(made.status, 200, made.text);
  await until('it is elected like any other', async () => {
    return (await clientOf(third).put('/operator/primary', { Mode: 'election' })).status === 200;
  });
  await until('all know', async () => {
    const all = await Promise.all([first, second, third].map(primaryAt));
    return all.every((each) => each === 'dc3');
  });
});
