// Links and calls between nodes on a scripted network: who gets a link and who is refused, how links come
// back, what is lost and what is bounded, and what a call comes to.
// Another draw of the random test: CONCLAVE_SEED=<seed>; more of them: CONCLAVE_RUNS=<count>.

import t from 'tap';
import type { Conn } from '../../cluster/platform/net.ts';
import { NO_ENTRY } from '../../cluster/raft/entry.ts';
import { RpcRefusal } from '../../cluster/transport/rpc-error.ts';
import type { RpcCaller } from '../../cluster/transport/transport.ts';
import { type Frame, type Hello, NEWEST_PROTOCOL } from '../../cluster/wire/frame.ts';
import { decodeFrame, encodeFrame } from '../../cluster/wire/frame-codec.ts';
import { uuidNumbered } from '../support/fake-random.ts';
import { streamOf } from '../support/simulated-world.ts';
import {
  aCall,
  addressOf,
  aHeartbeat,
  anAppend,
  CLUSTER,
  introduce,
  KEY,
  type NodeGiven,
  Rig,
  type RigNode,
} from './transport-rig.ts';
import { FRAMES } from './wire-frames.ts';

const SEED = Number(process.env.CONCLAVE_SEED ?? 7);
const RUNS = Number(process.env.CONCLAVE_RUNS ?? 5);

t.test('link: two nodes have one connection a lane, whenever each begins to dial', async (test) => {
  for (const delayMs of [0, 1, 5]) {
    for (let headStartMs = -24; headStartMs <= 24; headStartMs += 1) {
      const rig = new Rig({ seed: headStartMs + 100 });
      rig.net.delayMs = delayMs;
      const one = await rig.open('one', { node: 1 });
      const two = await rig.open('two', { node: 2 });
      const [first, second] = headStartMs < 0 ? [one, two] : [two, one];
      first.transport.setPeers(new Map([[second.node, addressOf(second)]]));
      await rig.run(Math.abs(headStartMs));
      introduce(one, two);
      const isLinked = await rig.until(() => one.isLinkedWith(two) && two.isLinkedWith(one), 500);
      await rig.run(200);
      const says = `${headStartMs} ms ahead, ${delayMs} ms apart`;
      test.ok(isLinked, says);
      test.equal(rig.net.countBetween('one', 'two'), 2, says);
      test.same([one.closedLinks, two.closedLinks], [[], []], says);
      test.same([one.warnings, two.warnings], [[], []], says);
    }
  }
});

t.test(
  'link: stands unbroken from the start, whichever of its handshakes is the slowest',
  async (test) => {
    for (let seed = SEED; seed < SEED + 60; seed += 1) {
      const rig = new Rig({ seed });
      const draw = streamOf(seed);
      rig.net.drawExtraMs = () => Math.floor(draw() * 12);
      const one = await rig.open('one', { node: 1 });
      const two = await rig.open('two', { node: 2 });
      introduce(one, two);
      await rig.run(300);
      test.equal(rig.net.countBetween('one', 'two'), 2, `seed ${seed}`);
      test.same([one.closedLinks, two.closedLinks], [[], []], `seed ${seed}`);
      const said = [...one.log, ...two.log].map(({ text }) => text);
      test.notOk(said.includes('a lane of a link ended'), `seed ${seed}`);
      test.ok(one.isLinkedWith(two) && two.isLinkedWith(one), `seed ${seed}`);
    }
  },
);

t.test(
  'link: is made when only one of the two can dial, and carries both directions',
  async (test) => {
    for (const [dialling, silent] of [
      [1, 2],
      [2, 1],
    ] as const) {
      const rig = new Rig();
      const near = await rig.open('near', { node: dialling });
      const far = await rig.open('far', { node: silent });
      near.transport.setPeers(new Map([[silent, addressOf(far)]]));
      far.transport.setPeers(new Map([[dialling, { host: 'nowhere', port: 1 }]]));
      await rig.until(() => near.isLinkedWith(far) && far.isLinkedWith(near));
      near.transport.send(aHeartbeat(near, far));
      far.transport.send(aHeartbeat(far, near));
      await rig.run(10);
      test.same([near.messages.length, far.messages.length], [1, 1]);
      test.equal(await rig.outcome(far.transport.call(dialling, aCall())), 'answer hello');
    }
  },
);

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

interface RefusalCase {
  readonly title: string;
  readonly one?: Partial<NodeGiven>;
  readonly two?: Partial<NodeGiven>;
  readonly says: RegExp;
}

const REFUSALS: readonly RefusalCase[] = [
  {
    title: 'a release that reads less than the group uses',
    two: { reads: 2, uses: 2 },
    says: /one.* reads the log up to feature level 1, and the cluster uses 2: upgrade .*one/,
  },
  {
    title: 'another key',
    two: { clusterKey: new Uint8Array(32) },
    says: /node (one|two) \(.*\) does not have the cluster_key of (one|two)/,
  },
  {
    title: 'a key on one side only',
    two: { clusterKey: undefined },
    says: /one.* has a cluster_key and .*two.* has none/,
  },
  {
    title: 'another cluster',
    two: { clusterId: 'dddddddd-2222-4333-8444-000000000001' },
    says: /is of cluster (c|d).*, (one|two) of cluster (c|d)/,
  },
  {
    title: 'another datacenter',
    two: { datacenter: 'dc2', clusterId: 'dddddddd-2222-4333-8444-000000000001' },
    says: /is of datacenter "dc(1|2)", (one|two) of "dc(1|2)"/,
  },
  {
    title: 'another node at the address',
    two: { node: 3 },
    says: /node two .* is node 3, and node 2 was looked for there/,
  },
  {
    title: 'the number of this node, from another data folder',
    two: { node: 1, id: 'eeeeeeee-2222-4333-8444-000000000001' },
    says: /has the same number as (one|two) .*: give one a new data folder/,
  },
];

for (const { title, one: givenOne, two: givenTwo, says } of REFUSALS) {
  t.test(`link: is refused for ${title}, with the reason in both logs`, async (test) => {
    const rig = new Rig();
    const frames: Uint8Array[] = [];
    rig.net.onFrame = (frame) => frames.push(frame);
    const one = await rig.open('one', { node: 1, ...givenOne });
    const two = await rig.open('two', { node: 2, ...givenTwo });
    const third = await rig.open('third', { node: 9 });
    one.transport.setPeers(
      new Map([
        [2, addressOf(two)],
        [9, addressOf(third)],
      ]),
    );
    third.transport.setPeers(new Map([[1, addressOf(one)]]));
    await rig.run(5_000);
    test.match(
      one.transport.peers().find(({ node }) => node === 2),
      {
        isLinked: false,
        lastErrorText: says,
      },
    );
    test.equal(one.warnings.filter((line) => says.test(line)).length, 1, 'once, not at each try');
    test.equal(two.warnings.filter((line) => says.test(line)).length, 1, 'once, not at each try');
    test.ok(one.isLinkedWith(third), 'nothing else is affected');
    test.same(one.closedLinks, []);
    const said = JSON.stringify([one.log, two.log]);
    test.notOk(
      frames.some((frame) => Buffer.from(frame).includes(Buffer.from(KEY))),
      'the key never travels',
    );
    test.notOk(said.includes(Buffer.from(KEY).toString('base64')));
    await rig.run(1_000);
    test.equal(rig.net.countBetween('one', 'two'), 0);
  });
}

