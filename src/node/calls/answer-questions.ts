// The leader's side of forwarding: runs what other servers send, through the same door as what its own
// clients send. A server that does not lead does nothing and says so; where to ask next is the asker's matter.

import type { Logger } from '../../../cluster/platform/logger.ts';
import type { Random } from '../../../cluster/platform/random.ts';
import { AclError } from '../../acl/error.ts';
import type { Door } from '../../service/create-operations.ts';
import { OPERATION_TABLE } from '../../service/operation-table.ts';
import type { OperationInput, OperationName } from '../../service/operations.ts';
import { decodeQuestion, encodeOutput, encodeRefusal, type Question } from './call-frames.ts';
import { kindOfCall } from './call-limit.ts';
import { CallPlaces } from './call-places.ts';
import { type Teller, toldError } from './told-error.ts';

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
  const { logger, random } = options;
  const teller: Teller = {
    ...{ random, place: 'leader' },
    log: (fields) => logger.error(fields, 'a write of another server failed'),
  };
  const places = new CallPlaces(options.countMax);
  return async (bytes) => {
    let giveBack: (() => void) | undefined;
    try {
      const question = decodeQuestion(bytes);
      const kind = kindOfCall(question);
      giveBack = places.take(kind);
      if (giveBack === undefined) throw tooMany(places.takenFrom(kind));
      return encodeOutput(await run(options, question));
    } catch (error) {
      return encodeRefusal(toldError(error, teller));
    } finally {
      giveBack?.();
    }
  };
}

async function run(
  { door }: AnsweringOptions,
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
