// Judges what clients of real servers saw, by the project's own checker of histories. Nobody has read
// the log here, so what was not answered may have happened, at any time after it was asked, or never.

import { checkOperations } from '../sim/linearizability/checker.ts';
import { type HistoryEvent, operationsOf } from '../sim/linearizability/history.ts';
import { type Model, unknownOutput } from '../sim/linearizability/model.ts';
import {
  type ObjectInput,
  type ObjectOutput,
  objectModel,
  type Version,
} from '../sim/workload/object-model.ts';

/** Of a version that nobody saw: later than the one before it, and no index that anybody names. */
const UNSEEN_STEP = 2 ** -20;

/** Undefined if some order of the operations explains all answers; else what does not fit. */
export function faultOf(events: readonly HistoryEvent[]): string | undefined {
  const operations = operationsOf<ObjectInput, ObjectOutput>(events, (call, known) => {
    const input = call.arg as ObjectInput;
    if (known === undefined) {
      return input.kind === 'read' ? 'skip' : { input, output: unknownOutput };
    }
    return known.status === 'fail' ? 'skip' : { input, output: known.value as ObjectOutput };
  });
  const verdict = checkOperations(modelOf(operations), operations);
  if (verdict.kind === 'legal') return undefined;
  return verdict.kind === 'illegal' ? verdict.text : `too hard to check: ${verdict.exhausted}`;
}

type Operations = ReturnType<typeof operationsOf<ObjectInput, ObjectOutput>>;

/** Every value is written once, so whoever saw it tells the index of its version. */
function modelOf(operations: Operations): Model<Version, ObjectInput, ObjectOutput> {
  const indexByValue = new Map<string, number>();
  for (const { output } of operations) {
    if (output !== unknownOutput && output.kind === 'found') {
      indexByValue.set(output.value, output.index);
    }
  }
  return {
    ...objectModel,
    step: (version, input, output) => {
      if (output !== unknownOutput) return objectModel.step(version, input, output);
      return objectModel.step(version, input, effectOf(version, input, indexByValue));
    },
  };
}

/** What it came to if it did anything: that it did nothing, the checker tries by leaving it out. */
function effectOf(
  version: Version,
  input: ObjectInput,
  indexByValue: ReadonlyMap<string, number>,
): ObjectOutput {
  if (input.kind === 'read' || input.kind === 'delete') return { kind: 'deleted' };
  const unseen = (version?.index ?? 0) + UNSEEN_STEP;
  return { kind: 'written', index: indexByValue.get(input.value) ?? unseen };
}
