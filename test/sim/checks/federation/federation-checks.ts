// What must hold of several datacenters at every moment of a run, told from disks and frames. The names
// are those of docs/TESTING.md and of the design:
//   G1 epoch owner    one datacenter begins an epoch, at one place
//   G2 prefix chain   whatever a disk holds of the global log is of one chain
//   G3 no gap         a datacenter goes along the chain entry by entry, or over a snapshot, and the shared
//                     objects change only with it
//   G6 fenced         after a promise, nothing more is written in a lower epoch
//   G7 locality       nothing of a local token leaves its datacenter
//   G8 same state     the shared objects of a disk are those that the entries up to its place make
//   G12 snapshot      so they are, too, where they came in as a snapshot
//   G5 no silent loss what is said to be set apart is there, and what is said to be gone is not
//   G15 removed       who was removed takes nothing that is behind its removal, until it is allowed
//   G13 bounded       what is said to be kept of the log is there, and what diverged is not dropped
// Answers are judged at the end, by global-judge.ts; that heads become equal (G14) is the liveness of a run.

import type { KvWrite } from '../../../../cluster/platform/kv.ts';
import type { AuthMethodOrigin } from '../../../../src/acl/token.ts';
import { epochAt, forkOf } from '../../../../src/state/global-log/chain.ts';
import { comparePlaces, type Position } from '../../../../src/state/global-log/cursor.ts';
import { entryKey } from '../../../../src/state/global-log/global-log-writer.ts';
import {
  currentEpoch,
  type Datacenter,
  type EpochStart,
  type Replication,
} from '../../../../src/state/global-log/replication.ts';
import { decodeRecord } from '../../../../src/state/rows/layout/record-codec.ts';
import { idBytes, TOKENS } from '../../../../src/state/rows/objects/objects.ts';
import { ROW, rowKey } from '../../../../src/state/rows/tables.ts';
import { siteName } from '../../subject/datacenters-subject.ts';
import { isStateStore, stateStoreName } from '../../subject/subject.ts';
import { textOf } from '../../world/key-text.ts';
import type { SimStore } from '../../world/sim-disk.ts';
import type { SimHost } from '../../world/sim-host.ts';
import type { LeavingFrame } from '../../world/sim-net.ts';
import { logOn } from '../log-image.ts';
import type { SitesWatch } from '../sites-watch.ts';
import type { Violations } from '../violations.ts';
import { foreignCanary } from './canaries.ts';
import { type Behind, GlobalChain, type KnownEntry } from './global-chain.ts';
import { replicationIn, StateImage } from './state-image.ts';

/** One store, as it was after the last batch. */
interface Followed {
  readonly life: number;
  readonly image: StateImage;
  keyspace: number;
  replication: Replication | undefined;
  digest: string;
}

/** Corners that a long series of runs must have been in. */
export const MARKS = {
  snapshot: 'a snapshot of the primary became the state',
  gone: 'entries that nobody else has had been trimmed',
  restored: 'an archive became the state of the primary',
  back: 'a datacenter that had lost all its disks took part again',
  lostByPutBack: 'disks were put back, and entries were lost that nobody else had',
  caughtUp: 'a datacenter whose disks were put back has again what others had',
} as const;

/** Longer than a healed run takes. */
const ELECTED_WITHIN_MS = 600_000;

export interface FederationChecksOptions {
  readonly sites: readonly (readonly SimHost[])[];
  readonly violations: Violations;
  readonly nowMs: () => number;
  /** How long the global log is kept for those who are behind. */
  readonly logMaxAgeMs: number;
  /** Told of corners that a run has been in. */
  readonly mark: (name: string) => void;
}

