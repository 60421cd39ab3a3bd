// A fault plan is data: what goes wrong, when, where and for how long. Each fault holds its own end, so
// any part of a plan is a plan, and one that fails can be made shorter.

/** Whom a fault strikes: a host by its number, or whoever leads at that moment, all or one datacenter. */
export type Target = number | 'leader' | LeaderOf;

/** Of a datacenter, by its number. */
export type LeaderOf = `leader of ${number}`;

/** Seen from the target: what does not come in, what does not go out, or both. */
export type Direction = 'in' | 'out' | 'both';

export type FaultAction =
  /** The process is killed, or the machine loses power. */
  | { readonly kind: 'crash'; readonly target: Target; readonly ending: 'process' | 'power' }
  /** All machines lose power at one moment, and come back one by one. */
  | { readonly kind: 'blackout'; readonly staggerMs: number }
  | { readonly kind: 'stop'; readonly target: Target }
  | { readonly kind: 'freeze'; readonly target: Target }
  | { readonly kind: 'isolate'; readonly target: Target; readonly direction: Direction }
  | { readonly kind: 'cut-link'; readonly from: number; readonly to: number }
  | { readonly kind: 'split'; readonly side: readonly number[]; readonly direction: Direction }
  /** Links of some are cut one by one, and healed in another order. */
  | {
      readonly kind: 'swizzle';
      readonly hosts: readonly number[];
      readonly healOrder: readonly number[];
    }
  | { readonly kind: 'slow-link'; readonly target: Target; readonly meanMs: number }
  | { readonly kind: 'lossy-link'; readonly target: Target; readonly rate: number }
  | { readonly kind: 'reset-links'; readonly target: Target }
  | { readonly kind: 'slow-disk'; readonly target: Target; readonly meanMs: number }
  /** Only the store of the state: it tidies itself up, while the log is written as ever. */
  | { readonly kind: 'slow-state'; readonly target: Target; readonly meanMs: number }
  | { readonly kind: 'freeze-disk'; readonly target: Target }
  | { readonly kind: 'full-disk'; readonly target: Target }
  | { readonly kind: 'step-clock'; readonly target: Target; readonly byMs: number }
  | { readonly kind: 'transfer'; readonly to: number }
  /** While it is down, its disk is damaged: it must refuse to start, or nothing must come of it. */
  | { readonly kind: 'rot-log'; readonly target: number }
  | { readonly kind: 'rot-state'; readonly target: number }
  | { readonly kind: 'hole'; readonly target: number }
  /** A new machine takes the place of one: empty disk, new identity. */
  | { readonly kind: 'replace'; readonly target: number }
  | FederationFault;

/** What befalls whole datacenters, by their numbers, and the lines between them. */
export type FederationFault =
  /** It does not hear the others, is not heard, or neither. */
  | { readonly kind: 'away'; readonly site: number; readonly direction: Direction }
  /** What one says does not reach the other one. */
  | { readonly kind: 'cut-wan'; readonly from: number; readonly to: number }
  | { readonly kind: 'slow-wan'; readonly site: number; readonly meanMs: number }
  | { readonly kind: 'reset-wan'; readonly site: number }
  | { readonly kind: 'site-down'; readonly site: number; readonly ending: 'process' | 'power' }
  /** Whichever of its servers is the first to take in entries, or a piece of a snapshot, is killed. */
  | {
      readonly kind: 'ambush';
      readonly site: number;
      readonly moment: 'entries' | 'snapshot';
      readonly ending: 'process' | 'power';
    }
  /** Of the global log on the disk of its leader, one entry reads otherwise: the last one, or so many before it. */
  | { readonly kind: 'misread-entry'; readonly site: number; readonly back: number }
  /** Of what comes to it from another datacenter, the first one has a bit changed on its way. */
  | {
      readonly kind: 'spoil';
      readonly site: number;
      readonly what: 'row' | 'request' | 'piece';
    }
  /**
   * All its servers lose their disks at one moment, and are started anew: another cluster under its name, or, with
   * other settings, a witness.
   */
  | { readonly kind: 'empty-site'; readonly site: number; readonly isWitness?: boolean }
  /** Its servers are stopped, and somebody keeps a copy of all their disks, in the place of an earlier one. */
  | { readonly kind: 'copy-site'; readonly site: number }
  /**
   * Its servers are stopped, and started with the disks of that copy; at the same moment those of another one; also
   * while others are away.
   */
  | {
      readonly kind: 'put-back-site';
      readonly site: number;
      readonly beside?: number;
      readonly mayBeAlone?: boolean;
    }
  /**
   * Both are lost at once, their servers down, and removed by force, one so long behind the other; so long behind that
   * they are let back, that one first.
   */
  | {
      readonly kind: 'remove-two';
      readonly sites: readonly [number, number];
      readonly betweenMs: number;
      readonly goneMs: number;
      readonly backFirst: number;
    }
  | DecidingFault
  | MovingFault;

/** What operators do about whole datacenters: no fault in itself, but at any moment. */
export type DecidingFault =
  | {
      readonly kind: 'remove-site' | 'allow-site';
      readonly site: number;
      readonly isForced?: boolean;
      /** By force also while somebody may be made the primary. */
      readonly isRushed?: boolean;
    }
  /** Of what was set apart in the datacenter, some is made again, and some forgotten. */
  | { readonly kind: 'settle-fork'; readonly site: number }
  /** An archive of the datacenter is taken, in the place of an earlier one. */
  | { readonly kind: 'save-archive'; readonly site: number }
  /** That one, or one that no server here wrote, made of it; or that of another datacenter. */
  | {
      readonly kind: 'restore-archive';
      readonly site: number;
      readonly madeOf?: 'federation' | 'before-the-log';
      readonly savedAt?: number;
    };

/** What operators do about the primary: as little a fault. */
export type MovingFault =
  | { readonly kind: 'hand-over'; readonly site: number }
  /** One, or two at once. */
  | { readonly kind: 'elect'; readonly sites: readonly number[] }
  | { readonly kind: 'force'; readonly site: number };

export type FaultKind = FaultAction['kind'];
export type FederationFaultKind = FederationFault['kind'];

export interface Fault {
  readonly atMs: number;
  /** Until it ends; of no meaning where nothing lasts. */
  readonly forMs: number;
  readonly action: FaultAction;
  /**
   * What it is a part of, where that can be left out of a run as a whole: what befalls datacenters that are removed
   * or lose all their disks, a server of an older release that is upgraded, archives that are restored, forks and
   * what is done about them, disks that are put back, also of two at once or while others are away, or one that is
   * removed by force while the primary is moved, archives that are none of this federation, or two that are removed by
   * force at once.
   */
  readonly of?:
    | 'exile'
    | 'upgrade'
    | 'restore'
    | 'fork'
    | 'put-back'
    | 'absence'
    | 'rush'
    | 'foreign'
    | 'pair';
}

export type FaultPlan = readonly Fault[];

/** One line. */
export function describeFault({ atMs, forMs, action }: Fault): string {
  const { kind, ...rest } = action;
  const details = Object.entries(rest).map(([name, value]) => `${name} ${String(value)}`);
  return `at ${Math.round(atMs)} ms for ${Math.round(forMs)} ms: ${[kind, ...details].join(', ')}`;
}
