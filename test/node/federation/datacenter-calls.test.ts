// Who may ask and be asked between datacenters: the cluster that has the name, and nobody of another federation.

import t from 'tap';
import type {
  RpcCall,
  RpcCaller,
  RpcRequest,
  RpcServer,
} from '../../../cluster/transport/transport.ts';
import { DatacenterCalls } from '../../../src/node/federation/calls/datacenter-calls.ts';

const ADDRESS = { host: 'there', port: 1 };
const CALLER: RpcCaller = {
  ...{ node: 2, id: 'id', name: 'server', version: '1', reads: 4, remote: 'there:1' },
  ...{ datacenter: 'dc2', clusterId: 'two', federationId: 'fed' },
};

function theCalls() {
  const known: { clusterId: string | undefined; federationId: string; isFollowed: boolean } = {
    ...{ clusterId: 'two', federationId: 'fed', isFollowed: false },
  };
  const served = new Map<string, RpcServer>();
  const asked: RpcCall[] = [];
  const calls = new DatacenterCalls({
    datacenter: 'dc1',
    federationId: () => known.federationId,
    view: () => ({
      clusterIdOf: (datacenter) => (datacenter === 'dc2' ? known.clusterId : undefined),
      isFollowed: (datacenter) => datacenter === 'dc2' && known.isFollowed,
      isRemoved: () => false,
    }),
    overhear: () => undefined,
    member: {
      serve: (method, handler) => served.set(method, handler),
      call: async (_to, request) => {
        asked.push(request);
        return new Uint8Array(0);
      },
    },
  });
  const request = { method: 'test', payload: new Uint8Array(0), deadlineMs: 1, hops: 0 };
  /** Why it refuses whom it would ask; undefined: it asks. */
  const refusal = async (
    line: 'call' | 'callFollowed',
    given: Partial<RpcCaller> = {},
  ): Promise<string | undefined> => {
    await calls[line](ADDRESS, request);
    return asked.at(-1)!.refuses!({ ...CALLER, ...given });
  };
  calls.serve('test', async () => Uint8Array.of(1));
  /** What it answers whoever asks. */
  const answer = async (given: Partial<RpcCaller> = {}): Promise<string> => {
    const from: RpcRequest['from'] = { ...CALLER, ...given };
    const answered = served.get('test')!({ ...request, from });
    return answered.then(
      () => 'answered',
      (error: Error & { code: string }) => `${error.code}: ${error.message}`,
    );
  };
  return { known, refusal, answer };
}

t.test(
  'calls: another cluster under the name of a datacenter is not asked or answered',
  async (t) => {
    const { known, refusal, answer } = theCalls();
    t.same([await refusal('call'), await answer()], [undefined, 'answered']);
    for (const clusterId of ['another', '']) {
      t.match(await refusal('call', { clusterId }), /^dc2 is cluster two here, not a/);
      t.match(await answer({ clusterId }), /^feed.stranger: dc2 is cluster two here, not a/);
    }
    t.equal(await refusal('call', { datacenter: 'dc1', clusterId: 'x' }), undefined, 'the own one');
    known.clusterId = undefined;
    const other = { clusterId: 'another' };
    t.same([await refusal('call', other), await answer(other)], [undefined, 'answered']);
  },
);

t.test('calls: whom others follow is asked, and its word counts for nothing else', async (t) => {
  const { known, refusal, answer } = theCalls();
  const other = { clusterId: 'another' };
  t.match(await refusal('callFollowed', other), /^dc2 is cluster two/);
  known.isFollowed = true;
  t.equal(await refusal('callFollowed', other), undefined);
  t.match(await refusal('call', other), /^dc2 is cluster two/);
  t.match(await answer(other), /^feed.stranger/);
});

t.test('calls: another federation is known by what is known now, not as it was', async (t) => {
  const { known, refusal, answer } = theCalls();
  known.federationId = '';
  const other = { federationId: 'other' };
  t.same([await refusal('call', other), await answer(other)], [undefined, 'answered']);
  known.federationId = 'fed';
  for (const line of ['call', 'callFollowed'] as const) {
    t.match(await refusal(line, other), /^dc2 is of federation other, dc1 of fed$/);
  }
  t.match(await answer(other), /^feed.stranger: dc2 is of federation other, dc1 of fed$/);
  t.equal(await answer({ federationId: '' }), 'answered', 'it may join');
});
