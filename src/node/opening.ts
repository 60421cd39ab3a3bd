// Whether this node can serve: it must belong to a group, and its state must have the built-in objects.
// To be ready it must besides know a leader, and have caught up once since its start with what that leader
// began its reign with. Why it cannot yet, or not any more, is told in words.

import type { MemberStanding } from '../../cluster/member/group-member.ts';
import type { Clock, Timer } from '../../cluster/platform/clock.ts';
import type { Logger } from '../../cluster/platform/logger.ts';
import { GoalWaiters } from '../service/goal-waiters.ts';

export interface OpeningOptions {
  readonly standing: () => MemberStanding;
  /** Gives what takes the listener away. */
  readonly onLeaderChanged: (listener: () => void) => () => void;
  /** Who makes the built-in objects: the leader, or, in a secondary, the leader of the primary. */
  readonly isPrimary: () => boolean;
  /** It has no objects to serve, and is ready without them when it has a place in the global log. */
  readonly isWitness: () => boolean;
  /** Whether anything of the global log has come here. */
  readonly hasGlobalLog: () => boolean;
  /** Why nothing comes from the primary, as far as this node knows. */
  readonly nothingComesBecause: () => string | undefined;
  /** Settings that the state overrules, in words: it serves, and is not ready before somebody has looked. */
  readonly overruledSettings: () => string | undefined;
  /** Whether the built-in objects are in the state of this node. */
  readonly hasBuiltins: () => boolean;
  /** Resolves when the state has what the present leader began its reign with; rejects when that fails. */
  readonly catchUp: () => Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** How often a node that is not open looks whether it can be, and an open one whether it still is. */
const LOOK_MS = 250;

const NOT_SET_UP = 'the leader has not made the built-in objects yet';
const WITNESS = 'this datacenter is a witness: it votes, and has no objects';
const NOTHING_CAME = 'nothing has come from the primary datacenter yet';

export class Opening {
  readonly #options: OpeningOptions;
  readonly #opened: Promise<void>;
  /** Those who wait until an operation can run here, or cannot for long. */
  readonly #waiters: GoalWaiters<undefined>;
  readonly #stopListening: () => void;
  #open: () => void = () => undefined;
  #closedReason: string | undefined = 'the server is starting';
  /** Whether only the built-in objects are missing: a leader makes them as soon as there is one. */
  #opensSoon = false;
  #hasCaughtUp = false;
  #isAsking = false;
  #timer: Timer | undefined;
  /** What the log was told last. */
  #told = '';

  constructor(options: OpeningOptions) {
    this.#options = options;
    this.#opened = new Promise((resolve) => {
      this.#open = resolve;
    });
    const { clock } = options;
    this.#waiters = new GoalWaiters({ clock, isReached: () => !this.#opensSoon });
    this.#stopListening = options.onLeaderChanged(() => this.look());
    this.#lookAgain();
  }

  /** Resolves when the node is ready for the first time; never when it is closed before. */
  get opened(): Promise<void> {
    return this.#opened;
  }

  /** Why no operation can run here; undefined when one can. Asked at every operation. */
  notOpenBecause(): string | undefined {
    return this.#closedReason;
  }

  /**
   * Resolves when operations can run here, and at the latest after `limitMs`; at once where that would not
   * help, because it is not the built-in objects that are missing.
   */
  async opens(limitMs: number): Promise<void> {
    await this.#waiters.reached(undefined, limitMs);
  }

  /** Whether this node has had, since its start, all that its leader began with. */
  get hasCaughtUp(): boolean {
    return this.#hasCaughtUp;
  }

  /** Why this node does not serve as it should, one sentence each. */
  notReadyReasons(): readonly string[] {
    const at = this.#options.standing();
    if (at.kind !== 'member') return [at.says];
    if (at.isDiskStalled) return ['the disk does not answer'];
    if (at.leader === undefined) return ['no leader is known'];
    if (!this.#hasCaughtUp) return ['the state has not caught up with the leader yet'];
    const overruled = this.#options.overruledSettings();
    if (this.#isAsOpenAsCanBe()) return overruled === undefined ? [] : [overruled];
    return [this.#closedReason === WITNESS ? this.#sayNothingCame() : (this.#closedReason ?? '')];
  }

  /** Something has changed. */
  look(): void {
    const { standing, hasBuiltins, isWitness } = this.#options;
    const at = standing();
    if (at.kind !== 'member') this.#closedReason = at.says;
    else if (isWitness()) this.#closedReason = WITNESS;
    else if (hasBuiltins()) this.#closedReason = undefined;
    else if (at.leader === undefined) this.#closedReason = 'No cluster leader';
    else this.#closedReason = this.#options.isPrimary() ? NOT_SET_UP : this.#sayNothingCame();
    this.#opensSoon = at.kind === 'member' && !isWitness() && this.#closedReason !== undefined;
    this.#waiters.onApplied();
    if (at.kind === 'member' && at.leader !== undefined) void this.#catchUp();
    if (this.#hasCaughtUp && this.#isAsOpenAsCanBe()) this.#open();
    this.#tell();
  }

  close(): void {
    this.#stopListening();
    this.#timer?.cancel();
    this.#opensSoon = false;
    this.#waiters.onApplied();
  }

  #isAsOpenAsCanBe(): boolean {
    const { hasGlobalLog } = this.#options;
    return this.#closedReason === WITNESS ? hasGlobalLog() : this.#closedReason === undefined;
  }

  #sayNothingCame(): string {
    const why = this.#options.nothingComesBecause();
    return why === undefined ? NOTHING_CAME : `${NOTHING_CAME}: ${why}`;
  }

  #tell(): void {
    const reasons = this.notReadyReasons();
    const told = reasons.length === 0 ? 'ready' : reasons.join();
    if (told === this.#told) return;
    this.#told = told;
    if (reasons.length === 0) this.#options.logger.info({}, 'ready');
    else this.#options.logger.info({ reasons }, 'not ready');
  }

  #lookAgain(): void {
    this.look();
    this.#timer = this.#options.clock.after(LOOK_MS, () => this.#lookAgain());
  }

  /** Once: later, each read asks for itself. */
  async #catchUp(): Promise<void> {
    if (this.#hasCaughtUp || this.#isAsking) return;
    this.#isAsking = true;
    try {
      await this.#options.catchUp();
      this.#hasCaughtUp = true;
    } catch {
      // The next look asks again.
    }
    this.#isAsking = false;
    if (this.#hasCaughtUp) this.look();
  }
}
