// Clients of the whole node: they make, read, replace and delete policies and tokens at any server,
// over HTTP; they present the tokens and ask what these may do. Each write has a request id, and is
// sent again under it when nobody knows what became of it.

import type { LogEntry } from '../../../cluster/log/log-entry.ts';
import { replayLog } from '../checks/shadow.ts';
import type { Violations } from '../checks/violations.ts';
import type { SimGroup } from '../run/sim-group.ts';
import {
  type HttpAnswer,
  type HttpQuestion,
  type LiveServer,
  MANAGEMENT_SECRET,
} from '../subject/node-subject.ts';
import type { LiveNode } from '../subject/subject.ts';
import type { SimHost } from '../world/sim-host.ts';
import type { Stream } from '../world/stream.ts';
import type { World } from '../world/world.ts';
import { AclJudge, type ReadRecord, type WriteRecord } from './acl-judge.ts';
import {
  type Consistency,
  headersOf,
  type Known,
  knownFrom,
  outputOf,
  policyTarget,
  readQuestion,
  type Target,
  tokenTarget,
  writeQuestion,
} from './acl-requests.ts';
import { type Came, cameAs, cameFrom } from './came.ts';
import { ClientLoop, triedUntil } from './client-loop.ts';
import { drawWeighted } from './draw-weighted.ts';
import type { ObjectInput, ObjectOutput } from './object-model.ts';
import type { Workload } from './workload.ts';

export interface AclWorkloadOptions {
  readonly world: World;
  readonly group: SimGroup;
  readonly violations: Violations;
  readonly clientCount: number;
  /** Policies, and as many tokens. */
  readonly keyCount: number;
  readonly thinkMs: number;
  readonly timeoutMs: number;
  readonly weights: Readonly<Record<AclOperation, number>>;
  /** The log as far as it is committed, from index 1. */
  readonly committed: () => readonly LogEntry[];
  /** Of the last entry that is committed. */
  readonly committedTerm: () => number;
  /** By log index: what the nodes' states came to, as far as it is known. */
  readonly digestAt: (index: number) => string | undefined;
}

export type AclOperation =
  | 'create'
  | 'update'
  | 'delete'
  | 'read'
  | 'stale'
  | 'present'
  | 'authorize';

const ATTEMPTS_MAX = 3;

/** So many writes are sent to another server before the first one has had much time to answer. */
const HASTY_RATE = 0.25;
/** And of so many of them the first try is held up on its way from that server. */
const HELD_RATE = 0.5;
const HASTY_MS = [20, 400] as const;
/** A link on which nothing comes for four seconds is given up. */
const HELD_MS = [200, 3_500] as const;

interface Client {
  number: number;
  readonly stream: Stream;
  /** When it is in haste. */
  readonly haste: Stream;
  readonly known: Map<string, Known>;
  favourite: SimHost;
}

export class AclWorkload implements Workload {
  readonly #options: AclWorkloadOptions;
  readonly #loop: ClientLoop<Client>;
  readonly #targets: readonly Target[];
  readonly #writes: WriteRecord[] = [];
  readonly #reads: ReadRecord[] = [];
  #clientCount = 0;
  #valueCount = 0;
  readonly counts = {
    acknowledged: 0,
    refused: 0,
    nothing: 0,
    unknown: 0,
    reads: 0,
    refusedReads: 0,
  };