export class FederationChecks implements SitesWatch {
  readonly chain = new GlobalChain();
  /** How often the objects of a disk were held against the entries. */
  comparedCount = 0;
  /** While others have not heard that two datacenters were removed by force. */
  mayLoseNobody = false;
  readonly #violations: Violations;
  readonly #sites: readonly (readonly SimHost[])[];
  readonly #nowMs: () => number;
  readonly #mark: (name: string) => void;
  readonly #logMaxAgeMs: number;
  readonly #placeByHost = new Map<string, number>();
  readonly #followed = new WeakMap<SimStore, Followed>();
  readonly #startByEpoch = new Map<number, EpochStart>();
  /** When all disks of a datacenter were lost last, in the time of the run, by its place. */
  readonly #emptiedAtMs = new Map<number, number>();
  /** Of the archive that is being restored, or was last. */
  #restoring: Behind | undefined;
  /** By place of a datacenter: when its disks were put back. */
  readonly #putBackAtMs = new Map<number, readonly number[]>();
  /** By place of whose disks were put back, the hash of what it has to come to again: the furthest that others have. */
  readonly #catchingUp = new Map<number, string>();
  /** Hashes of what no disk had any more when those of two datacenters were put back at once. */
  readonly #lostByTwo = new Set<string>();
  /** The last entry that says which datacenters there are. */
  #lastList: KnownEntry | undefined;
  /** By name of a datacenter that is removed: the entry that says so. */
  readonly #removals = new Map<string, KnownEntry>();
  #hasBegun = false;

  constructor({ sites, violations, nowMs, logMaxAgeMs, mark }: FederationChecksOptions) {
    this.#violations = violations;
    this.#sites = sites;
    this.#nowMs = nowMs;
    this.#mark = mark;
    this.#logMaxAgeMs = logMaxAgeMs;
    for (const [place, hosts] of sites.entries()) {
      for (const { name } of hosts) this.#placeByHost.set(name, place);
    }
  }

  /** Whether the first primary has a global log: before all its servers can read one, it has none. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  onFrame({ from, to, frame }: LeavingFrame): void {
    if (this.#placeOf(from) === this.#placeOf(to)) return;
    const found = foreignCanary(frame, undefined);
    this.#violations.require(found === undefined, 'G7 locality', () => {
      return `a frame from ${from} to ${to}, of another datacenter, has ${found} in it`;
    });
  }

  onLanded(host: SimHost, store: SimStore, writes: readonly KvWrite[]): void {
    const place = this.#placeOf(host.name);
    for (const write of writes) this.#requireLocal(host, place, write);
    if (!isStateStore(store.name)) return;
    const before = this.#followed.get(store);
    const isKnown = before !== undefined && before.life === host.lifeCount;
    const image = isKnown ? before.image : new StateImage(store);
    if (isKnown) image.follow(writes);
    const now = {
      ...{ life: host.lifeCount, image, keyspace: image.keyspace },
      ...{ replication: image.replication, digest: image.objects.digest },
    };
    this.#followed.set(store, now);
    // Of a state that is still coming in nothing is known.
    if (store.name !== stateStoreName(logOn(host).generation)) return;
    this.#look(host, { writes, before, now });
  }

  /** How far a host's disk is; undefined where it has no global log. */
  replicationOf(host: SimHost): Replication | undefined {
    const store = host.disk.store(stateStoreName(logOn(host).generation));
    return store === undefined ? undefined : replicationIn(store);
  }

  /** Which auth method made a token, by the first of these disks that has it; undefined where none has. */
  originOf(hosts: readonly SimHost[], accessorId: string): AuthMethodOrigin | undefined {
    const key = rowKey('token', idBytes(accessorId));
    for (const host of hosts) {
      const store = host.disk.store(stateStoreName(logOn(host).generation));
      const row = store && this.#followed.get(store)?.image.object(key);
      if (row !== undefined) return decodeRecord(TOKENS.codec, row).authMethod;
    }
    return undefined;
  }

