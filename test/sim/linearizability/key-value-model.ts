// Texts under keys with get, put and append; an absent key reads as the empty text. Promises one
// partition for each key. Leaves multi-key operations out: there are none.
import type { Model, Seen } from './model.ts';
import { hashText, partitionBy, unknownOutput } from './model.ts';

export interface KeyValueInput {
  readonly kind: 'get' | 'put' | 'append';
  readonly key: string;
  /** Empty for a get. */
  readonly value: string;
}

/** What a get read; a put or an append answers with the empty text. */
export type KeyValueOutput = string;

export const keyValueModel: Model<string, KeyValueInput, KeyValueOutput> = {
  init: () => '',
  step,
  equal: (left, right) => left === right,
  hash: hashText,
  partition: (operations) => partitionBy(operations, ({ input }) => input.key),
  describe: ({ kind, key, value }, output) => {
    const answer = output === unknownOutput ? 'unknown' : JSON.stringify(output);
    return kind === 'get' ? `get ${key} -> ${answer}` : `${kind} ${key} ${value} -> ${answer}`;
  },
  describeState: (state) => JSON.stringify(state),
};

function step(state: string, input: KeyValueInput, output: Seen<string>): readonly string[] {
  if (input.kind === 'put') return [input.value];
  if (input.kind === 'append') return [state + input.value];
  return output === unknownOutput || output === state ? [state] : [];
}
