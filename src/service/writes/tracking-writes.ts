// What a service stands on, with a memory of what is under way.

import type { ServiceDeps } from '../deps.ts';
import { UnderWay } from './under-way.ts';

/** These, with all that is proposed through them remembered while it is under way. */
export function trackingWrites(
  deps: Omit<ServiceDeps, 'underWay'>,
  underWay: UnderWay = new UnderWay(deps.view),
): ServiceDeps {
  return {
    ...deps,
    underWay,
    propose: (command, reign) =>
      underWay.during(command.change, () => deps.propose(command, reign)),
  };
}
