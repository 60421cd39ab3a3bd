// How the datacenters stand to each other, as one server knows it. The shapes are declared here because
// this floor lies below the service, which fills them in.

/** A place in the global log. */
export interface ShownPosition {
  readonly epoch: number;
  readonly seq: number;
}

/** As in headers and messages. */
export function positionText({ epoch, seq }: ShownPosition): string {
  return `${epoch}.${seq}`;
}

/**
 * `primary`: it writes. `live`: it has all that it was sent. `catching-up`: it takes in what it lacks.
 * `snapshot`: it takes in the whole state. `away`: there is no connection. `stopped`: it stands still
 * until somebody acts. `differs`: what it has is not what the primary has at the same place. `removed`: an operator
 * removed it. `unknown`: this server cannot know.
 */
export type DatacenterState =
  | 'primary'
  | 'live'
  | 'catching-up'
  | 'snapshot'
  | 'away'
  | 'stopped'
  | 'differs'
  | 'removed'
  | 'unknown';

export interface ShownDatacenter {
  readonly name: string;
  readonly isSelf: boolean;
  /** It votes, and has no objects. */
  readonly isWitness: boolean;
  readonly state: DatacenterState;
  /** What it has on disk, as far as this server knows. */
  readonly position: ShownPosition | undefined;
  /** What it lacks of the global log; undefined where this server cannot know. */
  readonly lagEntries: number | undefined;
  readonly lagBytes: number | undefined;
  /** Age of the oldest entry that it lacks; 0 when it lacks none. */
  readonly lagMs: number | undefined;
  /** Since it was heard of; undefined when never. */
  readonly lastContactMs: number | undefined;
  /** Wall clock of the last entry that it took, or of the last word that there is none. */
  readonly lastSuccessMs: number | undefined;
  readonly lastErrorMs: number | undefined;
  /** Empty: there was none. */
  readonly lastError: string;
  /** How often it was found to have what the primary has not, in this reign of the server's. */
  readonly differences: number;
  /**
   * Of one that was removed: the reign that it follows, where the others would have to yield to it, or could
   * not tell it from theirs, if they heard of it.
   */
  readonly rival: { readonly datacenter: string; readonly epoch: number } | undefined;
  /** Of one that was removed: that it has more of a reign of the primary than that one, which ends it at `end`. */
  readonly ahead: { readonly upTo: ShownPosition; readonly end: ShownPosition } | undefined;
}

export interface ShownFederation {
  readonly primary: { readonly datacenter: string; readonly epoch: number };
  /** The end of the global log, as far as this server knows. */
  readonly head: ShownPosition;
  /** Up to where a majority of datacenters has it; known to the leader of the primary. */
  readonly majority: ShownPosition | undefined;
  /**
   * Of policies, roles and tokens at the primary, when it was where this datacenter is; undefined where
   * nobody has told.
   */
  readonly tableIndexes: readonly number[] | undefined;
  /** The own one first. */
  readonly datacenters: readonly ShownDatacenter[];
}
