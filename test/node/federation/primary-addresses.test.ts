// Where the primary is looked for.

import t from 'tap';
import {
  type KnownOfPrimary,
  primaryAddressesOf,
} from '../../../src/node/federation/calls/primary-addresses.ts';
import type { Replication } from '../../../src/state/global-log/replication.ts';

/** As dc1 looks for it: in which order it asks whom. */
function order(given: Partial<KnownOfPrimary>, votedFor?: string, maxEpochPromised = 0): string {
  const known: KnownOfPrimary = {
    ...{ datacenter: 'dc1', isPrimary: false, primary: { datacenter: 'dc2', epoch: 5 } },
    ...{ told: undefined, replication: { votedFor, maxEpochPromised } as Replication },
    addressesOf: (host) => [{ host, port: 1 }],
    ...given,
  };
  return primaryAddressesOf(known)
    .map(({ host }) => host)
    .join(' ');
}

t.test('primary: whoever is said to have begun the latest reign is asked first', (test) => {
  const told = (datacenter: string, epoch: number) => ({ datacenter, epoch, addresses: [] });
  test.equal(order({}), 'dc2');
  test.equal(order({ replication: undefined, told: told('dc3', 6) }), 'dc3 dc2');
  test.equal(order({ told: told('dc3', 6) }), 'dc3 dc2');
  test.equal(order({ told: told('dc3', 6) }, 'dc4', 7), 'dc4 dc3 dc2');
  test.equal(order({ told: told('dc3', 8) }, 'dc4', 7), 'dc3 dc4 dc2');
  test.equal(order({ told: told('dc3', 8) }, 'dc3', 7), 'dc3 dc2', 'each once');
  test.equal(order({ told: told('dc3', 5) }, 'dc4', 5), 'dc2', 'the own log counts for more');
  test.equal(order({ told: told('dc3', 4) }, 'dc4', 3), 'dc2', 'of what is over nobody is asked');
  test.end();
});

t.test('primary: who is none does not look for it among its own servers', (test) => {
  const primary = { datacenter: 'dc1', epoch: 5 };
  test.equal(order({ primary }, 'dc4', 6), 'dc4', 'it has promised a later reign');
  test.equal(order({ primary }, 'dc1', 6), '', 'its own next one');
  test.equal(order({ primary, isPrimary: true }, 'dc1', 5), 'dc1');
  test.end();
});
