// Which commands change objects that every datacenter has. Only the primary takes them.

import { unreachable } from '../../../cluster/base/unreachable.ts';
import type { AccessorId } from '../../acl/ids.ts';
import type { Change } from '../commands/commands.ts';

/**
 * Whether only the primary may apply it. `isLocal` says of a token whether it is here and lives here alone:
 * one that is not here can only be the primary's to know.
 */
export function isGlobalChange(
  change: Change,
  isLocal: (accessorId: AccessorId) => boolean,
): boolean {
  switch (change.type) {
    case 'token.set':
      return !change.token.local;
    case 'token.delete':
      return !isLocal(change.accessorId);
    case 'policy.set':
    case 'policy.delete':
    case 'role.set':
    case 'role.delete':
    case 'auth-method.set':
    case 'auth-method.delete':
    case 'binding-rule.set':
    case 'binding-rule.delete':
    case 'namespace.set':
    case 'namespace.delete':
    case 'bootstrap':
    case 'ensure-builtins':
    case 'restore.begin':
    case 'restore.commit':
    case 'datacenters.set':
    case 'datacenter.remove':
    case 'datacenter.allow':
      return true;
    // Of the named tokens, those that are not this datacenter's own to delete are left out.
    case 'token.reap':
    case 'request-id.trim':
    case 'pending-login.set':
    case 'pending-login.delete':
    case 'restore.chunk':
    case 'restore.abandon':
    case 'global-log.begin':
    case 'global-log.apply':
    case 'global-log.trim':
    case 'global-snapshot.begin':
    case 'global-snapshot.chunk':
    case 'global-snapshot.carry':
    case 'global-snapshot.commit':
    case 'epoch.promise':
    case 'epoch.start':
    case 'epoch.fence':
    case 'divergent.discard':
    case 'federation.adopt':
    case 'divergent.drop':
    case 'request-id.forget':
    case 'level.raise':
      return false;
    default:
      return unreachable(change);
  }
}
