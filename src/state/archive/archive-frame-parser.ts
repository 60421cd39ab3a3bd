// Format 1 of archives, which releases up to November 2026 wrote. It is read, and not written any more.
//
//   magic    "conclave archive 1\n"
//   frames   length (4 bytes, big end first), then so many bytes: first the header, then for each chunk of
//            a snapshot (snapshot-format.ts) the chunk, compressed by DEFLATE
//   end      length 0, then a check of 32 bytes
//
// The header is an ArchiveInfo. The check begins as SHA-256 of the magic; each frame makes it SHA-256 over
// the check so far and the frame with its length.

import { inflateRawSync } from 'node:zlib';
import { sha256 } from '../../../cluster/platform/sha256.ts';
import { chained, SNAPSHOT_CHUNK_MAX_BYTES } from '../snapshot/snapshot-format.ts';
import { ArchiveDamage } from './archive-damage.ts';
import { type ArchiveInfo, checkedInfo } from './archive-info.ts';
import type { ArchiveInput, ArchiveParser } from './archive-input.ts';

const MAGIC = Buffer.from('conclave archive 1\n');
const LENGTH_BYTES = 4;
const CHECK_BYTES = 32;
/** What does not get smaller gets a little larger. */
const FRAME_MAX_BYTES = SNAPSHOT_CHUNK_MAX_BYTES + 4096;

export class ArchiveFrameParser implements ArchiveParser {
  readonly #input: ArchiveInput;
  #info: ArchiveInfo | undefined;
  #check = sha256(MAGIC);
  #standing: 'magic' | 'frames' | 'end' = 'magic';

  constructor(input: ArchiveInput) {
    this.#input = input;
  }

  get info(): ArchiveInfo | undefined {
    return this.#info;
  }

  get isWhole(): boolean {
    return this.#standing === 'end' && this.#info !== undefined;
  }

  *chunks(): Generator<Uint8Array> {
    if (this.#standing === 'magic') this.#takeMagic();
    while (this.#standing === 'frames') {
      const content = this.#takeFrame();
      if (content === undefined) return;
      if (this.#info === undefined) this.#info = this.#infoIn(content);
      else yield this.#inflated(content);
    }
  }

  #takeMagic(): void {
    const begin = this.#input.rest.subarray(0, MAGIC.length);
    const isArchive = begin.equals(MAGIC.subarray(0, begin.length));
    if (!isArchive) throw new ArchiveDamage('this is no archive of a state');
    if (begin.length < MAGIC.length) return;
    this.#input.use(MAGIC.length);
    this.#standing = 'frames';
  }

  /** Undefined when it is not all there yet, or was the end. */
  #takeFrame(): Uint8Array | undefined {
    const { rest } = this.#input;
    if (rest.length < LENGTH_BYTES) return undefined;
    const length = rest.readUInt32BE(0);
    if (length === 0) {
      this.#takeEnd(rest);
      return undefined;
    }
    if (length > FRAME_MAX_BYTES) throw this.#input.damage(`a frame of ${length} bytes`);
    if (rest.length < LENGTH_BYTES + length) return undefined;
    const frame = rest.subarray(0, LENGTH_BYTES + length);
    this.#check = chained(this.#check, frame);
    this.#input.use(frame.length);
    return frame.subarray(LENGTH_BYTES);
  }

  #takeEnd(rest: Buffer): void {
    const end = LENGTH_BYTES + CHECK_BYTES;
    if (rest.length < end) return;
    if (Buffer.compare(rest.subarray(LENGTH_BYTES, end), this.#check) !== 0) {
      throw this.#input.damage('what stands before is not what was written');
    }
    this.#input.use(end);
    this.#standing = 'end';
  }

  #infoIn(content: Uint8Array): ArchiveInfo {
    try {
      return checkedInfo(JSON.parse(Buffer.from(content).toString('utf8')));
    } catch (cause) {
      throw this.#input.damage('its header cannot be read', cause);
    }
  }

  #inflated(content: Uint8Array): Uint8Array {
    try {
      return inflateRawSync(content, { maxOutputLength: SNAPSHOT_CHUNK_MAX_BYTES });
    } catch (cause) {
      throw this.#input.damage('a frame cannot be read', cause);
    }
  }
}
