// Catching up with the leader, once, before a server says that it is ready: what the leader makes at the
// beginning of its reign (the built-in objects, the initial management token of its settings) must be there,
// and this server's state must have it.

import { RpcRefusal } from '../../../cluster/transport/calls/rpc-error.ts';
import { LeaderAway } from '../../service/remote.ts';
import type { Forwarding } from '../calls/forwarding.ts';
import type { Leadership } from './leadership.ts';

/** The method of the leader that answers, with nothing, when its reign has begun. */
export const REIGN_METHOD = 'service.reign';

/** Whoever is not answered by then asks again. */
const ASK_MS = 5_000;
const NOTHING = new Uint8Array(0);

export interface ReignBarrierParts {
  readonly leadership: Pick<Leadership, 'contact' | 'reign'>;
  readonly forwarding: Pick<Forwarding, 'ask'>;
  readonly readBarrier: () => Promise<void>;
}

/** Resolves when this server's state has all that the present leader began with. */
export async function passReignBarrier(parts: ReignBarrierParts): Promise<void> {
  const { leadership, forwarding, readBarrier } = parts;
  if (leadership.contact().isLeader) await leadership.reign();
  else await forwarding.ask(REIGN_METHOD, NOTHING, ASK_MS);
  await readBarrier();
}

/** The leader's side. */
export function answeringReign(leadership: Pick<Leadership, 'reign'>): () => Promise<Uint8Array> {
  return async () => {
    try {
      await leadership.reign();
      return NOTHING;
    } catch (error) {
      if (!(error instanceof LeaderAway)) throw error;
      throw new RpcRefusal('not-leader', 'this server does not lead');
    }
  };
}
