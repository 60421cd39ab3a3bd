// Who has more of a reign than the primary whose reign it is, or something of a later one: as their latest leader said
// when it asked for the log, or was asked how far it is. Known as long as that reign is the last one that this
// datacenter knows of, also behind a promise that has ended it.

import type { Clock } from '../../platform/clock.ts';
import { type GlobalCursor, isFurther } from '../global-log.ts';

export interface AheadFollower {
  readonly datacenter: string;
  readonly cursor: GlobalCursor;
}

/** The leader of a datacenter, and when it was heard, by the monotonic clock. */
export interface HeardLeader {
  readonly term: number;
  readonly heardAtMs: number;
}

/** How far a datacenter says that it is, and which epoch it has promised last, or was told of. */
export interface ToldPlace {
  readonly cursor: GlobalCursor;
  readonly maxEpoch: number;
}

export interface AheadFollowersOptions {
  readonly clock: Clock;
  readonly headSeq: () => number;
  /** Whose last leader was not heard for so long has no leader of that term any more. */
  readonly silentMs: number;
  readonly countMax: number;
}

interface Ahead extends HeardLeader {
  readonly cursor: GlobalCursor;
  /** It has something of a later reign than this primary's. */
  readonly isBeyond: boolean;
}

/** An answer does not say whose it is: whoever asks for the log says more. */
const UNKNOWN_TERM = 0;

export class AheadFollowers {
  readonly #options: AheadFollowersOptions;
  readonly #ahead = new Map<string, Ahead>();
  /** Those that answered, and know of nothing later. */
  readonly #told = new Set<string>();
  #epoch: number | undefined;
  #begunEpoch = 0;

  constructor(options: AheadFollowersOptions) {
    this.#options = options;
  }

  /** The last reign of which this datacenter knows is that one; undefined: none that it leads. */
  begin(epoch: number | undefined): void {
    if (epoch === this.#epoch) return;
    this.#epoch = epoch;
    this.#ahead.clear();
    this.#told.clear();
  }

  /**
   * How far the leader of that term is: what was said before counts no more, unless a later leader said it. Undefined:
   * it has nothing that could be further.
   */
  note(datacenter: string, term: number, cursor: GlobalCursor | undefined): void {
    const { clock, countMax, headSeq } = this.#options;
    const known = this.#ahead.get(datacenter);
    if (this.#epoch === undefined || (known && this.hasLaterLeader(known, term))) return;
    this.#ahead.delete(datacenter);
    if (cursor === undefined) return;
    const isBeyond = cursor.epoch > this.#epoch;
    if (isBeyond) this.#begunEpoch = Math.max(this.#begunEpoch, cursor.epoch);
    const isMore = isFurther(cursor, { epoch: this.#epoch, seq: headSeq() });
    if (!isMore || this.#ahead.size >= countMax) return;
    this.#ahead.set(datacenter, { cursor, term, heardAtMs: clock.monotonicMs(), isBeyond });
  }

  /** What a datacenter says that has not asked for the log in this reign: of several of its servers, if need be. */
  noteTelling(datacenter: string, places: readonly ToldPlace[]): void {
    const [first, ...others] = places;
    if (first === undefined) return;
    const furthest = others.reduce(
      (most, { cursor }) => (isFurther(cursor, most) ? cursor : most),
      first.cursor,
    );
    this.note(datacenter, UNKNOWN_TERM, furthest);
  }

  /** The same, where nobody of it is waited for any more. */
  noteTold(datacenter: string, places: readonly ToldPlace[]): void {
    this.noteTelling(datacenter, places);
    const epoch = this.#epoch;
    if (places.length === 0 || epoch === undefined) return;
    // Whoever is told of a later reign than this one has that looked into when it asks for the log.
    if (places.every(({ maxEpoch }) => maxEpoch <= epoch)) this.#told.add(datacenter);
  }

  /** Whether that one has told, in this reign, how far it is, and knew of nothing later. */
  hasTold(datacenter: string): boolean {
    return this.#told.has(datacenter);
  }

  /** Those that have something of a later reign, or those that have more of this one; who has most first. */
  having({ isBeyond }: Pick<Ahead, 'isBeyond'>): readonly AheadFollower[] {
    return [...this.#ahead]
      .filter(([, each]) => each.isBeyond === isBeyond)
      .map(([datacenter, { cursor }]) => ({ datacenter, cursor }))
      .sort(({ cursor: one }, { cursor: other }) => other.epoch - one.epoch || other.seq - one.seq);
  }

  /** The latest epoch of which somebody ever had something, so that no other reign takes its number; 0: of none. */
  get begunEpoch(): number {
    return this.#begunEpoch;
  }

  forget(datacenter: string): void {
    this.#ahead.delete(datacenter);
    this.#told.delete(datacenter);
  }

  /** Where data folders were put back to an earlier day, nobody of a later term is there any more. */
  hasLaterLeader(known: HeardLeader, term: number): boolean {
    const { clock, silentMs } = this.#options;
    return term < known.term && clock.monotonicMs() - known.heardAtMs <= silentMs;
  }
}
