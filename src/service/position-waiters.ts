// Waits until this datacenter's state has reached a position of the global log, for reads that must
// not be older than something that the caller has seen elsewhere. A position that no entry leads to any
// more, because a later primary began before it, is never reached, and said to be lost at once.

import type { Clock } from '../../cluster/platform/clock.ts';
import { AclError } from '../acl/error.ts';
import { type PlaceStanding, standingOf } from '../state/global-log/chain.ts';
import { comparePlaces, type Position } from '../state/global-log/cursor.ts';
import type { StateView } from '../state/view.ts';
import { GoalWaiters } from './goal-waiters.ts';

/** How long a read waits for the position that it asks for. */
export const POSITION_WAIT_MS = 10_000;

type PositionView = Pick<StateView, 'position' | 'replication'>;

export class PositionWaiters {
  readonly #view: PositionView;
  readonly #waiters: GoalWaiters<Position>;

  constructor(view: PositionView, clock: Clock) {
    this.#view = view;
    const isReached = (wanted: Position): boolean => this.#standing(wanted) !== 'pending';
    this.#waiters = new GoalWaiters({ clock, isReached });
  }

  /** The state may have moved on. */
  onApplied(): void {
    this.#waiters.onApplied();
  }

  /** Resolves with whether the state came to it within `limitMs`; at once where it never will. */
  async arrives(wanted: Position, limitMs: number): Promise<boolean> {
    await this.#waiters.reached(wanted, limitMs);
    return this.#standing(wanted) === 'replicated';
  }

  /** Resolves at once when the state is there already. Rejects with 'wait-timeout'. */
  async reached(wanted: Position): Promise<void> {
    if (await this.arrives(wanted, POSITION_WAIT_MS)) return;
    if (this.#standing(wanted) === 'lost') throw this.#lost(wanted);
    throw new AclError(
      'wait-timeout',
      `Position ${textOf(wanted)} was not reached in time; this datacenter is at ${textOf(this.#view.position())}`,
    );
  }

  #standing(wanted: Position): PlaceStanding {
    const replication = this.#view.replication();
    if (replication !== undefined) return standingOf(replication, wanted);
    return comparePlaces(wanted, this.#view.position()) <= 0 ? 'replicated' : 'pending';
  }

  #lost(wanted: Position): AclError {
    const { epochs = [] } = this.#view.replication() ?? {};
    const next = epochs.find(({ epoch }) => epoch > wanted.epoch);
    const after = next && `${next.primary} began epoch ${next.epoch} behind ${next.startSeq - 1}`;
    return new AclError(
      'wait-timeout',
      `Position ${textOf(wanted)} is not in the global log any more: ${after}; this datacenter is at ${textOf(this.#view.position())}`,
    );
  }
}

function textOf({ epoch, seq }: Position): string {
  return `${epoch}.${seq}`;
}