  /** Whether the disk of a host has a row, of the objects that all share or of a local token. */
  has(host: SimHost, key: Uint8Array): boolean {
    const store = host.disk.store(stateStoreName(logOn(host).generation));
    return (store && this.#followed.get(store)?.image.object(key)) !== undefined;
  }

  /** The host whose datacenter is primary, in the latest epoch that anybody has begun. */
  head(
    hosts: readonly SimHost[],
  ): { readonly host: SimHost; readonly at: Replication } | undefined {
    let best: { readonly host: SimHost; readonly at: Replication } | undefined;
    for (const host of hosts) {
      const at = this.replicationOf(host);
      if (at === undefined || at.isDiverged) continue;
      const isLater =
        best === undefined ||
        at.cursor.epoch > best.at.cursor.epoch ||
        (at.cursor.epoch === best.at.cursor.epoch && at.cursor.seq > best.at.cursor.seq);
      if (isLater) best = { host, at };
    }
    return best;
  }

  isEven(hosts: readonly SimHost[]): boolean {
    const all = hosts.map((host) => this.replicationOf(host));
    const [first] = all;
    return all.every((at) => {
      if (at === undefined || first === undefined || at.isDiverged) return false;
      return textOf(at.cursor.hash) === textOf(first.cursor.hash);
    });
  }

  /** What an archive has that says to be of this place; undefined where not all before it is known. */
  archived({ epoch, seq }: Position): Behind | undefined {
    const known = this.chain.at(epoch, seq);
    return known && this.chain.behind(known.hash);
  }

  /** Whatever is restored from now on has these objects. */
  onRestoring(archive: Behind): void {
    this.#restoring = archive;
  }

  /** All disks of the datacenter at this place are lost. */
  onEmptied(place: number): void {
    this.#emptiedAtMs.set(place, this.#nowMs());
  }

  /**
   * Whether the disks of the datacenters at these places may be put back: all follow one log, know each other, and
   * have heard of the last reign that these have promised, and of who takes part. Where it is two at once, or others
   * are away, one with objects is there and has all that is with others but these.
   */
  mayPutBack(places: readonly number[], away: readonly number[]): boolean {
    const promised = this.#maxPromised(places.flatMap((place) => this.#sites[place]!));
    const all = this.#sites.flat().map((host) => this.replicationOf(host));
    const hashes = this.#hashesUpToHead(this.#sites.flat());
    if (places.length > 1 || away.length > 0) {
      const others = this.#sites.filter((_, place) => !places.includes(place)).flat();
      const there = this.#sites.filter((_, place) => ![...places, ...away].includes(place)).flat();
      const lenders = there.filter((host) => this.replicationOf(host)?.isWitness === false);
      const lent = this.#hashesUpToHead(lenders);
      const isLent = (host: SimHost): boolean => {
        const at = this.replicationOf(host);
        return at !== undefined && lent.has(textOf(at.cursor.hash));
      };
      if (!others.every(isLent)) return false;
    }
    return all.every((at) => {
      if (at === undefined || at.isDiverged || at.maxEpochPromised < promised) return false;
      // What is beside it is set apart by whoever wrote it, and by nobody else.
      if (!hashes.has(textOf(at.cursor.hash))) return false;
      const knows =
        this.#lastList === undefined ||
        this.chain.upTo(textOf(at.cursor.hash)).includes(this.#lastList);
      return knows && this.#sites.every((_, each) => this.takesPart(each, at));
    });
  }

  #hashesUpToHead(hosts: readonly SimHost[]): ReadonlySet<string> {
    const { at } = this.head(hosts) ?? {};
    const log = at === undefined ? [] : this.chain.upTo(textOf(at.cursor.hash));
    return new Set(log.map(({ hash }) => hash));
  }

  /** All disks of the datacenters at these places are as they were earlier: what nobody else has is lost. */
  onPutBack(places: readonly number[]): void {
    for (const place of places) {
      const times = this.#putBackAtMs.get(place) ?? [];
      this.#putBackAtMs.set(place, [...times, this.#nowMs()]);
    }
    const names = places.map(siteName);
    const all = this.#sites.flat().flatMap((host) => this.replicationOf(host) ?? []);
    const kept = new Set(all.flatMap((at) => this.#entriesOf(at)));
    for (const known of this.chain.all()) {
      const isLost = names.includes(known.site) && !kept.has(known);
      if (!isLost || this.chain.isForgotten(known)) continue;
      this.chain.forget(known);
      if (places.length > 1) this.#lostByTwo.add(known.hash);
      this.#mark(MARKS.lostByPutBack);
    }
    const others = this.#sites.filter((_, each) => !places.includes(each)).flat();
    const head = this.head(others);
    if (head === undefined) return;
    for (const place of places) this.#catchingUp.set(place, textOf(head.at.cursor.hash));
  }

  /** Whether no disk has it any more, because those of two datacenters that a majority needs were put back at once. */
  wasLostByTwo(known: KnownEntry): boolean {
    return this.#lostByTwo.has(known.hash) && this.chain.isForgotten(known);
  }

  /** Of the log, and what is set apart. */
  #entriesOf({ cursor, divergent }: Replication): readonly KnownEntry[] {
    const apart = divergent.flatMap(({ epoch, first, last }) =>
      Array.from({ length: last - first + 1 }, (_, step) => this.chain.at(epoch, first + step)),
    );
    return [
      ...this.chain.upTo(textOf(cursor.hash)),
      ...apart.filter((known) => known !== undefined),
    ];
  }

  /** Whether the disks of the datacenter at this place were put back between these moments of the run. */
  wasPutBack(place: number, fromMs: number, toMs: number): boolean {
    return (this.#putBackAtMs.get(place) ?? []).some((atMs) => fromMs < atMs && atMs <= toMs);
  }

  /** The same by its name, from a moment on. */
  wasPutBackSince(site: string, sinceMs: number): boolean {
    const place = this.#sites.findIndex((_, each) => siteName(each) === site);
    return this.wasPutBack(place, sinceMs, Number.POSITIVE_INFINITY);
  }

  /** Whether one whose disks were put back lacks what others had then. */
  get isCatchingUp(): boolean {
    for (const [place, hash] of this.#catchingUp) {
      if (!this.#hasCaughtUp(place, hash)) continue;
      this.#catchingUp.delete(place);
      this.#mark(MARKS.caughtUp);
    }
    return this.#catchingUp.size > 0;
  }

  #hasCaughtUp(place: number, hash: string): boolean {
    return this.#sites[place]!.some((host) => {
      const at = this.replicationOf(host);
      return (
        at !== undefined &&
        (this.chain.withHash(hash) === undefined ||
          this.chain.upTo(textOf(at.cursor.hash)).some((known) => known.hash === hash))
      );
    });
  }

  /** Whether what a datacenter had at that moment was lost with all its disks. */
  wasEmptied(site: string, sinceMs: number): boolean {
    const place = this.#sites.findIndex((_, each) => siteName(each) === site);
    return (this.#emptiedAtMs.get(place) ?? 0) > sinceMs;
  }

  /**
   * Whoever is to elect must know all that vote, by the clusters that have their names now; and what the others
   * have must not be with a witness alone.
   */
  mayLose(sites: readonly number[]): boolean {
    const left = this.#sites
      .filter((_, place) => !sites.includes(place + 1))
      .flatMap((hosts) => hosts.map((host) => this.replicationOf(host)));
    const known = left.filter((at) => at !== undefined);
    const doAllKnow =
      known.length === left.length &&
      known.every((at) =>
        this.#sites.every((_, place) => {
          return sites.includes(place + 1)
            ? this.#listed(place, at) !== undefined
            : this.takesPart(place, at);
        }),
      );
    if ((this.isCatchingUp || this.mayLoseNobody) && sites.length > 0) return false;
    return doAllKnow && (sites.length === 0 || this.#canBeElected(known));
  }

  /** Whether each datacenter of these hosts has the last entry of the furthest log that says which there are. */
  isLastListWith(hosts: readonly SimHost[]): boolean {
    const head = this.head(this.#sites.flat());
    const log = head === undefined ? [] : this.chain.upTo(textOf(head.at.cursor.hash));
    const last = log.findLast(({ entry }) => entry.body.kind === 'datacenters');
    const having = hosts.filter((host) => {
      const at = this.replicationOf(host);
      const known = at === undefined ? [] : this.chain.upTo(textOf(at.cursor.hash));
      return last === undefined || known.includes(last);
    });
    const placesOf = (all: readonly SimHost[]): ReadonlySet<number> =>
      new Set(all.map(({ name }) => this.#placeOf(name)));
    return placesOf(having).size === placesOf(hosts).size;
  }

  /** Whether a majority of datacenters has the last entry that says which there are. */
  isListKnown(hosts: readonly SimHost[]): boolean {
    const last = this.#lastList;
    if (last === undefined) return true;
    const having = hosts.filter((host) => {
      const at = this.replicationOf(host);
      return at !== undefined && this.chain.upTo(textOf(at.cursor.hash)).includes(last);
    });
    const places = new Set(having.map(({ name }) => this.#placeOf(name)));
    return 2 * places.size > this.#sites.length;
  }

  /** Whether nobody of another datacenter has heard of the latest epoch that is promised at these places. */
  hasPromisedMost(places: readonly number[]): boolean {
    const own = this.#maxPromised(places.flatMap((place) => this.#sites[place]!));
    const others = this.#sites.filter((_, each) => !places.includes(each)).flat();
    return own > this.#maxPromised(others);
  }

  /** Whether the datacenter at this place is one of those that this log names, and no other cluster has its name. */
  takesPart(place: number, at: Replication): boolean {
    const listed = this.#listed(place, at);
    if (listed === undefined || listed.isRemoved === true) return false;
    if (!this.#emptiedAtMs.has(place)) return true;
    return this.#sites[place]!.some(
      (host) => listed.clusterId !== undefined && logOn(host).clusterId === listed.clusterId,
    );
  }

  #listed(place: number, { datacenters }: Replication): Datacenter | undefined {
    return datacenters.find(({ name }) => name === siteName(place));
  }

  #maxPromised(hosts: readonly SimHost[]): number {
    return Math.max(0, ...hosts.map((host) => this.replicationOf(host)?.maxEpochPromised ?? 0));
  }

  /** Somebody has all of it, or is given the rest by the witness, which keeps it for as long as a run takes. */
  #canBeElected(left: readonly Replication[]): boolean {
    const [witness] = left
      .filter(({ isWitness }) => isWitness)
      .sort((one, other) => comparePlaces(other.cursor, one.cursor));
    if (witness === undefined) return true;
    return left.some((at) => {
      if (at.isWitness) return false;
      if (comparePlaces(at.cursor, witness.cursor) >= 0) return true;
      if (witness.isDiverged || at.isDiverged) return false;
      const sharedSeq = forkOf(at, witness.epochs)?.seq ?? 0;
      // The first entry that is kept may be a restore, which only a snapshot of objects leads over.
      const isKept = this.#logMaxAgeMs > ELECTED_WITHIN_MS && witness.first <= sharedSeq;
      // Who is beside it goes back by its own log: all of that says what was there.
      return isKept && (sharedSeq === at.cursor.seq || at.first === at.epochs[0]!.startSeq);
    });
  }

  describe(hosts: readonly SimHost[]): string {
    return hosts
      .map((host) => {
        const at = this.replicationOf(host);
        if (at === undefined) return `${host.name} has no global log`;
        const { epoch, primary } = currentEpoch(at);
        const { cursor, maxEpochPromised, isDiverged } = at;
        return `${host.name} of ${at.datacenter} is at ${cursor.epoch}.${cursor.seq}, primary ${primary} of epoch ${epoch}, promised ${maxEpochPromised}${isDiverged ? ', diverged' : ''}`;
      })
      .join('; ');
  }

  /** What the datacenter of this host is called. */
  siteNameOf(host: SimHost): string {
    return siteName(this.#placeOf(host.name));
  }

  #placeOf(host: string): number {
    return this.#placeByHost.get(host)!;
  }

  #requireLocal(host: SimHost, place: number, write: KvWrite): void {
    if (write.type !== 'put') return;
    const found = foreignCanary(write.value, place) ?? foreignCanary(write.key, place);
    this.#violations.require(found === undefined, 'G7 locality', () => {
      return `the disk of ${host.name}, of ${siteName(place)}, has ${found} on it`;
    });
  }

