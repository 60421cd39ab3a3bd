// How a group comes to be: members on simulated clocks, network and disks. However many nodes begin at
// once, whoever dies in between, there is one group or none.
// Another draw of the random test: CONCLAVE_SEED=<seed>, and CONCLAVE_RUNS=<how many>.

import t, { type Test } from 'tap';
import { writePromise } from '../../../cluster/log/cluster-identity.ts';
import {
  type FoundingPromise,
  fateOf,
  foundingStep,
  isBinding,
  type Neighbour,
  promiseOf,
  promiseText,
} from '../../../cluster/member/founding/founding.ts';
import { Identity } from '../../../cluster/member/founding/identity.ts';
import { nodeNumberOf } from '../../../cluster/member/founding/node-number.ts';
import { MemoryKv } from '../../support/memory-kv.ts';
import { type MemberNode, MemberWorld } from '../../support/simulated/member-world.ts';
import { streamOf } from '../../support/simulated/simulated-world.ts';

const RUNS = Number(process.env.CONCLAVE_RUNS ?? 12);
const FIRST_SEED = Number(process.env.CONCLAVE_SEED ?? 1);

/** All who belong to a cluster belong to the same one, and nothing went wrong on the way. */
function oneCluster(test: Test, world: MemberWorld, nodes: readonly MemberNode[]): void {
  const ids = new Set(nodes.map(({ clusterId }) => clusterId));
  test.equal(ids.size, 1, `one cluster for all of ${nodes.map(({ name }) => name).join(' ')}`);
  test.notOk(ids.has(undefined), 'everybody belongs to it');
  test.same(world.violations, []);
}

t.test('founding: a node alone founds at once, with and without a port', async (test) => {
  for (const hasPort of [true, false]) {
    const world = new MemberWorld();
    const a = world.node('a', { hasPort });
    await world.start(a);
    await world.settled([a]);
    await world.write(a);
    test.equal(a.group, 'a');
    await world.stop(a);
    await world.start(a);
    await world.settled([a]);
    await world.checkEven([a]);
    oneCluster(test, world, [a]);
  }
});

t.test('founding: three nodes, and five, found one group that writes', async (test) => {
  for (const count of [3, 5]) {
    const world = new MemberWorld(count);
    const nodes = await world.group(count);
    const leader = nodes.find(({ isLeader }) => isLeader)!;
    await world.writes(leader, 3);
    await world.checkEven(nodes);
    test.equal(leader.group, nodes.map(({ name }) => name).join(' '));
    oneCluster(test, world, nodes);
  }
});

t.test('founding: the founder leads long before the election timeout', async (test) => {
  for (const count of [3, 5]) {
    for (let seed = 1; seed <= 12; seed += 1) {
      const world = new MemberWorld(seed);
      const nodes = world.founders(count);
      await world.start(...nodes);
      const founder = nodes[0]!;
      await world.until('it is founded', () => founder.hasLogged(/ founded /));
      const foundedAtMs = world.nowMs;
      const leader = await world.settled(nodes);
      const tookMs = world.nowMs - foundedAtMs;
      const says = `${leader.name} led after ${tookMs} ms, ${count} nodes, seed ${seed}`;
      if (leader !== founder || tookMs >= 1_000) test.fail(says);
    }
  }
});

t.test('founding: whoever dies at any of its writes comes back to one group', async (test) => {
  for (const victim of [0, 1]) {
    for (let writes = 1; writes <= 4; writes += 1) {
      for (const lands of [false, true]) {
        const world = new MemberWorld(writes);
        const nodes = world.founders(3);
        const node = nodes[victim]!;
        node.queue.onWrite = (count) => {
          if (count === writes) queueMicrotask(() => world.crash(node, { lands }));
        };
        await world.start(...nodes);
        await world.until(`${node.name} dies`, () => !node.isUp);
        await world.run(3_000);
        node.queue.onWrite = () => undefined;
        await world.start(node);
        await world.write(await world.settled(nodes));
        await world.checkEven(nodes);
        oneCluster(test, world, nodes);
      }
    }
  }
});

t.test('founding: whoever dies at any moment comes back to one group', async (test) => {
  for (const victim of [0, 2]) {
    for (let atMs = 340; atMs < 400; atMs += 3) {
      const world = new MemberWorld(7);
      const nodes = world.founders(3);
      const node = nodes[victim]!;
      await world.start(...nodes);
      await world.run(atMs - world.nowMs);
      world.crash(node);
      await world.run(2_000);
      await world.start(node);
      await world.settled(nodes);
      oneCluster(test, world, nodes);
    }
  }
});

