// What a server is in the federation, by what the state of its datacenter says.

import t from 'tap';
import { feedStandingOf } from '../../../src/node/federation/federation-role.ts';
import type { Datacenter, Replication } from '../../../src/state/global-log/replication.ts';

const listed = (name: string, given: Partial<Datacenter> = {}): Datacenter => ({
  ...{ name, isVoter: true, isWitness: false },
  ...given,
});

const AT: Replication = {
  ...{ datacenter: 'dc1', federationId: 'fed', maxEpochPromised: 2, votedFor: 'dc1' },
  ...{ cursor: { epoch: 2, seq: 9, hash: new Uint8Array(32) }, isDiverged: false },
  epochs: [{ epoch: 2, startSeq: 5, startHash: new Uint8Array(32), primary: 'dc1' }],
  datacenters: [
    listed('dc1'),
    listed('dc2', { isWitness: true }),
    listed('dc3', { isVoter: false, isRemoved: true }),
  ],
} as Partial<Replication> as Replication;

const OWN = {
  replication: AT,
  isReigning: true,
  level: 8,
  datacenters: ['dc1', 'dc2', 'dc4'],
  primaryAddresses: () => [{ host: '10.0.0.7', port: 8300 }],
};

t.test('feed: whoever leads the primary says who counts, and who is given nothing', async (t) => {
  t.same(feedStandingOf(OWN), {
    ...{ kind: 'primary', federationId: 'fed', epoch: 2, epochStartSeq: 5, level: 8 },
    ...{ voters: ['dc1', 'dc2'], witnesses: ['dc2'], joining: ['dc4'], removed: ['dc3'] },
  });
});

t.test('feed: everybody else says where it is to be had, and why not here', async (t) => {
  const addresses = OWN.primaryAddresses();
  const elsewhere = { kind: 'elsewhere', addresses };
  t.same(feedStandingOf({ ...OWN, replication: undefined }), {
    ...elsewhere,
    says: 'this datacenter has no global log yet',
  });
  t.same(feedStandingOf({ ...OWN, isReigning: false }), {
    ...elsewhere,
    says: 'another server leads the primary',
  });
  const outrun = { ...AT, maxEpochPromised: 3, votedFor: 'dc2' };
  const ended = { federationId: 'fed', epoch: 2 };
  const says = 'the primary is dc1';
  t.same(feedStandingOf({ ...OWN, replication: outrun }), { ...elsewhere, says, ended });
  t.same(feedStandingOf({ ...OWN, replication: outrun, isReigning: false }), {
    ...elsewhere,
    says,
  });
});
