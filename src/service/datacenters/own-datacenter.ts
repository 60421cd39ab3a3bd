// What only the servers of a datacenter tell of it, and do in it: nothing of that is passed on.

import { AclError } from '../../acl/error.ts';

/** Refuses a request that names another datacenter, and says whether there is one of that name. */
export function requireOwnDatacenter(
  named: string | undefined,
  own: string,
  known: readonly string[],
): void {
  if (named === undefined || named === '' || named === own) return;
  if (!known.includes(named)) throw new AclError('no-such-datacenter', 'No path to datacenter');
  throw new AclError('invalid', `only a server of datacenter ${named} can do that: ask one`);
}
