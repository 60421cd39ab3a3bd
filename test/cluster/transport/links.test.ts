// Links between nodes on a scripted network: who gets one and who is refused, how they end and come back.

import t from 'tap';
import { NO_ENTRY } from '../../../cluster/raft/log/entry.ts';
import { encodeFrame } from '../../../cluster/wire/frame-codec.ts';
import { streamOf } from '../../support/simulated/simulated-world.ts';
import { aHello, Impostor, SEED } from './impostor.ts';
import {
  aCall,
  addressOf,
  aHeartbeat,
  anAppend,
  introduce,
  KEY,
  type NodeGiven,
  Rig,
} from './rig.ts';

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
    says: /is of cluster (c|d).*, (one|two) of cluster (c|d).* both are of datacenter "dc1"$/,
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
