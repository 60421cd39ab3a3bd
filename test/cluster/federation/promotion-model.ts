// Datacenters as models that vote and copy the global log from each other: their logs' rules are those of the
// state, who asks whom is the promotion of production. Calls may be lost on either way, by whim.

import type { PrimaryClaim } from '../../../cluster/federation/directory/directory.ts';
import type { EntrySource } from '../../../cluster/federation/entry-source.ts';
import { majoritySeqOf } from '../../../cluster/federation/feed/majority.ts';
import {
  type GlobalCursor,
  type GlobalEntry,
  isFurther,
  isSameCursor,
  LOG_START,
} from '../../../cluster/federation/global-log.ts';
import type { Ahead } from '../../../cluster/federation/promotion/passed-over.ts';
import { Promotion } from '../../../cluster/federation/promotion/promotion.ts';
import type {
  EpochStart,
  PromiseAnswer,
  PromiseAsk,
} from '../../../cluster/federation/promotion/promotion-frames.ts';
import type {
  EpochClaim,
  PromotionPort,
  PromotionState,
  RestBatch,
} from '../../../cluster/federation/promotion/promotion-port.ts';
import type { NetAddress } from '../../../cluster/platform/net.ts';
import { RpcError, RpcRefusal } from '../../../cluster/transport/calls/rpc-error.ts';
import type { RpcCall } from '../../../cluster/transport/transport.ts';
import { FeedWorld } from './feed-world.ts';
import { cursorOf, MemoryLog, nextEntry } from './memory-log.ts';

/** What an entry says that lists all whose promises count. */
export const ALL_ARE_LISTED = 'all are listed';

/** What an entry says behind which nothing of before is kept, and which nobody takes but a witness. */
const RESTORE = 'a restore';

/** A read gives two or three entries, so that what is missing takes several. */
const READ_BYTES = 4;

export class Datacenter implements PromotionPort {
  readonly name: string;
  readonly promotion: Promotion;
  entries: GlobalEntry[] = [];
  epochs: EpochStart[];
  federationId = 'fed';
  /** Why those datacenters cannot read what follows here. */
  readonly unreadable = new Map<string, string>();
  maxEpoch = 1;
  votedFor: string | undefined = 'dc1';
  /** Entries that only this one has, by its reign that is over. */
  divergent: GlobalEntry[] = [];
  isDiverged = false;
  /** Whoever it follows keeps too little of the log to say that it is beside it. */
  isSentSnapshots = false;
  /** It is never elected. */
  isWitness = false;
  /** Those that its log lists; undefined: all whose promises count. */
  listed: readonly string[] | undefined;
  /** Entries up to here are trimmed. */
  trimmedSeq = 0;
  isUp = true;
  isLeader = true;
  /** Whether it knows who is primary of the latest reign. */
  hasHeard = true;
  /** Whether others tell it that, when it asks all. */
  hearsByAsking = false;
  askedAllCount = 0;
  /** Whom others take for the primary, where that is not the one of the latest reign. */
  claim: PrimaryClaim | undefined;
  /** Whether its log says which clusters there are. */
  namesClusters = true;
  /** Of those it knows no address before it asks all. */
  readonly lost = new Set<string>();
  /** An epoch that was told of, by somebody whom nobody follows. */
  toldEpoch = 0;
  /** What a reign of its own would pass over, and who has more of its reigns than it has itself, as it was told. */
  passesOver: string | undefined;
  ahead: readonly Ahead[] = [];
  haveTold: () => Promise<void> = () => Promise.resolve();
  /** As far as it may come by what is under way; undefined: nothing is. */
  comesTo: GlobalCursor | undefined;
  writerAskedCount = 0;
  onWriterAsks: () => void = () => undefined;
  sealCount = 0;
  readonly ackedSeqs = new Map<string, number>();
  readonly #world: PromotionWorld;

