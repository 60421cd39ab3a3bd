// An archive on its way in: takes its bytes in pieces of any size and gives the chunks of the snapshot in
// it. That it is whole is known at its end and not before; what the chunks say is the caller's matter.

import { inflateRawSync } from 'node:zlib';
import {
  ARCHIVE_FORMAT,
  type ArchiveInfo,
  CHECK_BYTES,
  firstCheck,
  FRAME_MAX_BYTES,
  LENGTH_BYTES,
  MAGIC,
  MAGIC_TEXT,
} from './archive-format.ts';
import type { Totals } from './meta.ts';
import { chained, SNAPSHOT_CHUNK_MAX_BYTES } from './snapshot-format.ts';
import { SnapshotReader } from './snapshot-reader.ts';
import { NO_BYTES } from './tables.ts';

/** Not an archive, or not the one that was written. The message says where. */
export class ArchiveDamage extends Error {
  override readonly name = 'ArchiveDamage';
}

export class ArchiveReader {
  #info: ArchiveInfo | undefined;
  #check = firstCheck();
  /** Bytes that were not used up yet. */
  #rest: Uint8Array = NO_BYTES;
  /** Place of the first of them in the archive. */
  #at = 0;
  #standing: 'magic' | 'frames' | 'end' = 'magic';

  /** The header, as soon as it is there. */
  get info(): ArchiveInfo | undefined {
    return this.#info;
  }

  /** The chunks that are whole with these bytes. Go through all of them. Throws ArchiveDamage. */
  *take(bytes: Uint8Array): Generator<Uint8Array> {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    if (this.#standing === 'magic' && !this.#takeMagic()) return;
    while (this.#standing === 'frames') {
      const frame = this.#takeFrame();
      if (frame === undefined) return;
      if (frame === 'end') break;
      const content = frame.subarray(LENGTH_BYTES);
      if (this.#info === undefined) this.#info = this.#infoIn(content);
      else yield this.#inflated(content);
    }
    if (this.#rest.length > 0) throw this.#damage('more follows behind its end');
  }

  /** Nothing more comes. Throws ArchiveDamage unless all was there. */
  end(): ArchiveInfo {
    if (this.#standing === 'end' && this.#info !== undefined) return this.#info;
    throw new ArchiveDamage(
      `the archive is cut off: it ends at byte ${this.#at + this.#rest.length}, before its own end`,
    );
  }

  #takeMagic(): boolean {
    const begin = Buffer.from(this.#rest.subarray(0, MAGIC.length)).toString('latin1');
    const isArchive = begin.startsWith(MAGIC_TEXT.slice(0, begin.length));
    if (!isArchive) throw new ArchiveDamage('this is no archive of a state');
    if (begin.length < MAGIC.length) return false;
    if (begin !== MAGIC.toString('latin1')) {
      const found = begin.slice(MAGIC_TEXT.length).trim();
      const says = `the archive has format ${found}, this release knows ${ARCHIVE_FORMAT}`;
      throw new ArchiveDamage(`${says}: a newer release wrote it`);
    }
    this.#use(MAGIC.length);
    this.#standing = 'frames';
    return true;
  }

  /** Undefined when it is not all there yet. */
  #takeFrame(): Uint8Array | 'end' | undefined {
    const rest = Buffer.from(this.#rest.buffer, this.#rest.byteOffset, this.#rest.length);
    if (rest.length < LENGTH_BYTES) return undefined;
    const length = rest.readUInt32BE(0);
    if (length === 0) return this.#takeEnd(rest);
    if (length > FRAME_MAX_BYTES) throw this.#damage(`a frame of ${length} bytes`);
    if (rest.length < LENGTH_BYTES + length) return undefined;
    const frame = rest.subarray(0, LENGTH_BYTES + length);
    this.#check = chained(this.#check, frame);
    this.#use(frame.length);
    return frame;
  }

  #takeEnd(rest: Buffer): 'end' | undefined {
    const end = LENGTH_BYTES + CHECK_BYTES;
    if (rest.length < end) return undefined;
    if (Buffer.compare(rest.subarray(LENGTH_BYTES, end), this.#check) !== 0) {
      throw this.#damage('what stands before is not what was written');
    }
    this.#use(end);
    this.#standing = 'end';
    return 'end';
  }

  #use(count: number): void {
    this.#rest = this.#rest.subarray(count);
    this.#at += count;
  }

  #infoIn(content: Uint8Array): ArchiveInfo {
    try {
      return checkedInfo(JSON.parse(Buffer.from(content).toString('utf8')));
    } catch (cause) {
      throw this.#damage('its header cannot be read', cause);
    }
  }

  #inflated(content: Uint8Array): Uint8Array {
    try {
      return inflateRawSync(content, { maxOutputLength: SNAPSHOT_CHUNK_MAX_BYTES });
    } catch (cause) {
      throw this.#damage('a frame cannot be read', cause);
    }
  }

  #damage(found: string, cause?: unknown): ArchiveDamage {
    return new ArchiveDamage(`the archive is damaged at byte ${this.#at}: ${found}`, { cause });
  }
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

const TEXTS = ['release', 'datacenter', 'cluster', 'position'] as const;
const NUMBERS = ['createdMs', 'index', 'logIndex', 'logTerm'] as const;
const COUNTS: readonly (keyof Totals)[] = [
  'tokens',
  'policies',
  'roles',
  'authMethods',
  'bindingRules',
  'localTokens',
  'namespaces',
];

type Fields = Partial<Record<string, unknown>>;

/** Later releases may say more; what this one knows must be there. */
function checkedInfo(value: unknown): ArchiveInfo {
  const fields = value as Fields & { readonly totals: Fields };
  const totals: Fields = fields.totals;
  const isWhole =
    TEXTS.every((name) => typeof fields[name] === 'string') &&
    NUMBERS.every((name) => Number.isSafeInteger(fields[name])) &&
    COUNTS.every((name) => Number.isSafeInteger(totals[name]));
  if (!isWhole) throw new TypeError('a field of the header is missing');
  return value as ArchiveInfo;
}
