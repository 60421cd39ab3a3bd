// Moving the primary as src/node does it; declared here, where the rights to it are asked. Everything here
// speaks for this server alone, which must lead its datacenter.

import type { RequireStill } from '../../../cluster/base/require-still.ts';
import type { AclError } from '../../acl/error.ts';
import type { ShownMove } from '../../api/render/shown-primary.ts';

export type Moved = Pick<ShownMove, 'epoch' | 'promises' | 'position'>;

/**
 * All reject with 'unavailable' when nothing was changed, and with 'outcome-unknown' when some datacenters
 * may have promised something: trying again is the way on. Whoever moves it asks before anything is changed
 * whether that may still be, and rejects with what `requireAllowed` throws.
 */
export interface PrimaryPort {
  /** At the primary: that datacenter takes over with everything that this one has. */
  handOver(to: string, requireAllowed: RequireStill): Promise<Moved>;
  /** This datacenter becomes primary by a majority. */
  elect(requireAllowed: RequireStill): Promise<Moved>;
  /** That a forced move has to name. Throws as the others reject. */
  nextEpoch(): number;
  /** This datacenter becomes primary without a majority. */
  force(next: number, requireAllowed: RequireStill): Promise<Moved>;
  /** At the primary: why it takes no global write now. */
  closedBecause(): AclError | undefined;
  /**
   * Where this datacenter is not the primary: whoever began the last reign knows nothing of it any more, and what to do
   * about it. Undefined: that is not so, as far as is known.
   */
  lostReign(): string | undefined;
}