/** What a node has at each step of a rotation, as its setting says it. */
const OLD_KEY = new Uint8Array(32).fill(1);
const NEW_KEY = new Uint8Array(32).fill(2);
const ROTATION: readonly Partial<NodeGiven>[] = [
  { clusterKey: OLD_KEY },
  { clusterKey: OLD_KEY, acceptedKeys: [NEW_KEY] },
  { clusterKey: NEW_KEY, acceptedKeys: [OLD_KEY] },
  { clusterKey: NEW_KEY },
];

async function linksWith(one: Partial<NodeGiven>, two: Partial<NodeGiven>): Promise<boolean> {
  const rig = new Rig();
  const dialling = await rig.open('one', { ...one, node: 1 });
  const listening = await rig.open('two', { ...two, node: 2 });
  introduce(dialling, listening);
  return await rig.until(() => dialling.isLinkedWith(listening), 3_000);
}

t.test('link: a key is replaced step by step, and no two nodes lose each other', async (test) => {
  for (const [step, before] of ROTATION.entries()) {
    const after = ROTATION[step + 1] ?? before;
    test.ok(await linksWith(before, after), `step ${step + 1}, the new one dials`);
    test.ok(await linksWith(after, before), `step ${step + 1}, the old one dials`);
  }
  const [first, , , last] = ROTATION;
  test.notOk(await linksWith(first!, last!), 'who missed all of it is refused');
  const stranger = { clusterKey: new Uint8Array(32).fill(3) };
  for (const step of ROTATION) {
    test.notOk(await linksWith(stranger, step), 'a key that nobody named opens nothing');
    test.notOk(await linksWith(step, stranger));
  }
});

t.test('link: whoever dials is proved the key that it has, and no other', async (test) => {
  const rig = new Rig();
  const one = await rig.open('one', { node: 1, clusterKey: NEW_KEY });
  const two = await rig.open('two', { node: 2, clusterKey: OLD_KEY, acceptedKeys: [NEW_KEY] });
  one.transport.setPeers(new Map([[2, addressOf(two)]]));
  test.ok(await rig.until(() => one.isLinkedWith(two)), 'two dials nobody');
});

t.test(
  'link: is made without any key, and by nodes one of which has no cluster yet',
  async (test) => {
    const rig = new Rig();
    const [one, two] = await rig.pair({ clusterKey: undefined });
    test.ok(one.isLinkedWith(two));
    const joining = await rig.open('three', {
      node: 3,
      clusterId: undefined,
      clusterKey: undefined,
    });
    introduce(one, joining);
    test.ok(await rig.until(() => one.isLinkedWith(joining) && joining.isLinkedWith(one)));
  },
);

/** Somebody who speaks frames without being a node. */
class Impostor {
  readonly frames: Frame[] = [];
  readonly bytes: Uint8Array[] = [];
  closedWhy: string | undefined;
  /** In which what comes is read. */
  protocol = NEWEST_PROTOCOL;
  readonly #conn: Conn;

  constructor(conn: Conn) {
    this.#conn = conn;
    conn.handle({
      onFrame: (frame) => {
        this.bytes.push(frame);
        this.frames.push(decodeFrame(frame, this.protocol));
      },
      onClose: (why) => {
        this.closedWhy = why;
      },
    });
  }

  static async dial(rig: Rig, to: RigNode, from = 'elsewhere'): Promise<Impostor> {
    const dialled = rig.net.host(from).dial(addressOf(to), { timeoutMs: 100 });
    await rig.run(5);
    return new Impostor(await dialled);
  }

  send(frame: Frame | Uint8Array): void {
    this.#conn.send(frame instanceof Uint8Array ? frame : encodeFrame(frame));
  }

  get refusedWhy(): string | undefined {
    const refused = this.frames.find((frame) => frame.kind === 'refused');
    return refused?.kind === 'refused' ? refused.why : undefined;
  }
}

function aHello(given: Partial<Hello> = {}): Hello {
  return {
    ...(FRAMES.hello as Hello),
    node: 77,
    newestVersion: 1,
    reads: 1,
    uses: 1,
    clusterId: CLUSTER,
    lane: 'control',
    ...given,
  };
}

t.test(
  'handshake: a program that speaks only newer protocols is told so, an older one too',
  async (test) => {
    const rig = new Rig();
    const one = await rig.open('one', { node: 1 });
    const newer = await Impostor.dial(rig, one);
    newer.send(aHello({ oldestVersion: 3, newestVersion: 4 }));
    await rig.run(10);
    const says =
      'node nöde-1 (12345678-9abc-4def-8000-000000000001) speaks protocol 3 to 4, one speaks 1 to 2';
    test.equal(newer.refusedWhy, `${says}: upgrade one`);
    test.match(one.warnings, [`a connection was refused: ${says}: upgrade one`]);
    test.equal(newer.closedWhy, `${says}: upgrade one`);
    const older = await Impostor.dial(rig, one);
    older.send(aHello({ oldestVersion: 0, newestVersion: 0 }));
    await rig.run(10);
    test.match(older.refusedWhy, /speaks protocol 0, one speaks 1 to 2: upgrade node nöde-1/);
  },
);

t.test('handshake: both agree on the newest version that both speak', async (test) => {
  const rig = new Rig();
  const one = await rig.open('one', { node: 1, clusterKey: undefined });
  const newer = await Impostor.dial(rig, one);
  newer.send(aHello({ oldestVersion: 1, newestVersion: 4, hasKey: false }));
  newer.send({ kind: 'proof', mac: new Uint8Array(0) });
  await rig.run(10);
  test.match(newer.frames[0], { kind: 'hello', oldestVersion: 1, newestVersion: 2 });
  test.match(newer.frames[1], { kind: 'accepted', version: 2 });
});

t.test(
  'link: with a server of the first release, votes go in its words both ways',
  async (test) => {
    const rig = new Rig();
    const one = await rig.open('one', { node: 1, clusterKey: undefined });
    const older = await Impostor.dial(rig, one);
    older.protocol = 1;
    const hello = aHello({ oldestVersion: 1, newestVersion: 1, hasKey: false });
    older.send(hello);
    older.send({ kind: 'proof', mac: new Uint8Array(0) });
    await rig.run(10);
    test.match(older.frames[1], { kind: 'accepted', version: 1 });
    const vote = { type: 'vote', term: 7, lastTerm: 6, lastIndex: 9, forced: false } as const;
    const committed = { term: 6, index: 8 };
    const asked = { ...vote, from: hello.node, to: 1, committed };
    older.send(encodeFrame({ kind: 'messages', messages: [asked] }, 1));
    await rig.run(10);
    test.same(one.messages, [{ ...asked, committed: NO_ENTRY }]);
    one.transport.send({ ...vote, from: 1, to: hello.node, committed });
    await rig.run(10);
    const heard = older.frames.filter(({ kind }) => kind === 'messages');
    const told = { ...vote, from: 1, to: hello.node, committed: NO_ENTRY };
    test.same(heard, [{ kind: 'messages', messages: [told] }]);
  },
);

t.test('handshake: a proof that was heard before proves nothing', async (test) => {
  const rig = new Rig();
  const heard: Uint8Array[] = [];
  rig.net.onFrame = (frame, from) => {
    if (from === 'two') heard.push(frame);
  };
  const [one, two] = await rig.pair();
  await two.transport.close();
  await rig.run(50);
  const kinds = heard.map((frame) => decodeFrame(frame).kind);
  const fromDialler = kinds.indexOf('proof') >= 0;
  test.ok(fromDialler || kinds.includes('accepted'));
  const hello = heard.find((frame) => decodeFrame(frame).kind === 'hello')!;
  const { mac } = heard
    .map((frame) => decodeFrame(frame))
    .find(({ kind }) => kind === 'proof' || kind === 'accepted') as {
    mac: Uint8Array;
  };
  const impostor = await Impostor.dial(rig, one);
  impostor.send(hello);
  impostor.send({ kind: 'proof', mac });
  await rig.run(10);
  test.match(impostor.refusedWhy, /node two .* does not have the cluster_key of one/);
  test.notOk(one.isLinkedWith(two));
});

