// Writers that remember what they were told. Each has tokens of its own; of every token it is known
// what was acknowledged last and what was asked for after that, so that whatever a crash leaves can
// be judged: what was acknowledged is there, what was not is there as a whole or not at all.

import { randomUUID } from 'node:crypto';
import { type Answer, type Asked, ask, askJson } from './asking.ts';

const WRITERS = 8;

/** Description and only service identity of a token; undefined: there is no such token. */
type State = string | undefined;

interface Write {
  readonly asked: Asked;
  readonly accessorId: string;
  readonly wanted: State;
  /** Undefined: no answer came, or one that says that nothing is known. */
  answer: Answer | undefined;
}

/** The random choices of a run, from one number. */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export class CrashLoad {
  readonly #random: () => number;
  /** By accessor id. */
  readonly #acknowledged = new Map<string, State>();
  readonly #unknown = new Map<string, Write>();
  readonly #answered: Write[] = [];
  /** Creates that left the ids to the server, by their description. */
  readonly #freeCreates = new Map<string, Write>();
  #serial = 0;
  #indexMax = 0;
  #count = 0;

  constructor(random: () => number) {
    this.#random = random;
  }

  /** Writes that were acknowledged so far. */
  get acknowledgedCount(): number {
    return this.#count;
  }

  /** Writes until the server is gone. */
  async run(port: number): Promise<void> {
    await Promise.all(Array.from({ length: WRITERS }, () => this.#write(port)));
  }

  async #write(port: number): Promise<void> {
    const own: string[] = [];
    for (;;) {
      const write = this.#next(own);
      this.#unknown.set(write.accessorId, write);
      try {
        write.answer = await ask(port, write.asked);
      } catch {
        return;
      }
      if (write.answer.status !== 200) {
        // On its way out the server refuses: nothing was written then, or nobody knows.
        if (write.answer.status < 500) throw new Error(write.answer.text);
        write.answer = undefined;
        return;
      }
      this.#keep(write, write.answer);
    }
  }

  #keep(write: Write, answer: Answer): void {
    this.#unknown.delete(write.accessorId);
    this.#answered.push(write);
    if (!this.#freeCreates.has(write.accessorId)) {
      this.#acknowledged.set(write.accessorId, write.wanted);
    }
    this.#count += 1;
    this.#indexMax = Math.max(this.#indexMax, Number(answer.headers['x-service-index']));
  }

  #next(own: string[]): Write {
    const dice = this.#random();
    const last = own.at(-1);
    if (last !== undefined && dice < 0.35) return this.#update(last);
    if (own.length > 2 && dice < 0.5) return this.#delete(own.shift() as string);
    if (dice < 0.6) return this.#freeCreate();
    const accessorId = randomUUID();
    own.push(accessorId);
    return this.#create(accessorId);
  }

  #create(accessorId: string): Write {
    const ids = { AccessorID: accessorId, SecretID: randomUUID() };
    return this.#put('/v1/acl/token', accessorId, ids);
  }

  #update(accessorId: string): Write {
    return this.#put(`/v1/acl/token/${accessorId}`, accessorId, {});
  }

  #freeCreate(): Write {
    const write = this.#put('/v1/acl/token', `free-${this.#serial}`, {});
    this.#freeCreates.set(write.accessorId, write);
    return write;
  }

  #delete(accessorId: string): Write {
    const asked = { method: 'DELETE', path: `/v1/acl/token/${accessorId}`, headers: requestId() };
    return { asked, accessorId, wanted: undefined, answer: undefined };
  }

  /** Description and identity always say the same, so that half a write would show. */
  #put(path: string, accessorId: string, ids: object): Write {
    this.#serial += 1;
    const wanted = `n${this.#serial}`;
    const body = { ...ids, Description: wanted, ServiceIdentities: [{ ServiceName: wanted }] };
    const asked = { method: 'PUT', path, body, headers: requestId() };
    return { asked, accessorId, wanted, answer: undefined };
  }

  /** What is wrong with a server that was started on what the crash left. */
  async faults(port: number): Promise<readonly string[]> {
    const faults: string[] = [];
    const { status, text, headers } = await ask(port, { path: '/v1/acl/tokens' });
    if (status !== 200) return [`${status} ${text}`];
    const index = Number(headers['x-service-index']);
    if (index < this.#indexMax) faults.push(`index ${index} after ${this.#indexMax}`);
    const found = new Map((JSON.parse(text) as Found[]).map((token) => [token.AccessorID, token]));
    for (const token of found.values()) {
      const isOurs = token.ServiceIdentities !== undefined;
      const isWhole = token.ServiceIdentities?.[0]?.ServiceName === token.Description;
      if (isOurs && !isWhole) faults.push(`half a write: ${JSON.stringify(token)}`);
    }
    for (const [accessorId, state] of this.#acknowledged) {
      const unknown = this.#unknown.get(accessorId);
      const now = found.get(accessorId)?.Description;
      if (now !== state && (unknown === undefined || now !== unknown.wanted)) {
        faults.push(`${accessorId} is ${now}, acknowledged was ${state}`);
      }
    }
    return faults;
  }

  /**
   * Asks again, with the same request ids, for what got no answer and for some of what did; gives
   * what was not done exactly once.
   */
  async retryFaults(port: number): Promise<readonly string[]> {
    const faults: string[] = [];
    for (const write of [...this.#unknown.values()]) {
      const first = await ask(port, write.asked);
      const second = await ask(port, write.asked);
      const { method, path } = write.asked;
      if (first.status !== 200) faults.push(`${method} ${path}: ${first.status} ${first.text}`);
      // A delete of what is not there remembers nothing, and says so each time.
      if (first.text !== second.text && first.text !== 'true') {
        faults.push(`two answers: ${first.text} ${second.text}`);
      }
      this.#keep(write, first);
    }
    const latest = this.#answered.slice(-20);
    for (const { asked, answer, wanted } of latest) {
      const again = await ask(port, asked);
      const isSame = answer === undefined || again.text === answer.text;
      if (!isSame && wanted !== undefined) faults.push(`${answer.text}, later ${again.text}`);
    }
    const tokens = await askJson<Found[]>(port, { path: '/v1/acl/tokens' });
    for (const { wanted } of this.#freeCreates.values()) {
      const count = tokens.filter(({ Description }) => Description === wanted).length;
      if (count !== 1) faults.push(`${count} tokens ${wanted}`);
    }
    return faults;
  }
}

interface Found {
  readonly AccessorID: string;
  readonly Description: string;
  readonly ServiceIdentities?: readonly { readonly ServiceName: string }[];
}

function requestId(): Readonly<Record<string, string>> {
  return { 'X-Service-Request-Id': randomUUID() };
}
