// Clients of several servers that make, replace on condition, delete and read a few tokens, and write
// down when they asked what and what they heard. What nobody knows the outcome of stays open.

import { type Answer, ask, MANAGEMENT } from '../hard/asking.ts';
import type { CallEvent, HistoryEvent, ReturnEvent } from '../sim/linearizability/history.ts';
import {
  type Known,
  knownFrom,
  outputOf,
  readQuestion,
  type Target,
  tokenTarget,
  writeQuestion,
} from '../sim/workload/acl-requests.ts';
import { drawWeighted } from '../sim/workload/draw-weighted.ts';
import type { ObjectInput } from '../sim/workload/object-model.ts';
import { Stream } from '../sim/world/stream.ts';

export interface ObjectClientsPlan {
  readonly seed: number;
  readonly servers: readonly ServerAsked[];
  readonly clientsPerServer: number;
  readonly objectCount: number;
  /** A policy that is there, for tokens to link to. */
  readonly policy: string;
  /** Between two operations of one client, on average. */
  readonly thinkMs: number;
}

/** A server that may be another process later, on another port. */
export interface ServerAsked {
  readonly name: string;
  port(): number;
}

const WEIGHTS = { create: 2, update: 4, delete: 1, read: 8 };

interface Client {
  /** Another one after every operation whose outcome is unknown. */
  number: number;
  readonly server: ServerAsked;
  readonly stream: Stream;
  /** What it last heard of each object. */
  readonly known: Map<string, Known>;
}

export class ObjectClients {
  readonly #plan: ObjectClientsPlan;
  readonly #targets: readonly Target[];
  readonly #events: HistoryEvent[] = [];
  readonly #answeredBy = new Map<string, number>();
  #clientCount = 0;
  #operationCount = 0;
  #isOn = true;
  readonly #stream: Stream;
  readonly #running: Promise<void>[];
  /** Answers that no server may give. */
  readonly impossible: string[] = [];

  constructor(plan: ObjectClientsPlan) {
    this.#plan = plan;
    const numbers = Array.from({ length: plan.objectCount }, (_, place) => place + 1);
    this.#targets = numbers.map((number) => tokenTarget(number, plan.policy));
    const perServer = Array.from({ length: plan.clientsPerServer });
    this.#stream = new Stream(plan.seed, 'clients');
    this.#running = plan.servers.flatMap((server) =>
      perServer.map(() => this.#loop(this.#client(server))),
    );
  }

  /** What was asked and answered so far, in the order of one clock. */
  get events(): readonly HistoryEvent[] {
    return this.#events;
  }

  /** Operations whose outcome is known, as a server has told it. */
  answeredBy({ name }: Pick<ServerAsked, 'name'>): number {
    return this.#answeredBy.get(name) ?? 0;
  }

  /** Nobody asks anything more; what is open may still be answered. */
  halt(): void {
    this.#isOn = false;
  }

  /** Halts, and resolves when nothing is open. */
  async stop(): Promise<void> {
    this.halt();
    await Promise.all(this.#running);
  }

  /** A client of its own asks this of each object, at once: others may wait for an answer already. */
  askAtOnce(server: ServerAsked, kind: 'create' | 'update' | 'read'): void {
    for (const target of this.#targets) {
      this.#running.push(this.#operate(this.#client(server), target, kind));
    }
  }

  #client(server: ServerAsked): Client {
    const number = this.#nextNumber();
    const stream = this.#stream.fork(`${server.name} ${number}`);
    return { number, server, stream, known: new Map() };
  }

  #nextNumber(): number {
    this.#clientCount += 1;
    return this.#clientCount;
  }

  async #loop(client: Client): Promise<void> {
    while (this.#isOn) {
      const target = client.stream.pick(this.#targets);
      await this.#operate(client, target, drawWeighted(client.stream, WEIGHTS));
      const pauseMs = client.stream.exponential(1, this.#plan.thinkMs);
      await new Promise<void>((resolve) => setTimeout(resolve, pauseMs));
    }
  }

  async #operate(client: Client, target: Target, kind: ObjectInput['kind']): Promise<void> {
    const { stream, server } = client;
    const input = this.#inputFor(client, target, kind);
    const question =
      input.kind === 'read'
        ? readQuestion(target, stream.chance(0.5) ? 'default' : 'consistent')
        : writeQuestion(target, input, client.known.get(target.key));
    if (question === undefined) return;
    const { number } = client;
    const op = this.#call(number, server, input);
    const answer = await asked(server.port(), question);
    const output = typeof answer === 'string' ? answer : outputOf(input, answer);
    switch (output) {
      case 'unavailable':
        this.#return({ client: number, op, status: 'fail' });
        return;
      case 'unknown':
        this.#return({ client: number, op, status: 'unknown' });
        client.number = this.#nextNumber();
        return;
      case 'impossible':
        this.impossible.push(`${JSON.stringify(input)} at ${server.name}: ${shown(answer)}`);
        this.#return({ client: number, op, status: 'unknown' });
        client.number = this.#nextNumber();
        return;
      default:
        this.#return({ client: number, op, status: 'ok', value: output });
        this.#answeredBy.set(server.name, this.answeredBy(server) + 1);
        this.#learn(client, target, answer);
    }
  }

  #inputFor({ stream, known }: Client, { key }: Target, kind: ObjectInput['kind']): ObjectInput {
    const cas = stream.chance(0.4) ? known.get(key)?.index : undefined;
    const value = `v${this.#operationCount + 1}`;
    if (kind === 'read') return { kind, key };
    if (kind === 'create') return { kind, key, value };
    return kind === 'update' ? { kind, key, value, cas } : { kind, key, cas };
  }

  #learn({ known }: Client, { key }: Target, answer: Answer | string): void {
    const found = typeof answer === 'string' ? undefined : knownFrom(answer);
    if (found !== undefined) known.set(key, found);
  }

  #call(client: number, { name }: ServerAsked, input: ObjectInput): number {
    this.#operationCount += 1;
    const op = this.#operationCount;
    const { kind: f, key } = input;
    const t = this.#events.length;
    const event: CallEvent = {
      ev: 'call',
      t,
      mono: performance.now(),
      client,
      op,
      dc: 'dc1',
      node: name,
      f,
      key,
      arg: input,
    };
    this.#events.push(event);
    return op;
  }

  #return(event: Omit<ReturnEvent, 'ev' | 't' | 'mono'>): void {
    this.#events.push({ ev: 'ret', t: this.#events.length, mono: performance.now(), ...event });
  }
}

/** Nothing was done where nobody listened; whatever else breaks a connection tells nothing. */
async function asked(
  port: number,
  question: { readonly method: string; readonly path: string; readonly body?: unknown },
): Promise<Answer | 'unavailable' | 'unknown'> {
  try {
    return await ask(port, { ...question, secret: MANAGEMENT });
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ECONNREFUSED' ? 'unavailable' : 'unknown';
  }
}

function shown(answer: Answer | string): string {
  return typeof answer === 'string' ? answer : `${answer.status} ${answer.text}`;
}
