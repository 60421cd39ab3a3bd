// The parts of the local cluster that need no server: lines between nodes, the proxies that carry them, who
// dials, plans and names, and what is told about cuts.

import { existsSync, mkdirSync } from 'node:fs';
import t from 'tap';
import type { Conn } from '../../cluster/platform/net.ts';
import type { Hello } from '../../cluster/wire/frame.ts';
import { encodeFrame } from '../../cluster/wire/frame-codec.ts';
import {
  asJoiner,
  dataFolderOf,
  flagsOf,
  nodesNamed,
  PORTS_OF_A_NODE,
  planCluster,
  withJoiner,
} from '../../scripts/cluster/cluster-plan.ts';
import { ClusterRefusal } from '../../scripts/cluster/cluster-refusal.ts';
import { HelloReader } from '../../scripts/cluster/hello-reader.ts';
import { lineFaultTexts } from '../../scripts/cluster/line-faults-text.ts';
import { LineProxy } from '../../scripts/cluster/line-proxy.ts';
import { Lines } from '../../scripts/cluster/lines.ts';
import { LocalCluster } from '../../scripts/cluster/local-cluster.ts';
import { openWsNet } from '../../src/platform-node/net/ws-net.ts';
import { systemClock } from '../../src/platform-node/system-clock.ts';
import { temporaryFolder } from '../hard/server-process.ts';
import { freePorts } from '../support/running/free-ports.ts';
import { until } from '../support/running/running-group.ts';

const LOGGER = { debug() {}, info() {}, warn() {}, error() {} };
const SECRETS = { managementToken: 'm', clusterKey: 'k' };

function planOf(datacenters: number, servers: number) {
  const ports = Array.from({ length: datacenters * servers * 3 }, (_, place) => 10_000 + place);
  return planCluster({ datacenters, servers, wanDelayMs: 0 }, ports, SECRETS);
}

function helloOf(name: string): Uint8Array {
  const hello: Hello = {
    ...{ kind: 'hello', oldestVersion: 1, newestVersion: 1, clusterId: '', datacenter: 'dc1' },
    ...{ node: 1, id: 'id', name, programVersion: '0', life: 'l', lane: 'control', hasKey: false },
    nonce: new Uint8Array(32),
    ...{ federationId: '', reads: 1, uses: 1 },
  };
  return encodeFrame(hello);
}

/** A connection through a proxy whose dialling side has said who it is. */
class Pair {
  readonly here: Conn;
  readonly there: Conn;
  readonly heardHere: string[] = [];
  readonly heardThere: string[] = [];
  closed = 0;

  constructor(here: Conn, there: Conn) {
    this.here = here;
    this.there = there;
    const onClose = (): void => {
      this.closed += 1;
    };
    here.handle({ onFrame: (frame) => this.heardHere.push(textOf(frame)), onClose });
    there.handle({ onFrame: (frame) => this.heardThere.push(textOf(frame)), onClose });
  }
}

function textOf(frame: Uint8Array): string {
  return Buffer.from(frame).toString('latin1');
}

async function runPair(owner: Pick<typeof t, 'teardown'>, lines: Lines, dialler: string) {
  const [nodePort = 0, listenPort = 0] = await freePorts(2);
  const net = openWsNet({ tls: undefined, clock: systemClock, logger: LOGGER });
  let accepted: Conn | undefined;
  const listening = await net.listen({ host: '127.0.0.1', port: nodePort }, (conn) => {
    accepted = conn;
  });
  const proxy = await LineProxy.open({ node: 'b', listenPort, nodePort, lines });
  const here = await net.dial({ host: '127.0.0.1', port: listenPort }, { timeoutMs: 60_000 });
  await until('it is accepted', () => accepted !== undefined);
  const pair = new Pair(here, accepted!);
  owner.teardown(async () => {
    here.close('the test is over');
    accepted?.close('the test is over');
    await proxy.close();
    await listening.close();
  });
  here.send(helloOf(dialler));
  return { pair, proxy };
}

/** There and back a few times by the direction that is whole: what was sent before had its chance. */
async function heard(what: string, list: readonly string[], send: () => void): Promise<void> {
  const before = list.length;
  for (let round = 0; round < 20; round += 1) send();
  await until(`${what} is heard`, () => list.length === before + 20);
}

