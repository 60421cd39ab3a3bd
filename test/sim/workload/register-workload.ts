// Clients of the register machine: they write, compare and set, and read, at whichever node they like;
// some reads are stale on purpose. Every value is written once in a run, so each read says which write
// it saw.

import type { LogEntry } from '../../../cluster/log/log-entry.ts';
import { GroupRefusal } from '../../../cluster/replica/group-refusal.ts';
import { ReplicaError } from '../../../cluster/replica/replica.ts';
import type { Violations } from '../checks/violations.ts';
import { checkOperations } from '../linearizability/checker.ts';
import { type Operation, unknownOutput } from '../linearizability/model.ts';
import {
  type RegisterInput,
  type RegisterOutput,
  registerModel,
} from '../linearizability/register-model.ts';
import type { SimGroup } from '../run/sim-group.ts';
import {
  commandOf,
  decide,
  payloadOf,
  type RegisterCommand,
  type RegisterOutcome,
  type RegisterReading,
  type RegisterValue,
} from '../subject/register-machine.ts';
import type { LiveReplica, ReplicaSubject } from '../subject/replica-subject.ts';
import type { LiveNode } from '../subject/subject.ts';
import type { SimHost } from '../world/sim-host.ts';
import type { Stream } from '../world/stream.ts';
import type { World } from '../world/world.ts';
import { ClientLoop, triedUntil } from './client-loop.ts';
import { drawWeighted } from './draw-weighted.ts';
import type { Workload } from './workload.ts';

export interface RegisterWorkloadOptions {
  readonly world: World;
  readonly group: SimGroup;
  readonly subject: ReplicaSubject;
  readonly violations: Violations;
  readonly clientCount: number;
  readonly keyCount: number;
  /** Between two operations of one client, on average. */
  readonly thinkMs: number;
  readonly patienceMs: number;
  /** The same of those who try whether the healed group answers. */
  readonly probeMs: number;
  readonly weights: Readonly<Record<OperationKind, number>>;
  /** The log as far as it is committed, from index 1. */
  readonly committed: () => readonly LogEntry[];
}

export type OperationKind = 'write' | 'cas' | 'read' | 'stale';

const ATTEMPTS_MAX = 3;
/** Part of the writes that go to whoever took the last one. */
const TRUE_RATE = 0.7;

interface Client {
  /** Another one after every operation whose outcome is unknown. */
  number: number;
  readonly stream: Stream;
  /** What each key held when this client last saw it. */
  readonly seen: Map<string, string | null>;
  favourite: SimHost;
}

type Attempt =
  | { readonly kind: 'done'; readonly outcome: RegisterOutcome }
  | { readonly kind: 'nothing'; readonly leader: number | undefined }
  | { readonly kind: 'unknown' };

interface StaleRead extends RegisterReading {
  readonly host: string;
  readonly key: string;
}

export class RegisterWorkload implements Workload {
  readonly #options: RegisterWorkloadOptions;
  readonly #loop: ClientLoop<Client>;
  readonly #operations: Operation<RegisterInput, RegisterOutput>[] = [];
  /** Requests by id: what is known of them. */
  readonly #acknowledged = new Map<string, RegisterOutcome>();
  readonly #nothingDone = new Set<string>();
  readonly #staleReads: StaleRead[] = [];
  /** Not answered yet. */
  readonly #open = new Set<Operation<RegisterInput, RegisterOutput>>();
  #clientCount = 0;
  #valueCount = 0;
  #timeoutMs: number;
  /** The newest entry that anybody was answered about. */
  #acknowledgedIndex = 0;
  readonly counts = {
    acknowledged: 0,
    nothing: 0,
    unknown: 0,
    reads: 0,
    stale: 0,
    refusedReads: 0,
  };

  constructor(options: RegisterWorkloadOptions) {
    this.#options = options;
    const { world, thinkMs } = options;
    this.#loop = new ClientLoop({ world, thinkMs, next: (client) => this.#next(client) });
    this.#timeoutMs = options.patienceMs;
  }

  get isIdle(): boolean {
    return this.#loop.isIdle;
  }

