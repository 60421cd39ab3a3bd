// Lends snapshots of the global state to followers, chunk by chunk, each at one exact place of the global
// log. A loan ends with its lease: after a time in which nothing was asked of it, or with the reign. While it
// lasts, the log from its place on is kept.

import { SerialWork } from '../../base/serial-work.ts';
import type { Clock, Timer } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logger.ts';
import type { Random } from '../../platform/random.ts';
import { sha256 } from '../../platform/sha256.ts';
import { RpcRefusal } from '../../transport/calls/rpc-error.ts';
import type { RpcCaller, RpcRequest, RpcServer } from '../../transport/transport.ts';
import type { FeedStanding } from '../feed/feed-server.ts';
import { type GlobalCursor, positionText } from '../global-log.ts';
import { requireNotRemoved } from '../refuse-outsiders.ts';
import { PIECES_AHEAD } from './borrow-snapshot.ts';
import {
  type ChunkWish,
  decodeOpen,
  decodeWish,
  encodeChunk,
  encodeOffer,
  SNAPSHOT_METHOD,
  SNAPSHOT_REFUSAL,
} from './snapshot-frames.ts';

/** The global state as of one entry. */
export interface GlobalSnapshot {
  readonly cursor: GlobalCursor;
  /** To be gone through once; each fits into a frame. */
  chunks(): AsyncIterable<Uint8Array>;
  /** Closing twice is harmless. */
  close(): Promise<void>;
}

export interface SnapshotLenderOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly standing: () => FeedStanding;
  readonly open: () => Promise<GlobalSnapshot>;
  /** That datacenter has asked for a piece of what is lent to it: while it does, it asks for nothing else. */
  readonly onAsked: (datacenter: string) => void;
  readonly leaseMs?: number;
  readonly loansMax?: number;
}

const LEASE_MS = 60_000;
const LOANS_MAX = 4;
/**
 * Chunks that are kept: a follower that lost its line, or its leader, asks again for what it had asked for
 * and has not staged.
 */
const RECENT_MAX = PIECES_AHEAD;

interface Loan {
  readonly snapshotId: string;
  readonly datacenter: string;
  readonly snapshot: GlobalSnapshot;
  readonly chunks: AsyncIterator<Uint8Array>;
  readonly work: SerialWork;
  /** Encoded answers by number, the oldest first. */
  readonly recent: Map<number, Uint8Array>;
  nextNumber: number;
  lease: Timer;
}

/** A loan as people see it. */
export interface LoanView {
  readonly datacenter: string;
  readonly snapshotId: string;
  readonly cursor: GlobalCursor;
  readonly chunkCount: number;
}

export class SnapshotLender {
  /** To be served for all datacenters, by their methods. */
  readonly handlers: Readonly<Record<string, RpcServer>> = {
    [SNAPSHOT_METHOD.open]: (request) => this.#onOpen(request),
    [SNAPSHOT_METHOD.chunk]: (request) => this.#onChunk(request),
  };
  readonly #options: SnapshotLenderOptions;
  readonly #leaseMs: number;
  readonly #loans = new Map<string, Loan>();
  readonly #opening = new SerialWork();

  constructor(options: SnapshotLenderOptions) {
    this.#options = options;
    this.#leaseMs = options.leaseMs ?? LEASE_MS;
  }

