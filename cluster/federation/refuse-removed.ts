// What a datacenter that an operator removed hears, whatever it asks: why nobody answers, and who can
// change that.

import { RpcRefusal } from '../transport/rpc-error.ts';
import type { RpcRequest, RpcServer } from '../transport/transport.ts';

/** On the wire: it gets no other meaning. */
export const REMOVED_REFUSAL = 'federation.removed';

export interface RemovedOnes {
  /** Asked at every call. */
  readonly isRemoved: (datacenter: string) => boolean;
  /** What one of them asked, before it is refused. */
  readonly overhear: (request: RpcRequest) => void;
}

/** The same handler for all datacenters but those that were removed. */
export function refusingRemoved(
  handler: RpcServer,
  { isRemoved, overhear }: RemovedOnes,
): RpcServer {
  return async (request) => {
    const { datacenter } = request.from;
    if (!isRemoved(datacenter)) return handler(request);
    overhear(request);
    const says = `an operator has removed datacenter ${datacenter} from the federation; \`conclave operator datacenter allow ${datacenter}\` at the primary lets it come back`;
    throw new RpcRefusal(REMOVED_REFUSAL, says);
  };
}
