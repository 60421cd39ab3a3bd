// Whether there is a datacenter of the name that a request gives.

import { AclError } from '../../acl/error.ts';
import type { Federation } from './federation.ts';

/** Throws 'no-such-datacenter'; of one that was removed it says so: its name is not just mistyped. */
export function requireKnownDatacenter(
  federation: Pick<Federation, 'datacenters' | 'status'>,
  name: string,
): void {
  if (federation.datacenters().includes(name)) return;
  const { datacenters } = federation.status();
  const isRemoved = datacenters.some((each) => each.name === name && each.state === 'removed');
  const why = isRemoved ? `: an operator has removed datacenter ${name} from the federation` : '';
  throw new AclError('no-such-datacenter', `No path to datacenter${why}`);
}
