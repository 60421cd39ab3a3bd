// Servers that share one log, without consensus: whoever is named leads, and commits at once. What goes
// wrong between them is chosen by the test: questions and answers that are lost, leaders that do not
// know that they were replaced, servers that lag behind. Their service, state and forwarding are real.

import type { LogEntry } from '../../../cluster/log/log-entry.ts';
import { nextEntry } from '../../../cluster/log/log-entry.ts';
import { RpcError } from '../../../cluster/transport/calls/rpc-error.ts';
import type { RpcCall } from '../../../cluster/transport/transport.ts';
import { AclError } from '../../../src/acl/error.ts';
import type { AuthMethods } from '../../../src/auth-methods/auth-method-types.ts';
import { answeringWith } from '../../../src/node/calls/answer-questions.ts';
import { Forwarding } from '../../../src/node/calls/forwarding.ts';
import { Leadership } from '../../../src/node/reign/leadership.ts';
import { createOperations, type Door } from '../../../src/service/create-operations.ts';
import type { ServiceDeps, ServiceSettings } from '../../../src/service/deps.ts';
import { ensureBuiltins } from '../../../src/service/duties/duties.ts';
import { LeaderAway } from '../../../src/service/remote.ts';
import { trackingWrites } from '../../../src/service/writes/tracking-writes.ts';
import { encodeCommand } from '../../../src/state/commands/command-codec.ts';
import type { Outcome } from '../../../src/state/commands/outcome.ts';
import { StateMachine } from '../../../src/state/machine.ts';
import { FakeClock } from '../fake-clock.ts';
import { FakeRandom } from '../fake-random.ts';
import { MemoryKv } from '../memory-kv.ts';
import { loneDatacenter } from './lone-datacenter.ts';

type Fault = 'lose-question' | 'lose-answer' | 'unreachable' | 'refused' | 'hang' | 'late';

export interface ServiceGroupOptions {
  readonly count: number;
  readonly settings: ServiceSettings;
  /** What a server has in their place. */
  readonly settingsOf?: (node: number) => Partial<ServiceSettings>;
  readonly authMethods: AuthMethods;
}

export class ServiceGroup {
  readonly clock = new FakeClock();
  readonly servers: readonly GroupServer[];
  readonly log: LogEntry[] = [];
  /** What happens to the next calls between servers, one each; afterwards they arrive. */
  readonly faults: Fault[] = [];
  /** What was held up on its way; each arrives when it is called. */
  readonly late: (() => Promise<Uint8Array>)[] = [];
  /** Calls that arrived. */
  arrived = 0;
  #leader = 0;
  #term = 1;

  constructor(options: ServiceGroupOptions) {
    this.servers = Array.from({ length: options.count }, (_, place) => {
      return new GroupServer(this, place + 1, options);
    });
  }

  get leader(): number {
    return this.#leader;
  }

  get term(): number {
    return this.#term;
  }

  server(node: number): GroupServer {
    return this.servers[node - 1]!;
  }

  /** 0: nobody leads. Those named do not hear of it. */
  lead(node: number, unaware: readonly number[] = []): void {
    this.#leader = node;
    this.#term += 1;
    for (const server of this.servers) {
      if (!unaware.includes(server.node)) server.hearOfLeader(node, this.#term);
    }
  }

  /** Moves the time on until it is settled. */
  async settled<T>(running: Promise<T>): Promise<T> {
    let isOver = false;
    const end = (): void => {
      isOver = true;
    };
    running.then(end, end);
    for (let turns = 0; turns < 20_000 && !isOver; turns += 1) {
      await new Promise<void>((resolve) => setImmediate(resolve));
      if (!isOver && turns % 3 === 2) this.clock.advance(20);
    }
    return running;
  }

  async call(to: number, request: RpcCall): Promise<Uint8Array> {
    const fault = this.faults.shift();
    if (fault === 'unreachable') throw new RpcError('unreachable', 'there is no link');
    if (fault === 'refused') throw new RpcError('refused', 'it does not answer this now');
    if (fault === 'lose-question') throw new RpcError('lost', 'the link was closed');
    if (fault === 'hang') return new Promise(() => undefined);
    if (fault === 'late') {
      this.late.push(() => this.server(to).answer(request.payload));
      return new Promise(() => undefined);
    }
    this.arrived += 1;
    const answer = await this.server(to).answer(request.payload);
    if (fault === 'lose-answer') throw new RpcError('lost', 'the link was closed');
    return answer;
  }
}

export class GroupServer {
  readonly node: number;
  readonly machine: StateMachine;
  readonly door: Door;
  readonly deps: ServiceDeps;
  readonly leadership: Leadership;
  readonly forwarding: Forwarding;
  readonly answer: (question: Uint8Array) => Promise<Uint8Array>;
  readonly counts = new Map<string, number>();
  proposals = 0;
  barriers = 0;
  duties = 0;
  /** False: it applies nothing until it is true again. */
  isApplying = true;
  /** While it leads: since a quorum was heard; 0 while one answers. */
  quorumMs = 0;
  /** While another leads: since it was heard. */
  heardMs = 7;
  /** What it proposes comes to no quorum of disks before that. */
  disks: Promise<void> = Promise.resolve();
  /** What its next proposal comes to after it was committed. */
  loseNextOutcome = false;
  readonly #group: ServiceGroup;
  readonly #listeners = new Set<() => void>();
  #heard = { leader: 0, term: 0 };
  #applying: Promise<unknown> = Promise.resolve();

