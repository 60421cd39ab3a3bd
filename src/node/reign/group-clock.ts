// The time that a majority of the group's servers has come to. What a leader deletes because its time has passed is
// gone everywhere and for good, so its own clock, which may be ahead, does not decide that alone. It asks the others
// for theirs: whoever does not answer has not come to any time.

import type { Member } from '../../../cluster/member/group-member.ts';
import type { Clock } from '../../../cluster/platform/clock.ts';
import { quorumIndex } from '../../../cluster/raft/membership/quorum.ts';
import { tellsClocks } from '../../state/commands/feature-levels.ts';
import { decodePlain, encodePlain } from '../calls/plain-codec.ts';
import type { ClockWatch } from './clock-watch.ts';

/** The method by which every server tells the leader what its clock shows. */
export const CLOCK_METHOD = 'service.clock';

/** Who needs longer is asked again, at the next beat that finds something to delete. */
const ASK_MS = 1_000;
const NOTHING = new Uint8Array(0);

export interface GroupClockOptions {
  readonly member: Pick<Member<unknown>, 'node' | 'members' | 'groupRecord' | 'call'>;
  readonly clock: Clock;
  readonly clocks: Pick<ClockWatch, 'noteAgreed'>;
  /** The feature level that the group uses. */
  readonly level: () => number;
}

export class GroupClock {
  readonly #options: GroupClockOptions;

  constructor(options: GroupClockOptions) {
    this.#options = options;
  }

  /**
   * Milliseconds of the wall clock that a majority of the voters has come to, of both halves of a joint membership; 0
   * where fewer answer. While releases may run that cannot tell, the own clock decides. Never rejects.
   */
  async agreedMs(): Promise<number> {
    const { member, clock, clocks, level } = this.#options;
    if (!tellsClocks(level())) return clock.wallMs();
    const others = member.members().filter(({ isSelf, isAlive }) => !isSelf && isAlive);
    const told = new Map(
      await Promise.all(others.map(async ({ node }) => [node, await this.#ask(node)] as const)),
    );
    told.set(member.node, clock.wallMs());
    const agreedMs = quorumIndex(member.groupRecord().membership, (voter) => told.get(voter));
    if (agreedMs > 0) clocks.noteAgreed(agreedMs);
    return agreedMs;
  }

  /** The answer to another server that leads. */
  answer(): Uint8Array {
    return encodePlain(this.#options.clock.wallMs());
  }

  async #ask(node: number): Promise<number> {
    const request = { method: CLOCK_METHOD, payload: NOTHING, deadlineMs: ASK_MS, hops: 0 };
    try {
      const told = decodePlain(await this.#options.member.call(node, request));
      return Number.isSafeInteger(told) ? (told as number) : 0;
    } catch {
      return 0;
    }
  }
}
