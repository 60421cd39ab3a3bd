// What came of an archive and was not used up yet, with its place in the file, and what reads it.

import { ArchiveDamage } from './archive-damage.ts';
import type { ArchiveInfo } from './archive-info.ts';

export class ArchiveInput {
  #rest: Buffer = Buffer.alloc(0);
  /** Place in the archive of the first byte of the rest. */
  #at = 0;

  get rest(): Buffer {
    return this.#rest;
  }

  get isAtStart(): boolean {
    return this.#at === 0;
  }

  /** Bytes that came so far. */
  get length(): number {
    return this.#at + this.#rest.length;
  }

  add(bytes: Uint8Array): void {
    const isAlone = this.#rest.length === 0;
    this.#rest = isAlone
      ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
      : Buffer.concat([this.#rest, bytes]);
  }

  use(count: number): void {
    this.#rest = this.#rest.subarray(count);
    this.#at += count;
  }

  /** The refusal of what stands here. */
  damage(found: string, cause?: unknown): ArchiveDamage {
    return new ArchiveDamage(`the archive is damaged at byte ${this.#at}: ${found}`, { cause });
  }
}

/** Reads archives of one format out of an input. */
export interface ArchiveParser {
  /** What the archive says of itself, as soon as it is there. */
  readonly info: ArchiveInfo | undefined;
  /** Whether its end was there, and fits what stands before it. */
  readonly isWhole: boolean;
  /** The chunks of the snapshot that are whole by now. Go through all of them. Throws ArchiveDamage. */
  chunks(): Generator<Uint8Array>;
}
