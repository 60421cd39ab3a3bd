// A federation of one datacenter: everything happens here.

import { DatacenterAway, type Federation } from '../../../src/service/datacenters/federation.ts';
import type { Position } from '../../../src/state/global-log/cursor.ts';

export function loneDatacenter(name: string, position: () => Position): Federation {
  const nobody = (datacenter: string): Promise<never> =>
    Promise.reject(new DatacenterAway(datacenter, 'this datacenter knows no other'));
  const primary = () => ({ datacenter: name, epoch: position().epoch });
  return {
    datacenters: () => [name],
    primary,
    closedBecause: () => undefined,
    run: nobody,
    waitForChange: nobody,
    acknowledged: (_position, wanted) => Promise.resolve(wanted),
    mayCountRemoved: () => false,
    hasHeardRemoved: () => true,
    status: () => ({
      primary: primary(),
      tableIndexes: undefined,
      head: position(),
      majority: position(),
      datacenters: [
        {
          name,
          isSelf: true,
          isWitness: false,
          state: 'primary',
          position: position(),
          lagEntries: 0,
          lagBytes: 0,
          lagMs: 0,
          lastContactMs: 0,
          lastSuccessMs: undefined,
          lastErrorMs: undefined,
          lastError: '',
          differences: 0,
          rival: undefined,
          ahead: undefined,
        },
      ],
    }),
  };
}
