// A server of the primary that is restarted, sees something written, and is handed the leadership then, takes writes
// of what all share at once, though another datacenter is away: its log is not of an earlier day.

import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import {
  everyoneKnows,
  leaderIn,
  runDatacenter,
  serverOf,
} from '../../support/running/running-datacenters.ts';
import { allReady, until } from '../../support/running/running-group.ts';

const LOOKS = 40;
const LOOK_MS = 50;

t.test('restarted: who is handed the leadership waits for no other datacenter', async (t) => {
  const first = await runDatacenter(t, { name: 'dc1', servers: 3 });
  const second = await runDatacenter(t, { name: 'dc2', primary: first });
  await everyoneKnows([first, second]);
  const leader = await leaderIn(first);
  const restarted = first.servers.find((server) => server !== leader)!;
  await restarted.close();
  await restarted.open();
  await allReady(first.servers);
  t.equal((await restarted.client.put('/acl/policy', { Name: 'seen' })).status, 200);
  await serverOf(second).close();
  const id = restarted.node.info.nodeId;
  const moved = await leader.client.send('POST', `/operator/raft/transfer-leader?id=${id}`);
  t.equal(moved.status, 200, moved.text);
  await until('it leads', async () => (await leaderIn(first)) === restarted);
  const closed = new Set<string>();
  for (let look = 0; look < LOOKS; look += 1) {
    const { json } = await restarted.client.get('/operator/primary');
    closed.add(String(json.Closed ?? ''));
    await pause(LOOK_MS);
  }
  t.same([...closed], [''], 'it is never closed');
  t.equal((await restarted.client.put('/acl/policy', { Name: 'written' })).status, 200);
});
