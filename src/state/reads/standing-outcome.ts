// Whether a remembered outcome still holds. What a primary wrote and no later one has is not there any
// more, so a repeat of the request must do it again instead of being told that it was done.

import { isOfLocalToken, type Outcome } from '../commands/outcome.ts';
import { standingOf } from '../global-log/chain.ts';
import type { Replication } from '../global-log/replication.ts';

/** Local tokens are on no log but their datacenter's own, and stay. */
export function stillHolds(replication: Replication | undefined, outcome: Outcome): boolean {
  if (replication === undefined || outcome.kind === 'refused') return true;
  const { answer, position } = outcome;
  if (isOfLocalToken(answer)) return true;
  // Its own chain still has what was set apart; of what is shared, those who went on without the fork can tell.
  if (replication.isDiverged) return false;
  return replication.epochs.length === 1 || standingOf(replication, position) !== 'lost';
}
