// What a datacenter that an operator removed hears, whatever it asks: why nobody answers, and who can
// change that.

import { RpcRefusal } from '../transport/rpc-error.ts';
import type { RpcServer } from '../transport/transport.ts';

/** On the wire: it gets no other meaning. */
export const REMOVED_REFUSAL = 'federation.removed';

/** The same handler for all datacenters but those that were removed. `isRemoved` is asked at every call. */
export function refusingRemoved(
  handler: RpcServer,
  isRemoved: (datacenter: string) => boolean,
): RpcServer {
  return (request) => {
    const { datacenter } = request.from;
    if (!isRemoved(datacenter)) return handler(request);
    const says = `an operator has removed datacenter ${datacenter} from the federation; \`conclave operator datacenter allow ${datacenter}\` at the primary lets it come back`;
    return Promise.reject(new RpcRefusal(REMOVED_REFUSAL, says));
  };
}
