// Which datacenters there are, at which addresses, and who each says is primary: what one server knows of it.
// Each datacenter's leader writes the record of its own; a record never changes on its way, a later one takes
// its place, and one that nobody renews is forgotten after a time that is the same wherever it has been.

import type { Clock } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logger.ts';
import type { NetAddress } from '../../platform/net.ts';
import { areTwoFederations } from '../refuse-outsiders.ts';
import { ADDRESSES_MAX, DATACENTERS_MAX, type DirectoryRecord } from './directory-frames.ts';

/** What the leader of the own datacenter says of it. */
export type OwnRecord = Pick<
  DirectoryRecord,
  'clusterId' | 'federationId' | 'addresses' | 'primary' | 'epoch' | 'term' | 'level'
>;

export interface DirectoryOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** The own one. */
  readonly datacenter: string;
  /** Empty while this server belongs to none. */
  readonly clusterId: () => string;
  /** Empty while none is known. */
  readonly federationId: () => string;
  /** An operator has removed it: what it says counts for nothing, and is remembered. */
  readonly isRemoved: (datacenter: string) => boolean;
  /** The cluster that has the name of another datacenter; undefined where nothing says so. */
  readonly clusterIdOf: (datacenter: string) => string | undefined;
  /** Others follow it in a reign that the own datacenter knows nothing of: it may be another cluster by then. */
  readonly isFollowed: (datacenter: string) => boolean;
  readonly forgetAfterMs: number;
}

export interface PrimaryClaim {
  readonly datacenter: string;
  readonly epoch: number;
  /** Of its servers; none while nobody has told. */
  readonly addresses: readonly NetAddress[];
}

/** A datacenter, and the reign that it follows. */
export type FollowedReign = Pick<PrimaryClaim, 'datacenter' | 'epoch'>;

/** The last reign, whose it was, and the earlier one that this one tells of since. */
export type ForgottenReign = FollowedReign & { readonly knownEpoch: number };

/** What a datacenter that was removed says, so long ago. */
export type RemovedClaim = Pick<PrimaryClaim, 'datacenter' | 'epoch'> & { readonly ageMs: number };

/** So long nobody waits for a record that its leader writes at each exchange. */
const OUTLIVED_MS = 15_000;
/** A record on its way does not age: copies of one may seem to be of times so far apart. */
const UNDER_WAY_MS = 1_000;

interface Known {
  readonly record: DirectoryRecord;
  /** By the own monotonic clock. */
  readonly writtenAtMs: number;
  /** When it was written first that the datacenter follows that reign. */
  readonly followsSinceMs: number;
}

/** A record that its own writer counts before the one that is known, and that came as one of later. */
interface Returned extends Pick<DirectoryRecord, 'clusterId' | 'term' | 'count'> {
  readonly heardAtMs: number;
}

export class Directory {
  readonly #options: DirectoryOptions;
  readonly #known = new Map<string, Known>();
  /** What those that were removed have said last; of who was let back, until it says more. */
  readonly #removed = new Map<string, Known>();
  /** The first of each writer, until another one takes a place. */
  readonly #returned = new Map<string, Returned>();
  #count = 0;

  constructor(options: DirectoryOptions) {
    this.#options = options;
  }

  /** By name. */
  records(): readonly DirectoryRecord[] {
    return this.#recordsIn(this.#known);
  }

  /** What those that were removed have said last: for nobody who does not know that they were. */
  recordsOfRemoved(): readonly DirectoryRecord[] {
    return this.#recordsIn(this.#stillRemoved());
  }

