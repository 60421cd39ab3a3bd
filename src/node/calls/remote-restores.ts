// A restore at a leader that is another server: the archive goes there piece by piece, and is taken in there as
// one that its own operators send. Names of questions are for ever: the four of a restore.

import type { Clock, Timer } from '../../../cluster/platform/clock.ts';
import type { Logger } from '../../../cluster/platform/logger.ts';
import type { Random } from '../../../cluster/platform/random.ts';
import { AclError } from '../../acl/error.ts';
import type { Call } from '../../service/call.ts';
import { RESTORE_FINISH_MS } from '../../service/operators/operator.ts';
import type { OperatorDoor } from '../../service/operators/operator-operations.ts';
import type { RestoreIntake } from '../../service/operators/operator-port.ts';
import { leaderLost } from '../../service/operators/propose-restore.ts';
import { LeaderAway } from '../../service/remote.ts';

/** An archive travels in pieces of about this size. */
const PIECE_BYTES = 512 * 1024;
/** A restore of which nothing was heard for so long is given up. */
const RESTORE_IDLE_MS = 120_000;

const RESTORE = {
  begin: 'restore.begin',
  add: 'restore.add',
  finish: 'restore.finish',
  abandon: 'restore.abandon',
} as const;

/** Asks the leader one question of a restore. Rejects as `Remote` says. */
export type AskLeader = (name: string, input: object, limitMs?: number) => Promise<unknown>;

/** Begins a restore at the leader. */
export async function beginRestoreThere(ask: AskLeader): Promise<RestoreIntake> {
  const { session } = (await ask(RESTORE.begin, {})) as { readonly session: string };
  return new RemoteIntake(session, ask);
}

/** An archive on its way to the leader. Until it is finished, whatever fails has changed nothing. */
class RemoteIntake implements RestoreIntake {
  readonly #session: string;
  readonly #ask: AskLeader;
  #kept: Uint8Array[] = [];
  #keptBytes = 0;
  #number = 0;
  #isOver = false;

  constructor(session: string, ask: AskLeader) {
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
  return isGone || error instanceof LeaderAway ? leaderLost(error) : error;
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

export interface RemoteRestoresOptions {
  readonly door: Pick<OperatorDoor, 'beginRestoreForOther'>;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

/**
 * The leader's side: archives that come from other servers. How many there may be is for whoever takes them in to
 * say.
 */
export class RemoteRestores {
  readonly #options: RemoteRestoresOptions;
  readonly #sessions = new Map<string, Session>();

  constructor(options: RemoteRestoresOptions) {
    this.#options = options;
  }

  /** Undefined for a question that is none of a restore. */
  answer(name: string, input: unknown, call: Call): Promise<unknown> | undefined {
    switch (name) {
      case RESTORE.begin:
        return this.#begin(call);
      case RESTORE.add:
        return this.#add(input as PieceInput);
      case RESTORE.finish:
        return this.#finish(input as SessionInput);
      case RESTORE.abandon:
        return this.#abandon(input as SessionInput);
      default:
        return undefined;
    }
  }

  /** Gives up what is half taken in. */
  async close(): Promise<void> {
    for (const session of [...this.#sessions.keys()]) await this.#abandon({ session });
  }

  async #begin(call: Call): Promise<SessionInput> {
    const { door, random } = this.#options;
    const intake = await door.beginRestoreForOther(call);
    const session = random.uuid();
    this.#sessions.set(session, { intake, nextNumber: 0, idle: this.#watch(session) });
    return { session };
  }

  async #add({ session, number, piece }: PieceInput): Promise<boolean> {
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
      await this.#abandon({ session });
      throw error;
    }
    if (this.#sessions.has(session)) known.idle = this.#watch(session);
    return true;
  }

  async #finish({ session }: SessionInput): Promise<{ readonly index: number }> {
    const { intake } = this.#taken(session);
    try {
      return await intake.finish();
    } finally {
      await intake.abandon();
    }
  }

  async #abandon({ session }: SessionInput): Promise<boolean> {
    if (this.#sessions.has(session)) await this.#taken(session).intake.abandon();
    return true;
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
      void this.#abandon({ session });
    });
  }
}
