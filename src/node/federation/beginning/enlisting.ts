// Whoever follows the primary becomes one of the datacenters that all know and that count for majorities, one
// after the other, and their list says which cluster has each name. What is not allowed yet, because a majority has
// not the last change, or fails, is tried again soon.

import type { Clock, Timer } from '../../../../cluster/platform/clock.ts';
import type { Logger } from '../../../../cluster/platform/logger.ts';
import { LeaderAway } from '../../../service/remote.ts';
import { namesClusters } from '../../../state/commands/feature-levels.ts';
import { mayChangeDatacenters } from '../../../state/global-log/election.ts';
import type { Datacenter } from '../../../state/global-log/replication.ts';
import type { StateMachine } from '../../../state/machine.ts';
import { type FollowingDeps, verdictOf } from '../ports/follow-primary.ts';

export interface EnlistingOptions {
  readonly machine: Pick<StateMachine, 'replication' | 'usesLevel'>;
  readonly following: FollowingDeps;
  readonly logger: Logger;
  readonly clock: Pick<Clock, 'after' | 'monotonicMs'>;
  /** The cluster that follows in this reign under that name, or the own one; undefined where none was heard yet. */
  readonly clusterIdOf: (datacenter: string) => string | undefined;
  /** This server leads the primary. */
  readonly isLed: () => boolean;
  /** What a majority of datacenters has acknowledged. */
  readonly majoritySeq: () => number;
}

/** A majority has acknowledged in a round trip or two. */
const RETRY_MS = 250;
/** A majority that is there has acknowledged long before, also one that takes in a snapshot of some size. */
const WAIT_TOLD_MS = 60_000;

export class Enlisting {
  readonly #options: EnlistingOptions;
  /**
   * Datacenters that this server has let in to follow the global log, and whether they said that they are witnesses.
   */
  readonly #followers = new Map<string, boolean | undefined>();
  #isUnderWay = false;
  /** The last proposal failed, and that was said: a gate may be closed for as long as somebody is away. */
  #isFailing = false;
  #retry: Timer | undefined;
  /** Since when a list has to wait for a majority, by the monotonic clock, and whether that was said. */
  #waiting: { readonly sinceMs: number; isTold: boolean } | undefined;
  #isClosed = false;

  constructor(options: EnlistingOptions) {
    this.#options = options;
  }

  /** Those of them that follow in this reign. */
  get followers(): readonly string[] {
    return [...this.#followers.keys()].filter((each) => this.#follows(each));
  }

  /** One that followed in an earlier reign may be gone for good. */
  #follows(datacenter: string): boolean {
    return this.#options.clusterIdOf(datacenter) !== undefined;
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
    const lists = this.#listsAfter(replication?.datacenters ?? []);
    if (lists.length === 0) this.#waiting = undefined;
    if (replication === undefined || lists.length === 0) return;
    this.#isUnderWay = true;
    for (const list of lists) if (!(await this.#hasToWait(list))) break;
    this.#isUnderWay = false;
    if (this.#isClosed) return;
    this.#retry?.cancel();
    this.#retry = clock.after(RETRY_MS, () => void this.look());
  }

  /** What the list is to become, and what it may become where that has to wait for a majority. */
  #listsAfter(known: readonly Datacenter[]): readonly (readonly Datacenter[])[] {
    // While nobody follows, nobody has to know whom to take for whom.
    if (this.#followers.size === 0) return [];
    const next = this.#nextAmong(known);
    const others = known.filter(({ name }) => name !== next?.name);
    const lists = next === undefined ? [known] : [[...others, next].sort(byName), known];
    return lists.map((list) => this.#named(list)).filter((list) => list !== known);
  }

  /** With the clusters known by now: one that the list names keeps its name. The list itself where none is new. */
  #named(list: readonly Datacenter[]): readonly Datacenter[] {
    const { clusterIdOf, machine } = this.#options;
    if (!namesClusters(machine.usesLevel)) return list;
    const named = list.map((each) => {
      const isOpen = each.clusterId === undefined && each.isRemoved !== true;
      const clusterId = (isOpen && clusterIdOf(each.name)) || undefined;
      return clusterId === undefined ? each : { ...each, clusterId };
    });
    return named.every((each, place) => each === list[place]) ? list : named;
  }

  /** One that is not in the list, or is in it as something else than it says. */
  #nextAmong(known: readonly Datacenter[]): Datacenter | undefined {
    for (const [name, isWitness] of this.#followers) {
      if (!this.#follows(name)) continue;
      const listed = known.find((each) => each.name === name);
      if (listed === undefined) return { name, isVoter: true, isWitness: isWitness === true };
      if (listed.isRemoved === true || isWitness === undefined) continue;
      if (listed.isWitness !== isWitness) return { ...listed, isWitness };
    }
    return undefined;
  }

  /** Says so. Whether that is not allowed yet. */
  async #hasToWait(datacenters: readonly Datacenter[]): Promise<boolean> {
    const { following, logger, machine } = this.#options;
    const list = datacenters.map(({ name }) => name);
    const majoritySeq = this.#options.majoritySeq();
    const replication = machine.replication();
    // It may stay so for as long as somebody is away: what would be refused is not put into the log each time.
    if (replication === undefined || !mayChangeDatacenters(replication, datacenters, majoritySeq)) {
      this.#tellOfWaiting(list, majoritySeq);
      return true;
    }
    this.#waiting = undefined;
    try {
      const change = { type: 'datacenters.set', datacenters, majoritySeq } as const;
      const { verdict } = await verdictOf(following, change);
      this.#isFailing = false;
      if (verdict === 'applied') logger.info({ list }, 'these datacenters are the federation');
      else logger.debug({ list, verdict }, 'a datacenter cannot be enlisted yet');
      return verdict !== 'applied';
    } catch (cause) {
      // The primary has just begun.
      if (cause instanceof LeaderAway) return true;
      logger[this.#isFailing ? 'debug' : 'warn'](
        { cause, list },
        'a datacenter could not be enlisted yet',
      );
      this.#isFailing = true;
      return false;
    }
  }

  /** Whoever waits follows, and looks as if all were well; but it has no vote, and counts for none. */
  #tellOfWaiting(list: readonly string[], majoritySeq: number): void {
    const { clock, logger } = this.#options;
    const nowMs = clock.monotonicMs();
    this.#waiting ??= { sinceMs: nowMs, isTold: false };
    if (this.#waiting.isTold || nowMs - this.#waiting.sinceMs < WAIT_TOLD_MS) return;
    this.#waiting.isTold = true;
    const says =
      'a datacenter has no vote yet: a majority of those that have one lacks the last change';
    logger.warn({ list, majoritySeq }, says);
  }
}

function byName({ name: one }: Datacenter, { name: other }: Datacenter): number {
  return one < other ? -1 : 1;
}