  /** Their names, in order. */
  datacenters(): readonly string[] {
    this.#forgetOld();
    return [...this.#known.keys()].sort();
  }

  /** Those that are of the own federation, as they say, in order; none while this datacenter is of none. */
  federated(): readonly string[] {
    const own = this.#options.federationId();
    const isOfOwn = (each: string): boolean => this.#known.get(each)?.record.federationId === own;
    return own === '' ? [] : this.datacenters().filter(isOfOwn);
  }

  /** None while nobody has told. */
  addressesOf(datacenter: string): readonly NetAddress[] {
    if (this.#isRemoved(datacenter)) return [];
    return this.#known.get(datacenter)?.record.addresses ?? [];
  }

  /** The level that its log uses; undefined while nobody has told. */
  levelOf(datacenter: string): number | undefined {
    return this.#known.get(datacenter)?.record.level;
  }

  /** Whether it is of no federation, and its own primary: it will not ask for the log of this one. */
  goesAlone(datacenter: string): boolean {
    const record = this.#known.get(datacenter)?.record;
    const isOutside = this.#options.federationId() !== '' && record?.federationId === '';
    return isOutside && record.primary === datacenter;
  }

  /** Of the latest reign that anybody has told of. Undefined while nobody has. */
  primary(): PrimaryClaim | undefined {
    this.#forgetOld();
    let latest: DirectoryRecord | undefined;
    for (const record of this.#reignsIn(this.#known)) {
      if (latest === undefined || isBefore(record, latest)) latest = record;
    }
    if (latest === undefined) return undefined;
    const { primary, epoch } = latest;
    return { datacenter: primary, epoch, addresses: this.addressesOf(primary) };
  }

  /** Whether another datacenter says that this one began a reign behind that epoch. */
  hasOutrun(datacenter: string, epoch: number): boolean {
    return this.followersBehind(datacenter, epoch).length > 0;
  }

  /** Others that say so, and the reign of each; the latest first. */
  followersBehind(datacenter: string, epoch: number): readonly FollowedReign[] {
    return this.#reignsIn(this.#known)
      .filter((record) => record.primary === datacenter && record.epoch > epoch)
      .filter((record) => record.datacenter !== datacenter)
      .map((record) => ({ datacenter: record.datacenter, epoch: record.epoch }))
      .sort((one, other) => Number(isBefore(other, one)) - Number(isBefore(one, other)));
  }

  /**
   * The last reign, where whoever began it has told of an earlier one since others followed it there: its data folders
   * are of an earlier day. Undefined: nobody is known to have lost it.
   */
  forgottenReign(): ForgottenReign | undefined {
    const last = this.primary();
    const beginner = last && this.#known.get(last.datacenter);
    if (last === undefined || beginner === undefined) return undefined;
    const { record, writtenAtMs } = beginner;
    if (record.epoch >= last.epoch || !this.#tellsOfReign(record)) return undefined;
    const isSince = [...this.#known.values()].some(({ record: each, followsSinceMs }) => {
      const isFollower = each.primary === last.datacenter && each.epoch === last.epoch;
      return isFollower && writtenAtMs - followsSinceMs > OUTLIVED_MS;
    });
    const { datacenter, epoch } = last;
    return isSince ? { datacenter, epoch, knownEpoch: record.epoch } : undefined;
  }

  /** Another datacenter that is said to have begun that epoch, too; undefined while nobody says so. */
  rivalOf(datacenter: string, epoch: number): string | undefined {
    this.#forgetOld();
    return rivalIn(this.#reignsIn(this.#known), datacenter, epoch);
  }

  /** Whether there is one by what those that were removed say, too. */
  isRivalled(datacenter: string, epoch: number): boolean {
    const isKnown = this.rivalOf(datacenter, epoch) !== undefined;
    return (
      isKnown || rivalIn(this.#reignsIn(this.#stillRemoved()), datacenter, epoch) !== undefined
    );
  }

  /** Whom a datacenter that was removed took for the primary when it was heard last; undefined: it was not heard. */
  claimOfRemoved(datacenter: string): RemovedClaim | undefined {
    this.#forgetOld();
    const known = this.#stillRemoved().get(datacenter);
    if (known === undefined || !this.#tellsOfReign(known.record)) return undefined;
    const { primary, epoch } = known.record;
    const ageMs = Math.max(0, this.#options.clock.monotonicMs() - known.writtenAtMs);
    return { datacenter: primary, epoch, ageMs };
  }

  /** Since a datacenter that was removed has said something, wherever that was heard; undefined: it has not. */
  silenceOfRemoved(datacenter: string): number | undefined {
    return this.recordsOfRemoved().find((each) => each.datacenter === datacenter)?.ageMs;
  }

  /** The latest that anybody has told of, those that were removed too; 0 while nobody has. */
  latestEpoch(): number {
    this.#forgetOld();
    const all = [this.#known, this.#stillRemoved()];
    return Math.max(...all.map((records) => latestIn(this.#reignsIn(records))));
  }

  /** The leader of the own datacenter writes its record anew. */
  write(own: OwnRecord): void {
    this.#count += 1;
    const addresses = own.addresses.slice(0, ADDRESSES_MAX);
    const { datacenter } = this.#options;
    this.#take({ ...own, addresses, datacenter, count: this.#count, ageMs: 0 });
  }

  /** What another server has told. Whether it says anything else than was known. */
  learn(records: readonly DirectoryRecord[]): boolean {
    const news = records.filter((record) => this.#isWelcome(record) && this.#take(record));
    return news.length > 0;
  }

  /** Whether it is news, and not just a sign of life. */
  #take(record: DirectoryRecord): boolean {
    const known = this.#known.get(record.datacenter);
    const told = this.#since(record);
    if (known?.record.clusterId === record.clusterId && !this.#isLater(told, known)) return false;
    const isOfSame =
      known?.record.primary === record.primary && known.record.epoch === record.epoch;
    this.#removed.delete(record.datacenter);
    this.#returned.delete(record.datacenter);
    this.#known.set(
      record.datacenter,
      isOfSame ? { ...told, followsSinceMs: known.followsSinceMs } : told,
    );
    return known === undefined || contentOf(record) !== contentOf(known.record);
  }

  #isWelcome(record: DirectoryRecord): boolean {
    const { clusterId, datacenter, federationId, forgetAfterMs } = this.#options;
    if (record.datacenter === '' || record.ageMs > forgetAfterMs) return false;
    const isStranger = this.#isStranger(record);
    if (this.#isRemoved(record.datacenter)) {
      if (!isStranger) this.#remember(this.#since(record));
      return false;
    }
    if (this.#wasSaidBefore(record)) return false;
    if (isStranger) {
      const known = this.#known.get(record.datacenter)?.record;
      if (known?.clusterId === record.clusterId) this.#known.delete(record.datacenter);
      return this.#refuse(
        record,
        `it is of federation ${record.federationId}, not of ${federationId()}`,
      );
    }
    const own = clusterId();
    // Of its own datacenter a server that is about to join hears before it is of that cluster.
    if (record.datacenter === datacenter && own === '') return false;
    if (record.datacenter === datacenter && record.clusterId !== own) {
      return this.#refuse(record, 'it has the name of this datacenter');
    }
    this.#forgetOld();
    const rightful = this.#rightfulOf(record.datacenter);
    if (rightful !== undefined && rightful !== record.clusterId) {
      return this.#refuse(record, `the datacenter of that name is cluster ${rightful}`);
    }
    return this.#known.has(record.datacenter) || this.#known.size < DATACENTERS_MAX;
  }

  /** As the log has it; where it says nothing, whoever came first. */
  #rightfulOf(datacenter: string): string | undefined {
    if (this.#options.isFollowed(datacenter)) return undefined;
    const { clusterIdOf } = this.#options;
    return clusterIdOf(datacenter) ?? this.#known.get(datacenter)?.record.clusterId;
  }

  /** The last word of it counts, of another cluster under its name too, whoever passes on an earlier one. */
  #remember(told: Known): void {
    const { datacenter } = told.record;
    const known = this.#removed.get(datacenter);
    if (known !== undefined && !this.#isLaterWord(told, known)) return;
    this.#returned.delete(datacenter);
    this.#removed.set(datacenter, told);
  }

  /**
   * By who was let back: others may not know that yet, and pass on what it said while it was removed, of a cluster
   * that is gone. Whom others follow they take at its word.
   */
  #wasSaidBefore(record: DirectoryRecord): boolean {
    const known = this.#removed.get(record.datacenter);
    if (known === undefined || this.#options.isFollowed(record.datacenter)) return false;
    return !this.#isLaterWord(this.#since(record), known);
  }

  /** Of two clusters under one name, whose terms tell nothing of each other, the one that spoke last. */
  #isLaterWord(told: Known, known: Known): boolean {
    const isOfSame = told.record.clusterId === known.record.clusterId;
    return isOfSame ? this.#isLater(told, known) : told.writtenAtMs >= known.writtenAtMs;
  }

  /**
   * By the term of who wrote it, and then by how often that one has. But whoever leads goes on writing: a record that
   * was not written anew for long is of nobody, and who writes with an earlier term then has data folders that were put
   * back. The age of a record is what others tell, and they may have stood still: one that is later by its age alone
   * shows with the next one that somebody writes it.
   */
  #isLater(told: Known, known: Known): boolean {
    const apartMs = told.writtenAtMs - known.writtenAtMs;
    if (isCountedBehind(told.record, known.record)) {
      const isOutlived = this.#options.clock.monotonicMs() - known.writtenAtMs > OUTLIVED_MS;
      return apartMs >= -OUTLIVED_MS || isOutlived;
    }
    return apartMs > UNDER_WAY_MS && this.#isWritten(told) && apartMs > OUTLIVED_MS;
  }

  /** Whether an earlier one of the same writer was heard before it was written: copies of one record never are so. */
  #isWritten({ record, writtenAtMs }: Known): boolean {
    const { clusterId, count, datacenter, term } = record;
    const first = this.#returned.get(datacenter);
    if (first?.clusterId !== clusterId || first.term !== term) {
      const heardAtMs = this.#options.clock.monotonicMs();
      this.#returned.set(datacenter, { clusterId, term, count, heardAtMs });
      return false;
    }
    return count > first.count && writtenAtMs > first.heardAtMs + UNDER_WAY_MS;
  }

  #stillRemoved(): ReadonlyMap<string, Known> {
    return new Map([...this.#removed].filter(([datacenter]) => this.#isRemoved(datacenter)));
  }

  #since(record: DirectoryRecord): Known {
    const writtenAtMs = this.#options.clock.monotonicMs() - record.ageMs;
    return { record, writtenAtMs, followsSinceMs: writtenAtMs };
  }

  #refuse({ datacenter, clusterId }: DirectoryRecord, why: string): false {
    this.#options.logger.warn({ datacenter, cluster: clusterId, why }, 'a datacenter is left out');
    return false;
  }

  #forgetOld(): void {
    const oldestMs = this.#options.clock.monotonicMs() - this.#options.forgetAfterMs;
    for (const [datacenter, known] of this.#known) {
      const { record, writtenAtMs } = known;
      const isRemoved = this.#isRemoved(datacenter);
      const isOver = writtenAtMs < oldestMs || isRemoved;
      if (isOver || this.#isStranger(record) || this.#isOther(record)) {
        this.#known.delete(datacenter);
      }
      // What it began nobody forgets with it.
      if (isRemoved) this.#remember(known);
    }
    for (const [datacenter, { record, writtenAtMs }] of this.#removed) {
      const isOver = writtenAtMs < oldestMs;
      if (isOver || this.#isStranger(record)) this.#removed.delete(datacenter);
    }
    for (const datacenter of this.#returned.keys()) {
      const isBeside = this.#known.has(datacenter) || this.#removed.has(datacenter);
      if (!isBeside) this.#returned.delete(datacenter);
    }
  }

  #recordsIn(all: ReadonlyMap<string, Known>): readonly DirectoryRecord[] {
    this.#forgetOld();
    const nowMs = this.#options.clock.monotonicMs();
    return [...all.values()]
      .map(({ record, writtenAtMs }) => ({ ...record, ageMs: Math.max(0, nowMs - writtenAtMs) }))
      .sort((left, right) => (left.datacenter < right.datacenter ? -1 : 1));
  }

  #reignsIn(all: ReadonlyMap<string, Known>): readonly DirectoryRecord[] {
    return [...all.values()].map(({ record }) => record).filter((each) => this.#tellsOfReign(each));
  }

  /**
   * Who is of no federation has a part in no reign of this one, whatever it says: it may go on alone with objects of an
   * archive, and their epoch.
   */
  #tellsOfReign({ primary, epoch, federationId }: DirectoryRecord): boolean {
    const own = this.#options.federationId();
    return primary !== '' && epoch > 0 && (own === '' || federationId === own);
  }

  /** It may have been heard while the own federation was not known yet. */
  #isStranger({ federationId }: DirectoryRecord): boolean {
    return areTwoFederations(this.#options.federationId(), federationId);
  }

  /** It was heard before the log said which cluster has the name. */
  #isOther({ datacenter, clusterId }: DirectoryRecord): boolean {
    const { clusterIdOf, isFollowed } = this.#options;
    if (datacenter === this.#options.datacenter) return false;
    const rightful = clusterIdOf(datacenter);
    return rightful !== undefined && rightful !== clusterId && !isFollowed(datacenter);
  }

  /** The own one speaks for itself, wherever it is refused. */
  #isRemoved(datacenter: string): boolean {
    return datacenter !== this.#options.datacenter && this.#options.isRemoved(datacenter);
  }
}

function latestIn(reigns: readonly DirectoryRecord[]): number {
  return reigns.reduce((latest, { epoch }) => Math.max(latest, epoch), 0);
}

function rivalIn(
  reigns: readonly DirectoryRecord[],
  datacenter: string,
  epoch: number,
): string | undefined {
  return reigns.find((each) => each.epoch === epoch && each.primary !== datacenter)?.primary;
}

/** Whose word counts first of who is primary: of the later epoch, and of two of one epoch by name. */
function isBefore(one: FollowedReign, other: FollowedReign): boolean {
  return one.epoch === other.epoch ? one.datacenter < other.datacenter : one.epoch > other.epoch;
}

/** In the order in which a datacenter counts what it writes. */
function isCountedBehind(one: DirectoryRecord, other: DirectoryRecord): boolean {
  return one.term === other.term ? one.count > other.count : one.term > other.term;
}

function contentOf(record: DirectoryRecord): string {
  const { clusterId, federationId, addresses, primary, epoch, level } = record;
  return JSON.stringify([clusterId, federationId, addresses, primary, epoch, level]);
}