  begin(): void {
    const { world, clientCount } = this.#options;
    for (let place = 0; place < clientCount; place += 1) {
      const stream = world.stream.fork(`client ${place}`);
      const favourite = stream.pick(world.hosts);
      this.#clientCount += 1;
      const client: Client = { number: this.#clientCount, stream, seen: new Map(), favourite };
      this.#loop.begin(client);
    }
  }

  stop(): void {
    this.#loop.stop();
  }

  async probe(hosts: readonly SimHost[], timeoutMs: number): Promise<readonly string[]> {
    const { world, probeMs } = this.#options;
    const tries = { world, endMs: world.time.nowMs + timeoutMs, pauseMs: 50 };
    this.#timeoutMs = probeMs;
    const probes = hosts.map(async (host, place) => {
      const stream = world.stream.fork(`probe ${place}`);
      this.#clientCount += 1;
      const client: Client = {
        number: this.#clientCount,
        stream,
        seen: new Map(),
        favourite: host,
      };
      const wrote = await triedUntil(tries, () => this.#write(client, 'write', hosts));
      const read = await triedUntil(tries, () => this.#read(client, host));
      return [
        ...(wrote ? [] : [`a write through ${host.name}`]),
        ...(read ? [] : [`a read at ${host.name}`]),
      ];
    });
    return (await Promise.all(probes)).flat();
  }

  judge(): Promise<void> {
    const { violations, committed } = this.#options;
    const replayed = replay(committed());
    for (const [id, outcome] of this.#acknowledged) {
      const real = replayed.outcomeById.get(id);
      const isTrue = real?.index === outcome.index && real.isDone === outcome.isDone;
      violations.require(isTrue, 'answers', () => {
        return `${id} was answered ${JSON.stringify(outcome)}, the log says ${JSON.stringify(real)}`;
      });
    }
    for (const id of this.#nothingDone) {
      violations.require(!replayed.outcomeById.has(id), 'answers', () => {
        return `${id} was said to have done nothing, and is in the log`;
      });
    }
    for (const read of this.#staleReads) this.#judgeStale(read, replayed);
    this.#judgeOrder(replayed);
    return Promise.resolve();
  }

  #judgeStale({ host, key, found, appliedIndex }: StaleRead, { versions }: Replayed): void {
    const written = (versions.get(key) ?? []).findLast(({ index }) => index <= appliedIndex);
    const isTrue = written?.index === found?.index && written?.value === found?.value;
    this.#options.violations.require(isTrue, 'stale reads', () => {
      return `${host} at ${appliedIndex} showed ${key} as ${JSON.stringify(found)}, it was ${JSON.stringify(written)}`;
    });
  }

  /** What never got into the log did not happen, whatever was said of it. */
  #judgeOrder({ values }: Replayed): void {
    const happened = [...this.#operations, ...this.#open].filter(({ input, output }) => {
      return output !== unknownOutput || (input.kind !== 'read' && values.has(input.value ?? ''));
    });
    const verdict = checkOperations(registerModel, happened);
    if (verdict.kind === 'illegal') {
      this.#options.violations.add('linearizability', verdict.text);
    }
    if (verdict.kind === 'unknown')
      this.#options.world.trace.mark('a history was too hard to check');
  }

  async #next(client: Client): Promise<void> {
    const kind = drawWeighted(client.stream, this.#options.weights);
    const { stream } = client;
    const { hosts } = this.#options.world;
    const host = stream.chance(0.5) ? client.favourite : stream.pick(hosts);
    if (kind === 'read') await this.#read(client, host);
    else if (kind === 'stale') await this.#readStale(client, host);
    else await this.#write(client, kind, hosts);
  }

  /** True when it was answered. */
  async #write(client: Client, kind: 'write' | 'cas', hosts: readonly SimHost[]): Promise<boolean> {
    const { world } = this.#options;
    const key = this.#drawKey(client);
    this.#valueCount += 1;
    const value = `v${this.#valueCount}`;
    const id = `c${client.number}-${value}`;
    const expected = client.seen.get(key) ?? null;
    const command: RegisterCommand =
      kind === 'write' ? { kind, id, key, value } : { kind, id, key, value, expected };
    const callTime = world.time.nowMs;
    const input: RegisterInput =
      kind === 'write' ? { kind, key, value } : { kind, key, expected, value };
    const { number } = client;
    const open: Operation<RegisterInput, RegisterOutput> = {
      client: number,
      callTime,
      returnTime: callTime,
      input,
      output: unknownOutput,
    };
    this.#open.add(open);
    const came = await this.#attempts(client, command, hosts);
    this.#open.delete(open);
    const record = { client: number, callTime, returnTime: world.time.nowMs, input };
    if (came.kind === 'nothing') {
      this.#nothingDone.add(id);
      this.counts.nothing += 1;
      return false;
    }
    if (came.kind === 'unknown') {
      this.#operations.push({ ...record, output: unknownOutput });
      this.counts.unknown += 1;
      this.#clientCount += 1;
      client.number = this.#clientCount;
      return false;
    }
    const { outcome } = came;
    this.#acknowledged.set(id, outcome);
    this.#acknowledgedIndex = Math.max(this.#acknowledgedIndex, outcome.index);
    this.counts.acknowledged += 1;
    this.#operations.push({ ...record, output: { kind: outcome.isDone ? 'done' : 'mismatch' } });
    if (outcome.isDone) client.seen.set(key, value);
    return true;
  }

  async #attempts(
    client: Client,
    command: RegisterCommand,
    hosts: readonly SimHost[],
  ): Promise<Attempt> {
    let mayBeDone = false;
    const { favourite, stream } = client;
    // Whoever is always true to the one that answered last would all wait for it when it is cut off.
    const isTrue = hosts.includes(favourite) && stream.chance(TRUE_RATE);
    let host = isTrue ? favourite : stream.pick(hosts);
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      const came = await this.#propose(host, command);
      if (came.kind === 'done') {
        client.favourite = host;
        return came;
      }
      if (came.kind === 'unknown') mayBeDone = true;
      const hinted = came.kind === 'nothing' ? came.leader : undefined;
      const named = hinted === undefined ? undefined : this.#options.subject.hostOf(hinted);
      host = named !== undefined && hosts.includes(named) ? named : client.stream.pick(hosts);
    }
    return mayBeDone ? { kind: 'unknown' } : { kind: 'nothing', leader: undefined };
  }

  async #propose(host: SimHost, command: RegisterCommand): Promise<Attempt> {
    const { group } = this.#options;
    const reply = await group.ask(host, this.#timeoutMs, (node) =>
      replicaOf(node).replica.propose(payloadOf(command)),
    );
    if (reply.kind === 'answered') return { kind: 'done', outcome: reply.value };
    if (reply.kind === 'not-sent') return { kind: 'nothing', leader: undefined };
    if (reply.kind === 'lost') return { kind: 'unknown' };
    const { error } = reply;
    if (error instanceof GroupRefusal) return { kind: 'nothing', leader: error.leader };
    if (error instanceof ReplicaError) {
      return error.code === 'outcome-unknown'
        ? { kind: 'unknown' }
        : { kind: 'nothing', leader: undefined };
    }
    this.#options.violations.add('assertions', `a proposal failed with ${String(error)}`);
    return { kind: 'unknown' };
  }

  async #read(client: Client, host: SimHost): Promise<boolean> {
    const { world, group, violations } = this.#options;
    const key = this.#drawKey(client);
    const callTime = world.time.nowMs;
    const floor = this.#acknowledgedIndex;
    const reply = await group.ask(host, this.#timeoutMs, async (node) => {
      const { replica, machine } = replicaOf(node);
      await replica.readBarrier();
      return machine.read(key);
    });
    if (reply.kind !== 'answered') {
      this.counts.refusedReads += 1;
      return false;
    }
    this.counts.reads += 1;
    const { found, appliedIndex } = reply.value;
    violations.require(appliedIndex >= floor, 'linearizability', () => {
      return `a read at ${host.name} stood at ${appliedIndex}, ${floor} was answered before it began`;
    });
    const value = found?.value ?? null;
    client.seen.set(key, value);
    this.#operations.push({
      client: client.number,
      callTime,
      returnTime: world.time.nowMs,
      input: { kind: 'read', key },
      output: { kind: 'value', value },
    });
    return true;
  }

  async #readStale(client: Client, host: SimHost): Promise<void> {
    const { group } = this.#options;
    const key = this.#drawKey(client);
    const reply = await group.ask(host, this.#timeoutMs, (node) =>
      Promise.resolve(replicaOf(node).machine.read(key)),
    );
    if (reply.kind !== 'answered') return;
    this.counts.stale += 1;
    this.#staleReads.push({ host: host.name, key, ...reply.value });
  }

  #drawKey({ stream }: Client): string {
    return `k${stream.below(this.#options.keyCount)}`;
  }
}

interface Replayed {
  readonly outcomeById: ReadonlyMap<string, RegisterOutcome>;
  readonly versions: ReadonlyMap<string, readonly RegisterValue[]>;
  /** Every value that was ever asked to be written. */
  readonly values: ReadonlySet<string>;
}

/** What the committed log comes to. */
function replay(committed: readonly LogEntry[]): Replayed {
  const rows = new Map<string, string>();
  const outcomeById = new Map<string, RegisterOutcome>();
  const versions = new Map<string, RegisterValue[]>();
  const values = new Set<string>();
  for (const { index, type, payload } of committed) {
    if (type === 'membership' || payload.length === 0) continue;
    const command = commandOf(payload);
    const isRepeat = outcomeById.has(command.id);
    const decision = decide(command, index, (key) => rows.get(key));
    for (const [key, text] of decision.rows) rows.set(key, text);
    if (isRepeat) continue;
    outcomeById.set(command.id, decision.outcome);
    values.add(command.value);
    if (!decision.outcome.isDone) continue;
    const before = versions.get(command.key) ?? [];
    versions.set(command.key, [...before, { value: command.value, index }]);
  }
  return { outcomeById, versions, values };
}

function replicaOf(node: LiveNode): LiveReplica {
  return node as LiveReplica;
}
