// Whoever follows the primary becomes one of the datacenters that all know and that count for majorities, one
// after the other. What is not allowed yet, because a majority has not the last change, or fails, is tried
// again soon.

import type { Clock, Timer } from '../../cluster/platform/clock.ts';
import type { Logger } from '../../cluster/platform/logger.ts';
import type { Datacenter } from '../state/global-log/replication.ts';
import type { StateMachine } from '../state/machine.ts';
import { type FollowingDeps, verdictOf } from './follow-primary.ts';

export interface EnlistingOptions {
  readonly machine: Pick<StateMachine, 'replication'>;
  readonly following: FollowingDeps;
  readonly logger: Logger;
  readonly clock: Pick<Clock, 'after'>;
  /** This server leads the primary. */
  readonly isLed: () => boolean;
  /** What a majority of datacenters has acknowledged. */
  readonly majoritySeq: () => number;
}

/** A majority has acknowledged in a round trip or two. */
const RETRY_MS = 250;

export class Enlisting {
  readonly #options: EnlistingOptions;
  /** Datacenters that asked this server for the global log, and whether they said that they are witnesses. */
  readonly #followers = new Map<string, boolean | undefined>();
  #isUnderWay = false;
  #retry: Timer | undefined;
  #isClosed = false;

  constructor(options: EnlistingOptions) {
    this.#options = options;
  }

  get followers(): readonly string[] {
    return [...this.#followers.keys()];
  }

  /** Whether it is a witness: undefined where it has not told, which changes nothing of what is known. */
  add(datacenter: string, isWitness: boolean | undefined): void {
    this.#followers.set(datacenter, isWitness);
  }

  /** An operator has removed it. */
  forget(datacenter: string): void {
    this.#followers.delete(datacenter);
  }

  /** Closing twice is harmless. */
  close(): void {
    this.#isClosed = true;
    this.#retry?.cancel();
  }

  /** Never rejects. */
  async look(): Promise<void> {
    const { clock, machine, isLed } = this.#options;
    const replication = machine.replication();
    if (this.#isClosed || this.#isUnderWay || !isLed()) return;
    const known = replication?.datacenters ?? [];
    const next = this.#nextAmong(known);
    if (replication === undefined || next === undefined) return;
    this.#isUnderWay = true;
    const others = known.filter(({ name }) => name !== next.name);
    await this.#enlist(
      next.name,
      [...others, next].sort((one, other) => (one.name < other.name ? -1 : 1)),
    );
    this.#isUnderWay = false;
    if (this.#isClosed) return;
    this.#retry?.cancel();
    this.#retry = clock.after(RETRY_MS, () => void this.look());
  }

  /** One that is not in the list, or is in it as something else than it says. */
  #nextAmong(known: readonly Datacenter[]): Datacenter | undefined {
    for (const [name, isWitness] of this.#followers) {
      const listed = known.find((each) => each.name === name);
      if (listed === undefined) return { name, isVoter: true, isWitness: isWitness === true };
      if (listed.isRemoved === true || isWitness === undefined) continue;
      if (listed.isWitness !== isWitness) return { ...listed, isWitness };
    }
    return undefined;
  }

  async #enlist(datacenter: string, datacenters: readonly Datacenter[]): Promise<void> {
    const { following, logger, majoritySeq: majority } = this.#options;
    try {
      const change = { type: 'datacenters.set', datacenters, majoritySeq: majority() } as const;
      const { verdict } = await verdictOf(following, change);
      if (verdict === 'applied') {
        logger.info({ datacenter }, 'a datacenter belongs to the federation');
      } else logger.debug({ datacenter, verdict }, 'a datacenter cannot be enlisted yet');
    } catch (cause) {
      logger.warn({ cause, datacenter }, 'a datacenter could not be enlisted yet');
    }
  }
}
