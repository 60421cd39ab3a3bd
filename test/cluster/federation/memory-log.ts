// A global log in memory: the chain of a primary, and what a secondary has of it. Hashes chain, so that an
// entry out of its place is found.

import type { EntrySource, Location } from '../../../cluster/federation/entry-source.ts';
import {
  type GlobalCursor,
  type GlobalEntry,
  isSameCursor,
  LOG_START,
} from '../../../cluster/federation/global-log.ts';
import { sha256 } from '../../../cluster/platform/sha256.ts';

export function nextEntry(after: GlobalCursor, bytes: Uint8Array, epoch = 1): GlobalEntry {
  const seq = after.seq + 1;
  const place = Buffer.from(`${epoch}.${seq} `);
  return { epoch, seq, bytes, hash: sha256(Buffer.concat([after.hash, place, bytes])) };
}

export function cursorOf({ epoch, seq, hash }: GlobalCursor): GlobalCursor {
  return { epoch, seq, hash };
}

/** Of what a state that has taken all up to there has. */
export function digestOf({ hash }: GlobalCursor): Uint8Array {
  return sha256(hash);
}

export class MemoryLog implements EntrySource {
  readonly entries: GlobalEntry[] = [];
  /** Entries up to here are trimmed. */
  trimmedSeq = 0;
  restoredSeq = 0;
  readCount = 0;
  readonly #writtenAtMs: number[] = [];
  readonly #listeners = new Set<() => void>();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number = () => 0) {
    this.#nowMs = nowMs;
  }

  get head(): GlobalCursor {
    return this.at(this.entries.length);
  }

  get kept(): { readonly afterSeq: number; readonly sizeBytes: number } {
    const kept = this.entries.slice(this.trimmedSeq);
    const sizeBytes = kept.reduce((sum, { bytes }) => sum + bytes.length, 0);
    return { afterSeq: this.trimmedSeq, sizeBytes };
  }

  at(seq: number): GlobalCursor {
    return seq === 0 ? LOG_START : cursorOf(this.entries[seq - 1]!);
  }

  write(bytes: Uint8Array | string, epoch = 1): GlobalEntry {
    return this.push(nextEntry(this.head, Buffer.from(bytes), epoch));
  }

  push(entry: GlobalEntry): GlobalEntry {
    this.entries.push(entry);
    this.#writtenAtMs.push(this.#nowMs());
    for (const listener of [...this.#listeners]) listener();
    return entry;
  }

  get listenerCount(): number {
    return this.#listeners.size;
  }

  onMoved(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  locate(cursor: GlobalCursor): Location {
    if (cursor.seq < this.trimmedSeq) return { kind: 'trimmed' };
    const isHere = cursor.seq <= this.entries.length && isSameCursor(this.at(cursor.seq), cursor);
    if (isHere) return { kind: 'kept' };
    return { kind: 'diverged', forkSeq: Math.min(cursor.seq - 1, this.entries.length) };
  }

  async read(afterSeq: number, maxBytes: number): Promise<readonly GlobalEntry[] | undefined> {
    this.readCount += 1;
    if (afterSeq < this.trimmedSeq) return undefined;
    const read: GlobalEntry[] = [];
    let leftBytes = maxBytes;
    for (const entry of this.entries.slice(afterSeq)) {
      leftBytes -= entry.bytes.length;
      if (read.length > 0 && leftBytes < 0) break;
      read.push(entry);
    }
    return read;
  }

  digestAt(cursor: GlobalCursor): Uint8Array | undefined {
    return this.locate(cursor).kind === 'kept' ? digestOf(cursor) : undefined;
  }

  sizeAfter(seq: number): number {
    return this.entries.slice(seq).reduce((sum, { bytes }) => sum + bytes.length, 0);
  }

  figures(): readonly number[] {
    return [this.entries.length, 7];
  }

  writtenAtMs(seq: number): number | undefined {
    return seq > this.trimmedSeq ? this.#writtenAtMs[seq - 1] : undefined;
  }
}