t.test('proxies: what a line that is cut keeps back comes when it is mended', async (t) => {
  const lines = new Lines();
  const { pair, proxy } = await runPair(t, lines, 'a');
  await until('the hello is there', () => pair.heardThere.length === 1);
  lines.change(['a'], ['b'], { isCut: true });
  pair.here.send(Buffer.from('kept back'));
  await heard('the other direction', pair.heardHere, () => pair.there.send(Buffer.from('x')));
  t.equal(pair.heardThere.length, 1, 'nothing passes a cut');
  lines.change(['a'], ['b'], { isCut: false });
  proxy.look();
  await until('it comes', () => pair.heardThere.at(-1) === 'kept back');
  lines.change(['b'], ['a'], { isCut: true });
  const before = pair.heardHere.length;
  pair.there.send(Buffer.from('no answer'));
  await heard('this direction', pair.heardThere, () => pair.here.send(Buffer.from('y')));
  t.equal(pair.heardHere.length, before, 'each direction is cut for itself');
});

t.test('proxies: not even a hello passes a line that is cut', async (t) => {
  const lines = new Lines();
  lines.change(['a'], ['b'], { isCut: true });
  const { pair, proxy } = await runPair(t, lines, 'a');
  await heard('the other direction', pair.heardHere, () => pair.there.send(Buffer.from('x')));
  t.same(pair.heardThere, []);
  lines.healAll();
  proxy.look();
  await until('the hello is there', () => pair.heardThere.length === 1);
});

t.test('proxies: a cut line tells nobody that the other end is gone', async (t) => {
  const lines = new Lines();
  const { pair, proxy } = await runPair(t, lines, 'a');
  await until('the hello is there', () => pair.heardThere.length === 1);
  lines.change(['a'], ['b'], { isCut: true });
  lines.change(['b'], ['a'], { isCut: true });
  pair.here.close('gone');
  await until('this end has closed', () => pair.closed === 1);
  await new Promise((resolve) => setTimeout(resolve, 200));
  t.equal(pair.closed, 1, 'the other end knows nothing');
  lines.healAll();
  proxy.look();
  await until('the other end hears of it', () => pair.closed === 2);
});

t.test('proxies: a delay holds every piece, and keeps their order', async (t) => {
  const lines = new Lines();
  lines.change(['a'], ['b'], { delayMs: 200 });
  const { pair } = await runPair(t, lines, 'a');
  const sentMs = performance.now();
  for (const text of ['1', '2', '3']) pair.here.send(Buffer.from(text));
  await until('all are there', () => pair.heardThere.length === 4);
  t.ok(performance.now() - sentMs >= 195, 'late by at least the delay');
  t.same(pair.heardThere.slice(1), ['1', '2', '3']);
});

t.test('proxies: whoever is no node is not let through', async (t) => {
  const lines = new Lines();
  const [nodePort = 0, listenPort = 0] = await freePorts(2);
  const net = openWsNet({ tls: undefined, clock: systemClock, logger: LOGGER });
  let accepted: Conn | undefined;
  const listening = await net.listen({ host: '127.0.0.1', port: nodePort }, (conn) => {
    accepted = conn;
  });
  const proxy = await LineProxy.open({ node: 'b', listenPort, nodePort, lines });
  t.teardown(async () => {
    accepted?.close('the test is over');
    await proxy.close();
    await listening.close();
  });
  const here = await net.dial({ host: '127.0.0.1', port: listenPort }, { timeoutMs: 60_000 });
  let hasClosed = false;
  here.handle({
    onFrame: () => undefined,
    onClose: () => {
      hasClosed = true;
    },
  });
  here.send(Buffer.from('not a hello'));
  await until('it is cut off', () => hasClosed);
});

t.test('hello: is found however its bytes come', async (t) => {
  const request = Buffer.from('GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n');
  for (const mask of [Buffer.alloc(4), Buffer.from([1, 2, 3, 250])]) {
    for (const name of ['a', 'n'.repeat(150)]) {
      const hello = helloOf(name).map((byte, place) => byte ^ mask[place % 4]!);
      const length =
        hello.length < 126
          ? Buffer.from([0x80 | hello.length])
          : Buffer.from([0x80 | 126, hello.length >> 8, hello.length & 0xff]);
      const all = Buffer.concat([request, Buffer.from([0x82]), length, mask, hello]);
      const reader = new HelloReader();
      const readings = [...all].map((byte) => reader.take(Buffer.from([byte])));
      t.same(readings.at(-1), { kind: 'hello', name });
      t.ok(readings.slice(0, -1).every(({ kind }) => kind === 'more'));
    }
  }
  t.same(new HelloReader().take(Buffer.concat([request, Buffer.from('abcdefgh')])), {
    kind: 'stranger',
  });
  t.same(new HelloReader().take(Buffer.alloc(40_000, 'x')), { kind: 'stranger' });
});

