// What a secondary's group has on its disks, as a model: a cursor, the entries that were applied behind it,
// and a snapshot that is being staged. A batch is taken only behind the cursor that it names.

import type { GlobalBatch } from '../../../cluster/federation/feed/feed-reader.ts';
import {
  type GlobalCursor,
  type GlobalEntry,
  isSameCursor,
  LOG_START,
} from '../../../cluster/federation/global-log.ts';
import type { SnapshotOffer } from '../../../cluster/federation/snapshot/snapshot-sink.ts';
import { cursorOf, nextEntry } from './memory-log.ts';

export interface StagedSnapshot {
  readonly offer: SnapshotOffer;
  readonly pieces: Uint8Array[];
}

export class SecondaryState {
  federationId = '';
  cursor: GlobalCursor | undefined = LOG_START;
  /** By seq; those that came in a snapshot are there as its text says. */
  readonly entries: string[] = [];
  staged: StagedSnapshot | undefined;
  snapshotCount = 0;
  batchCount = 0;
  refusedCount = 0;
  readonly violations: string[] = [];

  adopt(federationId: string): void {
    const isStranger = this.federationId !== '' && this.federationId !== federationId;
    if (isStranger) throw new Error(`it is of ${this.federationId}`);
    this.federationId = federationId;
  }

  /** What applying the command does, on every node of the group. */
  apply({ federationId, from, entries, to }: GlobalBatch): GlobalCursor {
    const { cursor } = this;
    if (cursor === undefined) throw new Error('there is no cursor');
    if (!isSameCursor(cursor, from)) {
      this.refusedCount += 1;
      return cursor;
    }
    let at = from;
    for (const entry of entries) {
      const due = nextEntry(at, entry.bytes, entry.epoch);
      if (!isSameCursor(due, entry)) this.violations.push(`G3: ${entry.seq} does not follow`);
      this.#effect(entry);
      at = cursorOf(entry);
    }
    if (!isSameCursor(at, to)) this.violations.push(`G3: a batch ends at ${at.seq}, not ${to.seq}`);
    if (this.federationId !== federationId) this.violations.push(`${federationId} came first`);
    this.batchCount += 1;
    this.cursor = at;
    return at;
  }

  stage(offer: SnapshotOffer): void {
    this.staged = { offer, pieces: [] };
  }

  add(snapshotId: string, number: number, bytes: Uint8Array): void {
    const { staged } = this;
    if (staged?.offer.snapshotId !== snapshotId) throw new Error('another snapshot is staged');
    if (number < staged.pieces.length) return;
    if (number !== staged.pieces.length) throw new Error(`piece ${number} is out of its place`);
    staged.pieces.push(bytes);
  }

  commit(snapshotId: string, pieceCount: number): void {
    const { staged } = this;
    if (staged?.offer.snapshotId !== snapshotId) throw new Error('another snapshot is staged');
    if (staged.pieces.length !== pieceCount) throw new Error('a piece is missing');
    const text = Buffer.concat(staged.pieces).toString();
    this.entries.splice(0, this.entries.length, ...(text === '' ? [] : text.split('\n')));
    this.cursor = staged.offer.cursor;
    if (this.federationId !== staged.offer.federationId) this.violations.push('a stranger came');
    this.staged = undefined;
    this.snapshotCount += 1;
    if (this.entries.length !== this.cursor.seq) this.violations.push('G12: not at its cursor');
  }

  #effect({ seq, bytes }: GlobalEntry): void {
    if (this.entries.length !== seq - 1) this.violations.push(`G3: ${seq} is applied twice`);
    this.entries.push(Buffer.from(bytes).toString());
  }
}
