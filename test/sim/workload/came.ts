// What came back to a client of the simulator.

import type { Reply } from '../run/sim-group.ts';
import type { HttpAnswer } from '../subject/node-subject.ts';
import type { SimHost } from '../world/sim-host.ts';

export type Came = HttpAnswer | 'not-sent' | 'lost';

export function cameFrom(host: SimHost, reply: Reply<HttpAnswer>): Came {
  if (reply.kind === 'lost') return 'lost';
  if (reply.kind !== 'answered') return 'not-sent';
  // A server that finds its disk damaged ends, and says to the request that found it that it has failed.
  const hasEnded = reply.value.status === 500 && host.process === undefined;
  return hasEnded ? 'lost' : reply.value;
}

/** Who was sent nothing did nothing. */
export function cameAs(came: 'not-sent' | 'lost'): 'unavailable' | 'unknown' {
  return came === 'lost' ? 'unknown' : 'unavailable';
}
