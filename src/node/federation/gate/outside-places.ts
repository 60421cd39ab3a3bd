// How far those that were removed are, as they say when they ask for the log and are refused. It binds nobody, and is
// a warning to whoever lets one back: where it has more of a reign of this datacenter than there is here, the data
// folders here are of an earlier day, on which it was removed.

import { decodeHello, FEED_METHOD } from '../../../../cluster/federation/feed/feed-frames.ts';
import type { GlobalCursor } from '../../../../cluster/federation/global-log.ts';
import type { Clock } from '../../../../cluster/platform/clock.ts';
import type { RpcRequest } from '../../../../cluster/transport/transport.ts';
import type { Position } from '../../../state/global-log/cursor.ts';
import type { Replication } from '../../../state/global-log/replication.ts';
import type { StateMachine } from '../../../state/machine.ts';

export interface AheadOutside {
  readonly datacenter: string;
  readonly upTo: Position;
  /** Of the same reign, here. */
  readonly end: Position;
  /** When it said so, by the wall clock. */
  readonly heardAtMs: number;
}

export interface OutsidePlacesOptions {
  readonly clock: Pick<Clock, 'wallMs'>;
  readonly machine: Pick<StateMachine, 'replication'>;
  readonly isRemoved: (datacenter: string) => boolean;
}

export class OutsidePlaces {
  readonly #options: OutsidePlacesOptions;
  /** In reigns of this datacenter, as each has said last. */
  readonly #places = new Map<string, Pick<AheadOutside, 'upTo' | 'heardAtMs'>>();

  constructor(options: OutsidePlacesOptions) {
    this.#options = options;
  }

  /** Remembers what one that is refused says of itself. Throws WireDamage. */
  overhear({ from: { datacenter }, method, payload }: RpcRequest): void {
    const { clock, machine } = this.#options;
    const replication = machine.replication();
    if (method !== FEED_METHOD.hello || replication === undefined) return;
    const { cursor, federationId } = decodeHello(payload);
    if (federationId !== replication.federationId || cursor === undefined) {
      this.#places.delete(datacenter);
      return;
    }
    // A reign of another one, which it may have begun itself, stands behind what it has of those of this one.
    if (!isOwn(replication, cursor)) return;
    const upTo = { epoch: cursor.epoch, seq: cursor.seq };
    this.#places.set(datacenter, { upTo, heardAtMs: clock.wallMs() });
  }

  /** These are removed. Whoever was let back gives up what it has more, or is heard as all others. */
  forgetOthers(removed: readonly string[]): void {
    for (const datacenter of this.#places.keys()) {
      if (!removed.includes(datacenter)) this.#places.delete(datacenter);
    }
  }

  /** Who was removed, and has more of a reign of this datacenter than there is here, by name. */
  ahead(): readonly AheadOutside[] {
    const { isRemoved, machine } = this.#options;
    const replication = machine.replication();
    if (replication === undefined) return [];
    return [...this.#places]
      .filter(([datacenter]) => isRemoved(datacenter))
      .flatMap(([datacenter, told]) => {
        const end = ownEnd(replication, told.upTo);
        return end !== undefined && end.seq < told.upTo.seq ? [{ datacenter, ...told, end }] : [];
      });
  }
}

type Chain = Pick<Replication, 'cursor' | 'datacenter' | 'epochs'>;
type InEpoch = Pick<GlobalCursor, 'epoch'>;

function isOwn({ datacenter, epochs }: Chain, { epoch }: InEpoch): boolean {
  return epochs.find((each) => each.epoch === epoch)?.primary === datacenter;
}

/**
 * Where the reign of that place ends here, as far as it is this datacenter's; undefined where it is none of it, or
 * another one has reigned behind it: what that one has left behind this one may have written, and set apart.
 */
function ownEnd(replication: Chain, { epoch }: InEpoch): Position | undefined {
  const { epochs, cursor } = replication;
  const place = epochs.findIndex((each) => each.epoch === epoch);
  const behind = epochs.slice(place);
  if (place === -1 || !behind.every((each) => isOwn(replication, each))) return undefined;
  const next = behind[1];
  return { epoch, seq: next === undefined ? cursor.seq : next.startSeq - 1 };
}
