// A primary whose state is some chunks long.

import { FeedWorld, PrimaryNode } from './feed-world.ts';
import { MemoryLog } from './memory-log.ts';

export async function bigPrimary(): Promise<{
  readonly world: FeedWorld;
  readonly log: MemoryLog;
  readonly primary: PrimaryNode;
}> {
  const world = new FeedWorld();
  const log = new MemoryLog(() => world.clock.wallMs());
  const primary = await new PrimaryNode(world, 'p1', log).start();
  // More pieces than are asked for ahead.
  primary.chunkBytes = 8;
  for (let number = 1; number <= 200; number += 1) log.write(`entry ${number}`);
  log.trimmedSeq = 199;
  return { world, log, primary };
}
