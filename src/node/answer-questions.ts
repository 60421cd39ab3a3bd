// The leader's side of forwarding: runs the writes that other servers send, through the same door as
// its own. A server that does not lead does nothing and says so; where to ask next is the asker's matter.

import type { Logger } from '../../cluster/platform/logger.ts';
import type { Random } from '../../cluster/platform/random.ts';
import { AclError } from '../acl/error.ts';
import type { Door } from '../service/create-operations.ts';
import { OPERATION_TABLE } from '../service/operation-table.ts';
import type { OperationInput, OperationName } from '../service/operations.ts';
import { decodeQuestion, encodeOutput, encodeRefusal } from './call-frames.ts';

export interface AnsweringOptions {
  readonly door: Pick<Door, 'runForOther'>;
  /** Questions of other servers that may be under way at once. */
  readonly countMax: number;
  readonly random: Random;
  readonly logger: Logger;
}

/** Answers the bytes of a question with those of an answer. Never rejects. */
export function answeringWith(
  options: AnsweringOptions,
): (question: Uint8Array) => Promise<Uint8Array> {
  let count = 0;
  return async (question) => {
    if (count >= options.countMax) return encodeRefusal(tooMany(count));
    count += 1;
    try {
      return encodeOutput(await run(options, question));
    } catch (error) {
      return encodeRefusal(error instanceof AclError ? error : faultOf(options, error));
    } finally {
      count -= 1;
    }
  };
}

async function run({ door }: AnsweringOptions, question: Uint8Array): Promise<unknown> {
  const { name, input, call, term } = decodeQuestion(question);
  const isOurs = Object.hasOwn(OPERATION_TABLE, name) && isForLeader(name as OperationName);
  if (!isOurs)
    throw new AclError('unavailable', 'the leader runs a release without this operation');
  const known = name as OperationName;
  const write = { name: known, input: input as OperationInput<OperationName>, call };
  return door.runForOther(write, term);
}

function isForLeader(name: OperationName): boolean {
  const { kind, atLeader } = OPERATION_TABLE[name];
  return kind === 'write' || atLeader;
}

function tooMany(count: number): AclError {
  return new AclError(
    'unavailable',
    `nothing was written: ${count} writes of other servers are under way already`,
  );
}

/** The asker's client gets a reference to this server's log and nothing else. */
function faultOf({ random, logger }: AnsweringOptions, error: unknown): AclError {
  const reference = random.uuid().slice(0, 8);
  logger.error({ reference, cause: error }, 'a write of another server failed');
  return new AclError('internal', `internal error, see ${reference} in the log of the leader`);
}