  constructor(world: PromotionWorld, name: string) {
    this.#world = world;
    this.name = name;
    this.epochs = [{ epoch: 1, startSeq: 1, startHash: LOG_START.hash, primary: 'dc1' }];
    const { clock, random } = world.time;
    const logger = world.time.logger(name);
    const call = (to: NetAddress, request: RpcCall) => world.call(this, to.host, request);
    const addressesOf = (datacenter: string) =>
      this.lost.has(datacenter)
        ? []
        : [
            { host: `${datacenter}-old`, port: 1 },
            { host: datacenter, port: 1 },
          ];
    this.promotion = new Promotion({
      clock,
      random,
      logger,
      datacenter: name,
      federationId: () => this.federationId,
      port: this,
      source: this.#source,
      unreadableBy: (datacenter) => this.unreadable.get(datacenter),
      addressesOf,
      claim: (): PrimaryClaim | undefined => {
        if (this.claim !== undefined) return this.claim;
        if (!this.hasHeard) return undefined;
        const primary = world.latest;
        const { epoch } = primary.epochs.at(-1)!;
        return { datacenter: primary.name, epoch, addresses: addressesOf(primary.name) };
      },
      heardEpoch: () => {
        return Math.max(this.toldEpoch, this.hasHeard ? world.latest.epochs.at(-1)!.epoch : 0);
      },
      isRivalled: (epoch) => {
        const isRival = (each: Datacenter): boolean =>
          each !== this &&
          each.epochs.at(-1)!.epoch === epoch &&
          each.epochs.at(-1)!.primary !== name;
        return this.hasHeard && world.all.some(isRival);
      },
      passesOver: () => this.passesOver,
      hearAll: async () => {
        this.askedAllCount += 1;
        await world.pause();
        if (this.hearsByAsking) this.hasHeard = true;
        this.lost.clear();
      },
      ahead: () => this.ahead,
      haveTold: () => this.haveTold(),
      isNamed: () => this.namesClusters,
      datacenters: () => world.all.map((each) => each.name),
      onWriterAsks: () => {
        this.writerAskedCount += 1;
        this.onWriterAsks();
      },
      isDiverged: () => !this.isSentSnapshots && this.#isBeside(world.latest),
      ackedSeqOf: (datacenter) => this.ackedSeqs.get(datacenter),
      call,
      callFollowed: call,
    });
  }

