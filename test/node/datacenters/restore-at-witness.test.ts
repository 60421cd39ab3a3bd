// Two datacenters of real nodes and a witness. The primary restores an archive while the other one is away, so that the
// witness alone hears of it, and then its disks are put back to an earlier day: what was restored is on no disk any
// more. Whoever is asked to go on says what is left to do, and that works to the end.

import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import {
  type DatacenterUnderTest,
  everyoneKnows,
  runDatacenter,
  serverOf,
} from '../../support/running/running-datacenters.ts';
import { until } from '../../support/running/running-group.ts';
import { type Reply, ROOT } from '../../support/running/running-node.ts';

interface All {
  readonly dc1: DatacenterUnderTest;
  readonly dc2: DatacenterUnderTest;
  readonly witness: DatacenterUnderTest;
  readonly archive: ArrayBuffer;
}

/** The disks of dc1 are of before `written`, which dc2 has; the archive has both. */
async function lostRestore(t: Test, written: readonly string[]): Promise<All> {
  const dc1 = await runDatacenter(t, { name: 'dc1' });
  const dc2 = await runDatacenter(t, { name: 'dc2', primary: dc1 });
  await everyoneKnows([dc1, dc2]);
  const flags = { 'federation-witness': 'true' };
  const witness = await runDatacenter(t, { name: 'w', primary: dc1, flags });
  await allFollow(dc1);
  t.equal((await write(dc1, 'before')).status, 200);
  const first = serverOf(dc1);
  await first.close();
  const copy = mkdtempSync(join(tmpdir(), 'lost-restore-'));
  t.teardown(() => rmSync(copy, { recursive: true }));
  cpSync(first.dataFolder, copy, { recursive: true });
  await first.open();
  await allFollow(dc1);
  for (const name of written) t.equal((await write(dc1, name)).status, 200);
  const archive = await (await snapshotOf(dc1)).arrayBuffer();
  await serverOf(dc2).close();
  t.equal((await snapshotOf(dc1, archive)).status, 200);
  await until('the witness has it', async () => {
    const { json } = await first.client.get('/acl/replication');
    const { Datacenters: all } = json as { Datacenters: { Name: string; Position: string }[] };
    const placeOf = (name: string) => all.find(({ Name }) => Name === name)?.Position;
    return placeOf('w') === placeOf('dc1');
  });
  await first.close();
  first.loseDisk();
  cpSync(copy, first.dataFolder, { recursive: true });
  await first.open();
  await serverOf(dc2).open();
  return { dc1, dc2, witness, archive };
}

function snapshotOf(datacenter: DatacenterUnderTest, body?: ArrayBuffer): Promise<Response> {
  const url = `http://127.0.0.1:${serverOf(datacenter).port}/v1/snapshot`;
  const headers = { 'X-Service-Token': ROOT };
  return fetch(url, body === undefined ? { headers } : { method: 'PUT', headers, body });
}

function write(datacenter: DatacenterUnderTest, name: string): Promise<Reply> {
  const path = '/acl/policy?ack=all&ack_timeout=60s';
  return serverOf(datacenter).client.put(path, { Name: name });
}

async function allFollow(primary: DatacenterUnderTest): Promise<void> {
  await until('all follow', async () => {
    const { json } = await serverOf(primary).client.get('/acl/replication');
    const { Datacenters: all = [] } = json as { Datacenters?: readonly { State: string }[] };
    return all.length === 3 && all.every(({ State }) => State === 'primary' || State === 'live');
  });
}

/** Until it refuses with the words that name the way on. */
async function refused(
  t: Test,
  datacenter: DatacenterUnderTest,
  wish: Readonly<Record<string, unknown>>,
  says: RegExp,
): Promise<void> {
  let last = '';
  await until('it says what is left to do', async () => {
    const moved = await serverOf(datacenter).client.put('/operator/primary', wish);
    if (moved.text !== last) t.comment(moved.text);
    last = moved.text;
    t.equal(moved.status, 503, moved.text);
    return says.test(moved.text);
  });
}

/** The primary has heard that the witness has more, and names whom to elect. */
async function closes(primary: DatacenterUnderTest, named: string): Promise<void> {
  const says = new RegExp(
    `: w has 1\\.\\d+ of this reign, .* \`conclave operator promote ${named} --election\`, asked`,
  );
  await until('the primary says so', async () => {
    const { json } = await serverOf(primary).client.get('/operator/primary');
    return says.test(String(json.Closed));
  });
}

/** The witness is down, and comes back behind that. */
async function goesOnByForce(
  t: Test,
  { dc1, dc2, witness, archive }: All,
  primary: DatacenterUnderTest,
  names: readonly string[],
): Promise<void> {
  const wish = { Mode: 'forced', Epoch: 2, AcceptLoss: true };
  const moved = await serverOf(primary).client.put('/operator/primary', wish);
  t.equal(moved.status, 200, moved.text);
  await serverOf(witness).open();
  await allFollow(primary);
  const early = await write(primary, 'of-the-new-reign');
  t.same([early.status, early.headers['x-service-ack']], [200, 'all'], early.text);
  if (primary !== dc1) {
    const handed = await serverOf(primary).client.put('/operator/primary', { Datacenter: 'dc1' });
    t.equal(handed.status, 200, handed.text);
    await allFollow(dc1);
  }
  t.equal((await snapshotOf(dc1, archive)).status, 200, 'it is restored once more');
  const made = await write(dc1, 'behind');
  t.same([made.status, made.headers['x-service-ack']], [200, 'all'], made.text);
  for (const each of [dc1, dc2]) {
    for (const name of ['before', ...names, 'behind']) {
      const found = await serverOf(each).client.get(`/acl/policy/name/${name}`);
      t.equal(found.status, 200, `${name} at ${each.name}`);
    }
    const { json } = await serverOf(each).client.get('/operator/primary');
    t.match(json, { Datacenter: 'dc1', Closed: '' });
  }
}

const HAS = 'w has more, behind a restore, and nothing of what was restored';
const LOST = 'Nobody with objects has it any more, not dc1 either, which wrote it';

t.test('lost restore: the other datacenter is forced without the witness', async (t) => {
  const names = ['kept-1', 'kept-2'];
  const all = await lostRestore(t, names);
  const { dc1, dc2, witness } = all;
  await closes(dc1, 'dc2');
  const way = `${HAS}. ${LOST}: stop w, then \`conclave operator promote dc2 --force …\`, and restore the archive once more, at dc1 when it is the primary again.`;
  const says = new RegExp(`^The primary stays where it is: ${escaped(way)}`);
  await refused(t, dc2, { Mode: 'election' }, says);
  const promised = await serverOf(dc2).client.get('/operator/primary');
  t.equal(promised.json.PromisedEpoch, 1, 'no epoch is used up');
  await refused(t, dc2, { Mode: 'forced', Epoch: 2, AcceptLoss: true }, says);
  await serverOf(witness).close();
  await goesOnByForce(t, all, dc2, names);
});

t.test('lost restore: the primary is forced without the witness, which yields', async (t) => {
  const all = await lostRestore(t, []);
  const { dc1, witness } = all;
  await closes(dc1, 'dc1');
  const way = `${HAS}. ${LOST}: stop w, then \`conclave operator promote dc1 --force …\`, and restore the archive once more.`;
  const says = new RegExp(`^The primary stays where it is: ${escaped(way)}`);
  await refused(t, dc1, { Mode: 'election' }, says);
  await serverOf(witness).close();
  await goesOnByForce(t, all, dc1, []);
});

function escaped(text: string): string {
  return text.replaceAll(/[.`…]/g, (each) => `\\${each}`);
}
