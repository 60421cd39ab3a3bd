// Whom other datacenters follow, and by whom it is counted what they have.

import t from 'tap';
import { feedStandingOf } from '../../../src/node/federation/federation-role.ts';
import type { Datacenter, Replication } from '../../../src/state/global-log/replication.ts';

const LISTED: readonly Datacenter[] = [
  { name: 'dc1', isVoter: true, isWitness: false },
  { name: 'dc2', isVoter: true, isWitness: true },
  { name: 'dc3', isVoter: false, isWitness: false, isRemoved: true },
];

interface Given extends Replication {
  readonly isReigning: boolean;
}

function standing({ isReigning = true, ...given }: Partial<Given>) {
  const epochs = [{ epoch: 4, startSeq: 7, startHash: new Uint8Array(32), primary: 'dc1' }];
  const log = { datacenter: 'dc1', federationId: 'f', epochs, maxEpochPromised: 4 };
  return feedStandingOf({
    replication: { ...log, isDiverged: false, datacenters: LISTED, ...given } as Replication,
    ...{
      isReigning,
      level: 3,
      datacenters: ['dc1', 'dc2', 'dc4'],
      primaryAddresses: () => [],
    },
  });
}

t.test('standing: a primary says who counts, and who is given nothing', (test) => {
  const counted = {
    voters: ['dc1', 'dc2'],
    witnesses: ['dc2'],
    joining: ['dc4'],
    removed: ['dc3'],
  };
  test.same(standing({}), {
    ...{ kind: 'primary', federationId: 'f', epoch: 4, epochStartSeq: 7, level: 3 },
    ...counted,
  });
  const datacenters = LISTED.slice(0, 2);
  test.match(standing({ datacenters }), { ...counted, removed: [] });
  test.end();
});

t.test('standing: only whoever leads it says that its reign has ended', (test) => {
  const ended = { federationId: 'f', epoch: 4 };
  const promised = { maxEpochPromised: 5, votedFor: 'dc2' };
  test.same(standing(promised), {
    ...{ kind: 'elsewhere', addresses: [], says: 'the primary is dc1', ended },
  });
  test.notOk('ended' in standing({ ...promised, isReigning: false }));
  test.notOk('ended' in standing({ datacenter: 'dc2' }), 'it was never its own');
  test.match(standing({ isReigning: false }), { says: 'another server leads the primary' });
  const noLog = {
    ...{ isReigning: true, level: 3, datacenters: [] },
    primaryAddresses: () => [],
  };
  test.same(feedStandingOf({ ...noLog, replication: undefined }), {
    ...{ kind: 'elsewhere', addresses: [], says: 'this datacenter has no global log yet' },
  });
  test.end();
});
