// Clients of a local cluster that write down what they did and what they were told, while servers die and
// lines are cut. Registers are descriptions of tokens; what came back is judged by the checker of histories.
// Beside them work some that make tokens, delete them and try to use them once more.

import { randomUUID } from 'node:crypto';
import { Agent } from 'node:http';
import { askNode, type NodeAnswer, type Question } from '../../scripts/cluster/ask-node.ts';
import type { ClusterDescription, NodeDescription } from '../../scripts/cluster/cluster-files.ts';
import { type Operation, unknownOutput } from '../sim/linearizability/model.ts';
import type { RegisterInput, RegisterOutput } from '../sim/linearizability/register-model.ts';

export interface ClientsPlan {
  readonly cluster: ClusterDescription;
  /** Datacenters whose servers are asked: of one that is not primary, what was last written may be missing. */
  readonly datacenters: readonly string[];
  /** Datacenters whose servers are told what to write into registers; default: those that are asked. */
  readonly writers?: readonly string[];
  /**
   * How long an answer is waited for. Whoever turns away knows nothing of its write, and what is not known
   * makes a history hard to check. Default: so long that a server that stands still keeps nobody long.
   */
  readonly patienceMs?: number;
  /** Gives numbers from 0 up to 1. */
  readonly random: () => number;
}

const REGISTERS = 4;
const REGISTER_CLIENTS = 5;
const REVOKERS = 2;
/** A server that stands still answers nobody; its clients turn to another one. */
const ANSWER_MAX_MS = 4_000;
/** Between two questions of one client: a history of moderate length is checked quickly. */
const REST_MS = 15;
const WRITE_SHARE = 0.4;

export class HistoryClients {
  readonly operations: Operation<RegisterInput, RegisterOutput>[] = [];
  /** Whatever must not be, in words. */
  readonly faults: string[] = [];
  readonly #plan: ClientsPlan;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #registers: readonly string[] = Array.from({ length: REGISTERS }, () => randomUUID());
  #loops: readonly Promise<void>[] = [];
  #isOn = true;
  #writeCount = 0;
  #readCount = 0;
  #revokedCount = 0;
  #clientCount = 0;

  constructor(plan: ClientsPlan) {
    this.#plan = plan;
  }

