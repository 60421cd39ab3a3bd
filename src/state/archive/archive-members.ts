// Members of a gzip file (RFC 1952) that say how long they are, so that each can be read by itself:
//
//   10   1f 8b 08, flags 04 (an extra field, nothing else), no time, no level, an unknown system
//    2   length of the extra field
//    4   its one subfield: "CV", and the length of what follows
//    4   length of the member, from its first byte to its last
//   32   in the last member alone: the check over all members before it
//    …   the content by DEFLATE (RFC 1951)
//    8   CRC-32 of the content, and its length
//
// Numbers have their small end first. The last member is stored, not compressed: its bytes follow from its
// content, whatever release of zlib there is.

import { constants, crc32, deflateRawSync, inflateRawSync } from 'node:zlib';
import { SNAPSHOT_CHUNK_MAX_BYTES } from '../snapshot/snapshot-format.ts';
import { TAR_EXTRA_MAX_BYTES } from './archive-tar.ts';

const LENGTH_BYTES = 4;
const CHECK_BYTES = 32;
const TRAILER_BYTES = 8;

const CONTENT_MAX_BYTES = SNAPSHOT_CHUNK_MAX_BYTES + TAR_EXTRA_MAX_BYTES;
/** What does not get smaller gets a little larger. */
const MEMBER_MAX_BYTES = CONTENT_MAX_BYTES + 4096;

/** Quick: a chunk takes the event loop a few milliseconds. */
const LEVEL = constants.Z_BEST_SPEED;

/** What every gzip file begins with. */
export const GZIP_MAGIC = Buffer.of(0x1f, 0x8b);

const START = startWith(LENGTH_BYTES);
const LAST_START = startWith(LENGTH_BYTES + CHECK_BYTES);
const HEADER_BYTES = START.length + LENGTH_BYTES;

function startWith(subfieldBytes: number): Buffer {
  const start = Buffer.from([...GZIP_MAGIC, 8, 4, 0, 0, 0, 0, 0, 0xff, 0, 0, 0x43, 0x56, 0, 0]);
  start.writeUInt16LE(4 + subfieldBytes, 10);
  start.writeUInt16LE(subfieldBytes, 14);
  return start;
}

/** What begins here; undefined while too little of it is there. */
export function memberKind(bytes: Buffer): 'member' | 'last' | 'foreign' | undefined {
  if (isSame(bytes, START)) return bytes.length < HEADER_BYTES ? undefined : 'member';
  if (isSame(bytes, LAST_START)) return bytes.length < START.length ? undefined : 'last';
  return 'foreign';
}

/** As far as both go. */
function isSame(bytes: Buffer, start: Buffer): boolean {
  const count = Math.min(bytes.length, start.length);
  return bytes.subarray(0, count).equals(start.subarray(0, count));
}

/** How long the member is that begins here. Throws RangeError for what none can have. */
export function memberLength(bytes: Buffer): number {
  const length = bytes.readUInt32LE(START.length);
  if (length > HEADER_BYTES + TRAILER_BYTES && length <= MEMBER_MAX_BYTES) return length;
  throw new RangeError(`a member of ${length} bytes`);
}

/** A member that others follow. */
export function memberOf(content: Uint8Array): Uint8Array {
  return joined(START, [], [deflateRawSync(content, { level: LEVEL })], content);
}

/** The member that ends a file. Its content has at most 65,535 bytes. */
export function lastMemberOf(content: Uint8Array, check: Uint8Array): Uint8Array {
  const block = Buffer.alloc(5);
  block[0] = 1;
  block.writeUInt16LE(content.length, 1);
  block.writeUInt16LE(0xffff - content.length, 3);
  return joined(LAST_START, [check], [block, content], content);
}

function joined(
  start: Uint8Array,
  check: readonly Uint8Array[],
  packed: readonly Uint8Array[],
  content: Uint8Array,
): Uint8Array {
  const length = Buffer.alloc(LENGTH_BYTES);
  const trailer = Buffer.alloc(TRAILER_BYTES);
  trailer.writeUInt32LE(crc32(content), 0);
  trailer.writeUInt32LE(content.length, 4);
  const member = Buffer.concat([start, length, ...check, ...packed, trailer]);
  member.writeUInt32LE(member.length, start.length);
  return member;
}

/** The content of a member that others follow. Throws on what is none. */
export function contentOf(member: Buffer): Uint8Array {
  const end = member.length - TRAILER_BYTES;
  const packed = member.subarray(HEADER_BYTES, end);
  const content = inflateRawSync(packed, { maxOutputLength: CONTENT_MAX_BYTES });
  const isWhole =
    member.readUInt32LE(end) === crc32(content) && member.readUInt32LE(end + 4) === content.length;
  if (isWhole) return content;
  throw new RangeError('its content is not what its CRC-32 and its length say');
}
