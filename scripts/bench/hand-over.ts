// How long a planned hand-over between two datacenters takes over loopback, from the wish to the epoch that
// has begun: so long nobody takes global writes. The states are in memory: what is measured is the asking.

import type { GlobalCursor } from '../../cluster/federation/global-log.ts';
import type { AskLeaderOptions } from '../../cluster/federation/promotion/ask-leader.ts';
import { Promotion } from '../../cluster/federation/promotion/promotion.ts';
import type {
  PromotionPort,
  PromotionState,
} from '../../cluster/federation/promotion/promotion-port.ts';
import type { RpcServer, Transport } from '../../cluster/transport/transport.ts';
import { systemClock } from '../../src/platform-node/system-clock.ts';
import { systemRandom } from '../../src/platform-node/system-random.ts';

export type OpenTransport = (
  datacenter: string,
  handlers: Readonly<Record<string, RpcServer>>,
) => Promise<Transport>;

const CURSOR: GlobalCursor = { epoch: 1, seq: 9, hash: new Uint8Array(32) };
const silent = (): void => undefined;
const logger = { debug: silent, info: silent, warn: silent, error: silent };

/** Milliseconds. */
export async function handOverMs(open: OpenTransport): Promise<number> {
  const transports = new Map<string, Transport>();
  const promotions = await Promise.all(
    ['dc1', 'dc2'].map(async (datacenter) => {
      const promotion = promotionOf(datacenter, transports);
      transports.set(datacenter, await open(datacenter, promotion.handlers));
      return promotion;
    }),
  );
  try {
    const beganAtMs = systemClock.monotonicMs();
    await promotions[0]?.handOver('dc2');
    return systemClock.monotonicMs() - beganAtMs;
  } finally {
    await Promise.all([...transports.values()].map((transport) => transport.close()));
  }
}

function promotionOf(datacenter: string, transports: ReadonlyMap<string, Transport>): Promotion {
  const addressesOf = (name: string) => {
    const transport = transports.get(name);
    return transport === undefined ? [] : [transport.address];
  };
  const call: AskLeaderOptions['call'] = (to, request) => {
    const transport = transports.get(datacenter);
    if (transport === undefined) throw new Error(`${datacenter} is not open`);
    return transport.call(to, request);
  };
  return new Promotion({
    clock: systemClock,
    random: systemRandom,
    logger,
    datacenter,
    federationId: () => '',
    port: new MemoryPort(datacenter === 'dc1'),
    source: { locate: () => ({ kind: 'kept' }), read: async () => [], restoredSeq: 0 },
    unreadableBy: () => undefined,
    addressesOf,
    claim: () => undefined,
    heardEpoch: () => 0,
    isNamed: () => true,
    isRivalled: () => false,
    passesOver: () => undefined,
    hearAll: async () => undefined,
    ahead: () => [],
    haveTold: async () => undefined,
    datacenters: () => [...transports.keys()],
    onWriterAsks: () => undefined,
    isDiverged: () => false,
    ackedSeqOf: () => CURSOR.seq,
    call,
    callFollowed: call,
  });
}

/** A datacenter that promises to everybody and takes no writes. */
class MemoryPort implements PromotionPort {
  #state: PromotionState;

  constructor(isPrimary: boolean) {
    const voters = ['dc1', 'dc2'];
    const epoch = { epoch: 1, primary: 'dc1', maxEpoch: 1, votedFor: 'dc1', epochs: [] };
    const kind = { isPrimary, isDiverged: false, isWitness: false };
    this.#state = { ...epoch, ...kind, cursor: CURSOR, voters, witnesses: [] };
  }

  state(): PromotionState {
    return this.#state;
  }

  async leftBehindBy() {
    return undefined;
  }

  isLeading(): boolean {
    return true;
  }

  mayReach(cursor: GlobalCursor): GlobalCursor {
    return cursor;
  }

  mayPromise(): boolean {
    return true;
  }

  async promise({ epoch }: { readonly epoch: number }) {
    this.#state = { ...this.#state, maxEpoch: epoch, isPrimary: false };
    return { isGranted: true, cursor: CURSOR, maxEpoch: epoch };
  }

  isRestore(): boolean {
    return false;
  }

  async take(): Promise<GlobalCursor> {
    return CURSOR;
  }

  async start(): Promise<boolean> {
    this.#state = { ...this.#state, isPrimary: true };
    return true;
  }

  async fence(): Promise<void> {
    this.#state = { ...this.#state, isPrimary: false };
  }

  async forkPlace(): Promise<GlobalCursor> {
    return CURSOR;
  }

  async goBack(): Promise<void> {}

  seal(): () => void {
    return silent;
  }

  async settled(): Promise<GlobalCursor> {
    return CURSOR;
  }
}
