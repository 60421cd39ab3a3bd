// How answers are laid out where they are remembered: in the state, and in the global log, where the
// bytes of an object that the entry has anyway are not written again.

import { assert, must } from '../../../cluster/base/assert.ts';
import { unreachable } from '../../../cluster/base/unreachable.ts';
import type { GlobalEffect } from '../global-effects.ts';
import { type Field, type Fields, keyOfNumber } from '../rows/layout/packing.ts';
import {
  AUTH_METHOD_CODEC,
  BINDING_RULE_CODEC,
  decodeRecord,
  encodeRecord,
  NAMESPACE_CODEC,
  POLICY_CODEC,
  type RecordCodec,
  ROLE_CODEC,
  TOKEN_CODEC,
} from '../rows/layout/record-codec.ts';
import type { Stamped } from '../rows/layout/stamp.ts';
import type { Answer, AppliedOutcome } from './outcome.ts';

/** Verdicts are for those who propose; no request is answered by one. */
export type RememberedAnswer = Exclude<Answer, { readonly type: 'verdict' }>;

const ANSWER_NUMBER: Readonly<Record<RememberedAnswer['type'], number>> = {
  token: 1,
  policy: 2,
  role: 3,
  'auth-method': 4,
  'binding-rule': 5,
  namespace: 6,
  deleted: 7,
  done: 8,
};

/** In the place of `true`, of a local token; from feature level 4 on. */
const DELETED_LOCAL = 2;

/** The fields of an outcome that is remembered for a request id. */
export function outcomeFields({ answer, index, position }: AppliedOutcome): Fields {
  const { number, field } = answerFields(answer);
  return [number, field, index, position.epoch, position.seq];
}

/** The fields of an answer in an entry that has these effects: a number stands for the value of an effect. */
export function rememberedFields(
  answer: RememberedAnswer,
  effects: readonly GlobalEffect[],
): Fields {
  const { number, field } = answerFields(answer);
  if (!(field instanceof Uint8Array)) return [number, field];
  const place = effects.findIndex(
    ({ value }) => value !== undefined && Buffer.compare(value, field) === 0,
  );
  return [number, place < 0 ? field : place];
}

export function rememberedAnswerOf(
  [number, field]: Fields,
  effects: readonly GlobalEffect[],
): RememberedAnswer {
  const value = typeof field === 'number' ? must(effects[field]?.value, 'an effect') : field;
  return answerOf(number, value);
}

/** The outcome that a repeat is answered with. */
export function replayedOutcomeOf(fields: Fields): AppliedOutcome {
  const [number, answer, index, epoch, seq] = fields;
  return {
    kind: 'applied',
    answer: answerOf(number, answer),
    index: index as number,
    position: { epoch: epoch as number, seq: seq as number },
    replayed: true,
  };
}

function answerFields(answer: Answer): { readonly number: number; readonly field: Field } {
  assert(answer.type !== 'verdict', 'no request is answered by a verdict');
  return { number: ANSWER_NUMBER[answer.type], field: answerField(answer) };
}

function answerField(answer: RememberedAnswer): Field {
  switch (answer.type) {
    case 'token':
      return encodeRecord(TOKEN_CODEC, answer.token);
    case 'policy':
      return encodeRecord(POLICY_CODEC, answer.policy);
    case 'role':
      return encodeRecord(ROLE_CODEC, answer.role);
    case 'auth-method':
      return encodeRecord(AUTH_METHOD_CODEC, answer.method);
    case 'binding-rule':
      return encodeRecord(BINDING_RULE_CODEC, answer.rule);
    case 'namespace':
      return encodeRecord(NAMESPACE_CODEC, answer.namespace);
    case 'deleted':
      return answer.isLocal === true ? DELETED_LOCAL : answer.existed;
    case 'done':
      return null;
    default:
      return unreachable(answer);
  }
}

function answerOf(number: Field | undefined, field: Field | undefined): RememberedAnswer {
  const type = keyOfNumber(ANSWER_NUMBER, number);
  const record = <T extends Stamped>(codec: RecordCodec<T>): T =>
    decodeRecord(codec, field as Uint8Array);
  switch (type) {
    case 'token':
      return { type, token: record(TOKEN_CODEC) };
    case 'policy':
      return { type, policy: record(POLICY_CODEC) };
    case 'role':
      return { type, role: record(ROLE_CODEC) };
    case 'auth-method':
      return { type, method: record(AUTH_METHOD_CODEC) };
    case 'binding-rule':
      return { type, rule: record(BINDING_RULE_CODEC) };
    case 'namespace':
      return { type, namespace: record(NAMESPACE_CODEC) };
    case 'deleted':
      if (field === DELETED_LOCAL) return { type, existed: true, isLocal: true };
      return { type, existed: field as boolean };
    case 'done':
      return { type };
    default:
      return unreachable(type);
  }
}