t.test(
  'founding: a founder that is gone for good leaves servers that wait and say so',
  async (test) => {
    const world = new MemberWorld();
    const nodes = world.founders(3);
    const [a, b, c] = nodes as [MemberNode, MemberNode, MemberNode];
    world.net.delayMs = 30;
    await world.start(...nodes);
    await world.until(
      'both have promised',
      () => b.hasLogged(/promised/) && c.hasLogged(/promised/),
    );
    world.crash(a);
    // Others come, with whom a group could be founded: what is promised stays promised.
    const d = world.node('d', { bootstrapExpect: 3, join: ['b', 'c', 'd'] });
    await world.start(d);
    await world.run(60_000);
    for (const node of [b, c]) {
      test.equal(node.clusterId, undefined);
      test.match(node.says, /promised server a \(a:8300\).*empty its data folder/);
    }
    test.equal(d.stands, 'joining');
    // A server with another disk answers where the founder was: it is not the founder.
    const a2 = world.node('a', { bootstrapExpect: 3, join: ['a', 'b', 'c'] });
    await world.start(a2);
    await world.run(20_000);
    test.match(b.says, /promised server a/);
    test.equal(b.clusterId, undefined);
    // What the message says helps.
    world.crash(b);
    world.crash(c);
    const settings = { bootstrapExpect: 3, join: ['a', 'b', 'c'] };
    const fresh = [world.node('b', settings), world.node('c', settings)];
    await world.start(...fresh);
    await world.settled([a2, ...fresh, d], 120_000);
    oneCluster(test, world, [a2, ...fresh, d]);
  },
);

t.test(
  'founding: a founder that founds alone of all is found again when it is back',
  async (test) => {
    const world = new MemberWorld();
    const nodes = world.founders(3);
    const [a, b, c] = nodes as [MemberNode, MemberNode, MemberNode];
    world.net.delayMs = 30;
    await world.start(...nodes);
    await world.until('a has founded', () => a.clusterId !== undefined);
    world.crash(a);
    await world.run(30_000);
    test.equal(b.clusterId ?? c.clusterId, undefined, 'nobody else knows');
    await world.start(a);
    await world.settled(nodes);
    oneCluster(test, world, nodes);
  },
);

t.test(
  'founding: a founder that cannot have all promises releases those that it has',
  async (test) => {
    const world = new MemberWorld();
    const nodes = world.founders(3);
    const [a, , c] = nodes as [MemberNode, MemberNode, MemberNode];
    world.cut([a], [c]);
    await world.start(...nodes);
    await world.run(5_000);
    test.equal(a.clusterId, undefined);
    // a cannot ask c, so b, which sees both, cannot be kept by it for ever.
    world.net.heal();
    await world.settled(nodes);
    oneCluster(test, world, nodes);
  },
);

t.test('founding: a promise once given is not given again while it stands', async (test) => {
  // a and b both see enough others to found, and not each other.
  const world = new MemberWorld(3);
  const a = world.node('a', { bootstrapExpect: 3, join: ['c', 'd'] });
  const b = world.node('b', { bootstrapExpect: 3, join: ['c', 'd'] });
  const c = world.node('c', { bootstrapExpect: 3, join: [] });
  const d = world.node('d', { bootstrapExpect: 3, join: [] });
  world.cut([a], [b]);
  await world.start(a, b, c, d);
  await world.run(30_000);
  world.net.heal();
  const nodes = [a, b, c, d];
  await world.settled(nodes, 120_000);
  oneCluster(test, world, nodes);
});

t.test(
  'founding: a founder that asks anew is given what an abandoned founding held',
  async (test) => {
    const world = new MemberWorld();
    const nodes = world.founders(5);
    const [founder, ...others] = nodes as [MemberNode, ...MemberNode[]];
    for (const [place, node] of others.entries()) {
      // Promised to one of two foundings of an earlier life, and not asking for a minute what became of it.
      const promise = {
        foundingId: `abandoned-${place % 2}`,
        founderId: founder.id,
        founderName: founder.name,
        founderAddress: { host: founder.name, port: 8300 },
      };
      const written = writePromise(node.kv, promiseText(promise));
      await world.run(100);
      await written;
      node.settings = { ...node.settings, timing: { gatherMs: 60_000 } };
    }
    await world.start(...others);
    await world.run(1_000);
    await world.start(founder);
    await world.run(20_000);
    test.ok(founder.hasLogged(/ founded /), founder.says);
    test.equal(others.filter((node) => node.hasLogged(/released from a promise/)).length, 4);
    await world.settled(nodes);
    oneCluster(test, world, nodes);
  },
);

t.test('founding: one server more than expected joins the group of the others', async (test) => {
  const world = new MemberWorld();
  const join = ['a', 'b', 'c', 'd'];
  const nodes = join.map((name) => world.node(name, { bootstrapExpect: 3, join }));
  await world.start(...nodes);
  await world.settled(nodes);
  await world.until('all vote', () => nodes[0]!.group === 'a b c d');
  oneCluster(test, world, nodes);
});

