// Changes of the group that this node proposes as its leader. The replica takes one at a time: a change
// that finds another one under way waits, and what it is, is said anew each time, of the group as it is
// then.

import type { Clock } from '../../platform/clock.ts';
import type { MembershipChange } from '../../raft/membership/membership-change.ts';
import type { GroupRecord } from '../../replica/group-record.ts';
import { GroupRefusal } from '../../replica/group-refusal.ts';
import type { GroupReplica } from '../../replica/group-replica.ts';
import type { MemberLimits, MemberTiming } from '../member-timing.ts';

export interface ChangesOptions {
  readonly replica: Pick<GroupReplica<unknown>, 'groupRecord' | 'proposeMembership'>;
  readonly clock: Clock;
  readonly timing: MemberTiming;
  readonly limits: MemberLimits;
}

/**
 * Looked at in the turn of the proposal, perhaps more than once; undefined when there is nothing to
 * change. May throw.
 */
export type MakeChange = (group: GroupRecord) => MembershipChange | undefined;

/** Between looks at whether the change that is under way is over. */
const RETRY_MS = 50;

export class Changes {
  readonly #options: ChangesOptions;
  #count = 0;

  constructor(options: ChangesOptions) {
    this.#options = options;
  }

  /**
   * Resolves when the change is applied and a quorum knows, with false when there was nothing to change.
   * Rejects with GroupRefusal or ReplicaError, or with what `make` throws.
   */
  async propose(make: MakeChange): Promise<boolean> {
    if (this.#count >= this.#options.limits.changesMax) {
      const says = `${this.#count} changes of the group wait already`;
      throw new GroupRefusal('change-in-flight', says);
    }
    this.#count += 1;
    try {
      return await this.#proposeInTurn(make);
    } finally {
      this.#count -= 1;
    }
  }

  async #proposeInTurn(make: MakeChange): Promise<boolean> {
    const { replica, clock, timing } = this.#options;
    const untilMs = clock.monotonicMs() + timing.changeWaitMs;
    for (;;) {
      const change = make(replica.groupRecord());
      if (change === undefined) return false;
      try {
        await replica.proposeMembership(change);
        return true;
      } catch (error) {
        const isInFlight = error instanceof GroupRefusal && error.code === 'change-in-flight';
        if (!isInFlight || clock.monotonicMs() >= untilMs) throw error;
      }
      await new Promise<void>((resolve) => {
        clock.after(RETRY_MS, resolve);
      });
    }
  }
}
