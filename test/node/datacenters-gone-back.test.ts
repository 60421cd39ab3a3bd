// The only server of the primary is put back to an earlier day, as by the snapshot of a machine: it writes nothing
// over what it had acknowledged and another datacenter still has, and follows that one when the primary was moved.

import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { lostReignRefusal } from '../../src/node/lost-reign.ts';
import { everyoneKnows, runDatacenter, serverOf } from '../support/running-datacenters.ts';
import { allReady, until } from '../support/running-group.ts';

t.test('gone back: the primary is closed, and nothing acknowledged is lost', async (t) => {
  const first = await runDatacenter(t, { name: 'dc1' });
  const second = await runDatacenter(t, { name: 'dc2', primary: first });
  await everyoneKnows([first, second]);
  const server = serverOf(first);
  const write = (name: string) =>
    server.client.put('/acl/policy?ack=all&ack_timeout=60s', { Name: name });
  t.equal((await write('before')).status, 200);
  await server.close();
  const copy = mkdtempSync(join(tmpdir(), 'gone-back-'));
  t.teardown(() => rmSync(copy, { recursive: true }));
  cpSync(server.dataFolder, copy, { recursive: true });
  await server.open();
  await allReady(first.servers);
  for (const name of ['lost-1', 'lost-2', 'lost-3']) t.equal((await write(name)).status, 200);

  await server.close();
  server.loseDisk();
  cpSync(copy, server.dataFolder, { recursive: true });
  await server.open();
  await allReady(first.servers);
  const says = /dc2 has 1\.\d+ of this reign, and dc1, which wrote that, ends at 1\.\d+/;
  await until('it is closed', async () => {
    return says.test(String((await server.client.get('/operator/primary')).json.Closed));
  });
  const refused = await server.client.put('/acl/policy', { Name: 'over-it' });
  t.equal(refused.status, 503, refused.text);
  t.match(refused.text, says);

  const { client } = serverOf(second);
  const moved = await client.put('/operator/primary', { Datacenter: 'dc2', Mode: 'election' });
  t.equal(moved.status, 200, moved.text);
  await everyoneKnows([second, first]);
  const path = '/acl/policy?ack=all&ack_timeout=60s';
  t.equal((await client.put(path, { Name: 'behind' })).status, 200);
  for (const name of ['before', 'lost-1', 'lost-2', 'lost-3', 'behind']) {
    t.equal((await server.client.get(`/acl/policy/name/${name}`)).status, 200, name);
  }
});

t.test('gone back: nobody is told to make a witness the primary', (t) => {
  const at = (datacenter: string, seq: number) => ({
    datacenter,
    cursor: { epoch: 1, seq, hash: new Uint8Array(32) },
  });
  const told = (...names: readonly string[]): string => {
    const ahead = names.map((name, place) => at(name, 9 - place));
    const lost = { datacenter: 'dc1', head: { epoch: 1, seq: 3 }, ahead };
    return lostReignRefusal({ ...lost, isWitness: (name) => name === 'w' }).message;
  };
  t.match(
    told('dc2', 'dc3'),
    /dc2 has 1\.9 .*`conclave operator promote dc2 --election`, asked at dc2/,
  );
  t.match(
    told('w', 'dc3'),
    /w has 1\.9 .*`conclave operator promote dc3 --election`, asked at dc3/,
  );
  t.match(
    told('w'),
    /`conclave operator promote --election`, asked at a datacenter other than dc1 and w/,
  );
  t.end();
});