t.test('handshake: what a node proves by itself cannot be sent back to it', async (test) => {
  const rig = new Rig();
  const one = await rig.open('one', { node: 1 });
  const trap = rig.net.host('trap');
  const caught: Impostor[] = [];
  const listening = await trap.listen({ host: 'trap', port: 0 }, (conn) => {
    caught.push(new Impostor(conn));
  });
  one.transport.setPeers(new Map([[77, listening.address]]));
  await rig.run(5);
  caught[0]!.send(aHello());
  await rig.run(10);
  const { mac } = caught[0]!.frames.find(({ kind }) => kind === 'proof') as { mac: Uint8Array };
  caught[0]!.send({ kind: 'accepted', version: 1, mac });
  await rig.run(10);
  test.match(caught[0]!.refusedWhy, /does not have the cluster_key of one/);
  test.notOk(one.transport.peers()[0]!.isLinked);
  test.match(one.warnings[0], /a peer cannot be linked with: node nöde-1 .* does not have/);
});

t.test('handshake: nothing else is taken before both proofs', async (test) => {
  const rig = new Rig();
  const one = await rig.open('one', { node: 1 });
  const early: readonly (readonly [string, readonly (Frame | Uint8Array)[], RegExp])[] = [
    ['garbage', [Buffer.from('GET / HTTP/1.1')], /what came is no frame of this protocol/],
    [
      'a call first',
      [FRAMES.call],
      /a frame call came in the handshake where a frame hello is due/,
    ],
    ['a call after hello', [aHello(), FRAMES.call], /where a frame proof is due/],
    ['two hellos', [aHello(), aHello()], /a frame hello came .* where a frame proof is due/],
    ['accepted', [aHello(), FRAMES.accepted], /where a frame proof is due/],
    ['an empty proof', [aHello(), { kind: 'proof', mac: new Uint8Array(0) }], /does not have/],
    ['a large frame', [new Uint8Array(20_000)], /20000 bytes came before the handshake/],
  ];
  for (const [title, frames, says] of early) {
    const impostor = await Impostor.dial(rig, one, `host-${title.replaceAll(' ', '-')}`);
    for (const frame of frames) impostor.send(frame);
    await rig.run(10);
    test.match(impostor.refusedWhy, says, title);
    test.ok(impostor.closedWhy !== undefined, title);
    test.match(one.warnings.at(-1), says, title);
  }
  test.same(one.messages, []);
  test.same(one.requests, []);
});

t.test('handshake: whoever is silent is let go in time', async (test) => {
  const rig = new Rig();
  const one = await rig.open('one', { node: 1 });
  const silent = await Impostor.dial(rig, one);
  const halfway = await Impostor.dial(rig, one);
  halfway.send(aHello());
  await rig.run(3_100);
  for (const impostor of [silent, halfway]) {
    test.equal(impostor.refusedWhy, 'no handshake within 3000 ms');
    test.ok(impostor.closedWhy !== undefined);
  }
});

t.test(
  'handshake: who comes while the node closes is turned away, and nothing is read',
  async (test) => {
    const rig = new Rig();
    const host = rig.net.host.bind(rig.net);
    let arrive: (conn: Conn) => void = () => undefined;
    rig.net.host = (name) => {
      const net = host(name);
      const listen: typeof net.listen = (address, onConn) => {
        arrive = onConn;
        return net.listen(address, onConn);
      };
      return { ...net, listen };
    };
    const one = await rig.open('one', { node: 1 });
    const closing = one.transport.close();
    const closed: string[] = [];
    arrive({ remote: 'late:1', close: (why: string) => closed.push(why) } as unknown as Conn);
    test.same(closed, ['the node is closing']);
    await rig.run(5_000);
    await closing;
  },
);

t.test('handshake: many strangers do not keep a node out', async (test) => {
  const rig = new Rig();
  const limits = { strangersMax: 8 };
  const one = await rig.open('one', { node: 1, limits });
  const strangers: Impostor[] = [];
  for (let each = 0; each < 20; each += 1) strangers.push(await Impostor.dial(rig, one));
  await rig.run(5);
  test.equal(strangers.filter(({ closedWhy }) => closedWhy === undefined).length, 8);
  test.match(strangers[0]!.refusedWhy, /too many connections wait/);
  test.equal(one.warnings.filter((line) => /too many/.test(line)).length, 1);
  const two = await rig.open('two', { node: 2 });
  introduce(one, two);
  test.ok(await rig.until(() => one.isLinkedWith(two), 100));
});

t.test('handshake: strangers of one host do not push out those of others', async (test) => {
  const rig = new Rig();
  const limits = { strangersMax: 8, strangersOfHostMax: 4 };
  const one = await rig.open('one', { node: 1, limits });
  const slow = await Impostor.dial(rig, one, 'slow');
  const flood: Impostor[] = [];
  for (let each = 0; each < 20; each += 1) flood.push(await Impostor.dial(rig, one, 'flood'));
  await rig.run(5);
  test.equal(flood.filter(({ closedWhy }) => closedWhy === undefined).length, 4);
  test.equal(slow.closedWhy, undefined);
});

t.test('handshake: strangers cannot fill the log', async (test) => {
  const rig = new Rig();
  const one = await rig.open('one', { node: 1 });
  for (let each = 0; each < 100; each += 1) {
    const stranger = await Impostor.dial(rig, one, `host-${each % 7}`);
    stranger.send({ kind: 'refused', code: 'refused', why: `invented reason ${each}` });
  }
  await rig.run(10);
  test.equal(one.warnings.length, 61);
  test.match(one.warnings.at(-1), /more is refused than is logged/);
  await rig.run(60_000);
  const again = await Impostor.dial(rig, one);
  again.send({ kind: 'refused', code: 'refused', why: 'and again' });
  await rig.run(10);
  test.equal(one.warnings.at(-1), 'a connection was refused: and again');
});

t.test(
  'link: a node that is no peer may link when it is of the same cluster, and is answered',
  async (test) => {
    const rig = new Rig();
    const one = await rig.open('one', { node: 1, limits: { visitorsMax: 2 } });
    const leader = await rig.open('leader', { node: 5 });
    leader.transport.setPeers(new Map([[1, addressOf(one)]]));
    await rig.until(() => leader.isLinkedWith(one));
    leader.transport.send(aHeartbeat(leader, one));
    await rig.run(10);
    test.match(one.messages, [{ type: 'heartbeat', from: 5 }]);
    one.transport.send(aHeartbeat(one, leader));
    await rig.run(10);
    test.match(leader.messages, [{ type: 'heartbeat', from: 1 }]);
    test.same(one.transport.peers(), []);
    const outsider = await rig.open('outsider', { node: 6, clusterId: undefined });
    outsider.transport.setPeers(new Map([[1, addressOf(one)]]));
    await rig.run(50);
    test.notOk(outsider.isLinkedWith(one));
    test.match(one.warnings, [/node outsider .* is unknown to one/]);
    for (const node of [7, 8]) {
      const visitor = await rig.open(`visitor-${node}`, { node });
      visitor.transport.setPeers(new Map([[1, addressOf(one)]]));
      await rig.run(50);
      test.equal(visitor.isLinkedWith(one), node === 7, `visitor ${node}`);
    }
    // Once it is heard of it is a peer like others.
    introduce(one, leader);
    test.ok(one.isLinkedWith(leader));
  },
);

