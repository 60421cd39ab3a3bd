// A datacenter whose disks are all lost is another one under its old name: what it says counts for nothing, also
// when those who are left are started anew, until an operator lets it have the name.

import t from 'tap';
import {
  clientOf,
  type DatacenterUnderTest,
  everyoneKnows,
  runDatacenter,
  serverOf,
} from '../../support/running/running-datacenters.ts';
import { until } from '../../support/running/running-group.ts';

const dc1 = await runDatacenter(t, { name: 'dc1' });
const dc2 = await runDatacenter(t, { name: 'dc2', primary: dc1 });
// It finds dc2 without dc1.
const wan = [...dc1.lines, ...dc2.lines].map(({ address }) => address).join();
const dc3 = await runDatacenter(t, { name: 'dc3', primary: dc1, flags: { 'retry-join-wan': wan } });
const SAYS = /dc3 is cluster .* here, not .*: .* datacenter remove dc3` and `allow dc3` at the/;

let nameCount = 0;

function nextName(): string {
  nameCount += 1;
  return `policy-${nameCount}`;
}

async function restart(datacenter: DatacenterUnderTest): Promise<void> {
  await serverOf(datacenter).close();
  await serverOf(datacenter).open();
}

/** What keeps it from being ready; empty: nothing does. */
async function notReady(datacenter: DatacenterUnderTest): Promise<string> {
  const { port } = serverOf(datacenter);
  const answer = await fetch(`http://127.0.0.1:${port}/readyz`);
  return answer.status === 200 ? '' : await answer.text();
}

t.test('lost disks: the list says which cluster has each name', async (t) => {
  await everyoneKnows([dc1, dc2, dc3]);
  await until('all levels are risen', async () => {
    const { json } = await clientOf(dc1).get('/operator/autopilot/state');
    return (json.FeatureLevel as { WaitsFor: unknown[] }).WaitsFor.length === 0;
  });
  const made = await clientOf(dc1).put('/acl/policy?ack=all&ack_timeout=60s', { Name: 'before' });
  t.equal(made.status, 200, made.text);
});

t.test(
  'lost disks: a primary that was started anew does not take it for the old one',
  async (t) => {
    await serverOf(dc3).close();
    serverOf(dc3).loseDisk();
    await restart(dc1);
    await serverOf(dc3).open();
    await until('it says why it is not ready', async () => SAYS.test(await notReady(dc3)));
    await serverOf(dc2).close();
    await until('the primary writes', async () => {
      return (await clientOf(dc1).put('/acl/policy', { Name: 'alone' })).status === 200;
    });
    const path = '/acl/policy?ack=majority&ack_timeout=2s';
    const made = await clientOf(dc1).put(path, { Name: 'not-acknowledged' });
    t.equal(made.status, 504, made.text);
    await serverOf(dc2).open();
    await until('a majority has it', async () => {
      const { headers } = await clientOf(dc1).put(path, { Name: nextName() });
      return headers['x-service-ack'] === 'majority';
    });
  },
);

t.test('lost disks: what it promises and asks counts for nothing', async (t) => {
  await serverOf(dc1).close();
  const elected = await clientOf(dc2).put('/operator/primary', { Mode: 'election' });
  t.match(elected.text, /there is no majority: .*dc3 does not answer \(/);
  await until('nor does dc2 answer it', async () => SAYS.test(await notReady(dc3)));
  const read = await clientOf(dc2).get('/acl/policies?dc=dc3');
  t.match(read.text, /no server currently reachable: dc3/);
  await serverOf(dc1).open();
});

t.test('lost disks: it comes back when an operator lets it have the name', async () => {
  await until('it is removed', async () => {
    return (await clientOf(dc2).delete('/operator/datacenter/dc3')).text === 'true';
  });
  await until('it is allowed', async () => {
    return (await clientOf(dc2).put('/operator/datacenter/dc3', undefined)).text === 'true';
  });
  await until('it is ready', async () => (await notReady(dc3)) === '');
  await restart(dc1);
  await until('a write is acknowledged by all', async () => {
    const path = '/acl/policy?ack=all&ack_timeout=1s';
    return (await clientOf(dc1).put(path, { Name: nextName() })).status === 200;
  });
});
