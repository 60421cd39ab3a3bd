// How many datacenters have a write, at the leader of the primary: as many as were asked for, or those that
// are known to in the end. One time is given for all of the wait, also where the primary is moved meanwhile.

import type { FeedServer } from '../../../../cluster/federation/feed/feed-server.ts';
import type { Clock } from '../../../../cluster/platform/clock.ts';
import type { AckLevel } from '../../../service/call.ts';
import type { Position } from '../../../state/global-log/cursor.ts';
import type { StateMachine } from '../../../state/machine.ts';
import { requireKept } from './kept-by-successor.ts';

export interface AckingPrimary {
  readonly clock: Clock;
  readonly machine: Pick<StateMachine, 'replication'>;
  readonly feed: Pick<FeedServer, 'awaitAck' | 'acknowledgedSeq'>;
  /** Whether this datacenter is the primary still. */
  readonly isPrimary: () => boolean;
}

/** Rejects with 'outcome-unknown' when the primary was moved and it is not known whether the next one has it. */
export async function acknowledgedLevel(
  { clock, machine, feed, isPrimary }: AckingPrimary,
  position: Position,
  { wanted, limitMs }: { readonly wanted: AckLevel; readonly limitMs: number },
): Promise<AckLevel> {
  const deadlineMs = clock.monotonicMs() + limitMs;
  const { seq } = position;
  if (wanted === 'primary') return wanted;
  const result = await feed.awaitAck({ seq, level: wanted, timeoutMs: limitMs });
  if (result === 'reached') return wanted;
  if (!isPrimary()) await requireKept({ machine, clock }, position, deadlineMs);
  return feed.acknowledgedSeq('majority') >= seq ? 'majority' : 'primary';
}
