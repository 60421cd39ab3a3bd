// A primary that is cut off cannot learn that another one has begun. So it takes no global write when it has
// heard too few datacenters for too long: what it would take may have to be set apart later. From three
// datacenters up; of two, each would stand still when the other one is away.

import type { Clock } from '../../../../cluster/platform/clock.ts';
import { AclError } from '../../../acl/error.ts';

export interface PrimaryLeaseOptions {
  readonly clock: Clock;
  /** The own one. */
  readonly datacenter: string;
  /** So long it goes on; 0: for ever. */
  readonly leaseMs: number;
  /** Those that count for majorities, the own one among them; undefined: this server does not lead the primary. */
  readonly voters: () => readonly string[] | undefined;
  /** When a datacenter was last heard in this reign, by the monotonic clock. */
  readonly heardAtMs: (datacenter: string) => number | undefined;
}

const VOTERS_MIN = 3;

export class PrimaryLease {
  readonly #options: PrimaryLeaseOptions;
  #beganAtMs: number;

  constructor(options: PrimaryLeaseOptions) {
    this.#options = options;
    this.#beganAtMs = options.clock.monotonicMs();
  }

  /** This server has begun to lead the primary: nobody can have been heard before. */
  begin(): void {
    this.#beganAtMs = this.#options.clock.monotonicMs();
  }

  /** Why nothing global may be written; undefined while the lease holds. */
  refusal(): AclError | undefined {
    const { clock, datacenter, leaseMs } = this.#options;
    const voters = this.#options.voters();
    if (leaseMs === 0 || voters === undefined || voters.length < VOTERS_MIN) return undefined;
    const aloneMs = clock.monotonicMs() - this.#majorityHeardAtMs(voters);
    if (aloneMs <= leaseMs) return undefined;
    const seconds = Math.floor(aloneMs / 1000);
    const text = `Nothing was written: datacenter ${datacenter} is the primary, but has not heard a majority of the ${voters.length} datacenters for ${seconds}s, and takes no global write until it does`;
    return new AclError('unavailable', text);
  }

  #majorityHeardAtMs(voters: readonly string[]): number {
    const { datacenter, heardAtMs } = this.#options;
    const heard = voters
      .filter((voter) => voter !== datacenter)
      .map((voter) => heardAtMs(voter) ?? this.#beganAtMs)
      .sort((left, right) => right - left);
    // With itself, so many others are a majority.
    const needed = Math.floor(voters.length / 2);
    return Math.max(this.#beganAtMs, heard[needed - 1] ?? this.#beganAtMs);
  }
}
