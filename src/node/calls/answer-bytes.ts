// How a server answers what other servers send it, of its own datacenter or of another one: it finds a place for the
// question, runs it, and tells what came of it in bytes.

import type { Logger } from '../../../cluster/platform/logger.ts';
import type { Random } from '../../../cluster/platform/random.ts';
import type { AclError } from '../../acl/error.ts';
import { decodeQuestion, encodeRefusal, type Question } from './call-frames.ts';
import { type CallKind, CallPlaces } from './call-places.ts';
import { type Teller, toldError } from './told-error.ts';

/** What both ways of asking share. */
export interface AnsweringOptions<Door> {
  readonly door: Door;
  /** Questions that may be under way at once, waits included. */
  readonly countMax: number;
  readonly random: Random;
  readonly logger: Logger;
}

/** `Of` says whose questions they are, where that can differ. */
export interface AnsweringWay<Of extends readonly unknown[]> {
  readonly place: Teller['place'];
  /** Writes a fault of ours to the log. */
  readonly log: Teller['log'];
  readonly kindOf: (question: Question) => CallKind;
  /** The refusal where there is no place; `full` says of what there are too many. */
  readonly tooMany: (full: string) => AclError;
  /** The bytes of an answer. */
  readonly run: (question: Question, ...of: Of) => Promise<Uint8Array>;
}

/** Answers the bytes of a question with those of an answer. Never rejects. */
export function answeringBytes<Of extends readonly unknown[]>(
  { countMax, random }: Pick<AnsweringOptions<unknown>, 'countMax' | 'random'>,
  { place, log, kindOf, tooMany, run }: AnsweringWay<Of>,
): (question: Uint8Array, ...of: Of) => Promise<Uint8Array> {
  const places = new CallPlaces(countMax);
  return async (bytes, ...of) => {
    let giveBack: (() => void) | undefined;
    try {
      const question = decodeQuestion(bytes);
      const kind = kindOf(question);
      giveBack = places.take(kind);
      if (giveBack === undefined) throw tooMany(places.takenFrom(kind));
      return await run(question, ...of);
    } catch (error) {
      return encodeRefusal(toldError(error, { random, place, log }));
    } finally {
      giveBack?.();
    }
  };
}
