// What a leader refused is remembered for as long as it leads, by the request ids that clients gave: an
// earlier try that comes late, by way of another server, must not take effect after its client was refused.
// Tries of one request run one after the other, so that there is one answer to share. In the memory of one
// process: a term has one leader, and a process that starts again leads in another term. See
// docs/decisions/0007.

import type { Clock } from '../../../cluster/platform/clock.ts';
import { AclError, type AclErrorCode } from '../../acl/error.ts';
import { REQUEST_MEMORY_MS } from '../../state/rows/bookkeeping.ts';
import type { Call } from '../call.ts';
import type { OperationName } from '../operations.ts';
import { LeaderAway } from '../remote.ts';
import type { WriteResult } from '../views.ts';
import { WRITE_MAX_MS } from './answered-in-time.ts';
import { isOfServer, rememberedIdOf, requestMarkOf } from './request-marks.ts';
import { foundNothing } from './tries.ts';

/** How many refusals are remembered. While so many are younger than ten minutes, no more are told for sure. */
export interface RefusedLimits {
  /** Of callers with a token. */
  readonly knownMax: number;
  /** Of all others: anybody can use them up, and nobody with a token needs them. */
  readonly strangersMax: number;
}

/** Some 25 MB, and some 5 MB. */
const LIMITS: RefusedLimits = { knownMax: 100_000, strangersMax: 20_000 };
/** Characters of each, on average: what a refusal repeats of the request can be long. */
const TEXT_MEAN = 200;

/** They say nothing of the request, or not that it did nothing. */
const UNDECIDED: ReadonlySet<AclErrorCode> = new Set([
  'unavailable',
  'not-primary',
  'rate-limited',
  'outcome-unknown',
  'wait-timeout',
  'internal',
]);

/** The request took effect when it was made first, and its answer is not given to this caller again. */
export class AnswerWithheld extends AclError {}

type Told =
  | { readonly code: AclErrorCode; readonly message: string }
  | { readonly nothingDeleted: WriteResult<boolean> };

interface Remembered {
  readonly told: Told;
  /** By the clock that never goes back. */
  readonly atMs: number;
}

/** One try of a request at its leader. */
export interface LedTry {
  /** Of `requestNameOf`. */
  readonly request: string;
  /** In which this server leads. */
  readonly term: number;
  /** Whether no token names the caller; asked when there is something to remember. */
  readonly isOfStranger: () => boolean;
}

export class RefusedRequests {
  readonly #clock: Clock;
  #term = 0;
  readonly #known: RefusalMemory;
  readonly #strangers: RefusalMemory;
  readonly #running = new Map<string, Promise<void>>();

  constructor(clock: Clock, { knownMax, strangersMax } = LIMITS) {
    this.#clock = clock;
    this.#known = new RefusalMemory(clock, knownMax);
    this.#strangers = new RefusalMemory(clock, strangersMax);
  }

  /**
   * Runs the request, unless it was refused in this term: then that is told again, once `prove` has shown
   * that this server still leads. Waits for an earlier try that runs, until it has ended or says that it took
   * effect: it may wait long for other datacenters then. Rejects with LeaderAway when the term is
   * over, with 'unavailable' when a refusal cannot be remembered: nothing was done; with 'outcome-unknown' where an
   * earlier try goes on for longer than anybody waits for this one.
   */
  async once<Output>(
    own: LedTry,
    prove: () => Promise<void> | undefined,
    run: (applied: () => void) => Promise<Output>,
  ): Promise<Output> {
    const { request } = own;
    const untilMs = this.#clock.monotonicMs() + WRITE_MAX_MS;
    for (let other = this.#running.get(request); other !== undefined; ) {
      await this.#endedBy(untilMs, other);
      other = this.#running.get(request);
    }
    const letGo = this.#hold(request);
    try {
      this.#enter(own);
      const told = this.#known.toldOf(request) ?? this.#strangers.toldOf(request);
      if (told === undefined) return await this.#runNew(own, () => run(letGo));
      await prove();
      this.#enter(own);
      return outputOf(told) as Output;
    } finally {
      letGo();
    }
  }

