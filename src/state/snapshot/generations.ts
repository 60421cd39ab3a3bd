// Where another state can be taken in beside the present one: stores with a number each, of which one
// is in use. Which one that is, survives a restart elsewhere; here they are only opened and let go.

import type { Kv } from '../../../cluster/platform/kv.ts';

export interface Generations {
  /** The one that the machine is opened on. */
  readonly current: number;
  /**
   * A new, empty store; what an earlier attempt left there is deleted first. Its failure is a matter of
   * whoever writes to it, until it is adopted.
   */
  open(generation: number): Promise<Kv>;
  /** From now on it is the one in use, and its failure is that of the whole node. */
  adopted(generation: number): void;
  /** Closes the store and deletes it. Never rejects: what is left over is deleted at the next start. */
  discard(generation: number, kv: Kv): Promise<void>;
}
