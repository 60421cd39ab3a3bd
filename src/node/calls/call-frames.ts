// What one server sends another to have an operation run there, and what comes back. Version 1:
//   a question: [1, name, input, call], and behind these the term of the leader that it is for, if it is for one
//   an answer: [1, 0, output], [1, 1, code, message] or [1, 2, message]
// Both hold secrets: they travel between servers that have proven to belong together, and are never
// logged. What is of a later version is refused with its number.

import { AclError, type AclErrorCode } from '../../acl/error.ts';
import type { Call } from '../../service/call.ts';
import { LeaderAway } from '../../service/remote.ts';
import { decodePlain, encodePlain } from './plain-codec.ts';

const VERSION = 1;

/** How an answer ends. For ever: other releases read it. */
const ENDING = { done: 0, refused: 1, leaderAway: 2 } as const;

export interface Question {
  /** Of the operation: whoever answers looks whether there is one. */
  readonly name: string;
  readonly input: unknown;
  readonly call: Call;
  /** For the leader of that term and no later one; left out: for whoever answers. */
  readonly term?: number;
}

export function encodeQuestion({ name, input, call, term }: Question): Uint8Array {
  const fields = [VERSION, name, input, call];
  return encodePlain(term === undefined ? fields : [...fields, term]);
}

/** Throws AclError 'unavailable' when it cannot be read here: nothing was done. */
export function decodeQuestion(bytes: Uint8Array): Question {
  const [name, input, call, term] = fieldsOf(bytes, 'unavailable');
  const question = { name: String(name), input, call: call as Call };
  if (term === undefined) return question;
  if (!Number.isSafeInteger(term)) throw unreadable('unavailable', 'is damaged');
  return { ...question, term: term as number };
}

export function encodeOutput(output: unknown): Uint8Array {
  return encodePlain([VERSION, ENDING.done, output]);
}

export function encodeRefusal(error: AclError): Uint8Array {
  if (error instanceof LeaderAway) return encodePlain([VERSION, ENDING.leaderAway, error.message]);
  return encodePlain([VERSION, ENDING.refused, error.code, error.message]);
}

/** The output. Throws the refusal that came, or 'outcome-unknown' when it cannot be read here. */
export function decodeAnswer(bytes: Uint8Array): unknown {
  const [ending, first, second] = fieldsOf(bytes, 'outcome-unknown');
  switch (ending) {
    case ENDING.done:
      return first;
    case ENDING.refused:
      throw new AclError(first as AclErrorCode, String(second));
    case ENDING.leaderAway:
      throw new LeaderAway(typeof first === 'string' ? { says: first } : {});
    default:
      throw unreadable('outcome-unknown', `ends in ${String(ending)}`);
  }
}

function fieldsOf(bytes: Uint8Array, code: AclErrorCode): readonly unknown[] {
  let fields: unknown;
  try {
    fields = decodePlain(bytes);
  } catch (error) {
    throw unreadable(code, 'is damaged', error);
  }
  if (!Array.isArray(fields)) throw unreadable(code, 'is damaged');
  const [version, ...rest] = fields as readonly unknown[];
  if (version !== VERSION) throw unreadable(code, `has version ${String(version)}`);
  return rest;
}

function unreadable(code: AclErrorCode, how: string, cause?: unknown): AclError {
  const says = `what another server sent ${how}, and this one reads version ${VERSION}`;
  return new AclError(code, says, { cause });
}