t.test(
  'lines: cuts and delays of a direction are told apart, and healing leaves delays',
  async (t) => {
    const lines = new Lines();
    lines.change(['a', 'b'], ['b', 'c'], { isCut: true });
    t.equal(lines.between('b', 'b').isCut, false, 'a node stays joined to itself');
    t.equal(lines.between('a', 'c').isCut, true);
    t.equal(lines.between('c', 'a').isCut, false, 'the other direction is as it was');
    lines.change(['a'], ['c'], { delayMs: 5 });
    t.same(lines.between('a', 'c'), { from: 'a', to: 'c', isCut: true, delayMs: 5 });
    lines.healAll();
    t.same(lines.faults(), [{ from: 'a', to: 'c', isCut: false, delayMs: 5 }]);
    lines.forget('c');
    t.same(lines.faults(), []);
  },
);

t.test('lines: what holds between whole datacenters is told as one', async (t) => {
  const { nodes } = planOf(2, 2);
  const described = nodes.map(({ name, datacenter }) => ({
    ...{ name, datacenter, http: '', cluster: '', pid: 1, data_dir: '', log: '' },
  }));
  const lines = new Lines();
  const texts = () => lineFaultTexts(described, lines.faults());
  const [dc1, dc2] = [
    ['dc1-1', 'dc1-2'],
    ['dc2-1', 'dc2-2'],
  ];
  lines.change(dc1!, dc2!, { isCut: true });
  t.same(texts(), ['dc1 --> dc2: cut']);
  lines.change(dc2!, dc1!, { isCut: true });
  t.same(texts(), ['dc1 <-> dc2: cut']);
  lines.change(['dc1-1'], ['dc2-1'], { isCut: false, delayMs: 40 });
  t.match(texts(), ['dc2 --> dc1: cut', 'dc1-1 --> dc2-1: 40 ms late']);
  lines.healAll();
  t.same(texts(), ['dc1-1 --> dc2-1: 40 ms late']);
});

t.test('plans: names, and what each server is told of the others', async (t) => {
  const plan = planOf(2, 3);
  t.same(
    plan.nodes.map(({ name }) => name),
    ['dc1-1', 'dc1-2', 'dc1-3', 'dc2-1', 'dc2-2', 'dc2-3'],
  );
  t.same(nodesNamed(plan, 'dc2'), ['dc2-1', 'dc2-2', 'dc2-3']);
  t.throws(() => nodesNamed(plan, 'dc3'), ClusterRefusal);
  t.throws(() => nodesNamed(plan, 'dc3'), /nodes: dc1-1.*datacenters: dc1, dc2/);
  const [first] = plan.nodes;
  const flags = flagsOf(plan, first!, '/f');
  const flag = (name: string): string | undefined => flags[flags.indexOf(`--${name}`) + 1];
  t.equal(flag('bootstrap-expect'), '3');
  t.equal(flag('advertise-addr'), '127.0.0.1:10002', 'it tells the address of its proxy');
  t.equal(flag('ports-cluster'), '10001');
  t.equal(flag('retry-join'), '127.0.0.1:10005,127.0.0.1:10008', 'and looks for theirs');
  t.notOk(flags.some((text) => text === SECRETS.managementToken || text === SECRETS.clusterKey));
  const { plan: larger, joiner } = withJoiner(plan, 'dc2', [1, 2, 3]);
  t.equal(joiner.name, 'dc2-4');
  const joining = flagsOf(larger, joiner, '/f');
  t.equal(joining[joining.indexOf('--bootstrap-expect') + 1], '1', 'who joins founds nothing');
  const [again] = asJoiner(plan, 'dc1-1').nodes;
  t.equal(again?.isFounder, false);
  t.throws(() => withJoiner(plan, 'dc9', [1, 2, 3]), ClusterRefusal);
});

t.test('restart: no disk is replaced where the others could not let its server in', async (t) => {
  const folder = temporaryFolder(t);
  const ports = await freePorts(3 * PORTS_OF_A_NODE);
  const shape = { datacenters: 1, servers: 3, wanDelayMs: 0 };
  const cluster = await LocalCluster.open(folder, planCluster(shape, ports, SECRETS));
  t.teardown(() => cluster.close());
  const data = dataFolderOf(folder, 'dc1-1');
  mkdirSync(data, { recursive: true });
  for (const name of ['dc1', 'dc1-1']) {
    await t.rejects(cluster.restart(name, { isDiskReplaced: true }), {
      name: 'ClusterRefusal',
      message:
        'dc1-1 keeps its disk: it takes 2 other servers of dc1 to let it in again, and 0 run',
    });
    t.equal(existsSync(data), true);
    t.equal(cluster.stateOf('dc1-1').kind, 'ended', 'nor is it started');
  }
});
