// The primary was moved, and the datacenter that began the federation loses its disks: started again with the
// settings of its first day, it begins no second federation, and comes back when an operator says so.

import t from 'tap';
import {
  clientOf,
  type DatacenterUnderTest,
  everyoneKnows,
  planned,
  serverOf,
} from '../../support/running/running-datacenters.ts';
import { allReady, until } from '../../support/running/running-group.ts';

const first = await planned(t, { name: 'dc1' });
const second = await planned(t, { name: 'dc2', primary: first });
const SEEDS = { 'retry-join-wan': second.lines.map(({ address }) => address).join() };

/** What keeps it from being ready; empty: nothing does. */
async function notReady(datacenter: DatacenterUnderTest): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${serverOf(datacenter).port}/readyz`);
  return answer.status === 200 ? '' : await answer.text();
}

t.test('second world: at the first start who is not there yet is not waited for', async (t) => {
  await serverOf(first).open(SEEDS);
  await allReady(first.servers);
  await serverOf(second).open();
  await allReady(second.servers);
  await everyoneKnows([first, second]);
  const made = await clientOf(first).put('/acl/policy?ack=all&ack_timeout=60s', { Name: 'before' });
  t.equal(made.status, 200, made.text);
});

t.test('second world: the first datacenter, emptied, does not begin another one', async (t) => {
  await until('dc2 is the primary', async () => {
    return (await clientOf(first).put('/operator/primary', { Datacenter: 'dc2' })).status === 200;
  });
  const path = '/acl/policy?ack=all&ack_timeout=60s';
  const made = await clientOf(second).put(path, { Name: 'moved' });
  t.equal(made.status, 200, made.text);
  await serverOf(first).close();
  serverOf(first).loseDisk();
  await serverOf(first).open(SEEDS);
  const says =
    /dc1 begins no global log of its own: dc2 is of federation [^ ]+\. dc1 is cluster .* remove dc1` and `allow dc1` .* set primary_datacenter to the present/;
  await until('it says what to do', async () => says.test(await notReady(first)));
  const refused = await clientOf(first).put('/acl/policy', { Name: 'second-world' });
  t.equal(refused.status, 503, refused.text);
  t.match(refused.text, says);
});

t.test('second world: it comes back when an operator says so', async (t) => {
  t.equal((await clientOf(second).delete('/operator/datacenter/dc1?force')).text, 'true');
  t.equal((await clientOf(second).put('/operator/datacenter/dc1', undefined)).text, 'true');
  await serverOf(first).close();
  await serverOf(first).open(SEEDS);
  await until('nothing but its settings keeps it out', async () => {
    const why = await notReady(first);
    return /dc2 is of federation [^ ]+, of which dc2 is the primary\. To take part/.test(why);
  });
  await serverOf(first).close();
  await serverOf(first).open({ ...SEEDS, 'primary-datacenter': 'dc2' });
  await allReady(first.servers);
  const known = await clientOf(first).get('/acl/policy/name/moved');
  t.equal(known.status, 200, known.text);
  await everyoneKnows([second, first]);
  const made = await clientOf(first).put('/acl/policy?ack=all&ack_timeout=60s', { Name: 'back' });
  t.equal(made.status, 200, made.text);
  // Its settings of the first day make no difference any more.
  await serverOf(first).close();
  await serverOf(first).open(SEEDS);
  await allReady(first.servers);
  t.equal((await clientOf(first).get('/operator/primary')).json.Datacenter, 'dc2');
});
