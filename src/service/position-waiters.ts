// Waits until this datacenter's state has reached a position of the global log, for reads that must
// not be older than something that the caller has seen elsewhere.

import type { Clock } from '../../cluster/platform/clock.ts';
import { AclError } from '../acl/error.ts';
import { standingOf } from '../state/global-log/chain.ts';
import type { Position } from '../state/outcome.ts';
import type { StateView } from '../state/view.ts';
import { GoalWaiters } from './goal-waiters.ts';

/** How long a read waits for the position that it asks for. */
export const POSITION_WAIT_MS = 10_000;

export class PositionWaiters {
  readonly #view: Pick<StateView, 'position' | 'replication'>;
  readonly #waiters: GoalWaiters<Position>;

  constructor(view: Pick<StateView, 'position' | 'replication'>, clock: Clock) {
    this.#view = view;
    const isReached = (wanted: Position): boolean =>
      isBehind(wanted, view.position()) && !this.#isLost(wanted);
    this.#waiters = new GoalWaiters({ clock, isReached });
  }

  /** The state may have moved on. */
  onApplied(): void {
    this.#waiters.onApplied();
  }

  /** Resolves with whether the state came to it within `limitMs`. */
  arrives(wanted: Position, limitMs: number): Promise<boolean> {
    return this.#waiters.reached(wanted, limitMs);
  }

  /** Resolves at once when the state is there already. Rejects with 'wait-timeout'. */
  async reached(wanted: Position): Promise<void> {
    if (!this.#isLost(wanted) && (await this.arrives(wanted, POSITION_WAIT_MS))) return;
    const at = textOf(this.#view.position());
    const says = this.#isLost(wanted)
      ? `Position ${textOf(wanted)} is not in the global log any more: a later primary began without it; this datacenter is at ${at}`
      : `Position ${textOf(wanted)} was not reached in time; this datacenter is at ${at}`;
    throw new AclError('wait-timeout', says);
  }

  /** A later epoch began before it: no state here will ever have it. */
  #isLost(wanted: Position): boolean {
    const replication = this.#view.replication();
    return replication !== undefined && standingOf(replication, wanted) === 'lost';
  }
}

/** Whether a position lies at or before the current one. */
function isBehind(wanted: Position, current: Position): boolean {
  if (wanted.epoch !== current.epoch) return wanted.epoch < current.epoch;
  return wanted.seq <= current.seq;
}

function textOf({ epoch, seq }: Position): string {
  return `${epoch}.${seq}`;
}
