// A whole group in one process: simulated time, wire and disks, all drawn from one seed, around real
// replicas. Whatever happens, it checks what must always hold: one leader a term, no promise before the
// disk has it, one sequence everywhere, answers that stay true. Violations are collected, not thrown.

import { DurableLog } from '../../cluster/log/durable-log.ts';
import {
  decodeEntry,
  decodeHardState,
  decodeWitness,
  entryKey,
  HARD_STATE_KEY,
  type LogEntry,
  type LogWitness,
  START_KEY,
} from '../../cluster/log/log-entry.ts';
import type { Clock } from '../../cluster/platform/clock.ts';
import type { Kv, KvRange, KvRow, KvSnapshot, KvWrite } from '../../cluster/platform/kv.ts';
import type { Random } from '../../cluster/platform/random.ts';
import { NO_MEMBERS } from '../../cluster/raft/membership.ts';
import type { Message } from '../../cluster/raft/message.ts';
import type { GroupLimits, GroupTiming } from '../../cluster/replica/group-limits.ts';
import { GroupRefusal } from '../../cluster/replica/group-refusal.ts';
import type { GroupReplica } from '../../cluster/replica/group-replica.ts';
import { openRaftReplica } from '../../cluster/replica/raft-replica.ts';
import { type Machine, ReplicaError } from '../../cluster/replica/replica.ts';
import { MemoryKv, textOf } from './memory-kv.ts';

/** A reproducible stream of numbers in [0, 1). */
export function streamOf(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Simulated time: events run one by one, each with all that it sets off at once. */
class World {
  nowMs = 0;
  #events: { readonly atMs: number; readonly action: () => void }[] = [];

  after(delayMs: number, action: () => void): void {
    const atMs = this.nowMs + delayMs;
    let place = this.#events.length;
    while (place > 0 && this.#events[place - 1]!.atMs > atMs) place -= 1;
    this.#events.splice(place, 0, { atMs, action });
  }

  async run(forMs: number): Promise<void> {
    const untilMs = this.nowMs + forMs;
    for (let next = this.#events[0]; next !== undefined; next = this.#events[0]) {
      if (next.atMs > untilMs) break;
      this.#events.shift();
      this.nowMs = next.atMs;
      next.action();
      await settled();
    }
    this.nowMs = untilMs;
  }
}

/** All that can go on without time has gone on. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Rows survive a crash; a write in flight is lost, or lands and nobody hears of it. */
class SimDisk implements Kv {
  readonly #rows = new MemoryKv();
  readonly #schedule: (action: () => void) => void;
  #inFlight: (() => void) | undefined;
  #finish: (() => void) | undefined;
  /** Writes never come back while it is so. */
  #isStalled = false;
  failure: Error | undefined;

  constructor(schedule: (action: () => void) => void) {
    this.#schedule = schedule;
  }

  get(key: Uint8Array): Uint8Array | undefined {
    return this.#rows.get(key);
  }

  rows(range: KvRange): AsyncIterable<readonly KvRow[]> {
    return this.#rows.rows(range);
  }

  write(writes: readonly KvWrite[]): Promise<void> {
    if (this.failure !== undefined) return Promise.reject(this.failure);
    return new Promise((resolve) => {
      const land = (): void => this.#land(writes);
      this.#inFlight = land;
      this.#schedule(() => {
        if (this.#inFlight !== land) return;
        this.#finish = () => {
          this.#inFlight = undefined;
          this.#finish = undefined;
          land();
          resolve();
        };
        if (!this.#isStalled) this.#finish();
      });
    });
  }

  stall(): void {
    this.#isStalled = true;
  }

  resume(): void {
    this.#isStalled = false;
    this.#finish?.();
  }

  crash({ lands }: { readonly lands: boolean }): void {
    if (lands) this.#inFlight?.();
    this.#inFlight = undefined;
    this.#finish = undefined;
    this.#isStalled = false;
  }

  snapshot(): KvSnapshot {
    return this.#rows.snapshot();
  }

  compact(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #land(writes: readonly KvWrite[]): void {
    this.#rows.tamper((rows) => {
      for (const write of writes) {
        if (write.type === 'put') rows.set(textOf(write.key), Uint8Array.from(write.value));
        else rows.delete(textOf(write.key));
      }
    });
  }
}

