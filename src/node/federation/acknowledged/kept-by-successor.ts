// What becomes of a write that waited to be acknowledged while the primary was moved: whether the next
// primary has it is known when its first entry is here, and until then it is not.

import type { Clock } from '../../../../cluster/platform/clock.ts';
import { AclError } from '../../../acl/error.ts';
import { standingOf } from '../../../state/global-log/chain.ts';
import type { Position } from '../../../state/global-log/cursor.ts';
import { currentEpoch } from '../../../state/global-log/replication.ts';
import type { StateMachine } from '../../../state/machine.ts';

const LOOK_MS = 100;

/** Rejects with 'outcome-unknown' when the next primary has not the entry, or it is not known by then. */
export async function requireKept(
  {
    machine,
    clock,
  }: { readonly machine: Pick<StateMachine, 'replication'>; readonly clock: Clock },
  position: Position,
  deadlineMs: number,
): Promise<void> {
  for (;;) {
    const replication = machine.replication();
    const isKnown = replication !== undefined && currentEpoch(replication).epoch > position.epoch;
    if (isKnown && standingOf(replication, position) === 'replicated') return;
    const leftMs = deadlineMs - clock.monotonicMs();
    if (isKnown || leftMs <= 0) throw notKnown(position);
    await new Promise<void>((resolve) => clock.after(Math.min(LOOK_MS, leftMs), resolve));
  }
}

function notKnown({ epoch, seq }: Position): AclError {
  return new AclError(
    'outcome-unknown',
    `whether the write at position ${epoch}.${seq} stands is not known: the primary was moved before others acknowledged it`,
  );
}
