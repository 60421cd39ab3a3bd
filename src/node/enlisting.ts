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
  /** Datacenters that asked this server for the global log. */
  readonly #followers = new Set<string>();
  #isUnderWay = false;
  #retry: Timer | undefined;
  #isClosed = false;

  constructor(options: EnlistingOptions) {
    this.#options = options;
  }

  get followers(): ReadonlySet<string> {
    return this.#followers;
  }

  add(datacenter: string): void {
    this.#followers.add(datacenter);
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
    const name = [...this.#followers].find((each) => known.every((other) => other.name !== each));
    if (replication === undefined || name === undefined) return;
    this.#isUnderWay = true;
    const added = [...known, { name, isVoter: true, isWitness: false }];
    await this.#enlist(
      name,
      added.sort((one, other) => (one.name < other.name ? -1 : 1)),
    );
    this.#isUnderWay = false;
    if (this.#isClosed) return;
    this.#retry?.cancel();
    this.#retry = clock.after(RETRY_MS, () => void this.look());
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
