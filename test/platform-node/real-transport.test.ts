// Transports on the network of nodes, over real sockets: links inside a datacenter, calls between two.

import { connect } from 'node:net';
import t, { type Test } from 'tap';
import type { TlsTexts } from '../../cluster/platform/tls-in-use.ts';
import { openTransport } from '../../cluster/transport/open-transport.ts';
import type { Transport } from '../../cluster/transport/transport.ts';
import { openWsNet } from '../../src/platform-node/net/ws-net.ts';
import { systemClock } from '../../src/platform-node/system-clock.ts';
import { systemRandom } from '../../src/platform-node/system-random.ts';
import { closed, HERE, inUse, Log, MUTUAL, TIMEOUT_MS, until } from './nodes-on-sockets.ts';

interface RealNode {
  readonly log: Log;
  readonly transport: Transport;
  readonly closedLinks: number[];
}

async function openNode(
  test: Test,
  node: number,
  shown?: TlsTexts,
  datacenter = 'dc1',
): Promise<RealNode> {
  const log = new Log();
  const closedLinks: number[] = [];
  const transport = await openTransport({
    net: openWsNet({ tls: inUse(shown), clock: systemClock, logger: log.logger }),
    clock: systemClock,
    random: systemRandom,
    logger: log.logger,
    self: {
      node,
      id: systemRandom.uuid(),
      name: `node-${node}`,
      datacenter,
      version: '1.0.0',
      reads: 1,
    },
    uses: () => 1,
    clusterId: () => `cluster of ${datacenter}`,
    clusterKey: new Uint8Array(32).fill(9),
    listen: HERE,
    onMessage: () => undefined,
    onLinkClosed: (closed) => closedLinks.push(closed),
    serve: async ({ payload }) => payload,
  });
  test.teardown(() => transport.close());
  return { log, transport, closedLinks };
}

function isLinked({ transport }: RealNode): boolean {
  return transport.peers().every((peer) => peer.isLinked);
}

for (const tls of [undefined, MUTUAL]) {
  t.test(`transport: three nodes over real ${tls ? 'TLS' : 'sockets'}`, async (test) => {
    const nodes = await Promise.all([1, 2, 3].map((node) => openNode(test, node, tls)));
    const addresses = new Map(nodes.map(({ transport }, place) => [place + 1, transport.address]));
    for (const { transport } of nodes) transport.setPeers(addresses);
    await until(() => nodes.every(isLinked));
    const sizes = [0, 10, 100_000, 5_000_000];
    const answers = await Promise.all(
      nodes.flatMap(({ transport }, place) =>
        [1, 2, 3]
          .filter((to) => to !== place + 1)
          .flatMap((to) =>
            sizes.map((size) =>
              transport.call(to, {
                method: 'echo',
                payload: new Uint8Array(size),
                deadlineMs: TIMEOUT_MS,
                hops: 0,
              }),
            ),
          ),
      ),
    );
    test.same(
      answers.map(({ length }) => length),
      Array(6).fill(sizes).flat(),
    );
    // Garbage at the port of one.
    const { port } = nodes[0]!.transport.address;
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.end(Buffer.alloc(100_000, 0xfe));
    await closed(socket);
    test.ok(nodes.every(isLinked));
    await nodes[2]!.transport.close();
    await until(() => nodes[0]!.closedLinks.length + nodes[1]!.closedLinks.length === 2);
    test.same(
      nodes.map(({ closedLinks }) => closedLinks),
      [[3], [3], []],
    );
  });
}

for (const tls of [undefined, MUTUAL]) {
  t.test(`transport: two datacenters over real ${tls ? 'TLS' : 'sockets'}`, async (test) => {
    const near = await openNode(test, 1, tls);
    const far = await openNode(test, 2, tls, 'dc2');
    const payload = new Uint8Array(300_000).fill(7);
    const request = { method: 'echo', payload, deadlineMs: TIMEOUT_MS, hops: 0 };
    const answers = await Promise.all([
      near.transport.call(far.transport.address, request),
      far.transport.call(near.transport.address, request),
    ]);
    for (const answer of answers) test.equal(Buffer.compare(answer, payload), 0);
    test.same([near.transport.peers(), far.transport.peers()], [[], []], 'they do not link');
  });
}