  get #source(): Pick<EntrySource, 'locate' | 'read' | 'restoredSeq'> {
    const log = () => this.#log;
    return {
      locate: (cursor) => log().locate(cursor),
      read: (afterSeq, maxBytes) => log().read(afterSeq, Math.min(maxBytes, READ_BYTES)),
      get restoredSeq() {
        return log().restoredSeq;
      },
    };
  }

  get #log(): MemoryLog {
    const log = new MemoryLog();
    for (const entry of this.entries) log.push(entry);
    log.trimmedSeq = this.trimmedSeq;
    const restored = this.entries.findLast((each) => this.isRestore(each));
    if (restored !== undefined && restored.seq > log.trimmedSeq) log.restoredSeq = restored.seq;
    return log;
  }

  get cursor(): GlobalCursor {
    const last = this.entries.at(-1);
    return last === undefined ? LOG_START : cursorOf(last);
  }

  get isPrimary(): boolean {
    const { epoch, primary } = this.epochs.at(-1)!;
    return primary === this.name && epoch === this.maxEpoch && !this.isDiverged;
  }

  state(): PromotionState {
    const { cursor, epochs, isDiverged, isPrimary, isWitness, maxEpoch, votedFor } = this;
    const { epoch, primary } = epochs.at(-1)!;
    const own = { cursor, isDiverged, isPrimary, isWitness, maxEpoch, votedFor };
    const witnesses = this.#world.all
      .filter((each) => each.isWitness)
      .map(({ name: each }) => each);
    return { ...own, epoch, primary, epochs, voters: this.voters, witnesses };
  }

  get voters(): readonly string[] {
    return this.listed ?? this.#world.voters;
  }

  /** What is wrong with a successor, by its name. */
  readonly leavesBehind = new Map<string, string>();

  async leftBehindBy(datacenter: string): Promise<string | undefined> {
    return this.leavesBehind.get(datacenter);
  }

  isLeading(): boolean {
    return this.isLeader;
  }

  /** What happens just before this datacenter is asked, for a trial or for its promise. */
  mayPromiseFirst: () => void = () => undefined;
  promiseFirst: () => void = () => undefined;
  /** Whether it comes to it that an epoch begins. */
  startFirst: () => boolean = () => true;

  mayReach(cursor: GlobalCursor): GlobalCursor {
    return this.comesTo ?? cursor;
  }

  mayPromise({ epoch, candidate, cursor }: PromiseAsk): boolean {
    this.mayPromiseFirst();
    if (this.#world.named(candidate).isWitness) return false;
    const isFree =
      epoch > this.maxEpoch || (epoch === this.maxEpoch && candidate === this.votedFor);
    return isFree && !isFurther(this.cursor, cursor);
  }

  async promise(ask: PromiseAsk): Promise<PromiseAnswer> {
    await this.#world.pause();
    this.promiseFirst();
    const isGranted = this.mayPromise(ask);
    if (isGranted) {
      this.maxEpoch = ask.epoch;
      this.votedFor = ask.candidate;
    }
    return { isGranted, cursor: this.cursor, maxEpoch: this.maxEpoch };
  }

  isRestore({ bytes }: GlobalEntry): boolean {
    return Buffer.from(bytes).toString() === RESTORE;
  }

  async take({ epoch, from, entries, to }: RestBatch): Promise<GlobalCursor> {
    await this.#world.pause();
    if (epoch < this.maxEpoch || this.isPrimary || this.isDiverged) throw new Error('fenced');
    if (!isSameCursor(from, this.cursor)) return this.cursor;
    for (const entry of entries) {
      if (this.isRestore(entry)) throw new Error('a restore follows');
      const { epoch: reign } = entry;
      const startSeq = this.cursor.seq + 1;
      if (!isSameCursor(nextEntry(this.cursor, entry.bytes, reign), entry)) {
        throw new Error('broken-chain');
      }
      const primary = this.#world.starts.get(reign) ?? 'dc1';
      const start = { epoch: reign, startSeq, startHash: this.cursor.hash, primary };
      if (reign > this.epochs.at(-1)!.epoch) this.epochs = [...this.epochs, start];
      this.entries = [...this.entries, entry];
      if (Buffer.from(entry.bytes).toString() === ALL_ARE_LISTED) this.listed = undefined;
    }
    if (!isSameCursor(this.cursor, to)) throw new Error('broken-chain');
    return this.cursor;
  }

  async start({ epoch, promises, isForced }: EpochClaim): Promise<boolean> {
    await this.#world.pause();
    if (!this.startFirst()) return false;
    const isOwn = epoch === this.maxEpoch && this.votedFor === this.name;
    const votes = this.voters.filter((each) => each === this.name || promises.includes(each));
    const hasMajority = votes.length * 2 > this.voters.length;
    if (!isOwn || epoch <= this.epochs.at(-1)!.epoch || !(hasMajority || isForced)) return false;
    this.isDiverged = false;
    this.#world.onStart(this, epoch);
    const { seq, hash } = this.cursor;
    this.epochs = [
      ...this.epochs,
      { epoch, startSeq: seq + 1, startHash: hash, primary: this.name },
    ];
    this.#append(`epoch ${epoch}`);
    return true;
  }

  /** As releases did that began the epoch which was named. */
  async forceAsBefore(epoch: number): Promise<void> {
    Object.assign(this, { maxEpoch: epoch, votedFor: this.name });
    await this.start({ epoch, promises: [], isForced: true });
  }

  async fence(epochs: readonly EpochStart[]): Promise<void> {
    await this.#world.pause();
    const heard = epochs.at(-1)!.epoch;
    if (heard < this.maxEpoch || heard <= this.epochs.at(-1)!.epoch) return;
    this.maxEpoch = heard;
    const forkSeq = this.#forkSeqWith(epochs);
    if (this.cursor.seq > forkSeq && !this.isDiverged) {
      this.divergent.push(...this.entries.slice(forkSeq));
      this.isDiverged = true;
    }
  }

  /** What stands in the way of going back. */
  forkPlaceFirst: () => void = () => undefined;

  async forkPlace(epochs: readonly EpochStart[]): Promise<GlobalCursor> {
    await this.#world.pause();
    this.forkPlaceFirst();
    return cursorOf(this.entries[this.#forkSeqWith(epochs) - 1]!);
  }

  async goBack(epochs: readonly EpochStart[]): Promise<void> {
    const { epoch, seq } = await this.forkPlace(epochs);
    const next = epochs.find((each) => each.epoch > epoch)!;
    await this.fence([...epochs.filter((each) => each.epoch <= epoch), next]);
    await this.#world.pause();
    this.entries = this.entries.slice(0, seq);
    this.epochs = epochs.filter((each) => each.epoch <= next.epoch);
    this.isDiverged = false;
  }

  #forkSeqWith(epochs: readonly EpochStart[]): number {
    const known = this.epochs.map(({ epoch }) => epoch);
    const shared = Math.max(...epochs.map(({ epoch }) => (known.includes(epoch) ? epoch : 0)));
    const later = [...epochs, ...this.epochs].filter(({ epoch }) => epoch > shared);
    return Math.min(...later.map(({ startSeq }) => startSeq)) - 1;
  }

  seal(): () => void {
    this.sealCount += 1;
    return () => {
      this.sealCount -= 1;
    };
  }

  async settled(): Promise<GlobalCursor> {
    await this.#world.pause();
    return this.cursor;
  }

  /** Undefined: it takes no writes. */
  write(text: string): GlobalEntry | undefined {
    return this.isPrimary && this.sealCount === 0 ? this.#append(text) : undefined;
  }

  /** Of an archive. */
  restore(): GlobalEntry | undefined {
    const entry = this.write(RESTORE);
    if (entry !== undefined) this.trimmedSeq = entry.seq - 1;
    return entry;
  }

  #append(text: string): GlobalEntry {
    const entry = nextEntry(this.cursor, Buffer.from(text), this.epochs.at(-1)!.epoch);
    this.entries = [...this.entries, entry];
    return entry;
  }

  /** Copies up to so many entries of the primary, as far as its own log takes them; and acknowledges. */
  follow(primary: Datacenter, count: number): void {
    if (!primary.isPrimary || primary === this) return;
    const { epoch } = primary.epochs.at(-1)!;
    if (epoch < this.maxEpoch || this.isPrimary) return;
    if (this.isDiverged || this.#isBeside(primary)) {
      if (!this.isDiverged) return;
      // A snapshot: all at once, in one step.
      this.entries = [...primary.entries];
      this.epochs = [...primary.epochs];
      this.trimmedSeq = primary.trimmedSeq;
      this.isDiverged = false;
    } else {
      const { seq } = this.cursor;
      this.entries = [...this.entries, ...primary.entries.slice(seq, seq + count)];
      this.epochs = primary.epochs.filter(({ startSeq }) => startSeq <= this.cursor.seq + 1);
      const known = this.epochs.filter(({ epoch: each }) => each <= this.cursor.epoch);
      this.epochs = known.length === 0 ? [primary.epochs[0]!] : known;
      const restored = this.entries.slice(seq).find((each) => this.isRestore(each));
      if (restored !== undefined) this.trimmedSeq = restored.seq - 1;
    }
    if (epoch > this.maxEpoch) {
      this.maxEpoch = epoch;
      this.votedFor = undefined;
    }
    primary.ackedSeqs.set(this.name, this.cursor.seq);
  }

  /** What a majority is known to have, by the rule of the feed. */
  get majoritySeq(): number {
    return majoritySeqOf({
      voters: this.#world.voters,
      joining: [],
      witnesses: [],
      restoredSeq: 0,
      datacenter: this.name,
      headSeq: this.cursor.seq,
      epochStartSeq: this.epochs.at(-1)!.startSeq,
      ackedSeqOf: (each) => this.ackedSeqs.get(each),
    });
  }

  #isBeside(primary: Datacenter): boolean {
    const { seq } = this.cursor;
    if (primary === this) return false;
    if (seq > primary.entries.length) return true;
    return seq > 0 && !isSameCursor(cursorOf(primary.entries[seq - 1]!), this.cursor);
  }
}

