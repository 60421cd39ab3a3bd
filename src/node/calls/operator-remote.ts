// What operators ask of a leader that is another server, or of another datacenter: the question there, the answer
// back. Uses the frames of other forwarded calls. Names of questions are for ever: those of OperatorTypes; those
// of a restore are in `remote-restores.ts`.

import { AclError } from '../../acl/error.ts';
import type { Call } from '../../service/call.ts';
import type { Errand } from '../../service/datacenters/federation.ts';
import type {
  OperatorDoor,
  OperatorName,
  RunAtLeader,
  RunInDatacenter,
} from '../../service/operators/operator-operations.ts';
import type { RestoreIntake } from '../../service/operators/operator-port.ts';
import { isOperatorName, isReadOfOperators } from '../../service/operators/operator-table.ts';
import {
  decodeAnswer,
  decodeQuestion,
  encodeOutput,
  encodeQuestion,
  encodeRefusal,
} from './call-frames.ts';
import { CALL_MAX_MS } from './call-limit.ts';
import {
  beginRestoreThere,
  RemoteRestores,
  type RemoteRestoresOptions,
} from './remote-restores.ts';
import { type Teller, toldError } from './told-error.ts';

/** The method of the leader by which operators are served. */
export const OPERATOR_METHOD = 'service.operator';
/** The method of every server by which operators of other datacenters are served. */
export const OPERATOR_ELSEWHERE_METHOD = 'service.operator-elsewhere';

/** The way to the leader. Rejects as `Remote` says. */
export interface LeaderAsked {
  ask(method: string, payload: Uint8Array, limitMs?: number, isRead?: boolean): Promise<Uint8Array>;
}

/** Asks the leader in the name of an operator. One call is one try. */
export function runAtLeaderBy(leader: LeaderAsked): RunAtLeader {
  return async (name, input, call) => {
    const question = encodeQuestion({ name, input, call });
    const isRead = isReadOfOperators(name);
    const answer = await leader.ask(OPERATOR_METHOD, question, CALL_MAX_MS, isRead);
    return decodeAnswer(answer) as never;
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
  return (call) =>
    beginRestoreThere(async (name, input, limitMs) => {
      const question = encodeQuestion({ name, input, call });
      return decodeAnswer(await leader.ask(OPERATOR_METHOD, question, limitMs));
    });
}

export interface AnsweringOperatorsOptions extends RemoteRestoresOptions {
  readonly door: Pick<OperatorDoor, 'runForOther' | 'runForDatacenter' | 'beginRestoreForOther'>;
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
  const { logger, random } = options;
  const restores = new RemoteRestores(options);
  const teller: Teller = {
    ...{ random, place: 'leader' },
    log: (fields) => logger.error(fields, 'an operator of another server met a fault'),
  };
  const answered = async (output: () => Promise<unknown>): Promise<Uint8Array> => {
    try {
      return encodeOutput(await output());
    } catch (error) {
      return encodeRefusal(toldError(error, teller));
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
  restores: RemoteRestores,
  question: Uint8Array,
): Promise<unknown> {
  const { name, input, call } = decodeQuestion(question);
  if (isOperatorName(name)) return door.runForOther<OperatorName>(name, input as never, call);
  const restored = restores.answer(name, input, call);
  if (restored !== undefined) return restored;
  throw new AclError('unavailable', 'the leader runs a release that does not know this');
}
