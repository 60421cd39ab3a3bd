// What a datacenter that would begin a federation is told by those who answer, in virtual time.

import t from 'tap';
import {
  type DirectoryRecord,
  encodeRecords,
} from '../../../cluster/federation/directory/directory-frames.ts';
import type { NetAddress } from '../../../cluster/platform/net.ts';
import { RpcError } from '../../../cluster/transport/calls/rpc-error.ts';
import type { RpcCall, RpcCaller } from '../../../cluster/transport/transport.ts';
import { federationElsewhere } from '../../../src/node/federation/beginning/federation-elsewhere.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const WHO: RpcCaller = {
  ...{ node: 2, id: 'id', name: 'server', version: '1', reads: 4, remote: 'there:1' },
  ...{ datacenter: 'dc2', clusterId: 'two', federationId: '' },
};
const RECORD: DirectoryRecord = {
  ...{ datacenter: 'dc3', clusterId: 'three', federationId: 'fed', addresses: [], primary: 'dc3' },
  ...{ epoch: 4, term: 1, count: 1, ageMs: 0, level: 4 },
};
const UNREACHABLE = new RpcError('unreachable', 'nobody is there');

interface Seed {
  /** Left out: nobody is there. */
  readonly who?: Partial<RpcCaller>;
  readonly records?: readonly DirectoryRecord[];
  readonly error?: RpcError;
}

/** What comes of it, and how often each was asked. */
async function asking(
  seeds: readonly (Seed | ((round: number) => Seed))[],
  { hasWritten = false } = {},
) {
  const clock = new FakeClock();
  const counts = seeds.map(() => 0);
  const call = async ({ port }: NetAddress, request: RpcCall): Promise<Uint8Array> => {
    const given = seeds[port]!;
    const { who, records = [], error } = typeof given === 'function' ? given(counts[port]!) : given;
    counts[port] = counts[port]! + 1;
    if (who === undefined) throw UNREACHABLE;
    const refused = request.refuses?.({ ...WHO, ...who });
    if (refused !== undefined) throw new RpcError('unreachable', refused);
    if (error !== undefined) throw error;
    return encodeRecords(records);
  };
  const addresses = seeds.map((_, port) => ({ host: 'h', port }));
  let outcome: { readonly why: string | undefined } | undefined;
  const asked = federationElsewhere({
    ...{ clock, datacenter: 'dc1', hasWritten, seeds: addresses, call },
  });
  void asked.then((why) => {
    outcome = { why };
  });
  const beganAtMs = clock.monotonicMs();
  while (outcome === undefined) {
    for (let turn = 0; turn < 10; turn += 1) {
      await new Promise<void>((resolve) => {
        setImmediate(resolve);
      });
    }
    if (outcome === undefined) clock.advance(50);
  }
  return { why: outcome.why, counts, tookMs: clock.monotonicMs() - beganAtMs };
}

t.test('elsewhere: where nobody answers nobody is waited for, for long', async (t) => {
  const { why, counts, tookMs } = await asking([{}, { who: { datacenter: 'dc1' } }]);
  t.equal(why, undefined, 'the own servers are none of those');
  t.ok(tookMs >= 5_000 && tookMs < 6_000, `${tookMs} ms`);
  t.ok(counts[0]! > 5, 'they may be starting, too');
});

t.test('elsewhere: who answers and knows of none lets it begin at once', async (t) => {
  const own = { ...RECORD, datacenter: 'dc1' };
  const { why, tookMs } = await asking([{}, { who: {}, records: [own] }]);
  t.same([why, tookMs], [undefined, 0], 'what others know of the one before says nothing');
  const later = await asking([(round) => (round < 4 ? {} : { who: {} })]);
  t.equal(later.why, undefined);
  t.ok(later.tookMs < 2_000, `${later.tookMs} ms`);
});

t.test('elsewhere: one that is of a federation is enough, whatever the others say', async (t) => {
  const says =
    /^dc1 begins no global log of its own: dc2 is of federation fed, of which dc3 is the/;
  const both = {
    who: { federationId: 'fed' },
    records: [{ ...RECORD, epoch: 3, primary: 'dc9' }, RECORD],
  };
  t.match((await asking([{ who: {} }, both])).why, says);
  t.match((await asking([{ who: {}, records: [RECORD] }])).why, says, 'it has heard of one');
  const bare = await asking([(round) => (round < 2 ? {} : { who: { federationId: 'fed' } })]);
  t.match(
    bare.why,
    /dc2 is of federation fed\. To take part, set primary_datacenter to the present/,
  );
  const lost = { who: { federationId: 'fed' }, error: new RpcError('timeout', 'no answer') };
  t.match((await asking([lost])).why, /dc2 is of federation fed/, 'its handshake says so');
});

t.test('elsewhere: who is refused as an outsider hears what would let it in', async (t) => {
  for (const code of ['federation.removed', 'feed.stranger']) {
    const error = new RpcError('refused', code, { code, says: 'dc1 is cluster one here' });
    const { why } = await asking([{ who: { federationId: 'fed' }, error }]);
    t.match(why, /dc2 is of federation fed\. dc1 is cluster one here\. To take part, set/, code);
  }
  const busy = new RpcError('refused', 'busy', { code: 'transport.busy', says: 'busy' });
  const { why, tookMs } = await asking([{ who: {}, error: busy }]);
  t.equal(why, undefined);
  t.ok(tookMs >= 5_000, 'who cannot answer has said nothing');
});
