// Snapshots on their way to other members, as calls: begin, pieces in order, finish. One piece is on its
// way while the next one is read, and no faster than a limit. Where others write meanwhile the limit is a
// low one, so that they get their turn, until what they write might outlast the log that is kept.

import type { Clock } from '../../platform/clock.ts';
import type { SnapshotMessage } from '../../raft/message.ts';
import type { NodeId } from '../../raft/node-id.ts';
import type { GroupLimits } from '../../replica/group-limits.ts';
import type { MachineSnapshot } from '../../replica/replica.ts';
import type { MemberLimits, MemberTiming } from '../member-timing.ts';
import { beginOf, encodeBegin, encodePiece, NOTHING } from './snapshot-frames.ts';

export interface SnapshotOutboxOptions {
  readonly clock: Clock;
  readonly timing: MemberTiming;
  readonly limits: MemberLimits;
  /** Of the log, whose entries behind a snapshot its receiver needs next. */
  readonly lastIndex: () => number;
  /** Bytes of them, behind one. */
  readonly bytesBehind: (index: number) => number;
  /** So many of these are kept for it, and so many bytes. */
  readonly held: Pick<GroupLimits, 'heldCountMax' | 'heldBytesMax'>;
  /** Rejects with RpcError. */
  readonly call: (
    to: NodeId,
    method: string,
    payload: Uint8Array,
    deadlineMs: number,
  ) => Promise<Uint8Array>;
}

/** Of the entries that are kept for the receiver, this part may be written while it is treated gently. */
const GENTLE_PART = 1 / 4;

export class SnapshotOutbox {
  readonly #options: SnapshotOutboxOptions;
  #count = 0;

  constructor(options: SnapshotOutboxOptions) {
    this.#options = options;
  }

  /** Resolves when the other node has taken in the snapshot, all of it; rejects when it has not. */
  async send(to: NodeId, message: SnapshotMessage, snapshot: MachineSnapshot): Promise<void> {
    const { limits } = this.#options;
    if (this.#count >= limits.snapshotsMax) {
      throw new Error(`${this.#count} snapshots are being sent already; this one comes later`);
    }
    this.#count += 1;
    try {
      await this.#transfer(to, message, snapshot);
    } finally {
      this.#count -= 1;
    }
  }

  async #transfer(to: NodeId, message: SnapshotMessage, snapshot: MachineSnapshot): Promise<void> {
    const { call, timing } = this.#options;
    const begun = await call(to, 'member.snapshot-begin', encodeBegin(message), timing.chunkMs);
    const transfer = beginOf(begun);
    const { index } = message.snapshot;
    try {
      const count = await this.#sendChunks({ to, transfer, index }, snapshot);
      const end = encodePiece({ transfer, number: count, bytes: NOTHING });
      await call(to, 'member.snapshot-finish', end, timing.finishMs);
    } catch (error) {
      const end = encodePiece({ transfer, number: 0, bytes: NOTHING });
      // If it is the connection that failed, silence ends the intake.
      call(to, 'member.snapshot-abandon', end, timing.callMs).catch(() => undefined);
      throw error;
    }
  }

  async #sendChunks({ to, transfer, index }: Transfer, snapshot: MachineSnapshot): Promise<number> {
    const { call, timing, clock, lastIndex } = this.#options;
    const chunks = snapshot.chunks()[Symbol.asyncIterator]();
    let number = 0;
    try {
      let next = await chunks.next();
      while (next.done !== true) {
        const beganAtMs = clock.monotonicMs();
        const beganAtIndex = lastIndex();
        const piece = encodePiece({ transfer, number, bytes: next.value });
        const sent = call(to, 'member.snapshot-chunk', piece, timing.chunkMs);
        const sizeBytes = next.value.length;
        [next] = await Promise.all([chunks.next(), sent]);
        number += 1;
        const bytesPerSecond = this.#speed(index, beganAtIndex);
        await this.#pace(beganAtMs + (sizeBytes / bytesPerSecond) * 1000);
      }
    } finally {
      await chunks.return?.();
    }
    return number;
  }

  /** Bytes a second of a snapshot as of `index`, when its last piece began with the log at `beganAtIndex`. */
  #speed(index: number, beganAtIndex: number): number {
    const { limits, lastIndex } = this.#options;
    const isGentle = lastIndex() > beganAtIndex && this.#hasTime(index);
    return isGentle ? limits.snapshotGentleBytesPerSecond : limits.snapshotBytesPerSecond;
  }

  #hasTime(index: number): boolean {
    const { held, lastIndex, bytesBehind } = this.#options;
    const isShort = lastIndex() - index < held.heldCountMax * GENTLE_PART;
    return isShort && bytesBehind(index) < held.heldBytesMax * GENTLE_PART;
  }

  async #pace(dueAtMs: number): Promise<void> {
    const { clock } = this.#options;
    const waitMs = dueAtMs - clock.monotonicMs();
    if (waitMs <= 0) return;
    await new Promise<void>((resolve) => {
      clock.after(waitMs, resolve);
    });
  }
}

interface Transfer {
  readonly to: NodeId;
  readonly transfer: number;
  /** Of the snapshot. */
  readonly index: number;
}