  /** Its own client has been told by then: what it holds is let go. */
  #endedBy(untilMs: number, earlier: Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      const leftMs = Math.max(0, untilMs - this.#clock.monotonicMs());
      const timer = this.#clock.after(leftMs, () => {
        const why = 'an earlier try of it is under way';
        const text = `whether the write took effect is not known: ${why}`;
        reject(new AclError('outcome-unknown', text));
      });
      void earlier.then(() => {
        timer.cancel();
        resolve();
      });
    });
  }

  /** The result lets the next try go on; it may be called twice. */
  #hold(request: string): () => void {
    let resolve: () => void = () => undefined;
    const running = new Promise<void>((settle) => {
      resolve = settle;
    });
    this.#running.set(request, running);
    return () => {
      if (this.#running.get(request) === running) this.#running.delete(request);
      resolve();
    };
  }

  async #runNew<Output>(own: LedTry, run: () => Promise<Output>): Promise<Output> {
    try {
      const output = await run();
      if (foundNothing(output)) {
        this.#remember(own, { nothingDeleted: output });
      }
      return output;
    } catch (error) {
      if (isDecided(error)) this.#remember(own, { code: error.code, message: error.message });
      throw error;
    }
  }

  #enter({ term }: LedTry): void {
    if (term < this.#term) throw new LeaderAway();
    if (term === this.#term) return;
    this.#term = term;
    this.#known.forgetAll();
    this.#strangers.forgetAll();
  }

  #remember({ request, term, isOfStranger }: LedTry, told: Told): void {
    // No try of a term that is over takes effect any more.
    if (term !== this.#term) return;
    (isOfStranger() ? this.#strangers : this.#known).remember(request, told);
  }
}

class RefusalMemory {
  readonly #clock: Clock;
  readonly #countMax: number;
  /** Those told first come first. */
  readonly #remembered = new Map<string, Remembered>();
  #chars = 0;

  constructor(clock: Clock, countMax: number) {
    this.#clock = clock;
    this.#countMax = countMax;
  }

  toldOf(request: string): Told | undefined {
    this.#forgetOld();
    return this.#remembered.get(request)?.told;
  }

  /** Throws 'unavailable' when there is no room: what was told is kept. */
  remember(request: string, told: Told): void {
    this.#forgetOld();
    const chars = this.#chars + charsOf(told);
    if (this.#remembered.size >= this.#countMax || chars > this.#countMax * TEXT_MEAN) {
      const text = `nothing was written: it would be refused, and ${this.#remembered.size} refusals are remembered already; send it without a request id, or later`;
      throw new AclError('unavailable', text);
    }
    this.#remembered.set(request, { told: ofItsOwn(told), atMs: this.#clock.monotonicMs() });
    this.#chars = chars;
  }

  forgetAll(): void {
    this.#remembered.clear();
    this.#chars = 0;
  }

  #forgetOld(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [request, { told, atMs }] of this.#remembered) {
      if (atMs + REQUEST_MEMORY_MS > nowMs) return;
      this.#remembered.delete(request);
      this.#chars -= charsOf(told);
    }
  }
}

function charsOf(told: Told): number {
  return 'message' in told ? told.message.length : 0;
}

/** A piece of a text keeps all of it in memory, such as the whole body of a request: this keeps the piece alone. */
function ofItsOwn(told: Told): Told {
  if (!('message' in told)) return told;
  const { code, message } = told;
  return { code, message: Buffer.from(message, 'utf16le').toString('utf16le') };
}

interface Named {
  readonly name: OperationName;
  readonly input: unknown;
  readonly call: Call;
}

/**
 * A hash that names the request, its caller and what is asked; undefined where no client gave an id, and for
 * operations that take none. It needs no state: who is refused because nobody knows the secret has a name too.
 */
export function requestNameOf({ name, input, call }: Named): string | undefined {
  const id = rememberedIdOf({ name, call });
  if (id === undefined || isOfServer(id)) return undefined;
  const owner = `secret ${call.secret ?? ''}`;
  const { key, fingerprint } = requestMarkOf({ id, owner, operation: name, input }, call);
  return Buffer.concat([key.subarray(0, 16), fingerprint.subarray(0, 16)]).toString('base64');
}

function isDecided(error: unknown): error is AclError {
  if (!(error instanceof AclError) || error instanceof AnswerWithheld) return false;
  return !UNDECIDED.has(error.code);
}

function outputOf(told: Told): unknown {
  if ('code' in told) throw new AclError(told.code, told.message);
  const { value, meta } = told.nothingDeleted;
  return { value, meta: { ...meta, replayed: true } };
}
