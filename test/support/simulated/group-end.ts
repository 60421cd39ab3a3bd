// What must hold of a simulated group when all are back and quiet: one sequence everywhere, in which what was
// answered stands once and what was refused does not, equal logs on all disks, and nothing left half done.

import { DurableLog } from '../../../cluster/log/durable-log.ts';
import type { AppliedEntry } from '../../../cluster/replica/replica.ts';
import { textOf } from '../memory-kv.ts';
import type { GroupNode } from './group-node.ts';

export interface GroupEnd {
  readonly nodes: readonly GroupNode[];
  /** Those of them that belong to the group. */
  readonly members: readonly GroupNode[];
  /** Values, and the index that was answered for each. */
  readonly acked: ReadonlyMap<string, number>;
  readonly refused: ReadonlySet<string>;
}

/** A sentence for each fault. */
export async function violationsAtEnd(end: GroupEnd): Promise<readonly string[]> {
  const longest = longestOf(end.nodes.map(({ register }) => register.applied));
  return [
    ...againstSequence(end, longest),
    ...againstAnswers(end, longest),
    ...leftovers(end.nodes),
    ...(await differingLogs(end.nodes)),
  ];
}

function longestOf(all: readonly (readonly AppliedEntry[])[]): readonly AppliedEntry[] {
  return all.reduce((most, each) => (each.length > most.length ? each : most), []);
}

/** Members have all of it, others a beginning. */
function againstSequence({ nodes, members }: GroupEnd, longest: readonly AppliedEntry[]): string[] {
  const sequence = longest.map(({ payload }) => textOf(payload));
  const isRight = (node: GroupNode): boolean => {
    const { applied } = node.register;
    const isPrefix = applied.every(({ payload }, place) => textOf(payload) === sequence[place]);
    return isPrefix && (applied.length === sequence.length || !members.includes(node));
  };
  return nodes
    .filter((node) => !isRight(node))
    .map(({ id, register }) => `${id} applied ${register.applied.length} of ${sequence.length}`);
}

function againstAnswers({ acked, refused }: GroupEnd, longest: readonly AppliedEntry[]): string[] {
  const textAt = (index: number): string => textOf(longest[index - 1]?.payload ?? new Uint8Array());
  const lost = [...acked].filter(([value, index]) => textAt(index) !== value);
  const values = longest
    .filter(({ type, payload }) => type === 'normal' && payload.length > 0)
    .map(({ payload }) => textOf(payload));
  return [
    ...lost.map(([value]) => `${value} was answered and is lost`),
    ...(new Set(values).size === values.length ? [] : ['a value is there twice']),
    ...values
      .filter((value) => refused.has(value))
      .map((value) => `${value} was refused and is there`),
  ];
}

function leftovers(nodes: readonly GroupNode[]): string[] {
  const violations: string[] = [];
  for (const { id, register, replica } of nodes) {
    if (register.snapshotCount > 0)
      violations.push(`${id} holds ${register.snapshotCount} snapshots`);
    const { queuedCount = 0 } = replica?.status() ?? {};
    if (queuedCount > 0) violations.push(`${id} has ${queuedCount} writes unanswered`);
  }
  return violations;
}

async function differingLogs(nodes: readonly GroupNode[]): Promise<readonly string[]> {
  const violations: string[] = [];
  const hashByPlace = new Map<string, string>();
  for (const { id, disk, register } of nodes) {
    const log = await DurableLog.open(disk, register.appliedEntry).catch((error: unknown) => {
      violations.push(`${id}: ${String(error)}`);
    });
    if (log === undefined) continue;
    for (let index = log.firstIndex; index <= log.lastIndex; index += 1) {
      const { term, hash } = log.entry(index);
      const text = Buffer.from(hash).toString('hex');
      const known = hashByPlace.get(`${term}/${index}`) ?? text;
      if (known !== text) violations.push(`logs differ at ${index} of term ${term}`);
      hashByPlace.set(`${term}/${index}`, known);
    }
  }
  return violations;
}