t.test(
  'link: a node that is no peer any more is cut off and refused until it is one again',
  async (test) => {
    const rig = new Rig();
    const [one, two] = await rig.pair();
    one.transport.setPeers(new Map());
    await rig.run(100);
    test.notOk(two.isLinkedWith(one));
    test.same(one.closedLinks, [], 'its own doing');
    test.same(two.closedLinks, [1]);
    test.match(two.peer(one)!.lastErrorText, /node 2 does not belong to the group of one any more/);
    await rig.run(5_000);
    test.equal(rig.net.countBetween('one', 'two'), 0);
    one.transport.setPeers(new Map([[2, { host: 'nowhere', port: 1 }]]));
    test.ok(await rig.until(() => two.isLinkedWith(one), 3_000));
  },
);

t.test('link: is dialled at the new address when a peer has moved', async (test) => {
  const rig = new Rig();
  const [one, two] = await rig.pair();
  await two.transport.close();
  await rig.run(50);
  const moved = await rig.open('moved', { node: 2 });
  one.transport.setPeers(new Map([[2, addressOf(moved)]]));
  test.ok(await rig.until(() => one.isLinkedWith(moved), 100));
  test.same(one.peer(moved)!.address, addressOf(moved));
});

t.test('messages: those of one turn to one node leave in one frame, in order', async (test) => {
  const rig = new Rig();
  const [one, two] = await rig.pair();
  let frameCount = 0;
  rig.net.onFrame = (frame) => {
    if (decodeFrame(frame).kind === 'messages') frameCount += 1;
  };
  for (let count = 1; count <= 200; count += 1) one.transport.send(aHeartbeat(one, two, count));
  await rig.run(5);
  test.equal(frameCount, 1);
  test.same(
    two.messages.map((message) => message.type === 'heartbeat' && message.readCount),
    Array.from({ length: 200 }, (_, place) => place + 1),
  );
});

t.test(
  'messages: a frame of them stays within its size, and one that is larger goes alone',
  async (test) => {
    const rig = new Rig();
    const [one, two] = await rig.pair({ limits: { messagesFrameBytes: 10_000 } });
    const sizes: number[] = [];
    rig.net.onFrame = (frame) => {
      if (decodeFrame(frame).kind === 'messages') sizes.push(frame.length);
    };
    for (let index = 0; index < 10; index += 1) {
      one.transport.send(
        anAppend(one, two, { prevIndex: index, bytes: index === 4 ? 50_000 : 3_000 }),
      );
    }
    await rig.run(5);
    test.equal(two.messages.length, 10);
    test.equal(sizes.length, 5);
    test.same(
      sizes.map((size) => Math.round(size / 1_000)),
      [9, 3, 50, 9, 6],
    );
  },
);

t.test('messages: small ones overtake large ones, appends keep their order', async (test) => {
  const rig = new Rig();
  const [one, two] = await rig.pair();
  rig.net.bytesPerMs = 1_000;
  one.transport.send(anAppend(one, two, { prevIndex: 0, bytes: 500_000 }));
  one.transport.send({ ...anAppend(one, two, { prevIndex: 1, bytes: 0 }), entries: [] } as never);
  one.transport.send(aHeartbeat(one, two));
  await rig.run(20);
  test.match(
    two.messages.map(({ type }) => type),
    ['heartbeat'],
  );
  await rig.run(600);
  test.match(
    two.messages.map(({ type }) => type),
    ['heartbeat', 'append', 'append'],
  );
  test.match(two.messages[2], { entries: [] });
});

t.test('messages: what a full lane cannot take is lost, and memory stays bounded', async (test) => {
  const rig = new Rig();
  const [one, two] = await rig.pair({ limits: { bulkLaneMaxBytes: 100_000 } });
  rig.net.bytesPerMs = 100;
  for (let index = 0; index < 50; index += 1) {
    one.transport.send(anAppend(one, two, { prevIndex: index, bytes: 10_000 }));
    if (index % 10 === 0) await rig.tick();
  }
  test.equal(one.warnings.filter((line) => /what comes now is lost/.test(line)).length, 1);
  one.transport.send(aHeartbeat(one, two));
  await rig.run(50);
  test.match(two.messages, [{ type: 'heartbeat' }], 'the other lane is free');
  await rig.run(2_000);
  test.equal(two.messages.length, 1 + 9);
  one.transport.send(anAppend(one, two, { prevIndex: 50, bytes: 10_000 }));
  await rig.run(200);
  test.match(two.messages.at(-1), { type: 'append', prevIndex: 50 });
});

t.test('link: a large frame on a slow way is no silence', async (test) => {
  const rig = new Rig();
  const [one, two] = await rig.pair();
  rig.net.bytesPerMs = 20;
  one.transport.send(anAppend(one, two, { prevIndex: 0, bytes: 200_000 }));
  await rig.run(11_000);
  test.match(two.messages, [{ type: 'append' }]);
  test.same([one.closedLinks, two.closedLinks], [[], []]);
  test.notMatch(JSON.stringify(two.log), /ended/);
});

t.test(
  'messages: one that claims to be of another node ends its connection and nothing else',
  async (test) => {
    const rig = new Rig();
    const [one, two] = await rig.pair();
    one.transport.send({ ...aHeartbeat(one, two), from: 3 });
    await rig.run(5);
    test.same(two.messages, []);
    test.match(
      two.log.find(({ text }) => text === 'a lane of a link ended'),
      {
        fields: {
          lane: 'control',
          why: /a message heartbeat from 3 to 2 came on the link from 1 to 2/,
        },
      },
    );
    test.match(
      one.log.find(({ text }) => text === 'a lane of a link ended'),
      { fields: { lane: 'control', why: /node two closed it: .* from 3 to 2/ } },
    );
    test.ok(await rig.until(() => one.isLinkedWith(two) && two.isLinkedWith(one), 100));
  },
);

t.test('link: damage on one lane ends that lane and nothing else', async (test) => {
  const rig = new Rig();
  const [one, two] = await rig.pair();
  const append = anAppend(one, two, { prevIndex: 0, bytes: 10 });
  // Too many entries for any frame.
  const entries = Array.from({ length: 40_000 }, (_, place) => ({
    index: place + 1,
    term: 1,
    type: 'normal',
    data: new Uint8Array(0),
  }));
  one.transport.send({ ...append, entries } as never);
  await rig.run(10);
  test.match(
    two.log.find(({ text }) => text === 'a lane of a link ended'),
    { fields: { lane: 'bulk', why: /a frame of \d+ bytes is damaged: .* items/ } },
  );
  test.match(two.warnings, [/because of what came over it: a frame of \d+ bytes is damaged/]);
  test.same([one.closedLinks, two.closedLinks], [[], []]);
  test.ok(await rig.until(() => one.isLinkedWith(two) && two.isLinkedWith(one), 200));
  one.transport.send(append);
  await rig.run(10);
  test.match(two.messages, [{ type: 'append' }]);
});

t.test(
  'link: is dialled again at once when it breaks, and each side is told once',
  async (test) => {
    const rig = new Rig();
    const [one, two] = await rig.pair();
    await rig.run(3_000);
    rig.net.breakAll('one', 'two');
    await rig.run(1);
    test.same([one.closedLinks, two.closedLinks], [[2], [1]]);
    test.ok(await rig.until(() => one.isLinkedWith(two) && two.isLinkedWith(one), 20));
    await rig.run(100);
    test.equal(rig.net.countBetween('one', 'two'), 2);
    test.same([one.closedLinks, two.closedLinks], [[2], [1]]);
  },
);

