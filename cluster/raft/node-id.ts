// Numbers that name the members of a group, and the two local workers that write and apply.
// Promises that no member can ever carry a number that means something else.

/** A member's number: a positive safe integer, unique in its group for all time. */
export type NodeId = number;

/** Stands where no node is meant: no leader, no vote, no transfer target. */
export const NO_NODE: NodeId = 0;

/** Addressee of storage-append messages; its work must be done in the order given. */
export const APPEND_WORKER: NodeId = -1;

/** Addressee of storage-apply messages; its work must be done in the order given. */
export const APPLY_WORKER: NodeId = -2;

/** Whether `id` names one of the two local workers rather than a member. */
export function isWorker(id: NodeId): boolean {
  return id === APPEND_WORKER || id === APPLY_WORKER;
}

/** The members of all `groups`, each once, in ascending order. */
export function unionOf(...groups: readonly (readonly NodeId[])[]): readonly NodeId[] {
  return [...new Set(groups.flat())].sort((a, b) => a - b);
}
