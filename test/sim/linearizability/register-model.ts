// A register with compare-and-set for each key; it starts empty (null). Promises to serve both our
// own records and the etcd histories, which have a single key. Leaves it to the caller to give each
// write a value of its own.
import type { Model, Seen } from './model.ts';
import { hashText, partitionBy, unknownOutput } from './model.ts';

export type RegisterValue = string | null;

export type RegisterInput =
  | { readonly kind: 'read'; readonly key: string }
  | { readonly kind: 'write'; readonly key: string; readonly value: RegisterValue }
  | {
      readonly kind: 'cas';
      readonly key: string;
      readonly expected: RegisterValue;
      readonly value: RegisterValue;
    };

export type RegisterOutput =
  | { readonly kind: 'value'; readonly value: RegisterValue }
  | { readonly kind: 'done' }
  | { readonly kind: 'mismatch' };

export const registerModel: Model<RegisterValue, RegisterInput, RegisterOutput> = {
  init: () => null,
  step,
  equal: (left, right) => left === right,
  hash: (state) => (state === null ? 0 : hashText(state)),
  partition: (operations) => partitionBy(operations, ({ input }) => input.key),
  describe: (input, output) => `${describeInput(input)} -> ${describeOutput(output)}`,
  describeState: (state) => state ?? 'empty',
};

function step(
  state: RegisterValue,
  input: RegisterInput,
  output: Seen<RegisterOutput>,
): readonly RegisterValue[] {
  const seen = output === unknownOutput ? undefined : output;
  if (input.kind === 'read') {
    return seen === undefined || (seen.kind === 'value' && seen.value === state) ? [state] : [];
  }
  if (input.kind === 'write') {
    return seen === undefined || seen.kind === 'done' ? [input.value] : [];
  }
  const matches = input.expected === state;
  if (seen !== undefined && seen.kind !== (matches ? 'done' : 'mismatch')) return [];
  return [matches ? input.value : state];
}

function describeInput(input: RegisterInput): string {
  if (input.kind === 'read') return `read ${input.key}`;
  if (input.kind === 'write') return `write ${input.key} ${input.value}`;
  return `cas ${input.key} ${input.expected} to ${input.value}`;
}

function describeOutput(output: Seen<RegisterOutput>): string {
  if (output === unknownOutput) return 'unknown';
  return output.kind === 'value' ? (output.value ?? 'empty') : output.kind;
}
