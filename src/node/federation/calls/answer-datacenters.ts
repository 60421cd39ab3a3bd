// The side of the datacenter that is asked: any of its servers runs what a server of another one sends,
// through the same door as what its own clients send, and by way of its leader where that is needed.

import { AclError } from '../../../acl/error.ts';
import type { Door } from '../../../service/create-operations.ts';
import { OPERATION_TABLE } from '../../../service/operation-table.ts';
import type { OperationInput, OperationName } from '../../../service/operations.ts';
import type { WatchTarget } from '../../../service/views.ts';
import { type AnsweringOptions, answeringBytes } from '../../calls/answer-bytes.ts';
import { encodeOutput, encodeRefusal, type Question } from '../../calls/call-frames.ts';
import { kindOfCall } from '../../calls/call-limit.ts';
import type { CallKind } from '../../calls/call-places.ts';
import { WAIT_PIECE_MS, WAIT_QUESTION } from './datacenter-line.ts';

/** Larger answers are refused: lists are then asked for in smaller pages. */
const ANSWER_BYTES_MAX = 8 * 1024 * 1024;

type AskedDoor = Pick<Door, 'runForDatacenter' | 'changesWithin'>;

/** Answers the bytes of a question of that datacenter with those of an answer. Never rejects. */
export function answeringDatacentersWith(
  options: AnsweringOptions<AskedDoor>,
): (question: Uint8Array, from: string) => Promise<Uint8Array> {
  const { door, logger } = options;
  return answeringBytes(options, {
    place: 'server',
    log: (fields) => logger.error(fields, 'a call of another datacenter failed'),
    kindOf,
    tooMany,
    run: async (question: Question, from: string) => {
      const answer = encodeOutput(await run(door, question, from));
      return answer.length > ANSWER_BYTES_MAX ? encodeRefusal(tooLarge(answer.length)) : answer;
    },
  });
}

function kindOf(question: Question): CallKind {
  return question.name === WAIT_QUESTION ? 'wait' : kindOfCall(question);
}

interface WaitInput {
  readonly target: WatchTarget;
  readonly index: number;
  readonly timeoutMs: number;
}

async function run(
  door: AskedDoor,
  { name, input, call }: Question,
  from: string,
): Promise<unknown> {
  if (name === WAIT_QUESTION) return waited(door, input as WaitInput);
  if (!Object.hasOwn(OPERATION_TABLE, name)) {
    throw new AclError('unavailable', 'the other datacenter runs a release without this operation');
  }
  const known = name as OperationName;
  const asked = { name: known, input: input as OperationInput<OperationName>, call };
  return door.runForDatacenter(asked, from);
}

/** Whether it ended before its time, so that there may be something new. */
async function waited(door: AskedDoor, { target, index, timeoutMs }: WaitInput): Promise<boolean> {
  const { table, object } = target;
  const limitMs = Math.min(timeoutMs, WAIT_PIECE_MS);
  return door.changesWithin({ table, object }, index, limitMs);
}

function tooMany(full: string): AclError {
  const text = `nothing was done: ${full} of other datacenters are under way already`;
  return new AclError('unavailable', text);
}

function tooLarge(sizeBytes: number): AclError {
  return new AclError(
    'body-too-large',
    `an answer of ${sizeBytes} bytes is too large for the way to another datacenter`,
  );
}
