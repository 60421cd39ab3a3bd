// The receiving side of a snapshot: one at a time, piece by piece in order. A new one that is needed takes the place
// of one that is not finishing yet; one of which nothing is heard is abandoned.

import { messageOf } from '../../base/message-of.ts';
import { SerialWork } from '../../base/serial-work.ts';
import type { Clock, Timer } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logger.ts';
import type { SnapshotMessage } from '../../raft/message.ts';
import type { NodeId } from '../../raft/node-id.ts';
import { GroupRefusal } from '../../replica/group-refusal.ts';
import type { SnapshotIntake } from '../../replica/group-replica.ts';
import { ReplicaError, SnapshotDamage } from '../../replica/replica.ts';
import { RpcRefusal } from '../../transport/calls/rpc-error.ts';
import type { MemberTiming } from '../member-timing.ts';
import { decodeBegin, decodePiece, encodeBegun, NOTHING } from './snapshot-frames.ts';

export interface SnapshotInboxOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly timing: MemberTiming;
  /** Takes the place of what came in before. Rejects when the snapshot is not needed, and that goes on then. */
  readonly begin: (message: SnapshotMessage) => Promise<SnapshotIntake>;
}

interface Current {
  readonly transfer: number;
  readonly from: NodeId;
  readonly intake: SnapshotIntake;
  nextNumber: number;
  idle: Timer;
}

export class SnapshotInbox {
  readonly #options: SnapshotInboxOptions;
  readonly #work = new SerialWork();
  #current: Current | undefined;
  #lastTransfer = 0;
  #couldNotKeep = false;

  constructor(options: SnapshotInboxOptions) {
    this.#options = options;
  }

  /** Whether the own disk did not take the last one; its log says why. */
  get couldNotKeep(): boolean {
    return this.#couldNotKeep;
  }

  begin(from: NodeId, payload: Uint8Array): Promise<Uint8Array> {
    const message = decodeBegin(payload);
    if (message.from !== from) {
      throw new RpcRefusal('not-yours', `node ${from} sends a snapshot of node ${message.from}`);
    }
    return this.#work.run(async () => {
      const intake = await this.#noted(this.#options.begin(message));
      await this.#drop('a newer one comes');
      this.#lastTransfer += 1;
      const transfer = this.#lastTransfer;
      const idle = this.#idleTimer(transfer);
      this.#current = { transfer, from, intake, nextNumber: 0, idle };
      this.#options.logger.info({ from, index: message.snapshot.index }, 'a snapshot comes in');
      return encodeBegun(transfer);
    });
  }

  chunk(from: NodeId, payload: Uint8Array): Promise<Uint8Array> {
    const { transfer, number, bytes } = decodePiece(payload);
    return this.#work.run(async () => {
      const current = this.#require(from, transfer);
      current.idle.cancel();
      if (number !== current.nextNumber) {
        const says = `chunk ${number} came where ${current.nextNumber} was expected`;
        await this.#drop(says);
        throw new RpcRefusal('out-of-order', says);
      }
      await this.#orDrop(current.intake.add(bytes));
      current.nextNumber += 1;
      current.idle = this.#idleTimer(transfer);
      return NOTHING;
    });
  }

  finish(from: NodeId, payload: Uint8Array): Promise<Uint8Array> {
    const { transfer, number } = decodePiece(payload);
    return this.#work.run(async () => {
      const current = this.#require(from, transfer);
      current.idle.cancel();
      if (number !== current.nextNumber) {
        const says = `${current.nextNumber} chunks of ${number} came`;
        await this.#drop(says);
        throw new RpcRefusal('incomplete', says);
      }
      await this.#orDrop(current.intake.finish());
      this.#current = undefined;
      this.#couldNotKeep = false;
      this.#options.logger.info({ from, chunks: number }, 'a snapshot is in place');
      return NOTHING;
    });
  }

  abandon(from: NodeId, payload: Uint8Array): Promise<Uint8Array> {
    const { transfer } = decodePiece(payload);
    return this.#work.run(async () => {
      const isCurrent = this.#current?.transfer === transfer && this.#current.from === from;
      if (isCurrent) await this.#drop('its sender gave it up');
      return NOTHING;
    });
  }

  /** Abandons what is on its way. */
  close(): Promise<void> {
    return this.#work.run(() => this.#drop('this node closes'));
  }

  #require(from: NodeId, transfer: number): Current {
    const current = this.#current;
    if (current?.transfer === transfer && current.from === from) return current;
    throw new RpcRefusal('no-transfer', `transfer ${transfer} is not under way here`);
  }

  async #orDrop(work: Promise<void>): Promise<void> {
    try {
      await this.#noted(work);
    } catch (error) {
      await this.#drop(messageOf(error));
      throw error;
    }
  }

  /** What is no matter of the snapshot, nor of the group, is one of the disk. */
  async #noted<T>(work: Promise<T>): Promise<T> {
    try {
      return await refusing(work);
    } catch (error) {
      if (!(error instanceof RpcRefusal)) this.#couldNotKeep = true;
      throw error;
    }
  }

  async #drop(why: string): Promise<void> {
    const current = this.#current;
    if (current === undefined) return;
    this.#current = undefined;
    current.idle.cancel();
    this.#options.logger.warn({ from: current.from, why }, 'a snapshot was abandoned');
    await current.intake.abandon();
  }

  #idleTimer(transfer: number): Timer {
    const { clock, timing } = this.#options;
    return clock.after(timing.intakeIdleMs, () => {
      void this.#work.run(async () => {
        if (this.#current?.transfer === transfer) await this.#drop('nothing was heard of it');
      });
    });
  }
}

/** What the replica or the machine says against a snapshot is told to its sender. */
async function refusing<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof SnapshotDamage) throw new RpcRefusal('damaged', error.message);
    if (error instanceof GroupRefusal) throw new RpcRefusal(error.code, error.message);
    if (error instanceof ReplicaError) throw new RpcRefusal(error.code, error.message);
    throw error;
  }
}
