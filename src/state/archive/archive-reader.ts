// An archive on its way in, of either format: takes its bytes in pieces of any size and gives the chunks of
// the snapshot in it. That it is whole is known at its end and not before; what the chunks say is the
// caller's matter.

import { SnapshotReader } from '../snapshot/snapshot-reader.ts';
import { ArchiveDamage } from './archive-damage.ts';
import { ArchiveFrameParser } from './archive-frame-parser.ts';
import type { ArchiveInfo } from './archive-info.ts';
import { ArchiveInput, type ArchiveParser } from './archive-input.ts';
import { ArchiveMemberParser } from './archive-member-parser.ts';
import { GZIP_MAGIC } from './archive-members.ts';

export class ArchiveReader {
  readonly #input = new ArchiveInput();
  #parser: ArchiveParser | undefined;

  /** What the archive says of itself, as soon as it is there. */
  get info(): ArchiveInfo | undefined {
    return this.#parser?.info;
  }

  /** The chunks that are whole with these bytes. Go through all of them. Throws ArchiveDamage. */
  *take(bytes: Uint8Array): Generator<Uint8Array> {
    this.#input.add(bytes);
    if (this.#input.rest.length === 0) return;
    this.#parser ??= parserOf(this.#input);
    yield* this.#parser.chunks();
    const isMore = this.#parser.isWhole && this.#input.rest.length > 0;
    if (isMore) throw this.#input.damage('more follows behind its end');
  }

  /** Nothing more comes. Throws ArchiveDamage unless all was there. */
  end(): ArchiveInfo {
    if (this.#parser?.isWhole === true && this.info !== undefined) return this.info;
    const says = `it ends at byte ${this.#input.length}, before its own end`;
    throw new ArchiveDamage(`the archive is cut off: ${says}`);
  }
}

/** By the first byte, which must be there. */
function parserOf(input: ArchiveInput): ArchiveParser {
  const isGzip = input.rest[0] === GZIP_MAGIC[0];
  return isGzip ? new ArchiveMemberParser(input) : new ArchiveFrameParser(input);
}

/** Reads all of an archive, to the last row, and gives what it says of itself. Throws what is wrong. */
export async function inspectArchive(archive: AsyncIterable<Uint8Array>): Promise<ArchiveInfo> {
  const reader = new ArchiveReader();
  const snapshot = new SnapshotReader();
  for await (const bytes of archive) {
    for (const chunk of reader.take(bytes)) snapshot.take(chunk);
  }
  const info = reader.end();
  snapshot.content();
  return info;
}
