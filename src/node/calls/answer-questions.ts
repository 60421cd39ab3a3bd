// The leader's side of forwarding: runs what other servers send, through the same door as what its own
// clients send. A server that does not lead does nothing and says so; where to ask next is the asker's matter.

import { AclError } from '../../acl/error.ts';
import type { Door } from '../../service/create-operations.ts';
import { OPERATION_TABLE } from '../../service/operation-table.ts';
import type { OperationInput, OperationName } from '../../service/operations.ts';
import { type AnsweringOptions, answeringBytes } from './answer-bytes.ts';
import { encodeOutput, type Question } from './call-frames.ts';
import { kindOfCall } from './call-limit.ts';

/** Answers the bytes of a question with those of an answer. Never rejects. */
export function answeringWith(
  options: AnsweringOptions<Pick<Door, 'runForOther'>>,
): (question: Uint8Array) => Promise<Uint8Array> {
  const { door, logger } = options;
  return answeringBytes(options, {
    place: 'leader',
    log: (fields) => logger.error(fields, 'a write of another server failed'),
    kindOf: kindOfCall,
    tooMany,
    run: async (question: Question) => encodeOutput(await run(door, question)),
  });
}

async function run(
  door: Pick<Door, 'runForOther'>,
  { name, input, call, term }: Question,
): Promise<unknown> {
  const isOurs = Object.hasOwn(OPERATION_TABLE, name) && isForLeader(name as OperationName);
  if (!isOurs)
    throw new AclError('unavailable', 'the leader runs a release without this operation');
  const known = name as OperationName;
  const asked = { name: known, input: input as OperationInput<OperationName>, call };
  return door.runForOther(asked, term);
}

function isForLeader(name: OperationName): boolean {
  const { kind, atLeader } = OPERATION_TABLE[name];
  return kind === 'write' || atLeader;
}

function tooMany(full: string): AclError {
  return new AclError(
    'unavailable',
    `nothing was written: ${full} of other servers are under way already`,
  );
}
