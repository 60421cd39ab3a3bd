// Decides whether a history is linearizable: partitions take turns, smallest first, and the first
// illegal one ends the check. Promises the verdict 'unknown' instead of a guess when the budget is
// spent. Leaves the search itself to search.ts; knows no clock and no files.
import type { Model, Operation } from './model.ts';
import { unknownOutput } from './model.ts';
import type { Deepest } from './search.ts';
import { Search } from './search.ts';

export interface Budget {
  /** Model steps over all partitions. */
  readonly stepMax: number;
  /** An estimate of what all unfinished partitions may hold together. */
  readonly sizeMaxBytes: number;
}

export const defaultBudget: Budget = { stepMax: 20_000_000, sizeMaxBytes: 1024 * 1024 * 1024 };

export const turnSteps = 20_000;

export type Verdict<Input, Output> =
  | { readonly kind: 'legal'; readonly stepCount: number }
  | {
      readonly kind: 'illegal';
      readonly stepCount: number;
      readonly deepest: Deepest<Input, Output>;
      readonly text: string;
    }
  | {
      readonly kind: 'unknown';
      readonly stepCount: number;
      readonly exhausted: 'steps' | 'memory';
    };

/**
 * Checks operations in any order against a model. Operations with an unknown output may take effect
 * at any time after their call, or never.
 *
 * @throws RangeError when an operation returns before its call.
 */
export function checkOperations<State, Input, Output>(
  model: Model<State, Input, Output>,
  operations: readonly Operation<Input, Output>[],
  budget: Budget = defaultBudget,
): Verdict<Input, Output> {
  let waiting = [...model.partition(operations)]
    .sort((a, b) => a.length - b.length)
    .map((group) => new Search(model, group));
  let stepCount = 0;
  let gaveUp = false;
  while (waiting.length > 0) {
    const unfinished: typeof waiting = [];
    let heldBytes = waiting.reduce((sum, search) => sum + search.sizeBytes, 0);
    for (const search of waiting) {
      const stepsBefore = search.stepCount;
      const sizeBefore = search.sizeBytes;
      const progress = search.run(
        Math.min(turnSteps, budget.stepMax - stepCount),
        budget.sizeMaxBytes - heldBytes + sizeBefore,
      );
      stepCount += search.stepCount - stepsBefore;
      heldBytes += (progress === 'paused' ? search.sizeBytes : 0) - sizeBefore;
      if (progress === 'illegal') return illegal(model, search.deepest!, stepCount);
      if (progress === 'full') gaveUp = true;
      if (progress === 'paused') {
        if (stepCount >= budget.stepMax) return { kind: 'unknown', stepCount, exhausted: 'steps' };
        unfinished.push(search);
      }
    }
    waiting = unfinished;
  }
  return gaveUp
    ? { kind: 'unknown', stepCount, exhausted: 'memory' }
    : { kind: 'legal', stepCount };
}

function illegal<State, Input, Output>(
  model: Model<State, Input, Output>,
  deepest: Deepest<Input, Output>,
  stepCount: number,
): Verdict<Input, Output> {
  const lines = deepest.placed.map((operation, i) => `  ${i + 1}. ${line(model, operation)}`);
  const text = [
    `not linearizable; the longest order places ${deepest.placed.length} operations:`,
    ...lines,
    `  state: ${deepest.state}`,
    `could not be placed: ${line(model, deepest.stuck)}`,
  ].join('\n');
  return { kind: 'illegal', stepCount, deepest, text };
}

function line<State, Input, Output>(
  model: Model<State, Input, Output>,
  { client, callTime, returnTime, input, output }: Operation<Input, Output>,
): string {
  const end = output === unknownOutput ? 'never' : String(returnTime);
  return `client ${client} [${callTime}, ${end}] ${model.describe(input, output)}`;
}
