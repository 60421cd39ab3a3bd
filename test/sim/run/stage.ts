// What a run puts on its world: servers, the clients that fit them, and who looks after their membership.

import type { SitesWatch } from '../checks/sites-watch.ts';
import type { Violations } from '../checks/violations.ts';
import type { DecidingFault, FederationFault, MovingFault } from '../faults/fault-plan.ts';
import type { Workload } from '../workload/workload.ts';
import type { SimHost } from '../world/sim-host.ts';
import type { World } from '../world/world.ts';
import type { RunOptions } from './run-options.ts';
import type { SimGroup } from './sim-group.ts';
import type { Site } from './site.ts';

/** Changes who belongs to the group while clients are at work. */
export interface Keeper {
  begin(): void;
  /** Asks for nothing more. */
  stop(): void;
  readonly changeCount: number;
  /** Until then what it has asked for may still come about; left out: it does no harm. */
  readonly quietAtMs?: number;
}

/** Moves the primary from datacenter to datacenter, and decides which of them take part. */
export interface Mover {
  /** False where there is nobody to ask. */
  move(action: MovingFault | DecidingFault): boolean;
  /** Sees to it that one of the datacenters of these hosts is primary, and all follow it; never resolves. */
  settle(hosts: readonly SimHost[]): Promise<void>;
  /** Whether nothing is left to do for an operator about these hosts. */
  isSettled(hosts: readonly SimHost[]): boolean;
}

/** What is to be done where all disks of a datacenter, named by its number, are lost. */
export interface Emptying {
  mayEmpty(site: number): boolean;
  /** `isWitness`: where it may be one, it comes back as a witness. */
  onEmptied(site: number, isWitness: boolean): void;
}

/** Keeps copies of the disks of datacenters, named by their numbers, and puts them back. */
export interface Copying {
  mayCopy(site: number): boolean;
  /** All its servers are down. */
  copy(site: number): void;
  /** `mayBeAlone`: also while others are away. */
  mayPutBack(sites: readonly number[], mayBeAlone: boolean): boolean;
  /** Whether one that was put back lacks what others have: should it start anew meanwhile, it has to hear them. */
  isCatchingUp(): boolean;
  /** All their servers are down. Nothing else breaks until then. */
  putBack(sites: readonly number[], peaceUntilMs: number): void;
}

/** Removes two datacenters by force, by their numbers, that are lost at once. */
export interface Pairing {
  mayRemove(sites: readonly number[]): boolean;
  /** All their servers are down; `back` starts those of one. */
  remove(
    pair: Extract<FederationFault, { readonly kind: 'remove-two' }>,
    back: (site: number) => void,
  ): void;
}

export interface Stage {
  /** One for each datacenter. */
  readonly sites: readonly Site[];
  readonly group: SimGroup;
  readonly workload: Workload;
  readonly keeper: Keeper;
  readonly watch?: SitesWatch;
  readonly mover?: Mover;
  readonly emptying?: Emptying;
  readonly copying?: Copying;
  readonly pairing?: Pairing;
}

export interface StageParts {
  readonly world: World;
  readonly violations: Violations;
  readonly options: RunOptions;
}
