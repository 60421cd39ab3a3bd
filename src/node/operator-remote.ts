// What operators ask of a leader that is another server: the question there, the answer back, and an
// archive piece by piece. Uses the frames of other forwarded calls. Names of questions are for ever:
// those of OperatorTypes, and the four of a restore.

import type { Clock, Timer } from '../../cluster/platform/clock.ts';
import type { Logger } from '../../cluster/platform/logger.ts';
import type { Random } from '../../cluster/platform/random.ts';
import { AclError } from '../acl/error.ts';
import type { Call } from '../service/call.ts';
import type { Errand } from '../service/federation.ts';
import type {
  OperatorDoor,
  OperatorName,
  RunAtLeader,
  RunInDatacenter,
} from '../service/operator-operations.ts';
import type { RestoreIntake } from '../service/operator-port.ts';
import { isOperatorName } from '../service/operator-table.ts';
import { LeaderAway } from '../service/remote.ts';
import {
  decodeAnswer,
  decodeQuestion,
  encodeOutput,
  encodeQuestion,
  encodeRefusal,
} from './call-frames.ts';

/** The method of the leader by which operators are served. */
export const OPERATOR_METHOD = 'service.operator';
/** The method of every server by which operators of other datacenters are served. */
export const OPERATOR_ELSEWHERE_METHOD = 'service.operator-elsewhere';

/** An archive travels in pieces of about this size. */
const PIECE_BYTES = 512 * 1024;
/** A restore of which nothing was heard for so long is given up. */
const RESTORE_IDLE_MS = 120_000;
/** So long the whole group may take to have what was restored. */
export const RESTORE_FINISH_MS = 600_000;

const RESTORE = {
  begin: 'restore.begin',
  add: 'restore.add',
  finish: 'restore.finish',
  abandon: 'restore.abandon',
} as const;

/** The way to the leader. Rejects as `Remote` says. */
export interface LeaderAsked {
  ask(method: string, payload: Uint8Array, limitMs?: number): Promise<Uint8Array>;
}

/** Asks the leader in the name of an operator. One call is one try. */
export function runAtLeaderBy(leader: LeaderAsked): RunAtLeader {
  return async (name, input, call) => {
    const question = encodeQuestion({ name, input, call });
    return decodeAnswer(await leader.ask(OPERATOR_METHOD, question)) as never;
  };
}

/** The way to other datacenters. Rejects as `DatacenterLine.run` says. */
export interface DatacentersAsked {
  run(datacenter: string, errand: Errand, method: string): Promise<unknown>;
}

/** Asks any server of another datacenter in the name of an operator. One call is one try. */
export function runInDatacenterBy(line: DatacentersAsked): RunInDatacenter {
  return async (datacenter, name, { input, call }) =>
    (await line.run(datacenter, { name, input, call }, OPERATOR_ELSEWHERE_METHOD)) as never;
}

/** Begins a restore at the leader. */
export function beginRestoreBy(leader: LeaderAsked): (call: Call) => Promise<RestoreIntake> {
  return async (call) => {
    const ask = async (name: string, input: object, limitMs?: number): Promise<unknown> =>
      decodeAnswer(
        await leader.ask(OPERATOR_METHOD, encodeQuestion({ name, input, call }), limitMs),
      );
    const { session } = (await ask(RESTORE.begin, {})) as { readonly session: string };
    return new RemoteIntake(session, ask);
  };
}

type Ask = (name: string, input: object, limitMs?: number) => Promise<unknown>;

/** An archive on its way to the leader. Until it is finished, whatever fails has changed nothing. */
class RemoteIntake implements RestoreIntake {
  readonly #session: string;
  readonly #ask: Ask;
  #kept: Uint8Array[] = [];
  #keptBytes = 0;
  #number = 0;
  #isOver = false;

  constructor(session: string, ask: Ask) {
    this.#session = session;
    this.#ask = ask;
  }