  /** Makes the registers, and begins. */
  async start(): Promise<void> {
    for (const key of this.#registers) {
      const value = `first-${key}`;
      const callTime = performance.now();
      const body = { AccessorID: key, Description: value };
      const { status, text } = await this.#ask({ method: 'PUT', path: '/v1/acl/token', body });
      if (status !== 200) throw new Error(`a register was not made: ${status} ${text}`);
      this.#note(0, callTime, { kind: 'write', key, value }, { kind: 'done' });
    }
    this.#loops = [
      ...Array.from({ length: REGISTER_CLIENTS }, () => this.#useRegisters()),
      ...Array.from({ length: REVOKERS }, () => this.#revoke()),
    ];
  }

  /** Writes and reads that were answered so far. */
  get answered(): { readonly reads: number; readonly writes: number; readonly revoked: number } {
    return { reads: this.#readCount, writes: this.#writeCount, revoked: this.#revokedCount };
  }

  /** Reads every register once more when all is quiet; resolves when that is in the history. */
  async stop(): Promise<void> {
    this.#isOn = false;
    await Promise.all(this.#loops);
    for (const node of this.#nodes())
      for (const key of this.#registers) await this.#read(0, key, node);
    this.#agent.destroy();
  }

  async #useRegisters(): Promise<void> {
    let client = this.#newClient();
    while (this.#isOn) {
      const key = this.#registers[Math.floor(this.#plan.random() * REGISTERS)]!;
      const isKnown =
        this.#plan.random() < WRITE_SHARE
          ? await this.#write(client, key)
          : await this.#read(client, key, this.#anyNode());
      // Who does not know what became of its write is done with; another one goes on.
      if (!isKnown) client = this.#newClient();
      await new Promise((resolve) => setTimeout(resolve, REST_MS));
    }
  }

  async #write(client: number, key: string): Promise<boolean> {
    const value = `${client}-${randomUUID()}`;
    const input: RegisterInput = { kind: 'write', key, value };
    const callTime = performance.now();
    const asked = { method: 'PUT', path: `/v1/acl/token/${key}` } as const;
    const { http } = this.#anyNode(this.#plan.writers);
    const answer = await this.#tryAsk({ ...asked, http, body: { Description: value } });
    if (answer?.status === 200) {
      this.#writeCount += 1;
      this.#note(client, callTime, input, { kind: 'done' });
      return true;
    }
    // Its words are that nothing was written; everything else may have been.
    if (answer?.status === 503) return true;
    if (answer !== undefined && answer.status !== 504) this.#unexpected('write', answer);
    this.operations.push({
      ...{ client, callTime, returnTime: Number.POSITIVE_INFINITY, input, output: unknownOutput },
    });
    return false;
  }

  async #read(client: number, key: string, node: NodeDescription): Promise<boolean> {
    const callTime = performance.now();
    const answer = await this.#tryAsk({ path: `/v1/acl/token/${key}`, http: node.http });
    if (answer?.status !== 200) {
      if (answer !== undefined && answer.status !== 503) this.#unexpected('read', answer);
      return true;
    }
    this.#readCount += 1;
    const { Description: value } = JSON.parse(answer.text) as { readonly Description: string };
    this.#note(client, callTime, { kind: 'read', key }, { kind: 'value', value });
    return true;
  }

  /** What was deleted, and said to be, opens no door any more: at no server, and from that moment on. */
  async #revoke(): Promise<void> {
    while (this.#isOn) {
      const made = await this.#tryAsk({ method: 'PUT', path: '/v1/acl/token', body: {} });
      await new Promise((resolve) => setTimeout(resolve, REST_MS));
      if (made?.status !== 200) continue;
      const token = JSON.parse(made.text) as {
        readonly AccessorID: string;
        readonly SecretID: string;
      };
      const self = { path: '/v1/acl/token/self', secret: token.SecretID };
      const before = await this.#tryAsk(self);
      if (before?.status === 403) this.#unexpected('use of a new token', before);
      const path = `/v1/acl/token/${token.AccessorID}`;
      const deleted = await this.#tryAsk({ method: 'DELETE', path });
      if (deleted?.status !== 200) continue;
      this.#revokedCount += 1;
      const after = await this.#tryAsk(self);
      if (after !== undefined && after.status !== 403 && after.status !== 503)
        this.faults.push(`a revoked token was answered with ${after.status}`);
    }
  }

  #note(client: number, callTime: number, input: RegisterInput, output: RegisterOutput): void {
    this.operations.push({ client, callTime, returnTime: performance.now(), input, output });
  }

  #unexpected(what: string, { status, text }: NodeAnswer): void {
    this.faults.push(`${what}: ${status} ${text}`);
  }

  /** Undefined: nothing is known, because no answer came. */
  async #tryAsk(asked: Partial<Question>): Promise<NodeAnswer | undefined> {
    try {
      return await this.#ask(asked);
    } catch {
      return undefined;
    }
  }

  #ask(asked: Partial<Question>): Promise<NodeAnswer> {
    return askNode({
      http: this.#anyNode().http,
      path: '/',
      secret: this.#plan.cluster.management_token,
      timeoutMs: this.#plan.patienceMs ?? ANSWER_MAX_MS,
      agent: this.#agent,
      ...asked,
    });
  }

  #nodes(datacenters = this.#plan.datacenters): readonly NodeDescription[] {
    const { cluster } = this.#plan;
    return cluster.nodes.filter(({ datacenter }) => datacenters.includes(datacenter));
  }

  #anyNode(datacenters?: readonly string[]): NodeDescription {
    const nodes = this.#nodes(datacenters);
    return nodes[Math.floor(this.#plan.random() * nodes.length)]!;
  }

  #newClient(): number {
    this.#clientCount += 1;
    return this.#clientCount;
  }
}
