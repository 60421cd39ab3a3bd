// A whole group in one process: simulated time, wire and disks, all drawn from one seed, around real
// replicas. It is founded, grows, shrinks and sends snapshots as the test says; group-checks.ts looks at
// what must always hold. Violations are collected, not thrown.

import { writeFounding } from '../../../cluster/log/cluster-identity.ts';
import { DurableLog, readGeneration } from '../../../cluster/log/durable-log.ts';
import type { Clock } from '../../../cluster/platform/clock.ts';
import type { Random } from '../../../cluster/platform/random.ts';
import { membersOf, NO_MEMBERS } from '../../../cluster/raft/membership/membership.ts';
import {
  encodeMembershipChange,
  type MembershipChange,
} from '../../../cluster/raft/membership/membership-change.ts';
import type { Message, SnapshotMessage } from '../../../cluster/raft/message.ts';
import type { GroupLimits, GroupTiming } from '../../../cluster/replica/group-limits.ts';
import { GroupRefusal } from '../../../cluster/replica/group-refusal.ts';
import { openRaftReplica } from '../../../cluster/replica/raft-replica.ts';
import { type MachineSnapshot, ReplicaError } from '../../../cluster/replica/replica.ts';
import { textOf } from '../memory-kv.ts';
import { GroupChecks } from './group-checks.ts';
import { violationsAtEnd } from './group-end.ts';
import { changeOf } from './group-members.ts';
import { alive, type GroupNode, termOf } from './group-node.ts';
import { Register } from './register-machine.ts';
import { SimulatedKv, WriteQueue } from './simulated-disk.ts';
import { streamOf, World } from './simulated-world.ts';

export interface Wire {
  readonly lossRate: number;
  readonly doubleRate: number;
  readonly minMs: number;
  readonly maxMs: number;
}

export interface GroupOptions {
  /** So many nodes, 1 and up, found the group. */
  readonly size: number;
  readonly seed: number;
  readonly limits?: Partial<GroupLimits>;
  readonly timing?: Partial<GroupTiming>;
}

export const CALM: Wire = { lossRate: 0, doubleRate: 0, minMs: 1, maxMs: 3 };

export type Result = 'acked' | 'refused' | 'unknown';

export class InMemoryGroup {
  readonly nodes: GroupNode[];
  readonly checks = new GroupChecks();
  wire: Wire = CALM;
  diskMs: readonly [number, number] = [1, 5];
  /** Whose disk takes twenty times as long. */
  slowDiskId = 0;
  /** Whether others notice a crash at once, by their closed links. */
  linksClose = true;
  /** Every message as it leaves, for a test that watches the wire. */
  onSend: (message: Message) => void = () => undefined;
  /** What never arrives, for a test that knows. */
  isLost: (message: Message) => boolean = () => false;
  /** Before each chunk of a snapshot that is sent, with their number so far; may throw. */
  onChunk: (message: SnapshotMessage, count: number) => void = () => undefined;
  readonly acked = new Map<string, number>();
  readonly refused = new Set<string>();
  readonly unknown = new Set<string>();
  readsDone = 0;
  changesDone = 0;
  readonly #world = new World();
  readonly #options: GroupOptions;
  readonly #draw: () => number;
  #uuidCount = 0;
  #writeCount = 0;
  #ackedIndex = 0;
  /** Groups of nodes that reach each other; undefined: all do. */
  #sides: readonly (readonly number[])[] | undefined;

