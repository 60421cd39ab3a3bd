// How two nodes prove themselves to each other, and what strangers come to who do not.

import t from 'tap';
import type { Conn } from '../../../cluster/platform/net.ts';
import type { Frame } from '../../../cluster/wire/frame.ts';
import { decodeFrame } from '../../../cluster/wire/frame-codec.ts';
import { FRAMES } from '../wire-frames.ts';
import { aHello, Impostor } from './impostor.ts';
import { introduce, Rig } from './rig.ts';

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
