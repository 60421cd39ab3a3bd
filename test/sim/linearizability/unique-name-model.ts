// Objects with names of which no two may be the same at one time (policies, roles, auth methods).
// Promises that create and rename succeed exactly when the name is free. Leaves the other fields of
// an object to the register model.
import type { Model, Operation, Seen } from './model.ts';
import { hashText, partitionBy, unknownOutput } from './model.ts';

export type UniqueNameInput =
  | { readonly kind: 'create'; readonly id: string; readonly name: string }
  | { readonly kind: 'rename'; readonly id: string; readonly name: string }
  | { readonly kind: 'remove'; readonly id: string }
  | { readonly kind: 'find'; readonly name: string };

export type UniqueNameOutput =
  | { readonly kind: 'done' | 'taken' | 'missing' }
  | { readonly kind: 'found'; readonly id: string };

/** The id that holds each name. */
type Names = ReadonlyMap<string, string>;
type NameOperation = Operation<UniqueNameInput, UniqueNameOutput>;

export const uniqueNameModel: Model<Names, UniqueNameInput, UniqueNameOutput> = {
  init: () => new Map(),
  step,
  equal: (left, right) =>
    left.size === right.size && [...left].every(([name, id]) => right.get(name) === id),
  hash: (names) =>
    [...names].reduce((sum, [name, id]) => (sum + hashText(`${name}\n${id}`)) | 0, 0),
  partition,
  describe: (input, output) => `${describeInput(input)} -> ${describeOutput(output)}`,
  describeState: (names) => `{${[...names].map(([name, id]) => `${name}: ${id}`).join(', ')}}`,
};

function step(
  names: Names,
  input: UniqueNameInput,
  output: Seen<UniqueNameOutput>,
): readonly Names[] {
  const expected = answerOf(names, input);
  if (output !== unknownOutput) {
    if (output.kind !== expected.kind) return [];
    if (output.kind === 'found' && expected.kind === 'found' && output.id !== expected.id)
      return [];
  }
  if (expected.kind !== 'done' || input.kind === 'find') return [names];
  const next = new Map([...names].filter(([, id]) => id !== input.id));
  if (input.kind !== 'remove') next.set(input.name, input.id);
  return [next];
}

function answerOf(names: Names, input: UniqueNameInput): UniqueNameOutput {
  if (input.kind === 'find') {
    const id = names.get(input.name);
    return id === undefined ? { kind: 'missing' } : { kind: 'found', id };
  }
  const exists = [...names.values()].includes(input.id);
  if (input.kind === 'create') return { kind: exists || names.has(input.name) ? 'taken' : 'done' };
  if (!exists) return { kind: 'missing' };
  if (input.kind === 'remove') return { kind: 'done' };
  const holder = names.get(input.name);
  return { kind: holder === undefined || holder === input.id ? 'done' : 'taken' };
}

/** Names and ids that occur together in any operation belong to one partition. */
function partition(operations: readonly NameOperation[]): readonly (readonly NameOperation[])[] {
  const parents = new Map<string, string>();
  const rootOf = (item: string): string => {
    let root = item;
    for (let up = parents.get(root); up !== undefined; up = parents.get(root)) root = up;
    return root;
  };
  for (const { input } of operations) {
    if (input.kind === 'find' || input.kind === 'remove') continue;
    const from = rootOf(`name ${input.name}`);
    const to = rootOf(`id ${input.id}`);
    if (from !== to) parents.set(from, to);
  }
  return partitionBy(operations, ({ input }) =>
    rootOf(input.kind === 'find' ? `name ${input.name}` : `id ${input.id}`),
  );
}

function describeInput(input: UniqueNameInput): string {
  if (input.kind === 'find') return `find ${input.name}`;
  if (input.kind === 'remove') return `remove ${input.id}`;
  return `${input.kind} ${input.id} as ${input.name}`;
}

function describeOutput(output: Seen<UniqueNameOutput>): string {
  if (output === unknownOutput) return 'unknown';
  return output.kind === 'found' ? output.id : output.kind;
}