  constructor(options: AclWorkloadOptions) {
    this.#options = options;
    const { world, thinkMs } = options;
    this.#loop = new ClientLoop({ world, thinkMs, next: (client) => this.#next(client) });
    const numbers = Array.from({ length: options.keyCount }, (_, place) => place + 1);
    this.#targets = numbers.flatMap((number) => [
      policyTarget(number),
      tokenTarget(number, `p${number}`),
    ]);
  }

  get isIdle(): boolean {
    return this.#loop.isIdle;
  }

  begin(): void {
    const { clientCount } = this.#options;
    for (let place = 0; place < clientCount; place += 1) {
      this.#loop.begin(this.#client(`client ${place}`, undefined));
    }
  }

  stop(): void {
    this.#loop.stop();
  }

  async probe(hosts: readonly SimHost[], timeoutMs: number): Promise<readonly string[]> {
    const { world } = this.#options;
    const tries = { world, endMs: world.time.nowMs + timeoutMs, pauseMs: 50 };
    const probes = hosts.map(async (host, place) => {
      const client = this.#client(`probe ${place}`, host);
      const target = policyTarget(1000 + place);
      const wrote = await triedUntil(tries, () =>
        this.#write(client, target, 'create', host, hosts),
      );
      const read = await triedUntil(tries, () => this.#read(client, target, 'default', host));
      const missing = wrote ? [] : [`a write through ${host.name}`];
      return read ? missing : [...missing, `a read at ${host.name}`];
    });
    return (await Promise.all(probes)).flat();
  }

  async judge(): Promise<void> {
    const { violations, committed, digestAt } = this.#options;
    const replay = await replayLog(committed());
    for (const [index, digest] of replay.digests) {
      const known = digestAt(index);
      violations.require(known === undefined || known === digest, 'states', () => {
        return `the log up to ${index} does not give the state that the nodes have`;
      });
    }
    const judge = new AclJudge({ violations, replay, writes: this.#writes, reads: this.#reads });
    judge.all();
  }

  #client(name: string, favourite: SimHost | undefined): Client {
    const { world } = this.#options;
    const stream = world.stream.fork(name);
    this.#clientCount += 1;
    return {
      number: this.#clientCount,
      stream,
      haste: world.stream.fork(`haste of ${name}`),
      known: new Map(),
      favourite: favourite ?? stream.pick(world.hosts),
    };
  }

  async #next(client: Client): Promise<void> {
    const { stream } = client;
    const { hosts } = this.#options.world;
    const kind = drawWeighted(stream, this.#options.weights);
    const host = stream.chance(0.5) ? client.favourite : stream.pick(hosts);
    const target = stream.pick(this.#targets);
    const token = stream.pick(this.#targets.filter((each) => each.kind === 'token'));
    switch (kind) {
      case 'read':
        await this.#read(client, target, stream.chance(0.5) ? 'default' : 'consistent', host);
        return;
      case 'stale':
        await this.#read(client, target, 'stale', host);
        return;
      case 'present':
        await this.#present(client, token, host);
        return;
      case 'authorize':
        await this.#authorize(client, token, host);
        return;
      default:
        await this.#write(client, target, kind, host, hosts);
    }
  }

  /** `first` is asked, and after it any of `hosts`. True when it was answered. */
  async #write(
    client: Client,
    target: Target,
    kind: 'create' | 'update' | 'delete',
    first: SimHost,
    hosts: readonly SimHost[],
  ): Promise<boolean> {
    const { world } = this.#options;
    this.#valueCount += 1;
    const value = `v${this.#valueCount}`;
    const known = client.known.get(target.key);
    const cas = known !== undefined && client.stream.chance(0.4) ? known.index : undefined;
    const { key } = target;
    const input: ObjectInput =
      kind === 'create'
        ? { kind, key, value }
        : kind === 'update'
          ? { kind, key, value, cas }
          : { kind, key, cas };
    const question = writeQuestion(target, input, known);
    if (question === undefined) return false;
    const record: WriteRecord = {
      requestId: `c${client.number}-${value}`,
      client: client.number,
      target,
      targetId: known?.id,
      input,
      callMs: world.time.nowMs,
      returnMs: Number.POSITIVE_INFINITY,
      output: 'unknown',
    };
    this.#writes.push(record);
    const headers = headersOf(MANAGEMENT_SECRET, record.requestId);
    let mayBeDone = false;
    let host = first;
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      const term = this.#options.committedTerm();
      const patienceMs = attempt === 0 ? this.#patienceMs(client, first) : this.#options.timeoutMs;
      const came = await this.#ask(host, { ...question, headers }, patienceMs);
      const output = typeof came === 'string' ? cameAs(came) : outputOf(input, came);
      if (output === 'unknown') mayBeDone = true;
      else if (output === 'impossible') this.#complain(record, came);
      else if (output !== 'unavailable') {
        if (mayBeDone && !isDone(output)) record.refusedSinceTerm = term;
        const isSettled = this.#settle(client, record, output, came, mayBeDone);
        if (record.refusedSinceTerm !== undefined) await this.#mend(client, target, output);
        return isSettled;
      }
      host = client.stream.pick(hosts);
    }
    if (mayBeDone) {
      this.counts.unknown += 1;
      this.#clientCount += 1;
      client.number = this.#clientCount;
    } else {
      this.counts.nothing += 1;
      record.output = 'nothing';
      record.returnMs = world.time.nowMs;
    }
    return false;
  }

  /** Who was refused removes the cause: an earlier try that comes late finds nothing in its way. */
  async #mend(client: Client, target: Target, { kind }: ObjectOutput): Promise<void> {
    if (this.#loop.isStopped || (kind !== 'taken' && kind !== 'missing')) return;
    const { hosts } = this.#options.world;
    const mending = kind === 'taken' ? 'delete' : 'create';
    await this.#write(client, target, mending, client.haste.pick(hosts), hosts);
  }

  /** How long it waits for the first server that it asks for a write. */
  #patienceMs({ haste }: Client, first: SimHost): number {
    if (this.#loop.isStopped || !haste.chance(HASTY_RATE)) return this.#options.timeoutMs;
    if (haste.chance(HELD_RATE)) this.#holdUp(first, haste.between(...HELD_MS));
    return haste.between(...HASTY_MS);
  }

  /** What the server sends to the others comes late. */
  #holdUp(host: SimHost, forMs: number): void {
    const { hosts, net, time } = this.#options.world;
    const others = hosts.filter((each) => each !== host);
    const releases = others.map((each) => net.link(host.name, each.name).holdUp());
    time.after(forMs, () => {
      for (const release of releases) release();
    });
  }

  /**
   * A refusal of a repeat may come from what the first attempt did: then all that is known is that it
   * was decided.
   */
  #settle(
    client: Client,
    record: WriteRecord,
    output: ObjectOutput,
    came: Came,
    mayBeDone: boolean,
  ): boolean {
    const hasEffect = isDone(output);
    this.counts[hasEffect ? 'acknowledged' : 'refused'] += 1;
    if (typeof came !== 'string') {
      const known = knownFrom(came);
      if (known !== undefined) client.known.set(record.target.key, known);
    }
    if (!hasEffect && mayBeDone) return true;
    record.output = output;
    record.returnMs = this.#options.world.time.nowMs;
    return true;
  }

  async #read(
    client: Client,
    target: Target,
    consistency: Consistency,
    host: SimHost,
  ): Promise<boolean> {
    const question = readQuestion(target, consistency);
    const input: ObjectInput = { kind: 'read', key: target.key };
    return this.#observe(client, host, question, MANAGEMENT_SECRET, {
      kind: 'object',
      target,
      isStale: consistency === 'stale',
      seen: (answer) => {
        const output = outputOf(input, answer);
        const known = knownFrom(answer);
        if (known !== undefined) client.known.set(target.key, known);
        return output;
      },
    });
  }

  /** Reads the token by its own secret: one that is deleted must be refused. */
  async #present(client: Client, target: Target, host: SimHost): Promise<void> {
    if (target.kind !== 'token') return;
    const question = { method: 'GET' as const, path: '/v1/acl/token/self' };
    await this.#observe(client, host, question, target.secret, {
      kind: 'presented',
      target,
      isStale: false,
      seen: (answer) =>
        answer.status === 403
          ? { kind: 'missing' }
          : outputOf({ kind: 'read', key: target.key }, answer),
    });
  }

  async #authorize(client: Client, target: Target, host: SimHost): Promise<void> {
    if (target.kind !== 'token') return;
    const question = {
      method: 'POST' as const,
      path: '/v1/internal/acl/authorize',
      body: [{ Resource: 'key', Segment: 'x', Access: 'write' }],
    };
    await this.#observe(client, host, question, target.secret, {
      kind: 'authorized',
      target,
      isStale: false,
      seen: (answer) => {
        if (answer.status === 403) return { kind: 'missing' };
        if (answer.status !== 200) return outputOf({ kind: 'read', key: target.key }, answer);
        const [decision] = JSON.parse(answer.text) as readonly { readonly Allow: boolean }[];
        return decision?.Allow === true ? 'allowed' : 'denied';
      },
    });
  }

  async #observe(
    client: Client,
    host: SimHost,
    question: Omit<HttpQuestion, 'headers'>,
    secret: string,
    {
      seen,
      ...what
    }: Pick<ReadRecord, 'kind' | 'target' | 'isStale'> & {
      readonly seen: (
        answer: HttpAnswer,
      ) => ReadRecord['output'] | 'unavailable' | 'unknown' | 'impossible';
    },
  ): Promise<boolean> {
    const { world, violations } = this.#options;
    const callMs = world.time.nowMs;
    const came = await this.#ask(host, { ...question, headers: headersOf(secret, undefined) });
    const output = typeof came === 'string' ? 'unknown' : seen(came);
    if (output === 'unavailable' || output === 'unknown') {
      this.counts.refusedReads += 1;
      return false;
    }
    if (output === 'impossible') {
      const shown = typeof came === 'string' ? came : `${came.status} ${came.text}`;
      violations.add('answers', `${question.path} at ${host.name} was answered ${shown}`);
      return false;
    }
    this.counts.reads += 1;
    const { number } = client;
    const returnMs = world.time.nowMs;
    this.#reads.push({ ...what, client: number, host: host.name, callMs, returnMs, output });
    return true;
  }

  async #ask(
    host: SimHost,
    question: {
      readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE';
      readonly path: string;
      readonly headers: Readonly<Record<string, string>>;
      readonly body?: unknown;
    },
    patienceMs = this.#options.timeoutMs,
  ): Promise<Came> {
    const { group } = this.#options;
    const reply = await group.ask(host, patienceMs, (node) => serverOf(node).http(question));
    return cameFrom(host, reply);
  }

  #complain({ input, requestId }: WriteRecord, came: Came): void {
    const shown = typeof came === 'string' ? came : `${came.status} ${came.text}`;
    const says = `${requestId} ${JSON.stringify(input)} was answered ${shown}`;
    this.#options.violations.add('answers', says);
  }
}

function isDone({ kind }: ObjectOutput): boolean {
  return kind === 'written' || kind === 'deleted';
}

function serverOf(node: LiveNode): LiveServer {
  return node as LiveServer;
}
