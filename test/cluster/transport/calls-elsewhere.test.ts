// Calls to an address: of other datacenters, and of servers that nobody knows yet. Who answers, who is refused,
// and what is kept of a connection.

import t from 'tap';
import type { RpcCaller } from '../../../cluster/transport/transport.ts';
import { aCall, addressOf, CLUSTER, type NodeGiven, Rig } from './rig.ts';

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
