// A primary whose state is some chunks long, and questions to it.

import { RpcRefusal } from '../../../cluster/transport/calls/rpc-error.ts';
import type { RpcCaller } from '../../../cluster/transport/transport.ts';
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

export const FROM: RpcCaller = {
  node: 7,
  id: 'x',
  name: 'x',
  version: '1',
  reads: 1,
  datacenter: 'dc2',
  clusterId: 'c2',
  federationId: '',
  remote: 'x:1',
};

export async function ask(
  primary: PrimaryNode,
  method: string,
  payload: Uint8Array,
  datacenter = 'dc2',
) {
  const from = { ...FROM, datacenter };
  return primary.handlers[method]!({ from, method, payload, deadlineMs: 1_000, hops: 0 });
}

export async function refusalOf(answer: Promise<unknown>): Promise<string> {
  return answer.then(
    () => 'none',
    (error: unknown) =>
      error instanceof RpcRefusal ? `${error.code}: ${error.message}` : `${error}`,
  );
}
