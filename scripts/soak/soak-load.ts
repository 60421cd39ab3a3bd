// Clients of all servers at once: they make tokens, change, read, use, list and delete them, for as long as
// they are let. What was acknowledged is kept in mind, so that the end can be held against it. What a client
// was told at one server it asks for there with the position that came with it: a server that is not as far
// may make it wait or refuse, and never answers with less.

import { Agent } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { askNode, type NodeAnswer, type Question } from '../cluster/ask-node.ts';
import type { ClusterDescription, NodeDescription } from '../cluster/cluster-files.ts';

export interface LoadPlan {
  readonly cluster: ClusterDescription;
  readonly clientsPerNode: number;
  /** Of each client, from one answer to its next question. */
  readonly restMs?: number;
  /** Gives numbers from 0 up to 1. */
  readonly random: () => number;
}

/** Since the last time that they were taken. */
export interface LoadCounts {
  readonly reads: number;
  readonly writes: number;
  /** Refused with the word that nothing was done. */
  readonly refused: number;
  /** No answer, or the answer that nothing is known. */
  readonly unknown: number;
  readonly slowestMs: number;
}

interface Kept {
  readonly accessorId: string;
  readonly secret: string;
  /** What was acknowledged last; undefined: it was deleted. */
  description: string | undefined;
  /** The datacenter that it lives in alone; undefined: it is in all. */
  readonly home: string | undefined;
  /** `epoch.seq` of what was acknowledged last. */
  position: string;
  /** A write of which nothing is known may have changed it. */
  isCertain: boolean;
}

/** Stands for the refusal of a server that does not listen: whatever was asked did nothing. */
const NOT_REACHED: NodeAnswer = { status: 503, headers: {}, text: 'the server does not listen' };
const NOTHING: LoadCounts = { reads: 0, writes: 0, refused: 0, unknown: 0, slowestMs: 0 };
const ANSWER_MAX_MS = 10_000;
const REST_MS = 5;
/** Before a server that refused is asked again. */
const REST_AFTER_REFUSAL_MS = 100;
/** Of the tokens that are made, those that live in their datacenter alone. */
const LOCAL_SHARE = 0.3;
/** Tokens of one client that are not deleted; beyond it, it deletes. */
const LIVING_MAX = 50;
const QUESTIONS = [
  { Resource: 'key', Segment: 'web/colour', Access: 'read' },
  { Resource: 'service', Segment: 'web', Access: 'write' },
];

export class SoakLoad {
  /** Whatever must not be, in words; the first ones. */
  readonly faults: string[] = [];
  readonly #plan: LoadPlan;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #kept: Kept[] = [];
  #counts = NOTHING;
  #isOn = true;
  #serial = 0;
  #loops: readonly Promise<void>[] = [];

  constructor(plan: LoadPlan) {
    this.#plan = plan;
  }

  start(): void {
    const { cluster, clientsPerNode } = this.#plan;
    this.#loops = cluster.nodes.flatMap((node) =>
      Array.from({ length: clientsPerNode }, () => this.#work(node)),
    );
  }

  async stop(): Promise<void> {
    this.#isOn = false;
    await Promise.all(this.#loops);
    this.#agent.destroy();
  }

  takeCounts(): LoadCounts {
    const counts = this.#counts;
    this.#counts = NOTHING;
    return counts;
  }

  get acknowledgedCount(): number {
    return this.#kept.length;
  }

  /** What a list of all tokens of a server says against what was acknowledged. */
  faultsOf(
    { name, datacenter }: Pick<NodeDescription, 'name' | 'datacenter'>,
    tokens: readonly { AccessorID: string; Description: string }[],
  ): void {
    const found = new Map(tokens.map((token) => [token.AccessorID, token.Description]));
    for (const { accessorId, description, home, isCertain } of this.#kept) {
      const now = found.get(accessorId);
      if (home !== undefined && home !== datacenter) {
        if (now !== undefined) this.#fault(`${name}: token ${accessorId} of ${home} is here`);
      } else if (isCertain && now !== description)
        this.#fault(`${name}: token ${accessorId} is ${now}, acknowledged was ${description}`);
    }
  }

  async #work(node: NodeDescription): Promise<void> {
    const { restMs = REST_MS } = this.#plan;
    const own: Kept[] = [];
    while (this.#isOn) {
      await this.#act(node, own);
      await pause(restMs);
    }
  }

  async #act(node: NodeDescription, own: Kept[]): Promise<void> {
    const dice = this.#plan.random();
    const one = own[Math.floor(this.#plan.random() * own.length)];
    if (one === undefined || dice < 0.1) return await this.#create(node, own);
    if (own.length > LIVING_MAX || dice < 0.15) return await this.#delete(node, one, own);
    if (dice < 0.35) return await this.#update(node, one);
    if (dice < 0.7) return await this.#readOne(node, one);
    if (dice < 0.85) return await this.#useOne(node, one);
    if (dice < 0.95) return await this.#read(node, '/v1/acl/policies');
    const path = '/v1/internal/acl/authorize';
    await this.#asked({ http: node.http, path, method: 'POST', body: QUESTIONS }, 'reads');
  }

  async #create(node: NodeDescription, own: Kept[]): Promise<void> {
    const description = this.#nextDescription();
    const isLocal = this.#plan.random() < LOCAL_SHARE;
    const body = { Description: description, Local: isLocal };
    const answer = await this.#write(node, '/v1/acl/token', 'PUT', body);
    if (answer?.status !== 200) return;
    const made = JSON.parse(answer.text) as { AccessorID: string; SecretID: string };
    const kept = {
      accessorId: made.AccessorID,
      secret: made.SecretID,
      description,
      home: isLocal ? node.datacenter : undefined,
      position: positionOf(answer),
      isCertain: true,
    };
    own.push(kept);
    this.#kept.push(kept);
  }