export class PromotionWorld {
  readonly time: FeedWorld;
  readonly voters: string[];
  readonly all: Datacenter[];
  readonly violations: string[] = [];
  /** Who began each epoch (G1). */
  readonly starts = new Map<number, string>();
  /** A part of the calls is lost before, and as many after they were carried out. */
  lossPart = 0;
  readonly cuts = new Set<string>();
  /** Addresses at which nothing answers a connection, so whoever asks waits for as long as it wants to. */
  readonly mute = new Set<string>();
  /** Whose server is really at an address, where it is not the one that it is taken for. */
  readonly moved = new Map<string, string>();

  constructor(seed: number, voters: readonly string[] = ['dc1', 'dc2', 'dc3']) {
    this.time = new FeedWorld(seed);
    this.voters = [...voters];
    this.all = voters.map((name) => new Datacenter(this, name));
  }

  named(name: string): Datacenter {
    const found = this.all.find((each) => each.name === name);
    if (found === undefined) throw new Error(`there is no ${name}`);
    return found;
  }

  /** Of the latest reign. */
  get latest(): Datacenter {
    const epochOf = ({ epochs, name }: Datacenter): number =>
      Math.max(0, ...epochs.filter(({ primary }) => primary === name).map(({ epoch }) => epoch));
    return [...this.all].sort((left, right) => epochOf(right) - epochOf(left))[0]!;
  }

