// Whole members in one process: their clocks, network and disks are simulated, all else is what runs in
// production. A node can be crashed at any moment, even in the middle of a write, and started again on
// what its disk has. What must always hold is looked at all the time: violations are collected.

import { messageOf } from '../../../cluster/base/message-of.ts';
import { readClusterId } from '../../../cluster/log/cluster-identity.ts';
import { readGeneration } from '../../../cluster/log/durable-log.ts';
import type {
  Checkpoint,
  DigestedMachine,
  Member,
  MemberOptions,
  MemberView,
} from '../../../cluster/member/group-member.ts';
import { openMember } from '../../../cluster/member.ts';
import type { Clock } from '../../../cluster/platform/clock.ts';
import type { Kv } from '../../../cluster/platform/kv.ts';
import type { Net, NetAddress } from '../../../cluster/platform/net.ts';
import type { Random } from '../../../cluster/platform/random.ts';
import { FakeNet } from '../fake-net.ts';
import { Register } from './register-machine.ts';
import { SimulatedKv, WriteQueue } from './simulated-disk.ts';
import { streamOf, World } from './simulated-world.ts';

const PORT = 8300;
/** Digests are taken of every so many entries. */
const CHECKPOINT_INTERVAL = 8;

export type MemberSettings = Partial<
  Pick<
    MemberOptions<number>,
    | 'bootstrapExpect'
    | 'clusterKey'
    | 'timing'
    | 'limits'
    | 'groupTiming'
    | 'groupLimits'
    | 'advertise'
    | 'transportTiming'
    | 'federationId'
  >
> & {
  /** Names of nodes whose addresses are in retry_join. */
  readonly join?: readonly string[];
  readonly datacenter?: string;
  readonly version?: string;
  /** Up to which level its program reads the log. */
  readonly reads?: number;
  readonly port?: number;
  readonly hasPort?: boolean;
  /** What it says that its name is; else the name by which the test knows it. */
  readonly shownName?: string;
};

/** A register that has digests: of the sum of what it applied, so that a wrong one stays wrong. */
class DigestedRegister extends Register implements DigestedMachine<number> {
  /** What a fault has put into the state. */
  fault = '';
  usesLevel = 1;

  get lastCheckpoint(): Checkpoint | undefined {
    const index = Math.floor(this.applied.length / CHECKPOINT_INTERVAL) * CHECKPOINT_INTERVAL;
    const digest = this.digestAt(index);
    return digest === undefined ? undefined : { index, digest };
  }

  digestAt(index: number): string | undefined {
    if (index === 0 || index % CHECKPOINT_INTERVAL !== 0) return undefined;
    const entry = this.applied[index - 1];
    return entry === undefined ? undefined : this.fault + Buffer.from(entry.hash).toString('hex');
  }
}

export class MemberNode {
  readonly name: string;
  /** As the file in its data folder says. */
  id: string;
  settings: MemberSettings;
  readonly queue: WriteQueue;
  readonly kv: SimulatedKv;
  readonly machine: DigestedRegister;
  /** Undefined while it is down. */
  member: Member<number> | undefined;
  fatal: Error | undefined;
  readonly log: string[] = [];
  /** Grows with every crash: what belongs to an earlier life does nothing any more. */
  life = 0;
  /** Everything that the node has listening; a crash ends it. */
  listenings: (() => void)[] = [];

  constructor(world: MemberWorld, { name, id }: { readonly name: string; readonly id: string }) {
    this.name = name;
    this.id = id;
    this.settings = {};
    this.queue = new WriteQueue((action) => world.onDisk(this, action));
    this.kv = new SimulatedKv(this.queue);
    this.machine = new DigestedRegister({
      queue: this.queue,
      validGeneration: () => readGeneration(this.kv),
      onApply: (entries) => world.checkApplied(this, entries),
      onAdopt: () => undefined,
      complain: (what) => world.violations.push(`${name}: ${what}`),
    });
  }

  get isUp(): boolean {
    return this.member !== undefined;
  }

  get up(): Member<number> {
    if (this.member === undefined) throw new Error(`${this.name} is down`);
    return this.member;
  }

