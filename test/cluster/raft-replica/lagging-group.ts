// A group of which one node lacks what the log has no more.

import { electedGroup, othersOf, write } from '../../support/simulated/group-actions.ts';
import type { GroupNode } from '../../support/simulated/group-node.ts';
import type { InMemoryGroup } from '../../support/simulated/in-memory-group.ts';

export const SHORT = { keptCount: 10, heldCountMax: 100, tailCountMax: 100 };

export interface Lagging {
  readonly group: InMemoryGroup;
  readonly leader: GroupNode;
  /** It was down while the others went on, and lacks what their logs do not have any more. */
  readonly laggard: GroupNode;
}

export async function laggingGroup(
  seed = 7,
  hasApplied: 'all' | 'little' = 'all',
): Promise<Lagging> {
  const { group, leader } = await electedGroup({ seed, limits: SHORT });
  const laggard = group.node(othersOf(group, leader.id)[0]!);
  if (hasApplied === 'little') laggard.stateQueue.stall();
  await write(group, leader.id, 5);
  await write(group, leader.id, 5);
  await group.run(200);
  group.crash(laggard.id);
  // Longer than a leader holds entries for somebody whom it does not hear.
  await group.run(4000);
  for (let round = 0; round < 6; round += 1) await write(group, leader.id, 20);
  return { group, leader, laggard };
}

export const isEven = ({ leader, laggard }: Lagging): boolean =>
  leader.register.applied.length === laggard.register.applied.length;
