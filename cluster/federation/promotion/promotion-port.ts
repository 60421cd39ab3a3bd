// What promotion needs of the datacenter that it runs in: its state, and commands in its own group's log.
// Whether a promise may be given and an epoch may begin is decided there, when the command is applied.

import { RpcRefusal } from '../../transport/calls/rpc-error.ts';
import type { GlobalCursor, GlobalEntry } from '../global-log.ts';
import {
  type EpochStart,
  PROMOTION_REFUSAL,
  type PromiseAnswer,
  type PromiseAsk,
} from './promotion-frames.ts';
import { refused } from './promotion-refusal.ts';

export interface PromotionState {
  /** The reign that this datacenter knows of, and whose it is. */
  readonly epoch: number;
  readonly primary: string;
  /** Whether this datacenter may write global objects. */
  readonly isPrimary: boolean;
  readonly maxEpoch: number;
  /** Whom that epoch is promised to; undefined where it was only heard of. */
  readonly votedFor: string | undefined;
  readonly cursor: GlobalCursor;
  /** What it has beyond a fork is set apart and not the log's any more: a snapshot is waited for. */
  readonly isDiverged: boolean;
  /** It has a vote, and no objects. */
  readonly isWitness: boolean;
  /** The datacenters whose promises count. */
  readonly voters: readonly string[];
  /** Those that are listed as witnesses. */
  readonly witnesses: readonly string[];
  readonly epochs: readonly EpochStart[];
}

/**
 * Whom the last primary has promised a later epoch to, of which no entry has come: until one comes, nobody is
 * known to be primary. Undefined where it is not so.
 */
export function successorOf(
  datacenter: string,
  {
    epoch,
    primary,
    maxEpoch,
    votedFor,
  }: Pick<PromotionState, 'epoch' | 'primary' | 'maxEpoch' | 'votedFor'>,
): string | undefined {
  const isGivenAway = primary === datacenter && maxEpoch > epoch && votedFor !== datacenter;
  return isGivenAway ? votedFor : undefined;
}

/**
 * Whether the last primary has promised itself a later epoch, which has not begun: nobody is primary, and nobody else
 * can begin it.
 */
export function isRenewing(
  datacenter: string,
  { epoch, primary, maxEpoch, votedFor, isDiverged }: PromotionState,
): boolean {
  const isOwn = primary === datacenter && votedFor === datacenter && !isDiverged;
  return isOwn && maxEpoch > epoch;
}

/** Entries of another datacenter that follow the own last one. */
export interface RestBatch {
  /** That the own datacenter has promised to itself. */
  readonly epoch: number;
  readonly from: GlobalCursor;
  readonly entries: readonly GlobalEntry[];
  readonly to: GlobalCursor;
}

export interface EpochClaim {
  readonly epoch: number;
  /** Datacenters that promised, the own one left out. */
  readonly promises: readonly string[];
  /** An operator takes the loss of what others may have. */
  readonly isForced: boolean;
}

/** Whatever goes through the log rejects when this server does not lead, or cannot say what came of it. */
export interface PromotionPort {
  /** Undefined: there is no global log here. */
  state(): PromotionState | undefined;
  /**
   * Who could not read what that datacenter writes, or has more than this primary has to give, and what to do about
   * it; undefined: nobody is known.
   */
  leftBehindBy(datacenter: string): Promise<string | undefined>;
  /** This server leads its datacenter, and has applied what came before its reign. */
  isLeading(): boolean;
  /**
   * As far as the own log, which is at `cursor`, may come by what this server has taken and has not heard the end of,
   * be it entries or a snapshot that came whole; `cursor` where that leads no further.
   */
  mayReach(cursor: GlobalCursor): GlobalCursor;
  /** By the state as it is; nothing is promised. */
  mayPromise(ask: PromiseAsk): boolean;
  promise(ask: PromiseAsk): Promise<PromiseAnswer>;
  /** Whether it says that an archive took the place of all objects: nobody with objects takes that as an entry. */
  isRestore(entry: GlobalEntry): boolean;
  /** Resolves with how far the own log is. Rejects where the entries do not fit, too. */
  take(batch: RestBatch): Promise<GlobalCursor>;
  /** False: by the state it may not begin. */
  start(claim: EpochClaim): Promise<boolean>;
  /** A later reign is known: this datacenter is not primary any more, and sets apart what only it has. */
  fence(epochs: readonly EpochStart[]): Promise<void>;
  /**
   * The last place that the own chain shares with that of these epochs, which left it before the own last entry, and
   * from which the own datacenter can go on. Rejects with why not.
   */
  forkPlace(epochs: readonly EpochStart[]): Promise<GlobalCursor>;
  /**
   * Ends the own reign, sets apart what follows that place, and has the objects of that place again. Rejects as
   * `forkPlace` before anything has changed.
   */
  goBack(epochs: readonly EpochStart[]): Promise<void>;
  /** This leader takes no global writes until it is released. Gives what releases it. */
  seal(): () => void;
  /** Resolves with the place of the last write when all that were under way are over. */
  settled(): Promise<GlobalCursor>;
}

/** The state of the datacenter that this server leads. Throws PromotionRefusal where it does not. */
export function requireLeading(port: Pick<PromotionPort, 'state' | 'isLeading'>): PromotionState {
  if (!port.isLeading()) throw refused('this server does not lead its datacenter');
  const state = port.state();
  if (state === undefined) throw refused('there is no global log here yet');
  return state;
}

/** The same for another datacenter that asks. Throws RpcRefusal where this server does not lead it. */
export function requireAsked(
  datacenter: string,
  port: Pick<PromotionPort, 'state' | 'isLeading'>,
): PromotionState {
  const state = port.isLeading() ? port.state() : undefined;
  if (state !== undefined) return state;
  const says = `this server does not lead ${datacenter}, or it has no global log yet`;
  throw new RpcRefusal(PROMOTION_REFUSAL.notLeading, says);
}