t.test(
  'link: tries grow rarer up to a bound, and succeed soon after the peer is there',
  async (test) => {
    const rig = new Rig();
    const one = await rig.open('one', { node: 1 });
    one.transport.setPeers(new Map([[2, { host: 'two', port: 7_000 }]]));
    await rig.run(1_000);
    const early = rig.net.dialCount;
    test.ok(early >= 6 && early <= 40, `${early} dials in the first second`);
    await rig.run(20_000);
    const before = rig.net.dialCount;
    await rig.run(20_000);
    const late = rig.net.dialCount - before;
    test.ok(late >= 20 && late <= 120, `${late} dials in 20 s of two lanes`);
    test.match(one.transport.peers()[0], {
      isLinked: false,
      lastErrorText: /two:7000 cannot be reached/,
    });
    test.equal(one.warnings.length, 1, 'said once');
    const two = await rig.open('two', { node: 2, port: 7_000 });
    two.transport.setPeers(new Map([[1, { host: 'nowhere', port: 1 }]]));
    test.ok(await rig.until(() => one.isLinkedWith(two), 2_100));
  },
);

t.test('link: one that flaps is not dialled without pause', async (test) => {
  const rig = new Rig();
  await rig.pair();
  const before = rig.net.dialCount;
  for (let round = 0; round < 250; round += 1) {
    rig.net.breakAll('one', 'two');
    await rig.run(20);
  }
  const dials = rig.net.dialCount - before;
  test.ok(dials > 10 && dials < 300, `${dials} dials in 5 s`);
});

t.test('link: is closed when nothing is heard, one way or both, and comes back', async (test) => {
  for (const ways of [['one two'], ['two one'], ['one two', 'two one']]) {
    const rig = new Rig();
    const [one, two] = await rig.pair();
    for (const way of ways) {
      const [from, to] = way.split(' ');
      rig.net.cut(from!, to!);
    }
    const isNoticed = await rig.until(
      () => !one.isLinkedWith(two) && !two.isLinkedWith(one),
      12_000,
    );
    test.ok(isNoticed, ways.join());
    const said = JSON.stringify([...one.log, ...two.log]);
    test.match(said, /nothing was heard from node (one|two) for \d+ ms/);
    test.same([one.closedLinks, two.closedLinks], [[2], [1]], ways.join());
    rig.net.heal();
    test.ok(await rig.until(() => one.isLinkedWith(two) && two.isLinkedWith(one), 10_000));
    await rig.run(100);
    test.equal(rig.net.countBetween('one', 'two'), 2, ways.join());
  }
});

t.test('link: a node that was stopped for a while does not blame the others', async (test) => {
  const rig = new Rig();
  const [one, two] = await rig.pair();
  await rig.tick(60_000);
  await rig.run(5_000);
  test.same([one.closedLinks, two.closedLinks], [[], []]);
  test.ok(one.isLinkedWith(two));
});

t.test(
  'link: a peer that comes back in another life takes the place of its old connections',
  async (test) => {
    const rig = new Rig();
    const [one, two] = await rig.pair();
    let calls = 0;
    two.serve = () => {
      calls += 1;
      return new Promise(() => undefined);
    };
    const waiting = rig.outcome(one.transport.call(2, aCall({ deadlineMs: 60_000 })), 60_000);
    await rig.run(20);
    test.equal(calls, 1);
    // The old process is gone and nobody could tell.
    rig.net.cut('two', 'one');
    rig.net.cut('one', 'two');
    const again = await rig.open('again', { node: 2, id: '11111111-2222-4333-8444-000000000002' });
    again.transport.setPeers(new Map([[1, addressOf(one)]]));
    await rig.run(100);
    test.match(await waiting, /lost: the answer to test.echo is lost: node again dialled anew/);
    test.same(one.closedLinks, [2]);
    again.transport.send(aHeartbeat(again, one));
    await rig.run(10);
    test.match(one.messages, [{ type: 'heartbeat', from: 2 }]);
    test.equal(rig.net.countBetween('one', 'again'), 2);
  },
);

t.test('link: ends what is left of an earlier life', async (test) => {
  const rig = new Rig();
  const [one] = await rig.pair({ clusterKey: undefined });
  const again = await Impostor.dial(rig, one);
  again.send(aHello({ lane: 'control', node: 2, life: 'another', hasKey: false }));
  again.send({ kind: 'proof', mac: new Uint8Array(0) });
  await rig.until(() => again.frames.some(({ kind }) => kind === 'accepted'), 50);
  await rig.tick();
  test.equal(rig.net.countBetween('one', 'two'), 0);
  test.same(one.closedLinks, [2]);
});

t.test('call: its answer goes to the life that asked, and to no other', async (test) => {
  for (const size of [6, 100_000]) {
    const rig = new Rig();
    const [one, two] = await rig.pair();
    const held: ((payload: Uint8Array) => void)[] = [];
    one.serve = () => new Promise((resolve) => held.push(resolve));
    const before = rig.outcome(two.transport.call(1, aCall()));
    await rig.until(() => held.length === 1);
    // It dies unnoticed, and its next life counts its calls from the beginning, too.
    rig.net.cut('two', 'one');
    rig.net.cut('one', 'two');
    const again = await rig.open('again', { node: 2, id: uuidNumbered(2) });
    introduce(one, again);
    await rig.until(() => again.isLinkedWith(one));
    const after = rig.outcome(again.transport.call(1, aCall()));
    await rig.until(() => held.length === 2);
    held[0]!(Buffer.alloc(size, 'secret'));
    await rig.run(20);
    held[1]!(Buffer.from('yours'));
    test.equal(await after, 'answer yours');
    test.match(await before, /^(lost|timeout): /);
  }
});

t.test(
  'call: an answer whose connection broke is dropped, though there is a new one',
  async (test) => {
    const rig = new Rig();
    const [one, two] = await rig.pair();
    let answer: (payload: Uint8Array) => void = () => undefined;
    one.serve = () =>
      new Promise((resolve) => {
        answer = resolve;
      });
    const lost = rig.outcome(two.transport.call(1, aCall()));
    await rig.run(10);
    rig.net.breakAll('one', 'two');
    test.match(await lost, /^lost: /);
    await rig.until(() => one.isLinkedWith(two) && two.isLinkedWith(one));
    await rig.run(20);
    let framesAfter = 0;
    rig.net.onFrame = () => {
      framesAfter += 1;
    };
    answer(Buffer.from('late'));
    await rig.run(20);
    test.equal(framesAfter, 0);
  },
);

t.test('call: is answered from either side, small and large, many at once', async (test) => {
  const rig = new Rig();
  const [one, two] = await rig.pair();
  two.serve = async ({ payload }) => {
    await Promise.resolve();
    return Buffer.from(`got ${payload.length}`);
  };
  test.equal(await rig.outcome(one.transport.call(2, aCall())), 'answer got 5');
  test.match(two.requests[0], {
    from: { node: 1, name: 'one', version: '1.0.0', clusterId: CLUSTER, remote: /^one:\d+$/ },
    method: 'test.echo',
    hops: 0,
    deadlineMs: 1_000,
  });
  const large = one.transport.call(2, aCall({ payload: new Uint8Array(1_000_000) }));
  test.equal(await rig.outcome(large), 'answer got 1000000');
  const back: Uint8Array[] = [];
  const payloads = Array.from({ length: 300 }, (_, place) => Buffer.from(`n${place}`));
  const all = Promise.all(payloads.map((payload) => two.transport.call(1, aCall({ payload }))));
  void all.then((answers) => back.push(...answers));
  await rig.until(() => back.length > 0);
  test.same(
    back.map((each) => Buffer.from(each).toString()),
    payloads.map(String),
  );
});

