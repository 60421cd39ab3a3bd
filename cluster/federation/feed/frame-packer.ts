// Entries as packed frames: read from the log by range and packed once, for however many followers want
// the same. Followers that are close to each other share frames; one that is far behind has its own.

import type { EntrySource } from '../entry-source.ts';
import { type GlobalCursor, isSameCursor } from '../global-log.ts';
import { encodeEntryRun } from './feed-frames.ts';
import { FRAME_BYTES, FRAME_ENTRIES_MAX } from './feed-limits.ts';

export interface PackedFrame {
  readonly body: Uint8Array;
  /** The last entry in it. */
  readonly to: GlobalCursor;
  /** It ends where it does because it is large enough, and not because the log did. */
  readonly isFull: boolean;
}

interface Kept {
  readonly after: GlobalCursor;
  readonly frame: Promise<PackedFrame | undefined>;
  /** Where the head was when it was read. */
  readonly headSeq: number;
  /** It would not be larger now. Not known before it is read. */
  isFull: boolean;
}

export class FramePacker {
  readonly #source: EntrySource;
  readonly #keptMax: number;
  /** By the seq that the frame follows; the oldest first. */
  readonly #kept = new Map<number, Kept>();

  constructor(source: EntrySource, keptMax: number) {
    this.#source = source;
    this.#keptMax = keptMax;
  }

  /** What follows `after`, which is before the head. Undefined when it is not kept any more. */
  after(after: GlobalCursor): Promise<PackedFrame | undefined> {
    const headSeq = this.#source.head.seq;
    const known = this.#kept.get(after.seq);
    const isSame = known !== undefined && isSameCursor(known.after, after);
    if (isSame && (known.isFull || known.headSeq === headSeq)) return known.frame;
    const kept: Kept = { after, frame: this.#pack(after, headSeq), headSeq, isFull: false };
    this.#keep(kept);
    kept.frame.then(
      (frame) => {
        kept.isFull = frame?.isFull === true;
      },
      () => this.#kept.delete(after.seq),
    );
    return kept.frame;
  }

  clear(): void {
    this.#kept.clear();
  }

  #keep(kept: Kept): void {
    this.#kept.delete(kept.after.seq);
    this.#kept.set(kept.after.seq, kept);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > this.#keptMax && oldest !== undefined) this.#kept.delete(oldest);
  }

  async #pack(after: GlobalCursor, headSeq: number): Promise<PackedFrame | undefined> {
    const read = await this.#source.read(after.seq, FRAME_BYTES);
    const entries = read?.slice(0, FRAME_ENTRIES_MAX);
    const to = entries?.at(-1);
    if (entries === undefined || to === undefined) return undefined;
    const { epoch, seq, hash } = to;
    const body = encodeEntryRun({ after, entries });
    return { body, to: { epoch, seq, hash }, isFull: seq < headSeq };
  }
}