  pause(): Promise<void> {
    return new Promise((resolve) => {
      this.time.clock.after(1 + this.time.draw() * 20, resolve);
    });
  }

  onStart({ name }: Datacenter, epoch: number): void {
    const known = this.starts.get(epoch);
    if (known !== undefined) this.violations.push(`G1: epoch ${epoch} of ${known} and of ${name}`);
    this.starts.set(epoch, name);
  }

  async call(from: Datacenter, to: string, request: RpcCall): Promise<Uint8Array> {
    await this.pause();
    if (this.mute.has(to)) {
      await new Promise<void>((resolve) => {
        this.time.clock.after(request.deadlineMs, resolve);
      });
      throw new RpcError('unreachable', `no connection to ${to}`);
    }
    const host = this.moved.get(to) ?? to;
    const there = this.all.find(({ name }) => name === host);
    const isDark = this.cuts.has(`${from.name} ${host}`) || there?.isUp === false;
    if (there === undefined) throw new RpcError('unreachable', `nobody listens at ${to}`);
    if (isDark || this.time.draw() < this.lossPart)
      throw new RpcError('timeout', `${to} is silent`);
    // As the transport does.
    if (request.datacenter !== undefined && request.datacenter !== there.name)
      throw new RpcError('unreachable', `${to} is of ${there.name}, not of ${request.datacenter}`);
    const caller = {
      node: 1,
      id: 'x',
      name: from.name,
      version: '1',
      reads: 1,
      datacenter: from.name,
      clusterId: '',
      federationId: '',
      remote: 'x',
    };
    let answer: Uint8Array;
    try {
      answer = await there.promotion.handlers[request.method]!({ ...request, from: caller });
    } catch (error) {
      if (!(error instanceof RpcRefusal)) throw error;
      const refusal = { code: error.code, says: error.message };
      throw new RpcError('refused', error.message, refusal);
    }
    await this.pause();
    if (this.time.draw() < this.lossPart) throw new RpcError('lost', 'the answer is lost');
    return answer;
  }
}