  #look(
    host: SimHost,
    step: {
      readonly writes: readonly KvWrite[];
      readonly before: Followed | undefined;
      readonly now: Followed;
    },
  ): void {
    const { writes, before, now } = step;
    const { replication, image } = now;
    if (replication === undefined) return;
    const place = this.#placeOf(host.name);
    const site = siteName(place);
    if (this.#emptiedAtMs.has(place) && this.takesPart(place, replication)) this.#mark(MARKS.back);
    if (hasBegun(replication)) {
      this.chain.begin(textOf(replication.cursor.hash), image.objects);
      this.#hasBegun = true;
    }
    const taken = this.#takeEntries(host, site, writes);
    if (!isWaiting(replication)) {
      for (const start of replication.epochs) this.#requireOwner(host, start);
      this.#requireOnChain(host, replication);
    }
    if (before !== undefined && before.keyspace !== now.keyspace) this.#mark(MARKS.snapshot);
    if (before?.replication !== undefined) {
      this.#requireNotRemoved(host, site, before.replication, replication);
    }
    if (before?.replication !== undefined && before.keyspace === now.keyspace) {
      this.#requireNoGap(host, taken, before.replication, replication);
      this.#requireFenced(host, before.replication, replication);
    }
    this.#requireSameState(host, before, now);
    this.#requireKept(host, replication, image);
  }

  #takeEntries(host: SimHost, site: string, writes: readonly KvWrite[]): readonly number[] {
    const seqs: number[] = [];
    for (const write of writes) {
      if (write.type !== 'put' || write.key[0] !== ROW.globalEntry) continue;
      const { known, rival, isBack } = this.chain.add(write.value, { site, atMs: this.#nowMs() });
      // It was on its way when whoever wrote it was put back.
      if (isBack === true && known.site !== site) {
        const place = this.#sites.findIndex((_, each) => siteName(each) === known.site);
        this.#catchingUp.set(place, known.hash);
      }
      const { epoch, seq, body, prevHash } = known.entry;
      seqs.push(seq);
      if (body.kind === 'reset' && this.#restoring !== undefined) {
        this.chain.begin(known.hash, this.#restoring);
        this.#mark(MARKS.restored);
      }
      if (body.kind === 'datacenters') this.#noteList(known, body.datacenters);
      if (body.kind === 'epoch-start') {
        const { primary } = body;
        this.#requireOwner(host, { epoch, startSeq: seq, startHash: prevHash, primary });
      }
      this.#violations.require(rival === undefined, 'G2 prefix chain', () => {
        return `${host.name} has another entry ${epoch}.${seq} than ${rival?.site} wrote`;
      });
      this.#violations.require(this.chain.knows(known.prevHash), 'G2 prefix chain', () => {
        return `entry ${epoch}.${seq} of ${host.name} follows nothing that is known`;
      });
    }
    return seqs.sort((left, right) => left - right);
  }

  #noteList(known: KnownEntry, datacenters: readonly Datacenter[]): void {
    const last = this.#lastList?.entry;
    if (last !== undefined && comparePlaces(known.entry, last) <= 0) return;
    this.#lastList = known;
    const removed = datacenters.filter(({ isRemoved }) => isRemoved === true);
    const names = removed.map(({ name }) => name);
    for (const name of this.#removals.keys())
      if (!names.includes(name)) this.#removals.delete(name);
    for (const name of names) if (!this.#removals.has(name)) this.#removals.set(name, known);
  }

  /** The removal itself may have been on its way; all behind it was written by whoever knew of it. */
  #requireNotRemoved(host: SimHost, site: string, before: Replication, now: Replication): void {
    const removal = this.#removals.get(site);
    const { hash, seq } = now.cursor;
    if (removal === undefined || seq === before.cursor.seq || textOf(hash) === removal.hash) return;
    const isBehind = this.chain.upTo(textOf(hash)).some((known) => known === removal);
    this.#violations.require(!isBehind, 'G15 removed', () => {
      const { epoch, seq: at } = removal.entry;
      return `${host.name} of ${site} took the log up to ${now.cursor.epoch}.${seq}, though ${epoch}.${at} removed it`;
    });
  }

  #requireOwner(host: SimHost, start: EpochStart): void {
    const known = this.#startByEpoch.get(start.epoch);
    if (known === undefined) {
      this.#startByEpoch.set(start.epoch, start);
      return;
    }
    // No entry says whose the first epoch is: who joins takes it from its settings, which name a later primary
    // where the first one has lost its disks.
    const isHearsay = start.startSeq === 1 && this.#emptiedAtMs.has(0);
    const isSame =
      (known.primary === start.primary || isHearsay) &&
      known.startSeq === start.startSeq &&
      textOf(known.startHash) === textOf(start.startHash);
    this.#violations.require(isSame, 'G1 epoch owner', () => {
      return `${host.name} says that epoch ${start.epoch} is of ${start.primary} from ${start.startSeq} on; it is of ${known.primary} from ${known.startSeq} on`;
    });
  }

  #requireOnChain(host: SimHost, { cursor }: Replication): void {
    const known = this.chain.at(cursor.epoch, cursor.seq);
    const isIt = known === undefined || known.hash === textOf(cursor.hash);
    this.#violations.require(isIt, 'G2 prefix chain', () => {
      return `${host.name} is at another entry ${cursor.epoch}.${cursor.seq} than ${known?.site} wrote`;
    });
  }

  #requireNoGap(
    host: SimHost,
    taken: readonly number[],
    before: Replication,
    now: Replication,
  ): void {
    const least = before.cursor.seq + 1;
    const start = now.cursor.seq - taken.length + 1;
    // What is trimmed in the batch that took it in does not land.
    const isWhole =
      taken.every((seq, place) => seq === start + place) &&
      start >= least &&
      start <= Math.max(least, now.first);
    this.#violations.require(isWhole, 'G3 no gap', () => {
      return `${host.name} goes from ${before.cursor.seq} to ${now.cursor.seq} with entries ${taken.join()}`;
    });
  }

  /** What was promised before this batch binds all of it. */
  #requireFenced(host: SimHost, before: Replication, now: Replication): void {
    const { maxEpochPromised } = before;
    this.#violations.require(now.maxEpochPromised >= maxEpochPromised, 'G6 fenced', () => {
      return `${host.name} had promised ${maxEpochPromised}, and now ${now.maxEpochPromised}`;
    });
    const hasWritten =
      now.cursor.seq > before.cursor.seq &&
      now.epochs.some(({ epoch, primary }) => {
        return epoch === now.cursor.epoch && primary === now.datacenter;
      });
    // Who was elected itself takes back what it wrote before its disks were put back, and others have kept.
    const known = this.chain.withHash(textOf(now.cursor.hash));
    const isBack =
      known !== undefined &&
      this.wasPutBack(this.#placeOf(host.name), known.atMs, Number.POSITIVE_INFINITY);
    const isOver = hasWritten && !isBack && now.cursor.epoch < maxEpochPromised;
    this.#violations.require(!isOver, 'G6 fenced', () => {
      return `${host.name} writes ${now.cursor.epoch}.${now.cursor.seq} after epoch ${maxEpochPromised} was promised`;
    });
  }

  #requireSameState(host: SimHost, before: Followed | undefined, now: Followed): void {
    const { cursor, isWitness } = now.replication!;
    // It has none.
    if (isWitness) return;
    const wanted = this.chain.behind(textOf(cursor.hash));
    if (wanted === undefined) return;
    this.comparedCount += 1;
    if (wanted.digest === now.digest) return;
    const isSwitched = before !== undefined && before.keyspace !== now.keyspace;
    const isStill = before?.replication?.cursor.seq === cursor.seq;
    const checker = isSwitched ? 'G12 snapshot' : isStill ? 'G3 no gap' : 'G8 same state';
    this.#violations.add(
      checker,
      `the shared objects of ${host.name} are not those of ${cursor.epoch}.${cursor.seq}`,
    );
  }

  #requireKept(host: SimHost, replication: Replication, image: StateImage): void {
    const { first, cursor, epochs, isDiverged, divergent, gone, unused } = replication;
    const isThere =
      isDiverged || first > cursor.seq || image.has(entryKey(epochAt(epochs, first), first));
    this.#violations.require(isThere, 'G13 bounded', () => {
      return `${host.name} says that it keeps the log from ${first} on, and has not that entry`;
    });
    for (const { epoch, first: from, last } of divergent) {
      const isKept = image.has(entryKey(epoch, from)) && image.has(entryKey(epoch, last));
      this.#violations.require(isKept, 'G5 no silent loss', () => {
        return `${host.name} has not what it says to have set apart, ${epoch}.${from} to ${epoch}.${last}`;
      });
    }
    for (const { epoch, first: from, last } of gone) {
      this.#mark(MARKS.gone);
      const isLeft = image.has(entryKey(epoch, from)) || image.has(entryKey(epoch, last));
      // What a restore left behind is dropped in its own time.
      const isUnused = unused.some((each) => {
        return each.epoch === epoch && each.first <= last && from <= each.last;
      });
      this.#violations.require(!isLeft || isUnused, 'G5 no silent loss', () => {
        return `${host.name} has what it says to be gone, ${epoch}.${from} to ${epoch}.${last}`;
      });
    }
  }
}

/** The log is there, and no entry in it. */
function isEmpty({ epochs, cursor }: Replication): boolean {
  return epochs.length === 1 && cursor.seq === epochs[0]!.startSeq - 1;
}

/** Of the first primary, when nothing has been written yet. */
function hasBegun(replication: Replication): boolean {
  return isEmpty(replication) && currentEpoch(replication).primary === replication.datacenter;
}

/** Of a secondary to which nothing has come: what it says of the epoch is where it waits, no more. */
function isWaiting(replication: Replication): boolean {
  return isEmpty(replication) && currentEpoch(replication).primary !== replication.datacenter;
}
