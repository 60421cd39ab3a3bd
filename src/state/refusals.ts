// Refusals that come from where a datacenter stands.

import { AclError } from '../acl/error.ts';
import { currentEpoch, primaryIn, type Replication } from './global-log/replication.ts';

/** Only the primary writes global objects; what is proposed elsewhere changes nothing. */
export function notPrimary(replication: Replication): AclError {
  const { datacenter, maxEpochPromised } = replication;
  const { epoch } = currentEpoch(replication);
  const primary = primaryIn(replication);
  const known =
    epoch === maxEpochPromised && primary !== datacenter
      ? `the primary is ${primary}`
      : `epoch ${maxEpochPromised} is promised or has begun`;
  return new AclError(
    'not-primary',
    `Nothing was written: datacenter ${datacenter} is not the primary (${known})`,
  );
}
