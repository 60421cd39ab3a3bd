// Who is at an address, and two processes that take themselves for one node.

import t from 'tap';
import { uuidNumbered } from '../../support/fake-random.ts';
import { addressOf, CLUSTER, introduce, Rig } from './rig.ts';

t.test('link: says who is there and when it was heard', async (test) => {
  const rig = new Rig();
  const [one, two] = await rig.pair();
  await rig.run(1_500);
  test.match(one.peer(two), {
    node: 2,
    address: addressOf(two),
    isLinked: true,
    name: 'two',
    version: '1.0.0',
    datacenter: 'dc1',
    lastErrorText: undefined,
    roundTripMs: 2,
  });
  test.ok(one.peer(two)!.lastHeardMs! < 1_100, 'pings are heard');
  const said = one.log.filter(({ level }) => level !== 'debug');
  test.match(said, [{ level: 'info', text: 'linked', fields: { node: 2, name: 'two' } }]);
});

t.test('who is there: one of another cluster says so, and refuses nobody', async (test) => {
  const rig = new Rig();
  const one = await rig.open('one', { node: 1, clusterId: CLUSTER });
  const two = await rig.open('two', { node: 2, clusterId: 'dddddddd' });
  const asked = one.transport.whoIsAt(addressOf(two), 1_000);
  await rig.run(20);
  test.match(await asked, { node: 2, name: 'two', datacenter: 'dc1', clusterId: 'dddddddd' });
  await rig.run(20);
  test.equal(rig.net.countBetween('one', 'two'), 0, 'the connection is for nothing else');
  test.same([...one.warnings, ...two.warnings], []);
  const strange = await rig.open('three', { node: 3, clusterKey: new Uint8Array(32) });
  const refused = one.transport.whoIsAt(addressOf(strange), 1_000);
  refused.catch(() => undefined);
  await rig.run(20);
  await test.rejects(refused, { code: 'unreachable', message: /does not have the cluster_key/ });
});

const COPIES =
  'two servers run from copies of one data folder: stop one of them and empty its folder';

t.test('copies: servers with one node id that take turns are told of, and told', async (test) => {
  const rig = new Rig();
  const [one, two] = await rig.pair();
  const copy = await rig.open('copy', { node: 2, id: uuidNumbered(2) });
  copy.transport.setPeers(new Map([[1, addressOf(one)]]));
  await rig.run(10_000);
  const told = one.log.filter(({ text }) => text === COPIES);
  test.match(told, [{ level: 'error', fields: { name: /two|copy/, id: uuidNumbered(2) } }]);
  const hosts = (told[0]!.fields.remotes as readonly string[]).map(
    (remote) => remote.split(':')[0],
  );
  test.same([...hosts].sort(), ['copy', 'two']);
  for (const node of [two, copy]) {
    const ends = node.log.filter(({ text }) => text === 'a lane of a link ended');
    const says = /another process with its node id.*, at (two|copy):.*copies of one data folder/;
    test.ok(
      ends.some(({ fields }) => says.test(String(fields.why))),
      node.name,
    );
  }
});

t.test('copies: a server that starts anew, often, is none of two', async (test) => {
  const rig = new Rig();
  const one = await rig.open('one', { node: 1 });
  for (let start = 0; start < 20; start += 1) {
    const two = await rig.open(`two${start}`, { node: 2, id: uuidNumbered(2) });
    introduce(one, two);
    test.ok(await rig.until(() => one.isLinkedWith(two) && two.isLinkedWith(one)));
    // Half of them die unnoticed.
    if (start % 2 === 0) rig.net.cut(`two${start}`, 'one');
    if (start % 2 === 0) rig.net.cut('one', `two${start}`);
    if (start % 2 === 1) two.transport.close().catch(() => undefined);
    await rig.run(100);
  }
  test.notOk(one.log.some(({ text }) => text === COPIES));
});