  constructor(options: GroupOptions) {
    this.#options = options;
    this.#draw = streamOf(options.seed);
    this.nodes = Array.from({ length: options.size }, (_, place) => this.#createNode(place + 1));
  }

  get violations(): string[] {
    return this.checks.violations;
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

  /** A node with empty disks that belongs to no group, and is not started. */
  addNode(): GroupNode {
    const node = this.#createNode(this.nodes.length + 1);
    this.nodes.push(node);
    return node;
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
    node.queue.crash({ lands });
    node.stateQueue.crash({ lands });
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
  async write(id: number): Promise<Result> {
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
      const result = this.#resultOf(value, error);
      (result === 'unknown' ? this.unknown : this.refused).add(value);
      return result;
    }
  }

  /** Proposes a change of the group; when it is through, the record must say so. */
  async change(id: number, change: MembershipChange): Promise<Result> {
    const node = this.node(id);
    const { replica, life } = node;
    if (replica === undefined) return 'refused';
    try {
      const record = await replica.proposeMembership(change);
      const members = membersOf(record.membership);
      for (const { kind, node: changed } of change.changes) {
        if (members.includes(changed) === (kind !== 'remove')) continue;
        this.violations.push(`${kind} ${changed} is through, the members are ${members.join()}`);
      }
      this.changesDone += 1;
      return 'acked';
    } catch (error) {
      return node.life === life ? this.#resultOf('a change', error) : 'unknown';
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
    this.onChunk = () => undefined;
    for (const queue of this.nodes.flatMap((node) => [node.queue, node.stateQueue])) {
      queue.onWrite = () => undefined;
      queue.resume();
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
    // Snapshots that nobody waits for any more come to their end.
    const isQuiet = ({ register, disk }: GroupNode): boolean =>
      register.snapshotCount === 0 && register.generation === readGeneration(disk);
    await this.until(() => this.nodes.every(isQuiet));
    const { nodes, acked, refused } = this;
    const found = await violationsAtEnd({ nodes, members: this.members(), acked, refused });
    this.violations.push(...found);
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
    const schedule = (action: () => void): void => {
      this.#onNode(node, this.#diskDelayMs(id), 'frame', action);
    };
    const queue = new WriteQueue(schedule);
    const stateQueue = new WriteQueue(schedule);
    const disk = new SimulatedKv(queue);
    const register = new Register({
      queue: stateQueue,
      validGeneration: () => readGeneration(disk),
      onApply: (entries) => this.checks.onApply(node, entries),
      onAdopt: (entries) => this.checks.onAdopt(node, entries),
      complain: (what) => this.violations.push(`${id}: ${what}`),
    });
    const node: GroupNode = {
      id,
      queue,
      stateQueue,
      disk,
      register,
      replica: undefined,
      life: 0,
      pausedUntilMs: 0,
      fatal: undefined,
      log: [],
    };
    return node;
  }

  #diskDelayMs(id: number): number {
    const [low, high] = this.diskMs;
    return this.#between(low, high) * (id === this.slowDiskId ? 20 : 1);
  }

  /** The founders' disks begin with the founding; those of others are left as they are. */
  async found(id: number): Promise<void> {
    const { size } = this.#options;
    const payloads = Array.from({ length: size }, (_, place) =>
      encodeMembershipChange(changeOf(['add-voter', place + 1])),
    );
    await writeFounding(this.node(id).disk.now, { clusterId: 'a-cluster', payloads });
  }

  async #startNode(node: GroupNode): Promise<void> {
    node.fatal = undefined;
    if (node.life === 0 && node.id <= this.#options.size && node.disk.isNew) {
      await this.found(node.id);
    }
    node.register.open();
    const log = await DurableLog.open(node.disk, node.register.appliedEntry);
    const { life } = node;
    const line =
      (level: string) =>
      (fields: object, text: string): void => {
        node.log.push(`${this.nowMs.toFixed(0)} ${level} ${text} ${JSON.stringify(fields)}`);
      };
    node.replica = openRaftReplica({
      nodeId: node.id,
      log,
      machine: node.register,
      send: (to, message) => {
        if (node.life === life) this.#send(node, to, message);
      },
      sendSnapshot: (to, message, snapshot) => this.#transfer(node, to, message, snapshot),
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
    this.checks.onSend(from, message);
    this.onSend(message);
    if (this.isLost(message)) return;
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

  /** Chunk after chunk. What breaks it off, the receiver hears of at once, later, or never. */
  async #transfer(
    from: GroupNode,
    to: number,
    message: SnapshotMessage,
    snapshot: MachineSnapshot,
  ): Promise<void> {
    const target = this.node(to);
    const { life } = target;
    const passes = this.#passage(from, target);
    await passes();
    const intake = await alive(target, target.replica!.beginSnapshot(message));
    try {
      let count = 0;
      for await (const chunk of snapshot.chunks()) {
        count += 1;
        this.onChunk(message, count);
        await passes();
        await alive(target, intake.add(chunk));
      }
      await passes();
      await alive(target, intake.finish());
      await passes();
    } catch (error) {
      const abandon = (): void => {
        if (target.life === life) void intake.abandon();
      };
      if (this.chance(0.7)) this.#world.after(this.#between(0, 3000), abandon);
      throw error;
    }
  }

  /** The way of one piece from one node to the other, while both live as they do now. */
  #passage(from: GroupNode, target: GroupNode): () => Promise<void> {
    const lives = [from.life, target.life];
    return async () => {
      const delayMs = this.#between(this.wire.minMs, this.wire.maxMs);
      await this.#wait(Math.max(delayMs, target.pausedUntilMs - this.nowMs));
      const isBroken =
        from.life !== lives[0] ||
        target.life !== lives[1] ||
        target.replica === undefined ||
        this.#isCut(from.id, target.id) ||
        this.chance(this.wire.lossRate / 4);
      if (isBroken) throw new Error('the connection broke');
    };
  }

  #wait(forMs: number): Promise<void> {
    return new Promise((resolve) => this.#world.after(forMs, resolve));
  }

  #resultOf(what: string, error: unknown): Result {
    const isUnknown = error instanceof ReplicaError && error.code === 'outcome-unknown';
    const isKnown = error instanceof ReplicaError || error instanceof GroupRefusal;
    if (!isKnown) this.violations.push(`${what} failed with ${String(error)}`);
    return isUnknown ? 'unknown' : 'refused';
  }

  #onAcked(node: GroupNode, value: string, index: number): void {
    this.acked.set(value, index);
    this.#ackedIndex = Math.max(this.#ackedIndex, index);
    const entry = node.register.applied[index - 1];
    if (entry === undefined || textOf(entry.payload) !== value) {
      this.violations.push(`${value} was answered before ${node.id} had it at ${index}`);
    }
  }

  /** Those who belong to the group, as its leader knows. */
  members(): readonly GroupNode[] {
    const record = this.leader()?.replica?.groupRecord();
    return membersOf(record?.membership ?? NO_MEMBERS).map((id) => this.node(id));
  }

  #isEven(): boolean {
    const counts = this.members().map(({ register }) => register.applied.length);
    return counts.length > 0 && counts.every((count) => count === counts[0]);
  }
}
