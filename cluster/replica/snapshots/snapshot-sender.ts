// Snapshots that this node sends, as leader. One that raft asks for holds the machine's state as of that
// moment until its transfer has ended; a follower gets one at a time. One that did not get through is
// reported after a while, so that raft does not try without a pause.

import { SerialWork } from '../../base/serial-work.ts';
import type { Clock, Timer } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logger.ts';
import { NO_DATA } from '../../raft/log/entry.ts';
import type { Snapshot } from '../../raft/log/snapshot.ts';
import type { SnapshotMessage } from '../../raft/message.ts';
import type { NodeId } from '../../raft/node-id.ts';
import { decodeGroupRecord } from '../group-record.ts';
import type { Machine, MachineSnapshot } from '../replica.ts';

export interface SnapshotSenderOptions {
  readonly machine: Pick<Machine<unknown>, 'snapshot'>;
  readonly send: (to: NodeId, message: SnapshotMessage, snapshot: MachineSnapshot) => Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly retryMs: number;
  /** The transfer to a node has ended, one way or the other. */
  readonly onEnded: (node: NodeId, report: { readonly delivered: boolean }) => void;
}

export class SnapshotSender {
  readonly #options: SnapshotSenderOptions;
  /** Made for raft in this turn, and not on their way yet. */
  readonly #made = new Map<Snapshot, HeldSnapshot>();
  readonly #sending = new Map<NodeId, HeldSnapshot>();
  readonly #retries = new Map<NodeId, Timer>();
  #isStopped = false;

  constructor(options: SnapshotSenderOptions) {
    this.#options = options;
  }

  /** A snapshot of the machine as it is; undefined when none can be made, which is logged. */
  make(): Snapshot | undefined {
    try {
      const held = new HeldSnapshot(this.#options.machine.snapshot());
      const { appliedEntry, groupRecord } = held;
      if (appliedEntry === undefined || groupRecord === undefined) {
        this.#close(held);
        return undefined;
      }
      const { membership } = decodeGroupRecord(groupRecord);
      const { index, term } = appliedEntry;
      const snapshot: Snapshot = { index, term, membership, data: NO_DATA };
      this.#made.set(snapshot, held);
      return snapshot;
    } catch (error) {
      this.#options.logger.error({ why: String(error) }, 'no snapshot can be made');
      return undefined;
    }
  }

  /** Sends what was made for this message. */
  send(message: SnapshotMessage): void {
    const { to, snapshot } = message;
    const held = this.#made.get(snapshot);
    this.#made.delete(snapshot);
    this.#retries.get(to)?.cancel();
    if (held === undefined || this.#sending.has(to)) {
      if (held !== undefined) this.#close(held);
      this.reportLater(to);
      return;
    }
    this.#sending.set(to, held);
    void this.#transfer(message, held);
  }

  /** Says after a while that none got through to `node`. */
  reportLater(node: NodeId): void {
    if (this.#isStopped) return;
    const { clock, retryMs, onEnded } = this.#options;
    this.#retries.get(node)?.cancel();
    const timer = clock.after(retryMs, () => {
      this.#retries.delete(node);
      onEnded(node, { delivered: false });
    });
    this.#retries.set(node, timer);
  }

  /** Lets go of what raft asked for and did not send after all. */
  endTurn(): void {
    if (this.#made.size === 0) return;
    for (const held of this.#made.values()) this.#close(held);
    this.#made.clear();
  }

  /** Ends all transfers; nothing is reported any more. */
  stop(): void {
    this.#isStopped = true;
    this.endTurn();
    for (const held of this.#sending.values()) this.#close(held);
    for (const timer of this.#retries.values()) timer.cancel();
  }

  async #transfer(message: SnapshotMessage, held: HeldSnapshot): Promise<void> {
    const { to, snapshot } = message;
    const { logger, send, onEnded } = this.#options;
    const { index } = snapshot;
    logger.info({ node: to, index }, 'a snapshot is being sent');
    try {
      await send(to, message, held);
      logger.info({ node: to, index }, 'a snapshot was sent');
      this.#sending.delete(to);
      onEnded(to, { delivered: true });
    } catch (error) {
      logger.warn({ node: to, index, why: String(error) }, 'a snapshot did not get through');
      this.#sending.delete(to);
      this.reportLater(to);
    } finally {
      this.#close(held);
    }
  }

  #close(held: HeldSnapshot): void {
    held.close().catch((error: unknown) => {
      this.#options.logger.warn({ why: String(error) }, 'a snapshot was not let go of');
    });
  }
}

/** After it is closed, whoever still reads it is told so: of a store, a read behind the end is a failure. */
class HeldSnapshot implements MachineSnapshot {
  readonly #snapshot: MachineSnapshot;
  /** Reading a chunk, or closing. */
  readonly #work = new SerialWork();
  #closing: Promise<void> | undefined;

  constructor(snapshot: MachineSnapshot) {
    this.#snapshot = snapshot;
  }

  get appliedEntry(): MachineSnapshot['appliedEntry'] {
    return this.#snapshot.appliedEntry;
  }

  get groupRecord(): MachineSnapshot['groupRecord'] {
    return this.#snapshot.groupRecord;
  }

  async *chunks(): AsyncGenerator<Uint8Array> {
    const chunks = this.#snapshot.chunks()[Symbol.asyncIterator]();
    try {
      for (;;) {
        const { done, value } = await this.#work.run(() => this.#nextOf(chunks));
        if (done === true) return;
        yield value;
      }
    } finally {
      await chunks.return?.();
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#work.run(() => this.#snapshot.close());
    return this.#closing;
  }

  async #nextOf(chunks: AsyncIterator<Uint8Array>): Promise<IteratorResult<Uint8Array>> {
    if (this.#closing !== undefined) throw new Error('the snapshot is not sent any more');
    return chunks.next();
  }
}
