// A state as a file for operators: bytes that say what they are, and that show every change and every lost
// end. Whether it is encrypted is another layer's matter.
//
//   magic    "conclave archive 1\n": the number is the format
//   frames   length (4 bytes, big end first), then so many bytes: first the header, then for each chunk of
//            a snapshot (snapshot-format.ts) the chunk, compressed by DEFLATE
//   end      length 0, then a check of 32 bytes
//
// The header is JSON in UTF-8, for people and for looking into a file without reading all of it. The check
// begins as SHA-256 of the magic; each frame makes it SHA-256 over the check so far and the frame with its
// length. History: format 1 is the first.

import { sha256 } from '../../cluster/platform/sha256.ts';
import type { Totals } from './meta.ts';
import { SNAPSHOT_CHUNK_MAX_BYTES } from './snapshot-format.ts';

export const MAGIC_TEXT = 'conclave archive ';
export const ARCHIVE_FORMAT = 1;
export const MAGIC = Buffer.from(`${MAGIC_TEXT}${ARCHIVE_FORMAT}\n`);

export const LENGTH_BYTES = 4;
export const CHECK_BYTES = 32;
/** What does not get smaller gets a little larger. */
export const FRAME_MAX_BYTES = SNAPSHOT_CHUNK_MAX_BYTES + 4096;

/** What an archive says of itself in its header. */
export interface ArchiveInfo {
  /** The version of the program that wrote it. */
  readonly release: string;
  readonly datacenter: string;
  /** The id of the group; empty when it had none. */
  readonly cluster: string;
  /** Milliseconds since 1970, by the clock of the server that wrote it. */
  readonly createdMs: number;
  /** The datacenter's index, which users see. */
  readonly index: number;
  /** `epoch.seq` of the global log. */
  readonly position: string;
  /** Of the datacenter's log: the last entry that is in it. */
  readonly logIndex: number;
  readonly logTerm: number;
  readonly totals: Totals;
}

/** The bytes of a frame. */
export function frameOf(content: Uint8Array): Uint8Array {
  const frame = Buffer.allocUnsafe(LENGTH_BYTES + content.length);
  frame.writeUInt32BE(content.length, 0);
  frame.set(content, LENGTH_BYTES);
  return frame;
}

/** The check before the first frame. */
export function firstCheck(): Uint8Array {
  return sha256(MAGIC);
}
