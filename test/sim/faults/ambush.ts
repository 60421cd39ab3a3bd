// Waits for a server of a datacenter to take something in, and kills it at that very moment: in the
// middle of a batch of entries, or of a snapshot, as chance alone would hardly ever do.

import type { KvWrite } from '../../../cluster/platform/kv.ts';
import { ROW } from '../../../src/state/rows/tables.ts';
import type { SimHost } from '../world/sim-host.ts';

export type Moment = 'entries' | 'snapshot';

const KIND_OF_MOMENT: Readonly<Record<Moment, number>> = {
  entries: ROW.globalEntry,
  /** How far what comes in is; each piece writes it. */
  snapshot: ROW.restore,
};

interface Laid {
  readonly hosts: readonly SimHost[];
  readonly moment: Moment;
  readonly strike: (host: SimHost) => void;
}

export class Ambushes {
  #laid: readonly Laid[] = [];

  /** `strike` is called once, with whoever is the first. The result takes it away. */
  lay(laid: Laid): () => void {
    this.#laid = [...this.#laid, laid];
    return () => this.#take(laid);
  }

  onLanded(host: SimHost, writes: readonly KvWrite[]): void {
    for (const laid of this.#laid) {
      const kind = KIND_OF_MOMENT[laid.moment];
      const isIt =
        laid.hosts.includes(host) &&
        writes.some(({ type, key }) => type === 'put' && key[0] === kind);
      if (!isIt) continue;
      this.#take(laid);
      laid.strike(host);
    }
  }

  #take(laid: Laid): void {
    this.#laid = this.#laid.filter((each) => each !== laid);
  }
}