/** A register: its value is the last payload. Its outcome is the index. `applied` is its disk. */
class Register implements Machine<number> {
  readonly applied: LogEntry[] = [];
  /** Set by the node's present life. */
  schedule: (action: () => void) => void = () => undefined;
  onApply: (entries: readonly LogEntry[]) => void = () => undefined;

  get appliedEntry(): LogWitness | undefined {
    return this.applied.at(-1);
  }

  apply(entries: readonly LogEntry[]): Promise<readonly number[]> {
    this.onApply(entries);
    return new Promise((resolve) => {
      this.schedule(() => {
        this.applied.push(...entries);
        resolve(entries.map(({ index }) => index));
      });
    });
  }
}

export interface GroupNode {
  readonly id: number;
  readonly disk: SimDisk;
  readonly register: Register;
  /** Undefined while it is down. */
  replica: GroupReplica<number> | undefined;
  /** Grows with every crash: what belongs to an earlier life does nothing any more. */
  life: number;
  pausedUntilMs: number;
  fatal: Error | undefined;
  readonly log: string[];
}

export interface Wire {
  readonly lossRate: number;
  readonly doubleRate: number;
  readonly minMs: number;
  readonly maxMs: number;
}

export interface GroupOptions {
  readonly size: number;
  readonly seed: number;
  readonly limits?: Partial<GroupLimits>;
  readonly timing?: Partial<GroupTiming>;
}

export const CALM: Wire = { lossRate: 0, doubleRate: 0, minMs: 1, maxMs: 3 };

export class InMemoryGroup {
  readonly nodes: readonly GroupNode[];
  readonly violations: string[] = [];
  wire: Wire = CALM;
  diskMs: readonly [number, number] = [1, 5];
  /** Whose disk takes twenty times as long. */
  slowDiskId = 0;
  /** Whether others notice a crash at once, by their closed links. */
  linksClose = true;
  /** Every message as it leaves, for a test that watches the wire. */
  onSend: (message: Message) => void = () => undefined;
  readonly acked = new Map<string, number>();
  readonly refused = new Set<string>();
  readonly unknown = new Set<string>();
  readsDone = 0;
  readonly #world = new World();
  readonly #options: GroupOptions;
  readonly #draw: () => number;
  #uuidCount = 0;
  #writeCount = 0;
  #ackedIndex = 0;
  /** Groups of nodes that reach each other; undefined: all do. */
  #sides: readonly (readonly number[])[] | undefined;
  readonly #leaderByTerm = new Map<number, number>();
  readonly #hashByIndex = new Map<number, string>();
  /** What a leader has sent for a place: term of leader and index, to the entry's term. */
  readonly #sentTerms = new Map<string, number>();