  async add(chunk: Uint8Array): Promise<void> {
    this.#kept.push(chunk);
    this.#keptBytes += chunk.length;
    if (this.#keptBytes >= PIECE_BYTES) await this.#send();
  }

  async finish(): Promise<{ readonly index: number }> {
    await this.#send();
    this.#isOver = true;
    const input = { session: this.#session };
    return (await this.#ask(RESTORE.finish, input, RESTORE_FINISH_MS)) as { index: number };
  }

  async abandon(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    // The leader gives it up by itself when it hears nothing more.
    await this.#ask(RESTORE.abandon, { session: this.#session }).catch(() => undefined);
  }

  async #send(): Promise<void> {
    const piece = Buffer.concat(this.#kept);
    this.#kept = [];
    this.#keptBytes = 0;
    const input = { session: this.#session, number: this.#number, piece };
    this.#number += 1;
    try {
      await this.#ask(RESTORE.add, input);
    } catch (error) {
      throw nothingChanged(error);
    }
  }
}

/** The leader went, or its answer: what it had of the archive is forgotten. */
function nothingChanged(error: unknown): unknown {
  const isGone = error instanceof AclError && error.code === 'outcome-unknown';
  if (!isGone && !(error instanceof LeaderAway)) return error;
  const text = 'nothing was restored: the leader was lost while it took in the archive';
  return new AclError('unavailable', text, { cause: error });
}

export interface AnsweringOperatorsOptions {
  readonly door: Pick<OperatorDoor, 'runForOther' | 'runForDatacenter' | 'beginRestoreForOther'>;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

export interface AnsweringOperators {
  /** Answers the bytes of a question with those of an answer. Never rejects. */
  answer(question: Uint8Array): Promise<Uint8Array>;
  /** The same for a question of another datacenter. */
  answerDatacenter(question: Uint8Array): Promise<Uint8Array>;
  /** Gives up what is half taken in. */
  close(): Promise<void>;
}

/** The leader's side: the same door that its own operators go through. */
export function answeringOperatorsWith(options: AnsweringOperatorsOptions): AnsweringOperators {
  const restores = new Restores(options);
  const answered = async (output: () => Promise<unknown>): Promise<Uint8Array> => {
    try {
      return encodeOutput(await output());
    } catch (error) {
      return encodeRefusal(error instanceof AclError ? error : faultOf(options, error));
    }
  };
  return {
    answer: (question) => answered(async () => run(options, restores, question)),
    answerDatacenter: (question) => answered(async () => runForDatacenter(options, question)),
    close: () => restores.close(),
  };
}

function runForDatacenter(
  { door }: AnsweringOperatorsOptions,
  question: Uint8Array,
): Promise<unknown> {
  const { name, input, call } = decodeQuestion(question);
  if (isOperatorName(name)) return door.runForDatacenter<OperatorName>(name, input as never, call);
  throw new AclError('unavailable', 'the other datacenter runs a release that does not know this');
}

function run(
  { door }: AnsweringOperatorsOptions,
  restores: Restores,
  question: Uint8Array,
): Promise<unknown> {
  const { name, input, call } = decodeQuestion(question);
  if (isOperatorName(name)) return door.runForOther<OperatorName>(name, input as never, call);
  switch (name) {
    case RESTORE.begin:
      return restores.begin(call);
    case RESTORE.add:
      return restores.add(input as PieceInput);
    case RESTORE.finish:
      return restores.finish(input as SessionInput);
    case RESTORE.abandon:
      return restores.abandon(input as SessionInput);
    default:
      throw new AclError('unavailable', 'the leader runs a release that does not know this');
  }
}

interface SessionInput {
  readonly session: string;
}

interface PieceInput extends SessionInput {
  readonly number: number;
  readonly piece: Uint8Array;
}

interface Session {
  readonly intake: RestoreIntake;
  nextNumber: number;
  idle: Timer;
}

/** Archives that come from other servers. How many there may be is for whoever takes them in to say. */
class Restores {
  readonly #options: AnsweringOperatorsOptions;
  readonly #sessions = new Map<string, Session>();

  constructor(options: AnsweringOperatorsOptions) {
    this.#options = options;
  }

  async begin(call: Call): Promise<SessionInput> {
    const { door, random } = this.#options;
    const intake = await door.beginRestoreForOther(call);
    const session = random.uuid();
    this.#sessions.set(session, { intake, nextNumber: 0, idle: this.#watch(session) });
    return { session };
  }

  async add({ session, number, piece }: PieceInput): Promise<boolean> {
    const known = this.#sessionOf(session);
    if (number !== known.nextNumber) {
      const text = `nothing was restored: piece ${number} of the archive came in place of ${known.nextNumber}`;
      throw new AclError('unavailable', text);
    }
    known.nextNumber += 1;
    known.idle.cancel();
    try {
      await known.intake.add(piece);
    } catch (error) {
      await this.abandon({ session });
      throw error;
    }
    if (this.#sessions.has(session)) known.idle = this.#watch(session);
    return true;
  }

  async finish({ session }: SessionInput): Promise<{ readonly index: number }> {
    const { intake } = this.#taken(session);
    try {
      return await intake.finish();
    } finally {
      await intake.abandon();
    }
  }

  async abandon({ session }: SessionInput): Promise<boolean> {
    if (this.#sessions.has(session)) await this.#taken(session).intake.abandon();
    return true;
  }

  async close(): Promise<void> {
    for (const session of [...this.#sessions.keys()]) await this.abandon({ session });
  }

  #sessionOf(session: string): Session {
    const known = this.#sessions.get(session);
    if (known !== undefined) return known;
    throw new AclError('unavailable', 'nothing was restored: the leader has given this restore up');
  }

  #taken(session: string): Session {
    const known = this.#sessionOf(session);
    known.idle.cancel();
    this.#sessions.delete(session);
    return known;
  }

  #watch(session: string): Timer {
    const { clock, logger } = this.#options;
    return clock.after(RESTORE_IDLE_MS, () => {
      logger.warn({}, 'restore of another server given up: nothing more was heard of it');
      void this.abandon({ session });
    });
  }
}

/** The asker's client gets a reference to this server's log and nothing else. */
function faultOf({ random, logger }: AnsweringOperatorsOptions, error: unknown): AclError {
  const reference = random.uuid().slice(0, 8);
  logger.error({ reference, cause: error }, 'an operator of another server met a fault');
  return new AclError('internal', `internal error, see ${reference} in the log of the leader`);
}
