// Small acts on a simulated group that many tests share: each lets time pass until its outcome is known.

import { messageOf } from '../../../cluster/base/message-of.ts';
import type { MembershipChange } from '../../../cluster/raft/membership/membership-change.ts';
import type { GroupRecord } from '../../../cluster/replica/group-record.ts';
import type { GroupNode } from './group-node.ts';
import { type GroupOptions, InMemoryGroup } from './in-memory-group.ts';

export async function startedGroup(given: Partial<GroupOptions> = {}): Promise<InMemoryGroup> {
  const group = new InMemoryGroup({ size: 3, seed: 7, ...given });
  await group.start();
  return group;
}

/** With a leader that has committed in its term. */
export async function electedGroup(
  given: Partial<GroupOptions> = {},
): Promise<{ readonly group: InMemoryGroup; readonly leader: GroupNode }> {
  const group = await startedGroup(given);
  const leader = await group.elected();
  await group.run(300);
  return { group, leader };
}

export function othersOf(group: InMemoryGroup, id: number): readonly number[] {
  return group.nodes.map((node) => node.id).filter((each) => each !== id);
}

/** Starts so many writes at a node and lets time pass until all are answered one way or the other. */
export async function write(
  group: InMemoryGroup,
  id: number,
  count = 1,
): Promise<readonly string[]> {
  const results: string[] = [];
  for (let each = 0; each < count; each += 1) {
    void group.write(id).then((result) => results.push(result));
  }
  await group.until(() => results.length === count);
  return results;
}

/** Begins a write; its result is there when it is known. */
export function begin(group: InMemoryGroup, id: number): { result: string | undefined } {
  return watched(group.write(id));
}

export async function read(group: InMemoryGroup, id: number): Promise<string> {
  const done = watched(group.read(id));
  await group.until(() => done.result !== undefined);
  return done.result ?? 'nothing';
}

/** Lets time pass until the change is through, or refused: then with the code of the refusal. */
export async function change(
  group: InMemoryGroup,
  id: number,
  wanted: MembershipChange,
): Promise<GroupRecord | string> {
  let result: GroupRecord | string | undefined;
  group
    .node(id)
    .replica!.proposeMembership(wanted)
    .then(
      (record) => {
        result = record;
      },
      (error: unknown) => {
        result = (error as { readonly code: string }).code;
      },
    );
  await group.until(() => result !== undefined);
  return result ?? 'nothing';
}

/** What a promise comes to, for those who look while time passes. */
export function watched<T>(promise: Promise<T>): { result: T | string | undefined } {
  const seen: { result: T | string | undefined } = { result: undefined };
  promise.then(
    (result) => {
      seen.result = result;
    },
    (error: unknown) => {
      seen.result = messageOf(error);
    },
  );
  return seen;
}