t.test('call: answers find their calls in whatever order they come', async (test) => {
  const rig = new Rig();
  const [one, two] = await rig.pair();
  const held: (() => void)[] = [];
  two.serve = ({ payload }) => new Promise((resolve) => held.unshift(() => resolve(payload)));
  const outcomes = ['a', 'b', 'c'].map((each) =>
    rig.outcome(one.transport.call(2, aCall({ payload: Buffer.from(each) }))),
  );
  await rig.until(() => held.length === 3);
  for (const answer of held) answer();
  test.same(await Promise.all(outcomes), ['answer a', 'answer b', 'answer c']);
});

t.test('call: a large one does not hold up a small one', async (test) => {
  const rig = new Rig();
  const [one, two] = await rig.pair();
  rig.net.bytesPerMs = 1_000;
  const large = rig.outcome(
    one.transport.call(2, aCall({ payload: new Uint8Array(300_000), deadlineMs: 9_000 })),
  );
  two.serve = async ({ payload }) => Buffer.from(String(payload.length));
  const startMs = rig.clock.monotonicMs();
  test.equal(await rig.outcome(one.transport.call(2, aCall())), 'answer 5');
  test.ok(rig.clock.monotonicMs() - startMs < 50);
  test.equal(await large, 'answer 300000');
});

t.test('call: comes to what its error says', async (test) => {
  const rig = new Rig();
  const [one, two] = await rig.pair({
    limits: { callsMax: 2, payloadMaxBytes: 1_000, smallCallBytes: 500 },
  });
  const outcome = (given: Parameters<typeof aCall>[0], to = 2): Promise<string> =>
    rig.outcome(one.transport.call(to, aCall(given)));
  test.match(await outcome({ hops: 4 }, 5), /too-many-hops: test.echo was handed on 4 times/);
  test.match(
    await outcome({ payload: new Uint8Array(1_001) }),
    /too-large: test.echo carries 1001 bytes, at most 1000/,
  );
  test.match(await outcome({}, 5), /unreachable: test.echo was not sent: node 5 is no peer/);
  test.same(two.requests, []);

  two.serve = () => Promise.reject(new RpcRefusal('not-now', 'come back later'));
  const refused = one.transport.call(2, aCall()).catch((error: unknown) => error);
  await rig.run(10);
  test.match(await refused, {
    name: 'RpcError',
    code: 'refused',
    message: 'come back later',
    refusal: { code: 'not-now', says: 'come back later' },
  });

  two.serve = () => Promise.reject(new Error('a secret of that node'));
  test.match(await outcome({}), /lost: .* test.echo failed over there, see the log of that node/);
  test.match(two.log.at(-1), {
    level: 'error',
    text: 'a call of another node failed here',
    fields: { method: 'test.echo', cause: { message: 'a secret of that node' } },
  });

  two.serve = async () => new Uint8Array(1_001);
  test.match(await outcome({}), /lost: .*it has 1001 bytes, at most 1000/);

  two.serve = () => new Promise(() => undefined);
  const late = 'timeout: no answer to test.echo within 70 ms';
  for (const deadlineMs of [70, 69.25]) test.equal(await outcome({ deadlineMs }), late);
});

t.test(
  'call: the calls under way are bounded, where they are made and where they are carried out',
  async (test) => {
    const rig = new Rig();
    const one = await rig.open('one', { node: 1, limits: { callsMax: 3 } });
    const two = await rig.open('two', { node: 2, limits: { callsMax: 2 } });
    introduce(one, two);
    await rig.until(() => one.isLinkedWith(two));
    let answer: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      answer = resolve;
    });
    two.serve = async ({ payload }) => {
      await held;
      return payload;
    };
    const calls = [1, 2, 3, 4].map(() => rig.outcome(one.transport.call(2, aCall())));
    await rig.run(20);
    test.match(await calls[3], /unreachable: test.echo was not sent: 3 calls wait for answers/);
    test.match(await calls[2], /refused: 2 calls are under way already/);
    answer();
    test.same(await Promise.all([calls[0], calls[1]]), ['answer hello', 'answer hello']);
    test.equal(await rig.outcome(one.transport.call(2, aCall())), 'answer hello');
  },
);

t.test('call: the hop limit holds where a call arrives, too', async (test) => {
  const rig = new Rig();
  const one = await rig.open('one', { node: 1, limits: { hopsMax: 10 } });
  const two = await rig.open('two', { node: 2 });
  introduce(one, two);
  await rig.until(() => one.isLinkedWith(two));
  test.match(
    await rig.outcome(one.transport.call(2, aCall({ hops: 4 }))),
    /too-many-hops: test.echo was handed on 4 times, at most 3/,
  );
  test.equal(await rig.outcome(one.transport.call(2, aCall({ hops: 3 }))), 'answer hello');
});

t.test(
  'call: is lost when its link breaks, and an answer that comes too late is dropped',
  async (test) => {
    const rig = new Rig();
    const [one, two] = await rig.pair();
    const answers: (() => void)[] = [];
    two.serve = ({ payload }) => new Promise((resolve) => answers.push(() => resolve(payload)));
    const broken = rig.outcome(one.transport.call(2, aCall({ deadlineMs: 60_000 })));
    const late = rig.outcome(one.transport.call(2, aCall({ deadlineMs: 30 })));
    await rig.run(50);
    test.match(await late, /timeout/);
    rig.net.breakAll('one', 'two');
    test.match(await broken, /lost: the answer to test.echo is lost: the network broke it/);
    test.match(
      await rig.outcome(one.transport.call(2, aCall())),
      /unreachable: test.echo was not sent, node two is not linked: the network broke it/,
    );
    for (const answer of answers) answer();
    await rig.until(() => one.isLinkedWith(two));
    two.serve = async ({ payload }) => payload;
    test.equal(await rig.outcome(one.transport.call(2, aCall())), 'answer hello');
  },
);

t.test('call: the time that is left travels with it, not the time of day', async (test) => {
  const rig = new Rig();
  const one = await rig.open('one', { node: 1 });
  const two = await rig.open('two', { node: 2 });
  rig.net.delayMs = 10;
  const asked = one.transport.call(addressOf(two), aCall({ deadlineMs: 500 }));
  test.equal(await rig.outcome(asked), 'answer hello');
  const { deadlineMs } = two.requests[0]!;
  test.ok(deadlineMs >= 400 && deadlineMs <= 460, `${deadlineMs} of 500 ms were left`);
});

t.test(
  'call: to an address links with whoever is there, shares the connection and ends it',
  async (test) => {
    const rig = new Rig();
    const seed = await rig.open('seed', { node: 1 });
    const joiner = await rig.open('joiner', { node: 2, clusterId: undefined });
    const ask = (): Promise<string> =>
      rig.outcome(joiner.transport.call(addressOf(seed), aCall({ method: 'member.join' })));
    test.same(await Promise.all([ask(), ask(), ask()]), Array(3).fill('answer hello'));
    test.match(seed.requests[0], {
      method: 'member.join',
      from: { node: 2, name: 'joiner', clusterId: '' },
    });
    test.equal(rig.net.countBetween('joiner', 'seed'), 1);
    await rig.run(9_000);
    test.equal(await ask(), 'answer hello');
    await rig.run(9_000);
    test.equal(rig.net.dialCount, 1);
    await rig.run(2_000);
    test.equal(rig.net.countBetween('joiner', 'seed'), 0);
    test.equal(await ask(), 'answer hello');
    test.equal(rig.net.dialCount, 2);
    test.same([seed.closedLinks, joiner.closedLinks], [[], []]);
  },
);