  get isLeader(): boolean {
    const standing = this.member?.standing();
    return standing?.kind === 'member' && standing.isLeader;
  }

  /** Its standing as text, for tests that compare. */
  get stands(): string {
    const standing = this.member?.standing();
    if (standing === undefined) return 'down';
    if (standing.kind !== 'member') return standing.kind;
    return standing.isLeader ? 'leader' : 'follower';
  }

  get says(): string {
    const standing = this.member?.standing();
    return standing === undefined || standing.kind === 'member' ? '' : standing.says;
  }

  /** Names in its record of the group; learners in brackets. */
  get group(): string {
    const { members, membership } = this.up.groupRecord();
    return members
      .map(({ name, node }) => (membership.voters.includes(node) ? name : `(${name})`))
      .sort()
      .join(' ');
  }

  view(name: string): MemberView | undefined {
    return this.up.members().find((each) => each.name === name);
  }

  /** As it is on its disk. */
  get clusterId(): string | undefined {
    return readClusterId(this.kv.now);
  }

  hasLogged(text: RegExp): boolean {
    return this.log.some((line) => text.test(line));
  }
}

export class MemberWorld {
  readonly net: FakeNet;
  readonly violations: string[] = [];
  readonly nodes = new Map<string, MemberNode>();
  /** Values that were acknowledged, with the index of their entry. */
  readonly acked = new Map<string, number>();
  readonly #world = new World();
  readonly #draw: () => number;
  /** By cluster and index. */
  readonly #hashByPlace = new Map<string, string>();
  #writeCount = 0;
  #idCount = 0;

