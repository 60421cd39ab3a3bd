// Asks another datacenter's leader, whichever of its servers that is.

import type { NetAddress } from '../../platform/net.ts';
import { RpcError } from '../../transport/calls/rpc-error.ts';
import type { RpcCall } from '../../transport/transport.ts';
import { PROMOTION_REFUSAL } from './promotion-frames.ts';

export interface AskLeaderOptions {
  /** Of its servers, the leader's first; none: nobody knows. */
  readonly addressesOf: (datacenter: string) => readonly NetAddress[];
  /** Rejects with RpcError. */
  readonly call: (to: NetAddress, request: RpcCall) => Promise<Uint8Array>;
}

export interface LeaderQuestion {
  readonly datacenter: string;
  readonly method: string;
  readonly payload: Uint8Array;
  readonly deadlineMs: number;
}

/** Rejects with RpcError. */
export async function askLeader(
  { addressesOf, call }: AskLeaderOptions,
  question: LeaderQuestion,
): Promise<Uint8Array> {
  let failure = new RpcError('unreachable', `no address of ${question.datacenter} is known`);
  for (const address of addressesOf(question.datacenter)) {
    try {
      return await call(address, { ...question, hops: 0 });
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      failure = error;
      const isElsewhere = error.refusal?.code === PROMOTION_REFUSAL.notLeading;
      if (!isElsewhere && error.code !== 'unreachable') throw error;
    }
  }
  throw failure;
}