  constructor(options: GroupOptions) {
    this.#options = options;
    this.#draw = streamOf(options.seed);
    this.nodes = Array.from({ length: options.size }, (_, place) => this.#createNode(place + 1));
  }

  get nowMs(): number {
    return this.#world.nowMs;
  }

  get writeCount(): number {
    return this.#writeCount;
  }

  node(id: number): GroupNode {
    return this.nodes[id - 1]!;
  }

  run(forMs: number): Promise<void> {
    return this.#world.run(forMs);
  }

  /** Runs until the condition holds; false if it does not within `withinMs`. */
  async until(condition: () => boolean, withinMs = 20_000): Promise<boolean> {
    const endMs = this.nowMs + withinMs;
    while (!condition()) {
      if (this.nowMs >= endMs) return false;
      await this.run(10);
    }
    return true;
  }

  async start(...ids: readonly number[]): Promise<void> {
    for (const node of ids.length === 0 ? this.nodes : ids.map((id) => this.node(id))) {
      if (node.replica === undefined) await this.#startNode(node);
    }
  }

  crash(id: number, { lands = false }: { readonly lands?: boolean } = {}): void {
    const node = this.node(id);
    if (node.replica === undefined) return;
    node.replica = undefined;
    node.life += 1;
    node.pausedUntilMs = 0;
    node.disk.crash({ lands });
    if (!this.linksClose) return;
    for (const other of this.nodes) {
      if (!this.#isCut(id, other.id)) {
        this.#onNode(other, this.#between(0, 3), 'frame', () => other.replica?.linkClosed(id));
      }
    }
  }

  pause(id: number, forMs: number): void {
    this.node(id).pausedUntilMs = this.nowMs + forMs;
  }

  partition(...sides: readonly (readonly number[])[]): void {
    this.#sides = sides;
  }

  heal(): void {
    this.#sides = undefined;
  }

  /** The node that leads in the highest term, if any does. */
  leader(): GroupNode | undefined {
    const leading = this.nodes.filter((node) => node.replica?.status().standing === 'leader');
    return leading.sort((left, right) => termOf(right) - termOf(left))[0];
  }

  async elected(): Promise<GroupNode> {
    await this.until(() => this.leader() !== undefined);
    return this.leader()!;
  }

  /** Proposes a value of its own; what comes of it is noted and checked. Resolves when it is known. */
  async write(id: number): Promise<'acked' | 'refused' | 'unknown'> {
    const node = this.node(id);
    const { replica, life } = node;
    this.#writeCount += 1;
    const value = `w${this.#writeCount}`;
    if (replica === undefined) return 'refused';
    try {
      this.#onAcked(node, value, await replica.propose(Buffer.from(value)));
      return 'acked';
    } catch (error) {
      // The next life has nothing to do with it.
      if (node.life !== life) return 'unknown';
      const isUnknown = error instanceof ReplicaError && error.code === 'outcome-unknown';
      const isKnown = error instanceof ReplicaError || error instanceof GroupRefusal;
      if (!isKnown) this.violations.push(`${value} failed with ${String(error)}`);
      (isUnknown ? this.unknown : this.refused).add(value);
      return isUnknown ? 'unknown' : 'refused';
    }
  }

  /** Reads behind a barrier; whatever was answered before it began must be there. */
  async read(id: number): Promise<'done' | 'refused'> {
    const node = this.node(id);
    const floor = this.#ackedIndex;
    if (node.replica === undefined) return 'refused';
    try {
      await node.replica.readBarrier();
    } catch {
      return 'refused';
    }
    this.readsDone += 1;
    const appliedIndex = node.register.appliedEntry?.index ?? 0;
    if (appliedIndex < floor) {
      this.violations.push(`a read at ${id} saw ${appliedIndex}, ${floor} was answered before`);
    }
    return 'done';
  }

  /** Everybody is back and quiet: the group must take writes, and agree on every one of them. */
  async settle(): Promise<void> {
    this.heal();
    this.wire = CALM;
    this.diskMs = [1, 5];
    this.slowDiskId = 0;
    for (const node of this.nodes) {
      node.disk.resume();
    }
    await this.run(Math.max(0, ...this.nodes.map((node) => node.pausedUntilMs - this.nowMs)));
    await this.start();
    let isDone = false;
    for (let tries = 0; tries < 40 && !isDone; tries += 1) {
      const leader = this.leader();
      if (leader !== undefined) {
        void this.write(leader.id).then((result) => {
          isDone ||= result === 'acked';
        });
      }
      await this.run(500);
    }
    if (!isDone) this.violations.push('the healed group takes no writes');
    await this.run(500);
    await this.until(() => this.#isEven());
    await this.#checkEnd();
  }

  /** Numbers in a row for tests that draw their own faults from the same seed. */
  below(count: number): number {
    return Math.floor(this.#draw() * count);
  }

  chance(rate: number): boolean {
    return this.#draw() < rate;
  }

  #between(low: number, high: number): number {
    return low + this.#draw() * (high - low);
  }

  #createNode(id: number): GroupNode {
    const node: GroupNode = {
      id,
      disk: new SimDisk((action) => this.#onNode(node, this.#diskDelayMs(id), 'frame', action)),
      register: new Register(),
      replica: undefined,
      life: 0,
      pausedUntilMs: 0,
      fatal: undefined,
      log: [],
    };
    node.register.schedule = (action) => this.#onNode(node, this.#diskDelayMs(id), 'frame', action);
    node.register.onApply = (entries) => this.#checkApplied(node, entries);
    return node;
  }

  #diskDelayMs(id: number): number {
    const [low, high] = this.diskMs;
    return this.#between(low, high) * (id === this.slowDiskId ? 20 : 1);
  }

  async #startNode(node: GroupNode): Promise<void> {
    node.fatal = undefined;
    const log = await DurableLog.open(node.disk, node.register.appliedEntry);
    const { life } = node;
    const line =
      (level: string) =>
      (fields: object, text: string): void => {
        node.log.push(`${this.nowMs.toFixed(0)} ${level} ${text} ${JSON.stringify(fields)}`);
      };
    node.replica = openRaftReplica({
      nodeId: node.id,
      membership: { ...NO_MEMBERS, voters: this.nodes.map(({ id }) => id) },
      log,
      machine: node.register,
      send: (to, message) => {
        if (node.life === life) this.#send(node, to, message);
      },
      clock: this.#clockOf(node),
      random: this.#randomOf(),
      logger: {
        debug: line('debug'),
        info: line('info'),
        warn: line('warn'),
        error: line('error'),
      },
      onFatal: (cause) => {
        node.fatal = cause;
        if (node.disk.failure === undefined) {
          this.violations.push(`node ${node.id} ended: ${cause.stack ?? cause.message}`);
        }
        this.crash(node.id);
      },
      ...(this.#options.limits && { limits: this.#options.limits }),
      ...(this.#options.timing && { timing: this.#options.timing }),
    });
  }

  #clockOf(node: GroupNode): Clock {
    return {
      monotonicMs: () => this.nowMs,
      wallMs: () => this.nowMs,
      after: (delayMs, action) => {
        let isCancelled = false;
        // A timer never fires in the turn of the event loop that sets it.
        this.#onNode(node, Math.max(delayMs, 1), 'timer', () => {
          if (!isCancelled) action();
        });
        return {
          cancel: () => {
            isCancelled = true;
          },
        };
      },
    };
  }

  #randomOf(): Random {
    return {
      uuid: () => {
        this.#uuidCount += 1;
        return `uuid-${this.#uuidCount}`;
      },
      bytes: (count) => Uint8Array.from({ length: count }, () => this.below(256)),
      fraction: () => this.#draw(),
    };
  }

  /** What happens in one life of a node; a paused one does it when it wakes, its timers first. */
  #onNode(node: GroupNode, delayMs: number, kind: 'timer' | 'frame', action: () => void): void {
    const { life } = node;
    const attempt = (): void => {
      if (node.life !== life) return;
      const waitMs = node.pausedUntilMs - this.nowMs;
      if (waitMs > 0) this.#world.after(waitMs + (kind === 'timer' ? 0 : 0.5), attempt);
      else action();
    };
    this.#world.after(delayMs, attempt);
  }

  #isCut(from: number, to: number): boolean {
    if (this.#sides === undefined) return false;
    return !this.#sides.some((side) => side.includes(from) && side.includes(to));
  }

  #send(from: GroupNode, to: number, message: Message): void {
    this.#checkPromise(from, message);
    this.#checkLeader(message);
    this.onSend(message);
    const copies = this.chance(this.wire.doubleRate) ? 2 : 1;
    for (let copy = 0; copy < copies; copy += 1) {
      if (this.chance(this.wire.lossRate) || this.#isCut(from.id, to)) continue;
      const target = this.node(to);
      const delayMs = this.#between(this.wire.minMs, this.wire.maxMs);
      this.#onNode(target, delayMs, 'frame', () => {
        if (!this.#isCut(from.id, to)) target.replica?.receive(message);
      });
    }
  }

  #checkLeader(message: Message): void {
    if (message.type !== 'append' && message.type !== 'heartbeat') return;
    const { from, term } = message;
    const known = this.#leaderByTerm.get(term) ?? from;
    if (known !== from) this.violations.push(`${known} and ${from} both lead term ${term}`);
    this.#leaderByTerm.set(term, from);
    if (message.type !== 'append') return;
    this.#sentTerms.set(`${term}/${message.prevIndex}`, message.prevTerm);
    for (const entry of message.entries) this.#sentTerms.set(`${term}/${entry.index}`, entry.term);
  }

  /** The disk knows what is synced at the moment when a promise leaves. */
  #checkPromise({ id, disk }: GroupNode, message: Message): void {
    const value = disk.get(HARD_STATE_KEY);
    const { term, vote } = value === undefined ? { term: 0, vote: 0 } : decodeHardState(value);
    const broken = (what: string): void => {
      this.violations.push(`${id} sent ${message.type} of term ${message.term} before ${what}`);
    };
    if (message.type === 'vote-reply' && !message.rejected) {
      const isKept = term > message.term || (term === message.term && vote === message.to);
      if (!isKept) broken('its vote was on disk');
    }
    if (message.type !== 'append-reply' || message.rejection !== undefined) return;
    if (term < message.term) broken('its term was on disk');
    if (message.index === 0) return;
    const row = disk.get(entryKey(message.index));
    const start = disk.get(START_KEY);
    const isTrimmed = start !== undefined && decodeWitness(start).index >= message.index;
    if (row === undefined) {
      if (!isTrimmed) broken(`entry ${message.index} was on disk`);
      return;
    }
    const entry = decodeEntry(row, message.index).entry;
    const sentTerm = this.#sentTerms.get(`${message.term}/${message.index}`);
    if (sentTerm !== undefined && sentTerm !== entry.term && term === message.term) {
      broken(`the leader's entry ${message.index} was on disk`);
    }
  }

  #checkApplied({ id, disk }: GroupNode, entries: readonly LogEntry[]): void {
    for (const { index, hash } of entries) {
      const text = Buffer.from(hash).toString('hex');
      const known = this.#hashByIndex.get(index) ?? text;
      if (known !== text) this.violations.push(`${id} applies another entry at ${index}`);
      this.#hashByIndex.set(index, known);
      if (disk.get(entryKey(index)) === undefined) {
        this.violations.push(`${id} applies entry ${index} before its own disk has it`);
      }
    }
  }

  #onAcked(node: GroupNode, value: string, index: number): void {
    this.acked.set(value, index);
    this.#ackedIndex = Math.max(this.#ackedIndex, index);
    const entry = node.register.applied[index - 1];
    if (entry === undefined || textOf(entry.payload) !== value) {
      this.violations.push(`${value} was answered before ${node.id} had it at ${index}`);
    }
  }

  #isEven(): boolean {
    const counts = this.nodes.map(({ register }) => register.applied.length);
    return counts.every((count) => count === counts[0]);
  }

  async #checkEnd(): Promise<void> {
    const [first, ...rest] = this.nodes.map(({ register }) =>
      register.applied.map(({ payload }) => textOf(payload)),
    );
    for (const [place, sequence] of rest.entries()) {
      if (sequence.join() === first!.join()) continue;
      this.violations.push(`1 and ${place + 2} applied ${first!.length} and ${sequence.length}`);
    }
    for (const [value, index] of this.acked) {
      if (first![index - 1] !== value) this.violations.push(`${value} was answered and is lost`);
    }
    const values = first!.filter((value) => value !== '');
    if (new Set(values).size !== values.length) this.violations.push('a value is there twice');
    for (const value of values) {
      if (this.refused.has(value)) this.violations.push(`${value} was refused and is there`);
    }
    await this.#checkLogs();
  }

  async #checkLogs(): Promise<void> {
    const hashByPlace = new Map<string, string>();
    for (const { disk, register } of this.nodes) {
      const log = await DurableLog.open(disk, register.appliedEntry);
      for (let index = log.firstIndex; index <= log.lastIndex; index += 1) {
        const { term, hash } = log.entry(index);
        const text = Buffer.from(hash).toString('hex');
        const known = hashByPlace.get(`${term}/${index}`) ?? text;
        if (known !== text) this.violations.push(`logs differ at ${index} of term ${term}`);
        hashByPlace.set(`${term}/${index}`, known);
      }
    }
  }
}

function termOf(node: GroupNode): number {
  return node.replica?.status().term ?? 0;
}