t.test('founding: different expectations found nothing, and say so', async (test) => {
  const world = new MemberWorld();
  const join = ['a', 'b', 'c'];
  const nodes = [2, 3, 3].map((bootstrapExpect, place) =>
    world.node(join[place]!, { bootstrapExpect, join }),
  );
  const [a, b, c] = nodes as [MemberNode, MemberNode, MemberNode];
  await world.start(...nodes);
  await world.run(20_000);
  test.match(a.says, /server [bc] expects 3 servers to begin with and this one 2/);
  test.match(b.says, /server a expects 2 servers to begin with and this one 3/);
  for (const node of nodes) test.equal(node.clusterId, undefined);
  await world.stop(a);
  a.settings = { bootstrapExpect: 3, join };
  await world.start(a);
  await world.settled(nodes);
  oneCluster(test, world, [a, b, c]);
});

t.test('founding: two servers of one name found nothing, and say so', async (test) => {
  const world = new MemberWorld();
  const a = world.node('a', { bootstrapExpect: 2, join: ['b'] });
  const b = world.node('b', { bootstrapExpect: 2, join: ['a'], shownName: 'a' });
  await world.start(a, b);
  await world.run(10_000);
  test.match(a.says, /two servers have the name a: node_name must differ/);
  test.equal(a.clusterId, undefined);
});

t.test('founding: servers that expect a group join one that has data already', async (test) => {
  const world = new MemberWorld();
  const [a] = (await world.group(1)) as [MemberNode];
  await world.writes(a, 5);
  const settings = { bootstrapExpect: 3, join: ['a', 'b', 'c'] };
  const b = world.node('b', settings);
  const c = world.node('c', settings);
  await world.start(b, c);
  await world.settled([a, b, c]);
  await world.checkEven([a, b, c]);
  oneCluster(test, world, [a, b, c]);
});

t.test('founding: a server that only joins says that there is nothing to join', async (test) => {
  const world = new MemberWorld();
  const a = world.node('a', { join: ['b'] });
  const b = world.node('b', { join: ['a'] });
  await world.start(a, b);
  await world.run(10_000);
  test.match(a.says, /only joins: to begin a new cluster, set bootstrap_expect/);
  test.match(await world.refusal(a.up.propose(Buffer.from('x'))), /only joins/);
  test.match(await world.refusal(a.up.readBarrier()), /only joins/);
  test.equal(a.up.status().lastIndex, 0);
});

t.test('founding: addresses that lead to two clusters are told apart', async (test) => {
  const world = new MemberWorld();
  const a = world.node('a');
  const b = world.node('b');
  const c = world.node('c', { join: ['a', 'b'] });
  await world.start(a, b, c);
  await world.run(10_000);
  test.match(c.says, /lead to different clusters: (a|b) \(.*\), (a|b) \(/);
  test.equal(c.clusterId, undefined);
});

t.test('founding: whatever comes and goes, there is never a second group', async (test) => {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + RUNS; seed += 1) {
    const draw = streamOf(seed);
    const below = (count: number): number => Math.floor(draw() * count);
    const world = new MemberWorld(seed);
    const names = ['a', 'b', 'c', 'd', 'e'];
    // Any two foundings of three out of five would share a server.
    const nodes = names.map((name) => {
      const join = names.filter(() => draw() < 0.6);
      return world.node(name, { bootstrapExpect: 3, join });
    });
    world.net.delayMs = 1 + 20 * draw();
    await world.start(...nodes.filter(() => draw() < 0.8));
    for (let step = 0; step < 12; step += 1) {
      await world.run(below(400));
      const node = nodes[below(5)]!;
      if (!node.isUp) await world.start(node);
      else if (draw() < 0.5) world.crash(node, { lands: draw() < 0.5 });
      else world.cut([node], [nodes[below(5)]!]);
      if (draw() < 0.3) world.net.heal();
    }
    const early = new Set(nodes.flatMap(({ clusterId }) => clusterId ?? []));
    test.ok(early.size <= 1, `seed ${seed}: CONCLAVE_SEED=${seed} CONCLAVE_RUNS=1 shows it`);
    world.net.heal();
    for (const node of nodes) {
      if (node.isUp) await world.stop(node);
      node.settings = { bootstrapExpect: 3, join: names };
      await world.start(node);
    }
    await world.settled(nodes, 120_000);
    oneCluster(test, world, nodes);
  }
});

function promiseBy(founderId: string, foundingId: string): FoundingPromise {
  const founderAddress = { host: founderId, port: 8300 };
  return { foundingId, founderId, founderName: founderId, founderAddress };
}