  constructor(seed = 1) {
    this.#draw = streamOf(seed);
    this.net = new FakeNet(this.#clock(() => true));
  }

  get nowMs(): number {
    return this.#world.nowMs;
  }

  /** A node on a new disk. Ids ascend in the order of creation unless one is given. */
  node(name: string, settings: MemberSettings = {}, id?: string): MemberNode {
    this.#idCount += 1;
    const ownId =
      id ?? `${this.#idCount.toString(16).padStart(8, '0')}-0000-4000-8000-000000000000`;
    const node = new MemberNode(this, { name, id: ownId });
    node.settings = settings;
    this.nodes.set(name, node);
    return node;
  }

  /** So many nodes that found a group together; each knows all. */
  founders(count: number, settings: MemberSettings = {}): readonly MemberNode[] {
    const names = Array.from({ length: count }, (_, place) => String.fromCharCode(97 + place));
    return names.map((name) =>
      this.node(name, { bootstrapExpect: count, join: names, ...settings }),
    );
  }

  /** A group that has a leader whom all follow. */
  async group(count: number, settings: MemberSettings = {}): Promise<readonly MemberNode[]> {
    const nodes = count === 1 ? [this.node('a', settings)] : this.founders(count, settings);
    await this.start(...nodes);
    await this.settled(nodes);
    return nodes;
  }

  async start(...nodes: readonly MemberNode[]): Promise<void> {
    for (const node of nodes) await this.#open(node);
  }

  run(forMs: number): Promise<void> {
    return this.#world.run(forMs);
  }

  /** Runs until the condition holds; throws with the state of all when it does not. */
  async until(what: string, condition: () => boolean, withinMs = 60_000): Promise<void> {
    const endMs = this.nowMs + withinMs;
    while (!condition()) {
      if (this.nowMs >= endMs)
        throw new Error(`${what}: not within ${withinMs} ms\n${this.state()}`);
      await this.run(10);
    }
  }

  /** All of them are members, and follow one leader, whose group they know. */
  async settled(nodes: readonly MemberNode[], withinMs = 60_000): Promise<MemberNode> {
    const isSettled = (): boolean => {
      const leader = nodes.find((node) => node.isLeader);
      if (leader === undefined) return false;
      return nodes.every((node) => {
        const standing = node.member?.standing();
        const isWith = standing?.kind === 'member' && standing.leader?.name === leader.name;
        return isWith && node.group === leader.group;
      });
    };
    const names = nodes.map(({ name }) => name).join(' ');
    await this.until(`${names} are one group`, isSettled, withinMs);
    return nodes.find((node) => node.isLeader)!;
  }

  /** Waits for a promise in simulated time. */
  async result<T>(promise: Promise<T>, withinMs = 60_000): Promise<T> {
    let isDone = false;
    const done = promise.finally(() => {
      isDone = true;
    });
    done.catch(() => undefined);
    await this.until('an answer', () => isDone, withinMs);
    return done;
  }

  /** The message of what a promise rejects with; throws when it does not. */
  async refusal(promise: Promise<unknown>, withinMs = 60_000): Promise<string> {
    try {
      await this.result(promise, withinMs);
    } catch (error) {
      return messageOf(error);
    }
    throw new Error('it was not refused');
  }

  /** Writes a value of its own at the leader. */
  async write(node: MemberNode): Promise<string> {
    this.#writeCount += 1;
    const value = `w${this.#writeCount}`;
    this.acked.set(value, await this.result(node.up.propose(Buffer.from(value))));
    return value;
  }

  async writes(node: MemberNode, count: number): Promise<void> {
    for (let done = 0; done < count; done += 1) await this.write(node);
  }

  crash(node: MemberNode, { lands = false }: { readonly lands?: boolean } = {}): void {
    node.member = undefined;
    node.life += 1;
    node.queue.crash({ lands });
    for (const end of node.listenings.splice(0)) end();
    for (const other of this.nodes.keys()) this.net.breakAll(node.name, other);
  }

  /** Closes it as an operator would; resolves when it is down. */
  async stop(node: MemberNode): Promise<void> {
    await this.result(node.up.close());
    node.member = undefined;
    node.life += 1;
  }

  /** Both directions between each of `some` and each of `others`. */
  cut(some: readonly MemberNode[], others: readonly MemberNode[]): void {
    for (const one of some) {
      for (const other of others) {
        this.net.cut(one.name, other.name);
        this.net.cut(other.name, one.name);
      }
    }
  }

  /** Every node that is up has applied all that was acknowledged, and the same. */
  async checkEven(nodes: readonly MemberNode[]): Promise<void> {
    await this.until('all have applied the same', () => {
      const counts = nodes.map(({ machine }) => machine.applied.length);
      return counts.every((count) => count === counts[0]);
    });
    for (const { name, machine } of nodes) {
      for (const [value, index] of this.acked) {
        const entry = machine.applied[index - 1];
        const found = entry === undefined ? '' : Buffer.from(entry.payload).toString();
        if (found !== value) this.violations.push(`${name} lacks ${value} at ${index}`);
      }
    }
  }

  /** What all nodes say of themselves, for a test that waits in vain. */
  state(): string {
    return [...this.nodes.values()]
      .map((node) => {
        const group = node.isUp ? node.group : '';
        const lines = node.log.slice(-12).map((line) => `    ${line}`);
        return [`  ${node.name} ${node.stands} [${group}] ${node.says}`, ...lines].join('\n');
      })
      .join('\n');
  }

  onDisk(node: MemberNode, action: () => void): void {
    const { life } = node;
    this.#world.after(1 + 3 * this.#draw(), () => {
      if (node.life === life) action();
    });
  }

  checkApplied(
    node: MemberNode,
    entries: readonly { readonly index: number; readonly hash: Uint8Array }[],
  ): void {
    for (const { index, hash } of entries) {
      const text = Buffer.from(hash).toString('hex');
      const place = `${node.clusterId} ${index}`;
      const known = this.#hashByPlace.get(place) ?? text;
      if (known !== text) this.violations.push(`${node.name} applies another entry at ${index}`);
      this.#hashByPlace.set(place, known);
    }
  }

  async #open(node: MemberNode): Promise<void> {
    if (node.isUp) throw new Error(`${node.name} is up`);
    const { life } = node;
    const {
      join = [],
      datacenter = 'dc1',
      version = '1.0',
      reads = 1,
      port = PORT,
    } = node.settings;
    const {
      hasPort = true,
      shownName = node.name,
      bootstrapExpect = 1,
      clusterKey,
      advertise,
      ...rest
    } = node.settings;
    node.fatal = undefined;
    const isAlive = (): boolean => node.life === life;
    const line =
      (level: string) =>
      (fields: object, text: string): void => {
        const shown = JSON.stringify(fields, (_, value: unknown) =>
          value instanceof Error ? value.stack : value,
        );
        if (isAlive()) node.log.push(`${this.nowMs.toFixed(0)} ${level} ${text} ${shown}`);
      };
    const clock = this.#clock(isAlive);
    const opening = openMember<number>({
      net: this.#netOf(node),
      clock,
      random: this.#random(),
      logger: {
        debug: line('debug'),
        info: line('info'),
        warn: line('warn'),
        error: line('error'),
      },
      onFatal: (cause) => {
        if (!isAlive()) return;
        node.fatal = cause;
        this.violations.push(`${node.name} ended: ${cause.stack ?? cause.message}`);
        this.crash(node);
      },
      self: {
        id: node.id,
        name: shownName,
        datacenter,
        version,
        reads,
        httpAddress: () => `${node.name}:8500`,
      },
      logKv: this.#kvOf(node),
      openMachine: async () => {
        node.machine.open();
        return node.machine;
      },
      listen: hasPort ? { host: node.name, port } : undefined,
      advertise,
      bootstrapExpect,
      retryJoin: join.map((name) => this.#addressOf(name)),
      clusterKey,
      ...(rest.federationId && { federationId: rest.federationId }),
      ...(rest.timing && { timing: rest.timing }),
      ...(rest.limits && { limits: rest.limits }),
      ...(rest.groupTiming && { groupTiming: rest.groupTiming }),
      ...(rest.groupLimits && { groupLimits: rest.groupLimits }),
      ...(rest.transportTiming && { transportTiming: rest.transportTiming }),
    });
    opening.catch(() => undefined);
    let isOpen = false;
    void opening.then(
      (member) => {
        isOpen = true;
        if (isAlive()) node.member = member;
      },
      () => {
        isOpen = true;
      },
    );
    await this.until(`${node.name} opens`, () => isOpen || !isAlive());
    if (isOpen) await opening;
  }

  #addressOf(name: string): NetAddress {
    return { host: name, port: this.nodes.get(name)?.settings.port ?? PORT };
  }

  /** A store that an earlier life cannot write to. */
  #kvOf(node: MemberNode): Kv {
    const { life, kv } = node;
    return {
      get: (key) => kv.get(key),
      rows: (range) => kv.rows(range),
      snapshot: () => kv.snapshot(),
      compact: () => kv.compact(),
      close: () => kv.close(),
      write: (writes) => (node.life === life ? kv.write(writes) : new Promise(() => undefined)),
    };
  }

  #netOf(node: MemberNode): Net {
    const { life } = node;
    const net = this.net.host(node.name);
    return {
      listen: async (address, onConn) => {
        const listening = await net.listen(address, onConn);
        node.listenings.push(() => void listening.close());
        return listening;
      },
      dial: (address, options) => {
        if (node.life !== life) return new Promise(() => undefined);
        return net.dial(address, options).then((conn) => {
          if (node.life !== life) conn.close('its node is gone');
          return conn;
        });
      },
    };
  }

  #clock(isAlive: () => boolean): Clock {
    return {
      monotonicMs: () => this.nowMs,
      wallMs: () => 1_767_225_600_000 + this.nowMs,
      after: (delayMs, action) => {
        let isCancelled = false;
        // A timer never fires in the turn of the event loop that sets it.
        this.#world.after(Math.max(delayMs, 0.01), () => {
          if (!isCancelled && isAlive()) action();
        });
        return {
          cancel: () => {
            isCancelled = true;
          },
        };
      },
    };
  }

  #random(): Random {
    const hex = (digits: number): string =>
      Array.from({ length: digits }, () => Math.floor(this.#draw() * 16).toString(16)).join('');
    return {
      uuid: () => `${hex(8)}-${hex(4)}-4${hex(3)}-8${hex(3)}-${hex(12)}`,
      bytes: (count) => Uint8Array.from({ length: count }, () => Math.floor(this.#draw() * 256)),
      fraction: () => this.#draw(),
    };
  }
}