  /** The log behind this seq must be kept for whoever has a snapshot; undefined: nobody has. */
  get pinnedSeq(): number | undefined {
    const seqs = [...this.#loans.values()].map(({ snapshot }) => snapshot.cursor.seq);
    return seqs.length === 0 ? undefined : Math.min(...seqs);
  }

  loans(): readonly LoanView[] {
    return [...this.#loans.values()].map(({ datacenter, snapshotId, snapshot, nextNumber }) => ({
      datacenter,
      snapshotId,
      cursor: snapshot.cursor,
      chunkCount: nextNumber,
    }));
  }

  /** Ends every loan when this server does not lead the primary any more. */
  async standingChanged(): Promise<void> {
    if (this.#options.standing().kind !== 'primary') await this.close();
  }

  /** Ends every loan. */
  async close(): Promise<void> {
    const loans = [...this.#loans.values()];
    await Promise.all(loans.map((loan) => this.#end(loan, 'nothing is lent any more')));
  }

  #onOpen({ from, payload }: RpcRequest): Promise<Uint8Array> {
    const askedBy = decodeOpen(payload);
    return this.#opening.run(async () => {
      this.#requirePrimary(askedBy, from);
      for (const loan of [...this.#loans.values()]) {
        if (loan.datacenter === from.datacenter)
          await this.#end(loan, 'a newer one takes its place');
      }
      const loansMax = this.#options.loansMax ?? LOANS_MAX;
      if (this.#loans.size >= loansMax) {
        throw new RpcRefusal(SNAPSHOT_REFUSAL.busy, `${loansMax} snapshots are lent already`);
      }
      const snapshot = await this.#options.open();
      try {
        const { federationId, epoch } = this.#requirePrimary(askedBy, from);
        const { snapshotId } = this.#lend(from.datacenter, snapshot);
        return encodeOffer({ snapshotId, federationId, epoch, cursor: snapshot.cursor });
      } catch (error) {
        await snapshot.close();
        throw error;
      }
    });
  }

  #lend(datacenter: string, snapshot: GlobalSnapshot): Loan {
    const snapshotId = this.#options.random.uuid();
    const loan: Loan = {
      snapshotId,
      datacenter,
      snapshot,
      chunks: snapshot.chunks()[Symbol.asyncIterator](),
      work: new SerialWork(),
      recent: new Map(),
      nextNumber: 0,
      lease: this.#leaseOf(snapshotId),
    };
    this.#loans.set(snapshotId, loan);
    const fields = { datacenter, snapshotId, position: positionText(snapshot.cursor) };
    this.#options.logger.info(fields, 'lends a snapshot');
    return loan;
  }

  #onChunk({ from, payload }: RpcRequest): Promise<Uint8Array> {
    const wish = decodeWish(payload);
    const loan = this.#loans.get(wish.snapshotId);
    if (loan === undefined || loan.datacenter !== from.datacenter)
      throw gone(wish, 'it is not lent');
    this.#options.onAsked(loan.datacenter);
    loan.lease.cancel();
    loan.lease = this.#leaseOf(loan.snapshotId);
    return loan.work.run(() => this.#chunkOf(loan, wish));
  }

  async #chunkOf(loan: Loan, wish: ChunkWish): Promise<Uint8Array> {
    const { number } = wish;
    const known = loan.recent.get(number);
    if (known !== undefined) return known;
    if (number !== loan.nextNumber || !this.#loans.has(loan.snapshotId)) {
      throw gone(wish, `the next one is chunk ${loan.nextNumber}`);
    }
    const { done, value } = await this.#nextOf(loan);
    const bytes: Uint8Array = done === true ? NOTHING : value;
    const chunk = encodeChunk({ number, isEnd: done === true, hash: sha256(bytes), bytes });
    loan.nextNumber += 1;
    loan.recent.set(number, chunk);
    const [oldest] = loan.recent.keys();
    if (loan.recent.size > RECENT_MAX && oldest !== undefined) loan.recent.delete(oldest);
    return chunk;
  }

  /** Behind a failure its chunks would seem to be at their end: another one is to be taken. */
  async #nextOf(loan: Loan): Promise<IteratorResult<Uint8Array>> {
    try {
      return await loan.chunks.next();
    } catch (error) {
      void this.#end(loan, 'it could not be read');
      throw error;
    }
  }

  #leaseOf(snapshotId: string): Timer {
    return this.#options.clock.after(this.#leaseMs, () => {
      const loan = this.#loans.get(snapshotId);
      if (loan !== undefined) void this.#end(loan, `nothing was asked for ${this.#leaseMs} ms`);
    });
  }

  async #end(loan: Loan, why: string): Promise<void> {
    const { datacenter, lease, snapshotId, work, chunks, snapshot } = loan;
    if (!this.#loans.delete(snapshotId)) return;
    lease.cancel();
    this.#options.logger.info({ datacenter, snapshotId, why }, 'a lent snapshot is closed');
    await work.run(async () => {
      await chunks.return?.();
      await snapshot.close();
    });
  }

  #requirePrimary(
    askedBy: string,
    from: RpcCaller,
  ): Extract<FeedStanding, { readonly kind: 'primary' }> {
    const standing = this.#options.standing();
    if (standing.kind === 'elsewhere') {
      throw new RpcRefusal(SNAPSHOT_REFUSAL.elsewhere, standing.says);
    }
    requireNotRemoved(from, standing);
    const areKnown = askedBy !== '' && standing.federationId !== '';
    if (!areKnown || askedBy === standing.federationId) return standing;
    const says = `the snapshots here are of federation ${standing.federationId}, not of ${askedBy}`;
    throw new RpcRefusal(SNAPSHOT_REFUSAL.elsewhere, says);
  }
}

const NOTHING = new Uint8Array(0);

function gone({ snapshotId, number }: ChunkWish, why: string): RpcRefusal {
  return new RpcRefusal(SNAPSHOT_REFUSAL.gone, `chunk ${number} of snapshot ${snapshotId}: ${why}`);
}