t.test('call: to an address where it cannot be made says why', async (test) => {
  const rig = new Rig();
  const one = await rig.open('one', { node: 1 });
  const wrongKey = await rig.open('wrong', { node: 2, clusterKey: new Uint8Array(32) });
  const ask = (host: string, port: number): Promise<string> =>
    rig.outcome(one.transport.call({ host, port }, aCall()));
  test.match(
    await ask('nobody', 1),
    /unreachable: test.echo was not sent: nobody:1 cannot be reached/,
  );
  const { host, port } = addressOf(wrongKey);
  test.match(
    await ask(host, port),
    /unreachable: .* node one .* does not have the cluster_key of wrong/,
  );
  const self = addressOf(one);
  test.match(await ask(self.host, self.port), /unreachable: .* one is the node at both ends/);
  test.same(one.warnings, [], 'the caller knows');
  rig.net.cut('one', 'dark');
  const dark = rig.outcome(
    one.transport.call({ host: 'dark', port: 1 }, aCall({ deadlineMs: 300 })),
  );
  test.match(await dark, /unreachable: .* no connection within 300 ms/);
});

const FEDERATION = 'fedfedfe-2222-4333-8444-000000000001';
const CLUSTER_2 = 'dddddddd-2222-4333-8444-000000000001';

interface FarCase {
  readonly title: string;
  readonly far: Partial<NodeGiven>;
  readonly says: RegExp;
}

const FAR: readonly FarCase[] = [
  { title: 'one of the same federation', far: {}, says: /^answer hello$/ },
  {
    title: 'one that knows of no federation yet',
    far: { federationId: undefined },
    says: /^answer hello$/,
  },
  {
    title: 'one that has no cluster yet',
    far: { federationId: undefined, clusterId: undefined },
    says: /^answer hello$/,
  },
  {
    title: 'one of another federation',
    far: { federationId: 'another' },
    says: /node (near|far) \(.*\) is of datacenter "dc(1|2)", .* two federations: .*another/,
  },
  {
    title: 'one of the same cluster',
    far: { clusterId: CLUSTER },
    says: /both are of cluster cccccccc.*: a cluster is one datacenter/,
  },
  {
    title: 'one with another key',
    far: { clusterKey: new Uint8Array(32) },
    says: /does not have the cluster_key of (near|far)/,
  },
];

for (const { title, far: given, says } of FAR) {
  t.test(`call: of another datacenter, ${title}, whoever of the two asks`, async (test) => {
    const rig = new Rig();
    const near = await rig.open('near', { node: 1, federationId: FEDERATION });
    const far = await rig.open('far', {
      node: 2,
      datacenter: 'dc2',
      clusterId: CLUSTER_2,
      federationId: FEDERATION,
      ...given,
    });
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      const outcome = await rig.outcome(from.transport.call(addressOf(to), aCall({ hops: 2 })));
      test.match(outcome, says, `${from.name} asks ${to.name}`);
    }
    test.same([near.messages, far.messages], [[], []]);
    if (far.requests.length === 0) {
      test.ok(
        near.warnings.some((line) => says.test(line)),
        'its log says why',
      );
      return;
    }
    test.match(far.requests, [
      {
        hops: 2,
        from: { node: 1, datacenter: 'dc1', clusterId: CLUSTER, federationId: FEDERATION },
      },
    ]);
    const { federationId = '', clusterId = '' } = { federationId: FEDERATION, ...given };
    test.match(near.requests, [{ from: { node: 2, datacenter: 'dc2', federationId } }]);
    test.equal(near.requests[0]!.from.clusterId, 'clusterId' in given ? clusterId : CLUSTER_2);
  });
}

t.test('call: to an address reaches only the datacenter that it is for', async (test) => {
  const rig = new Rig();
  const near = await rig.open('near', { node: 1 });
  const far = await rig.open('far', { node: 2, datacenter: 'dc2', clusterId: CLUSTER_2 });
  const ask = (datacenter: string): Promise<string> =>
    rig.outcome(near.transport.call(addressOf(far), aCall({ datacenter })));
  const isAnswered = (outcome: string): boolean => !/unreachable/.test(outcome);
  for (const round of ['a new connection', 'one that stands']) {
    test.match(
      await ask('dc3'),
      /^unreachable: test.echo was not sent: .* is of datacenter "dc2", not of "dc3"$/,
      round,
    );
    test.equal(far.requests.length, 0);
  }
  test.ok(isAnswered(await ask('dc2')));
  test.equal(far.requests.length, 1);
});

t.test('call: to an address does not reach whom it refuses', async (test) => {
  const rig = new Rig();
  const near = await rig.open('near', { node: 1 });
  const ids = { clusterId: CLUSTER_2, federationId: CLUSTER };
  const far = await rig.open('far', { node: 2, datacenter: 'dc2', ...ids });
  let known: string = CLUSTER_2;
  const refuses = ({ datacenter, clusterId }: RpcCaller) =>
    clusterId === known ? undefined : `${datacenter} is cluster ${known}, not ${clusterId}`;
  const ask = (): Promise<string> =>
    rig.outcome(near.transport.call(addressOf(far), aCall({ refuses })));
  test.equal(await ask(), 'answer hello');
  known = CLUSTER;
  test.match(await ask(), /^unreachable: test.echo was not sent: dc2 is cluster /);
  test.equal(far.requests.length, 1);
  known = CLUSTER_2;
  test.equal(await ask(), 'answer hello');
  test.equal(rig.net.dialCount, 1, 'over the same connection');
});

t.test('call: whoever belongs to something new says so with the next call', async (test) => {
  const rig = new Rig();
  const far = await rig.open('far', { node: 2, datacenter: 'dc2', clusterId: CLUSTER_2 });
  const near = await rig.open('near', { node: 1, clusterId: undefined });
  const ask = (): Promise<string> => rig.outcome(near.transport.call(addressOf(far), aCall()));
  far.serve = () => new Promise(() => undefined);
  const early = near.transport.call(addressOf(far), aCall({ deadlineMs: 300 }));
  await rig.run(100);
  far.serve = async ({ payload }) => payload;
  near.belongs = { clusterId: CLUSTER };
  test.equal(await ask(), 'answer hello');
  near.belongs = { clusterId: CLUSTER, federationId: CLUSTER_2 };
  test.equal(await ask(), 'answer hello');
  test.match(far.requests, [
    { from: { clusterId: '' } },
    { from: { clusterId: CLUSTER, federationId: '' } },
    { from: { clusterId: CLUSTER, federationId: CLUSTER_2 } },
  ]);
  test.match(await rig.outcome(early), /^timeout/, 'what was under way goes on');
  await rig.run(100);
  test.equal(rig.net.countBetween('near', 'far'), 1, 'the others are closed');
});

t.test('call: whoever was of no federation yet is asked again what it is', async (test) => {
  const rig = new Rig();
  const near = await rig.open('near', { node: 1, federationId: CLUSTER });
  const far = await rig.open('far', { node: 2, datacenter: 'dc2', clusterId: CLUSTER_2 });
  const refuses = () => 'another cluster';
  const ask = (): Promise<string> =>
    rig.outcome(near.transport.call(addressOf(far), aCall({ refuses })));
  test.match(await ask(), /^unreachable: .* another cluster/);
  far.belongs = { clusterId: CLUSTER_2, federationId: CLUSTER_2 };
  test.match(await ask(), /^unreachable: .* two federations/);
});

