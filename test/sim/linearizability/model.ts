// What a sequential object must tell the checker, and the operations that a history consists of.
// Promises that an operation whose answer never came is told apart from one that answered. Leaves
// the search to checker.ts and the reading of files to history.ts.

/** Stands in place of an output that nobody saw: the operation may have happened or not. */
export const unknownOutput = Symbol('unknown output');

export type Seen<Output> = Output | typeof unknownOutput;

/**
 * One operation with its closed interval. Both times come from one monotonic clock (any unit); with
 * an unknown output `returnTime` is ignored, since the effect may come at any later time.
 */
export interface Operation<Input, Output> {
  readonly client: number;
  readonly callTime: number;
  readonly returnTime: number;
  readonly input: Input;
  readonly output: Seen<Output>;
}

/** A sequential object. All functions are pure and never change their arguments. */
export interface Model<State, Input, Output> {
  readonly init: () => State;
  /** The states that may follow; none when this output is impossible here. */
  readonly step: (state: State, input: Input, output: Seen<Output>) => readonly State[];
  readonly equal: (left: State, right: State) => boolean;
  /** A 32-bit integer; equal states have equal hashes. */
  readonly hash: (state: State) => number;
  /** Groups that share no state, so that each may be checked alone. */
  readonly partition: (
    operations: readonly Operation<Input, Output>[],
  ) => readonly (readonly Operation<Input, Output>[])[];
  readonly describe: (input: Input, output: Seen<Output>) => string;
  readonly describeState: (state: State) => string;
}

/** Groups operations by a key, in the order in which the keys first occur. */
export function partitionBy<Input, Output>(
  operations: readonly Operation<Input, Output>[],
  keyOf: (operation: Operation<Input, Output>) => string,
): readonly (readonly Operation<Input, Output>[])[] {
  const groups = new Map<string, Operation<Input, Output>[]>();
  for (const operation of operations) {
    const key = keyOf(operation);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [operation]);
    else group.push(operation);
  }
  return [...groups.values()];
}

/** FNV-1a over UTF-16 units: a 32-bit integer for use in `Model.hash`. */
export function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  }
  return hash;
}
