// What tests of members share.

import type { Test } from 'tap';
import type {
  MemberNode,
  MemberSettings,
  MemberWorld,
} from '../../support/simulated/member-world.ts';

export function clean(test: Test, world: MemberWorld): void {
  test.same(world.violations, []);
}

export function leaderOf(nodes: readonly MemberNode[]): MemberNode {
  const leader = nodes.find((node) => node.isLeader);
  if (leader === undefined) throw new Error('nobody leads');
  return leader;
}

export function followersOf(nodes: readonly MemberNode[]): readonly MemberNode[] {
  return nodes.filter((node) => node.isUp && !node.isLeader);
}

/** So small steps that a log takes a while to come in, and many to be applied. */
export const SMALL_STEPS = { messageBytesMax: 200, inflightCountMax: 1, batchCountMax: 4 };

/** A server that dies when it has been let in, before it has written that down, and is removed then. */
export async function ghostOf(
  world: MemberWorld,
  leader: MemberNode,
  settings: MemberSettings,
): Promise<MemberNode> {
  const ghost = world.node('d', settings);
  ghost.queue.onWrite = () => queueMicrotask(() => world.crash(ghost));
  await world.start(ghost);
  await world.until('it dies', () => !ghost.isUp);
  ghost.queue.onWrite = () => undefined;
  const { node } = leader.up.groupRecord().members.find(({ id }) => id === ghost.id)!;
  await world.writes(leader, 20);
  await world.result(leader.up.removeMember(node));
  await world.writes(leader, 20);
  return ghost;
}