t.test('call: whoever belonged to nothing yet is asked again what it is', async (test) => {
  const rig = new Rig();
  const near = await rig.open('near', { node: 1 });
  const far = await rig.open('far', { node: 2, datacenter: 'dc2', clusterId: undefined });
  const refuses = ({ clusterId }: RpcCaller) => (clusterId === '' ? 'of no cluster' : undefined);
  const ask = (): Promise<string> =>
    rig.outcome(near.transport.call(addressOf(far), aCall({ refuses })));
  test.match(await ask(), /^unreachable: .* of no cluster/);
  far.belongs = { clusterId: CLUSTER_2 };
  test.equal(await ask(), 'answer hello');
});

t.test('call: of another datacenter, keeps its hops and its deadline', async (test) => {
  const rig = new Rig();
  const near = await rig.open('near', { node: 1 });
  const far = await rig.open('far', { node: 2, datacenter: 'dc2', clusterId: CLUSTER_2 });
  const tooFar = near.transport.call(addressOf(far), aCall({ hops: 4 }));
  test.match(await rig.outcome(tooFar), /too-many-hops: test.echo was handed on 4 times/);
  far.serve = () => new Promise(() => undefined);
  const late = near.transport.call(addressOf(far), aCall({ deadlineMs: 300 }));
  test.match(await rig.outcome(late), /^timeout: no answer to test.echo within/);
  test.ok(far.requests[0]!.deadlineMs < 300, 'the other side knows how long it has');
});

t.test(
  'call: a node that only asks can do nothing else, and there are only so many',
  async (test) => {
    const rig = new Rig();
    const one = await rig.open('one', { node: 1, clusterKey: undefined, limits: { guestsMax: 2 } });
    const guests: Impostor[] = [];
    for (const node of [71, 72, 73]) {
      const guest = await Impostor.dial(rig, one);
      guest.send(aHello({ lane: 'call', node, hasKey: false }));
      guest.send({ kind: 'proof', mac: new Uint8Array(0) });
      await rig.run(10);
      guests.push(guest);
    }
    test.match(guests[2]!.frames.at(-1), {
      kind: 'refused',
      code: 'busy',
      why: 'too many nodes are asking',
    });
    guests[0]!.send({
      kind: 'messages',
      messages: [aHeartbeat({ ...one, node: 71 } as never, one)],
    });
    guests[1]!.send({
      kind: 'call',
      id: 5,
      method: 'm',
      hops: 0,
      remainingMs: 9,
      payload: Buffer.from('x'),
    });
    await rig.run(10);
    test.match(guests[0]!.refusedWhy, /a frame messages came where calls are due/);
    test.match(one.warnings.at(-1), /because of what came over it: .* a frame messages came where/);
    test.same(one.messages, []);
    test.match(guests[1]!.frames.at(-1), { kind: 'answer', id: 5 });
  },
);

t.test('close: lets calls be answered, takes no new ones, and tells the others', async (test) => {
  const rig = new Rig();
  const [one, two] = await rig.pair();
  let answer: () => void = () => undefined;
  two.serve = ({ payload }) =>
    new Promise((resolve) => {
      answer = () => resolve(payload);
    });
  const before = rig.outcome(one.transport.call(2, aCall()));
  await rig.run(10);
  const closing = two.transport.close();
  const during = await rig.outcome(one.transport.call(2, aCall()));
  test.match(during, /refused: the node is closing/);
  test.match(
    await rig.outcome(two.transport.call(1, aCall())),
    /unreachable: .* the node is closing/,
  );
  answer();
  test.equal(await before, 'answer hello');
  await rig.run(5);
  await closing;
  await rig.run(10);
  test.same([one.closedLinks, two.closedLinks], [[2], []]);
  test.match(one.peer(two)!.lastErrorText, /closing|cannot be reached/);
  test.equal(two.transport.close(), closing, 'once');
  await rig.run(3_000);
  test.equal(rig.net.countBetween('one', 'two'), 0);
});

t.test('close: does not wait for ever, and leaves nothing behind', async (test) => {
  const rig = new Rig();
  const [one, two] = await rig.pair();
  two.serve = () => new Promise(() => undefined);
  const lost = rig.outcome(one.transport.call(2, aCall({ deadlineMs: 60_000 })));
  await rig.run(10);
  const both = Promise.all([two.transport.close(), one.transport.close()]);
  await rig.run(1_100);
  await both;
  test.match(await lost, /lost/);
  await rig.run(100);
  test.equal(rig.clock.pendingCount, 0);
});

t.test(
  'link: after any trouble there is one connection a lane, and every call came to something',
  async (test) => {
    test.comment(`seed ${SEED}; again: CONCLAVE_SEED=${SEED} node ${process.argv[1]}`);
    for (let seed = SEED; seed < SEED + RUNS; seed += 1) {
      const rig = new Rig({ seed });
      const nodes: RigNode[] = [];
      for (const [place, name] of ['one', 'two', 'three'].entries()) {
        nodes.push(await rig.open(name, { node: place + 1 }));
      }
      introduce(...nodes);
      const { asked, answered } = await trouble(rig, nodes, streamOf(seed));
      rig.net.heal();
      await rig.run(8_000);
      test.equal(answered(), asked(), `seed ${seed}`);
      for (const [left, right] of pairsOf(nodes)) {
        const says = `seed ${seed}, ${left.name} and ${right.name}`;
        test.ok(left.isLinkedWith(right) && right.isLinkedWith(left), says);
        test.equal(rig.net.countBetween(left.name, right.name), 2, says);
        right.messages.length = 0;
        left.transport.send(aHeartbeat(left, right));
        test.equal(await rig.outcome(right.transport.call(left.node, aCall())), 'answer hello');
        test.equal(right.messages.length, 1, says);
      }
    }
  },
);

function pairsOf(nodes: readonly RigNode[]): readonly (readonly [RigNode, RigNode])[] {
  const [one, two, three] = nodes as [RigNode, RigNode, RigNode];
  return [
    [one, two],
    [one, three],
    [two, three],
  ];
}

/** Breaks, cuts, delays and sudden deaths, while everybody says and asks something. */
async function trouble(
  rig: Rig,
  nodes: RigNode[],
  draw: () => number,
): Promise<{ readonly asked: () => number; readonly answered: () => number }> {
  let askedCount = 0;
  let answeredCount = 0;
  const below = (count: number): number => Math.floor(draw() * count);
  rig.net.drawExtraMs = () => below(6);
  for (let round = 0; round < 30; round += 1) {
    const [from, to] = [nodes[below(3)]!, nodes[below(3)]!];
    rig.net.delayMs = below(8);
    if (draw() < 0.4) rig.net.breakAll(from.name, to.name);
    if (draw() < 0.3) rig.net.cut(from.name, to.name);
    if (draw() < 0.3) rig.net.heal();
    if (draw() < 0.1) await dieAndComeBack(rig, nodes, below(3), `life-${round}`);
    for (const each of nodes) {
      if (each === from) continue;
      from.transport.send(aHeartbeat(from, each, round));
      askedCount += 1;
      const call = from.transport.call(
        each.node,
        aCall({ payload: new Uint8Array(below(100_000)) }),
      );
      void call.then(String, String).then(() => {
        answeredCount += 1;
      });
    }
    await rig.run(below(300));
  }
  return { asked: () => askedCount, answered: () => answeredCount };
}

/** Nobody is told: its connections stay half open, and it comes back somewhere else. */
async function dieAndComeBack(
  rig: Rig,
  nodes: RigNode[],
  place: number,
  name: string,
): Promise<void> {
  const dead = nodes[place]!;
  rig.net.kill(dead.name);
  nodes[place] = await rig.open(name, { node: dead.node });
  introduce(...nodes);
}

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
