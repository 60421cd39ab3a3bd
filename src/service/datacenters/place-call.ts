// Where one call runs, by the table of operations and by what the state of this server says of the
// token that it is about. What is not in the state is looked for once more behind a read barrier before
// it counts as unknown: what was made a moment ago must not be looked for elsewhere.

import { AclError } from '../../acl/error.ts';
import { isGiven } from '../../acl/values/given.ts';
import { OPERATION_TABLE } from '../operation-table.ts';
import type { Asked, OperationName } from '../operations.ts';
import type { Service } from '../service.ts';
import { requireKnownDatacenter } from './known-datacenter.ts';
import { isOfToken, type Placement, placementOf } from './placement.ts';
import { tokenLocalityOf } from './token-locality.ts';

/** Whether every server answers it from its own state, wherever the primary is. */
export function isAnsweredHere({ name, call }: Asked<OperationName>): boolean {
  const { kind, scope, takesDatacenter } = OPERATION_TABLE[name];
  return kind === 'read' && scope === 'local' && !(takesDatacenter && isGiven(call.datacenter));
}

/**
 * `from` is the datacenter that sent the call; undefined when a client did. Throws, or rejects with,
 * 'no-such-datacenter', or 'unavailable' when a barrier is needed and cannot be passed.
 */
export function placeOfCall<Name extends OperationName>(
  service: Service,
  asked: Asked<Name>,
  from: string | undefined,
): Placement | Promise<Placement> {
  const { name, input, call } = asked;
  const { federation, settings } = service;
  const { datacenter: own } = settings;
  const facts = OPERATION_TABLE[name];
  const datacenter =
    facts.takesDatacenter && isGiven(call.datacenter) ? call.datacenter : undefined;
  if (datacenter !== undefined) requireKnownDatacenter(federation, datacenter);
  const isPrimary = federation.primary().datacenter === own;
  const look = (): Placement => {
    const isLocalToken = tokenLocalityOf(service, name, input, call);
    return placementOf(
      { facts, datacenter, isLocalToken, from },
      { datacenter: own, primaryDatacenter: federation.primary().datacenter },
    );
  };
  const isAlone = isPrimary && from === undefined;
  const isKnown =
    isAlone || !isOfToken(facts) || tokenLocalityOf(service, name, input, call) !== undefined;
  return isKnown ? look() : Promise.resolve(service.readBarrier()).then(look);
}

/** What the sender of a call is told that runs neither here nor, by way of here, elsewhere. */
export function refusalOfPlace(
  placement: Extract<Placement, { readonly kind: 'astray' | 'local-here' | 'ahead' }>,
  own: string,
): AclError {
  if (placement.kind === 'astray') {
    const text = `nothing was done: it was sent to datacenter ${own}, and ${placement.name} is the primary by now`;
    return new AclError('not-primary', text);
  }
  if (placement.kind === 'ahead') {
    const text = `nothing was done: the auth method makes tokens that are local, and it has not come to datacenter ${placement.name} yet, try again`;
    return new AclError('not-primary', text);
  }
  const text = `Permission denied: it is about a token that is local to datacenter ${own}: ask a server there`;
  return new AclError('permission-denied', text);
}