  constructor(group: ServiceGroup, node: number, options: ServiceGroupOptions) {
    this.#group = group;
    this.node = node;
    const { clock } = group;
    this.machine = StateMachine.open(new MemoryKv(), { clock });
    const onLeaderChanged = (listener: () => void): (() => void) => {
      this.#listeners.add(listener);
      return () => this.#listeners.delete(listener);
    };
    const line = {
      self: node,
      leader: () => {
        const { leader: node, term } = this.#heard;
        return node === 0 ? undefined : { node, term };
      },
      call: (to: number, request: RpcCall) => group.call(to, request),
      onLeaderChanged,
    };
    this.forwarding = new Forwarding({ line, clock, countMax: 4, ackTimeoutMs: 5_000 });
    this.deps = this.#depsOf(options);
    this.leadership = new Leadership({
      lead: () => this.lead(),
      onLeaderChanged,
      prepare: () => ensureBuiltins(this.deps),
      onReign: () => {
        this.duties += 1;
      },
      onReignOver: () => {
        this.duties -= 1;
      },
      reignWaitMs: options.settings.leaderWaitMs,
      clock,
      logger: this.deps.logger,
    });
    this.door = createOperations(this.deps);
    const { random, logger } = this.deps;
    this.answer = answeringWith({ door: this.door, countMax: 4, random, logger });
  }

  lead(): { isSelf: boolean; isKnown: boolean; lastContactMs: number | undefined; term: number } {
    const { leader, term } = this.#heard;
    const isSelf = leader === this.node;
    const contactMs = leader === 0 ? undefined : this.heardMs;
    const lastContactMs = isSelf ? this.quorumMs : contactMs;
    return { isSelf, isKnown: leader !== 0, lastContactMs, term };
  }

  hearOfLeader(leader: number, term: number): void {
    this.#heard = { leader, term };
    for (const listener of [...this.#listeners]) listener();
  }

  /** Applies what the log has. */
  async catchUp(): Promise<void> {
    this.#applying = this.#applying.then(async () => {
      while (this.isApplying && this.machine.appliedIndex() < this.#group.log.length) {
        const entry = this.#group.log[this.machine.appliedIndex()]!;
        this.#outcomes.set(entry.index, (await this.machine.apply([entry]))[0]!);
      }
    });
    await this.#applying;
  }

  readonly #outcomes = new Map<number, Outcome>();

  async #propose(payload: Uint8Array): Promise<Outcome> {
    this.proposals += 1;
    const { log, leader, term } = this.#group;
    if (this.#heard.leader !== this.node) throw new LeaderAway();
    // It believes to lead, and finds nobody who follows.
    if (leader !== this.node) {
      throw new AclError('outcome-unknown', 'whether the write took effect is not known: deposed');
    }
    await this.disks;
    const entry = nextEntry(log.at(-1) ?? { index: 0, hash: new Uint8Array(32) }, term, payload);
    log.push(entry);
    for (const server of this.#group.servers) if (server !== this) void server.catchUp();
    await this.catchUp();
    const lost = this.loseNextOutcome;
    this.loseNextOutcome = false;
    if (lost)
      throw new AclError('outcome-unknown', 'whether the write took effect is not known: lost');
    return this.#outcomes.get(entry.index)!;
  }

  async #readBarrier(): Promise<void> {
    this.barriers += 1;
    if (this.#group.leader === 0 || this.#heard.leader !== this.#group.leader) {
      throw new LeaderAway();
    }
    const { length } = this.#group.log;
    while (this.machine.appliedIndex() < length) {
      await this.catchUp();
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
  }

  #depsOf({ settings, settingsOf, authMethods }: ServiceGroupOptions): ServiceDeps {
    const random = new FakeRandom();
    const own = (text: string): string => `${String(this.node).repeat(8)}${text.slice(8)}`;
    const silent = (): void => undefined;
    return trackingWrites({
      view: this.machine,
      watch: this.machine.watch,
      propose: async (command, reign) => {
        if (reign !== undefined && !this.leadership.isReign(reign)) throw new LeaderAway();
        return this.#propose(encodeCommand(command));
      },
      readBarrier: () => this.#readBarrier(),
      leaderContact: () => this.leadership.contact(),
      reign: () => this.leadership.reign(),
      notOpenBecause: () => undefined,
      opens: () => Promise.resolve(),
      remote: this.forwarding,
      federation: loneDatacenter(settings.datacenter, () => this.machine.position()),
      takeResetIndex: () => undefined,
      authMethods,
      clock: this.#group.clock,
      agreedMs: () => Promise.resolve(this.#group.clock.wallMs()),
      random: {
        uuid: () => own(random.uuid()),
        bytes: (count) => random.bytes(count),
        fraction: () => 0.5,
      },
      logger: { debug: silent, info: silent, warn: silent, error: silent },
      metrics: {
        count: (name, _labels, by = 1) => {
          this.counts.set(name, (this.counts.get(name) ?? 0) + by);
        },
      },
      settings: { ...settings, ...settingsOf?.(this.node) },
    });
  }
}
