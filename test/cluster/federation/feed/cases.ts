// What tests of the feed share.

import type { FeedHello } from '../../../../cluster/federation/feed/feed-frames.ts';
import {
  decodeHelloAnswer,
  encodeHello,
  type HelloAnswer,
} from '../../../../cluster/federation/feed/feed-frames.ts';
import { LOG_START } from '../../../../cluster/federation/global-log.ts';
import { RpcRefusal } from '../../../../cluster/transport/calls/rpc-error.ts';
import type { RpcCaller } from '../../../../cluster/transport/transport.ts';
import { FEDERATION, FeedWorld, PrimaryNode } from '../feed-world.ts';
import { MemoryLog } from '../memory-log.ts';

export const HELLO: FeedHello = {
  federationId: FEDERATION,
  clusterId: 'cluster of dc2',
  term: 5,
  cursor: LOG_START,
  maxEpoch: 0,
  level: 1,
  isWitness: false,
};

export function callerOf(datacenter: string): RpcCaller {
  return {
    node: 77,
    id: 'x',
    name: `${datacenter}-x`,
    version: '1',
    reads: 1,
    datacenter,
    clusterId: `cluster of ${datacenter}`,
    federationId: FEDERATION,
    remote: 'x:1',
  };
}

export async function ask(
  primary: PrimaryNode,
  method: string,
  payload: Uint8Array,
  datacenter = 'dc2',
) {
  const from = callerOf(datacenter);
  return primary.handlers[method]!({ from, method, payload, deadlineMs: 1_000, hops: 0 });
}

export async function say(
  primary: PrimaryNode,
  hello: FeedHello,
  datacenter = 'dc2',
): Promise<HelloAnswer> {
  return decodeHelloAnswer(await ask(primary, 'feed.hello', encodeHello(hello), datacenter));
}

export async function sessionOf(primary: PrimaryNode, hello = HELLO): Promise<number> {
  const answer = await say(primary, hello);
  if (answer.kind !== 'tail') throw new Error(answer.kind);
  return answer.session;
}

export async function refusalOf(answer: Promise<unknown>): Promise<string> {
  return answer.then(
    () => 'none',
    (error: unknown) =>
      error instanceof RpcRefusal ? `${error.code}: ${error.message}` : `${error}`,
  );
}

export async function aPrimary(): Promise<{
  world: FeedWorld;
  log: MemoryLog;
  primary: PrimaryNode;
}> {
  const world = new FeedWorld();
  const log = new MemoryLog(() => world.clock.wallMs());
  const primary = await new PrimaryNode(world, 'p1', log).start();
  return { world, log, primary };
}
