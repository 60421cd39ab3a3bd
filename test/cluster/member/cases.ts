// What tests of members share.

import type { Test } from 'tap';
import type { MemberNode, MemberWorld } from '../../support/member-world.ts';

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