  async #update(node: NodeDescription, one: Kept): Promise<void> {
    const description = this.#nextDescription();
    const path = `/v1/acl/token/${one.accessorId}`;
    const body = { Description: description, Local: one.home !== undefined };
    const answer = await this.#write(node, path, 'PUT', body);
    if (answer?.status === 200) {
      one.description = description;
      one.position = positionOf(answer);
      return;
    }
    this.#onUnchanged(node, one, answer);
  }

  async #delete(node: NodeDescription, one: Kept, own: Kept[]): Promise<void> {
    own.splice(own.indexOf(one), 1);
    const answer = await this.#write(node, `/v1/acl/token/${one.accessorId}`, 'DELETE');
    if (answer?.status === 200) {
      one.description = undefined;
      one.position = positionOf(answer);
      await this.#useDeleted(node, one);
      return;
    }
    this.#onUnchanged(node, one, answer);
  }

  /** Whoever may write looks behind a barrier: a token that lives and is not found there is lost. */
  #onUnchanged({ name }: NodeDescription, one: Kept, answer: NodeAnswer | undefined): void {
    if (answer?.status === 404 && one.isCertain)
      this.#fault(
        `${name}: token ${one.accessorId} is not there, acknowledged was ${one.description}`,
      );
    if (!didNothing(answer)) one.isCertain = false;
  }

  /** At the server that said that it is deleted, and from that moment on. */
  async #useDeleted({ name, http }: NodeDescription, { secret, position }: Kept): Promise<void> {
    const path = selfAt(position);
    const answer = await this.#asked({ http, path, secret }, 'reads');
    if (answer?.status === 200) this.#fault(`${name}: a token was good after it had been deleted`);
  }

  async #useOne({ name, http }: NodeDescription, one: Kept): Promise<void> {
    const { secret, isCertain, position } = one;
    const answer = await this.#asked({ http, path: selfAt(position), secret }, 'reads');
    if (isCertain && answer?.status === 403)
      this.#fault(`${name}: a token that lives is refused: ${answer.text}`);
  }

  async #readOne(node: NodeDescription, { accessorId }: Kept): Promise<void> {
    await this.#read(node, `/v1/acl/token/${accessorId}`);
  }

  async #read({ http }: NodeDescription, path: string): Promise<void> {
    await this.#asked({ http, path }, 'reads');
  }

  #write(
    { http }: NodeDescription,
    path: string,
    method: 'PUT' | 'DELETE',
    body?: object,
  ): Promise<NodeAnswer | undefined> {
    return this.#asked({ http, path, method, body }, 'writes');
  }

  /** Undefined: no answer came. */
  async #asked(
    asked: Omit<Question, 'timeoutMs'>,
    kind: 'reads' | 'writes',
  ): Promise<NodeAnswer | undefined> {
    const startedMs = performance.now();
    const secret = this.#plan.cluster.management_token;
    const question = { secret, timeoutMs: ANSWER_MAX_MS, agent: this.#agent, ...asked };
    const answer = await askNode(question).catch(answerOfFailure);
    const slowestMs = Math.max(this.#counts.slowestMs, performance.now() - startedMs);
    const counted = countOf(answer, kind);
    this.#counts = { ...this.#counts, slowestMs, [counted]: this.#counts[counted] + 1 };
    const isOdd = answer !== undefined && ![200, 403, 404, 503, 504].includes(answer.status);
    if (isOdd) this.#fault(`${asked.path}: ${answer.status} ${answer.text}`);
    if (didNothing(answer)) await pause(REST_AFTER_REFUSAL_MS);
    return answer;
  }

  #nextDescription(): string {
    this.#serial += 1;
    return `soak ${this.#serial}`;
  }

  #fault(says: string): void {
    if (this.faults.length < 20) this.faults.push(says);
  }
}

function countOf(
  answer: NodeAnswer | undefined,
  kind: 'reads' | 'writes',
): 'reads' | 'writes' | 'refused' | 'unknown' {
  if (answer === undefined || answer.status === 504) return 'unknown';
  return answer.status === 503 ? 'refused' : kind;
}

function positionOf({ headers }: NodeAnswer): string {
  return String(headers['x-service-position'] ?? '0.0');
}

/** Asks who the secret belongs to, of a state that is not older. */
function selfAt(position: string): string {
  return `/v1/acl/token/self?min-position=${position}`;
}

function answerOfFailure(error: NodeJS.ErrnoException): NodeAnswer | undefined {
  return error.code === 'ECONNREFUSED' ? NOT_REACHED : undefined;
}

/** A refusal that says so; no answer, and 504, say nothing. */
function didNothing(answer: NodeAnswer | undefined): boolean {
  return answer?.status === 503;
}