t.test('identity: of promises that are asked for at once, one is given', async (test) => {
  const refused = { code: 'promised' };
  const kv = new MemoryKv();
  const identity = new Identity(kv, 'me');
  const first = identity.grant(promiseBy('a', 'x'));
  const own = identity.begin(promiseBy('me', 'z'));
  await test.rejects(identity.grant(promiseBy('b', 'y')), refused);
  await first;
  test.equal(await own, false, 'it is promised by now');
  await identity.grant(promiseBy('a', 'x'));
  test.equal(new Identity(kv.reopened(), 'me').given?.foundingId, 'x', 'it is on disk');
  const payloads = [Uint8Array.of(1)];
  test.equal(await identity.found({ clusterId: 'y', payloads }), false, 'not promised to that one');
  test.equal(await identity.join('y'), false, 'promised to another one');
  test.equal(await identity.release('y'), false);
  test.equal(await identity.found({ clusterId: 'x', payloads }), true);
  test.equal(identity.clusterId, 'x');
  await test.rejects(identity.grant(promiseBy('b', 'y')), { code: 'has-cluster' });
  test.equal(await identity.begin(promiseBy('me', 'z')), false);
  test.equal(await identity.join('y'), false);
  test.equal(new Identity(kv.reopened(), 'me').clusterId, 'x');
});

t.test('identity: a founder promises itself to nobody else, and can give up', async (test) => {
  const identity = new Identity(new MemoryKv(), 'me');
  test.equal(await identity.begin(promiseBy('me', 'z')), true);
  await test.rejects(identity.grant(promiseBy('a', 'x')), /about to found a cluster itself/);
  test.equal(identity.given, undefined);
  test.equal(await identity.release('z'), true);
  await identity.grant(promiseBy('a', 'x'));
  await identity.close();
  test.equal(await identity.release('x'), false, 'nothing is written any more');
});

function neighbour(number: number, expect: number, name = `n${number}`): Neighbour {
  const id = `0000000${number}-0000-4000-8000-000000000000`;
  const address = { host: name, port: 8300 };
  const record = { node: nodeNumberOf(id), id, name, address, httpAddress: '', version: '1' };
  return { record, expect, clusterId: '' };
}

t.test(
  'founding: the lowest of those who expect the same founds, with the next ones',
  async (test) => {
    const [one, two, three, four] = [1, 2, 3, 4].map((number) => neighbour(number, 3));
    const others = [four!, three!, two!];
    const step = foundingStep(one!, others);
    test.equal(step.kind, 'found');
    const founders = step.kind === 'found' ? step.founders.map(({ record }) => record.name) : [];
    test.same(founders, ['n1', 'n2', 'n3']);
    test.equal(foundingStep(two!, [one!, three!, four!]).kind, 'wait');
    test.equal(foundingStep(one!, [two!]).kind, 'wait');
    // One that only joins neither helps nor hinders.
    test.equal(foundingStep(one!, [two!, neighbour(5, 1)]).kind, 'wait');
    test.equal(foundingStep(one!, [two!, three!, neighbour(5, 1)]).kind, 'found');
    test.equal(foundingStep(one!, [two!, three!, neighbour(5, 2)]).kind, 'wait');
  },
);

t.test(
  'founding: only the founder releases, and whoever is in the cluster says that it is',
  async (test) => {
    const promise = {
      foundingId: 'x',
      founderId: 'f',
      founderName: 'founder',
      founderAddress: { host: 'h', port: 1 },
    };
    test.equal(fateOf('x', { clusterId: undefined, promise }), 'pending');
    test.equal(fateOf('x', { clusterId: 'x', promise: undefined }), 'founded');
    test.equal(fateOf('x', { clusterId: 'y', promise: undefined }), 'released');
    test.equal(fateOf('y', { clusterId: undefined, promise }), 'released');
    test.equal(isBinding('released', 'f', promise), true);
    test.equal(isBinding('released', 'g', promise), false);
    test.equal(isBinding('pending', 'g', promise), false);
    test.equal(isBinding('founded', 'g', promise), true);
  },
);

t.test('founding: a promise is written as it always was', async (test) => {
  const text = '[1,"x","f","founder","10.0.0.1",8300]';
  const promise = {
    foundingId: 'x',
    founderId: 'f',
    founderName: 'founder',
    founderAddress: { host: '10.0.0.1', port: 8300 },
  };
  test.equal(promiseText(promise), text);
  test.same(promiseOf(text), promise);
  for (const wrong of ['[2,"x","f","founder","h",1]', '[1,"x"]', '{}', '[1,"x","f","g","h","1"]']) {
    test.throws(() => promiseOf(wrong), wrong);
  }
});
