// The other datacenters as the service sees them: who they are, which one writes what all share, how a
// call gets there, and how far they are with it. Declared here, where it is used; src/node fills it in.

import { AclError } from '../../acl/error.ts';
import type { ShownFederation } from '../../api/render/shown-federation.ts';
import type { Position } from '../../state/global-log/cursor.ts';
import type { AckLevel, Call } from '../call.ts';
import type { WatchTarget } from '../views.ts';

/** Whose writes of global objects count. */
export interface Primacy {
  readonly datacenter: string;
  readonly epoch: number;
}

/** A call on its way to another datacenter, as plain data. */
export interface Errand {
  /** Of the operation: whoever answers looks whether there is one. */
  readonly name: string;
  readonly input: unknown;
  readonly call: Call;
}

export interface WaitThere {
  readonly target: WatchTarget;
  readonly index: number;
  readonly timeoutMs: number;
  readonly cancel: AbortSignal;
}

export interface Federation {
  /** Every datacenter that a request may name, the own one first. */
  datacenters(): readonly string[];
  /** As the state of this datacenter has it. */
  primary(): Primacy;
  /** At a leader: why what all share may not be written here now; undefined where it may. */
  closedBecause(): AclError | undefined;
  /**
   * Runs it in another datacenter, by any of its servers: one try. Rejects with DatacenterAway or
   * LeaderAway when nothing was done, with 'outcome-unknown' when that is not known, else with what is
   * refused there.
   */
  run(datacenter: string, errand: Errand): Promise<unknown>;
  /** Resolves when `target` may have changed there since `index`. Rejects as `run`. */
  waitForChange(datacenter: string, wait: WaitThere): Promise<void>;
  /**
   * At the leader of the primary: the level that a position has come to, as soon as it is `wanted`, or
   * when the time is over.
   */
  acknowledged(position: Position, wanted: AckLevel, limitMs: number): Promise<AckLevel>;
  /**
   * At the leader of the primary: whether another voter may not have heard who was removed, or let back, and elect the
   * next primary with that one.
   */
  mayCountRemoved(): boolean;
  /** Whether whoever was removed, and is there, has had the time to say to this server what it has. */
  hasHeardRemoved(): boolean;
  /** What this server knows; its leader knows most. */
  status(): ShownFederation;
}

/** Nothing was done: no server of the datacenter could be asked. */
export class DatacenterAway extends AclError {
  constructor(datacenter: string, why: string, options?: { readonly cause?: unknown }) {
    const text = `Remote DC has no server currently reachable: ${datacenter}: ${why}`;
    super('unavailable', text, options);
  }
}
