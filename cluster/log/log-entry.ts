// What the log holds, and how it is laid out in bytes. Each record carries its own index, term,
// length and checksum, and the hash of the record before it: a row that is missing, moved or changed
// cannot pass for the one that was written. What a payload means is not known here.
//
// Rows, by the first byte of the key:
//   entry        1, index (8 bytes)  ->  see ENTRY
//   hard state   2                   ->  see HARD_STATE
//   start        3                   ->  see WITNESS: the last entry that was trimmed
//   generation   4                   ->  see GENERATION: which state belongs to this log
//   cluster      5                   ->  the id of the cluster: cluster-identity.ts
//   promise      6                   ->  whom this node lets found its group: cluster-identity.ts
//   quarantine   7                   ->  why this node takes no part any more: cluster-identity.ts
// A value begins with the number of its format: 1, but for entries of type membership, which are
// laid out alike and have 2.

import { sha256 } from '../platform/sha256.ts';
import type { EntryType } from '../raft/log/entry.ts';
import { crc32c } from './crc32c.ts';
import { LogDamage } from './log-damage.ts';

/**
 * One slot of the log. An empty payload does nothing when it is applied, but for one of type
 * membership: there it leaves a joint state.
 */
export interface LogEntry {
  readonly index: number;
  readonly term: number;
  readonly type: EntryType;
  readonly payload: Uint8Array;
  /**
   * SHA-256 over the hash of the entry before, index, term and payload (of type membership: over a
   * fixed text before these): names the whole log up to here.
   */
  readonly hash: Uint8Array;
}

/** What must be on disk before anybody may rely on it. `vote` 0: none in this term. */
export interface HardState {
  readonly term: number;
  readonly vote: number;
  readonly commit: number;
}

/** An entry's identity without its payload: what somebody else remembers about a log. */
export interface LogWitness {
  readonly index: number;
  readonly term: number;
  readonly hash: Uint8Array;
}

/** Before the first entry. */
export const LOG_ORIGIN: LogWitness = { index: 0, term: 0, hash: new Uint8Array(32) };

/** First bytes of the keys. A number is never given another meaning. */
const ROW = {
  entry: 1,
  hardState: 2,
  start: 3,
  generation: 4,
  cluster: 5,
  promise: 6,
  quarantine: 7,
} as const;

const FORMAT = 1;
const MEMBERSHIP_FORMAT = 2;
const ENTRY_FORMATS = [FORMAT, MEMBERSHIP_FORMAT];
const HASH_BYTES = 32;
/** Stands where a normal entry has the hash of the one before: no hash comes to a readable text. */
const MEMBERSHIP_DOMAIN = Buffer.from('conclave log: a membership entry');
const NO_DOMAIN = new Uint8Array(0);
/** Format, checksum, index, term, length, hash of the entry before; then the payload. */
const ENTRY_HEAD_BYTES = 1 + 4 + 8 + 8 + 4 + HASH_BYTES;
/** Format, checksum, then three numbers. */
const HARD_STATE_BYTES = 1 + 4 + 3 * 8;
/** Format, checksum, index, term, hash. */
const WITNESS_BYTES = 1 + 4 + 8 + 8 + HASH_BYTES;
/** Format, checksum, number. */
const GENERATION_BYTES = 1 + 4 + 8;
const CHECKED_FROM = 5;

export const HARD_STATE_KEY = Uint8Array.of(ROW.hardState);
export const START_KEY = Uint8Array.of(ROW.start);
export const GENERATION_KEY = Uint8Array.of(ROW.generation);
export const CLUSTER_KEY = Uint8Array.of(ROW.cluster);
export const PROMISE_KEY = Uint8Array.of(ROW.promise);
export const QUARANTINE_KEY = Uint8Array.of(ROW.quarantine);

export function entryKey(index: number): Uint8Array {
  const key = Buffer.alloc(9);
  key[0] = ROW.entry;
  writeNumber(key, index, 1);
  return key;
}

/** The index in an entry's key. */
export function indexOfKey(key: Uint8Array): number {
  return readNumber(viewOf(key), 1);
}

/** The end of the entries' keys: no entry has this index. */
export const ENTRY_KEYS_END = Uint8Array.of(ROW.entry + 1);

/** The entry that follows `previous`. */
export function nextEntry(
  previous: Pick<LogEntry, 'index' | 'hash'>,
  term: number,
  payload: Uint8Array,
  type: EntryType = 'normal',
): LogEntry {
  const index = previous.index + 1;
  const domain = type === 'normal' ? NO_DOMAIN : MEMBERSHIP_DOMAIN;
  const hashAt = domain.length;
  const named = Buffer.allocUnsafe(hashAt + HASH_BYTES + 16 + payload.length);
  named.set(domain, 0);
  named.set(previous.hash, hashAt);
  writeNumber(named, index, hashAt + HASH_BYTES);
  writeNumber(named, term, hashAt + HASH_BYTES + 8);
  named.set(payload, hashAt + HASH_BYTES + 16);
  return { index, term, type, payload, hash: sha256(named) };
}

export function encodeEntry(entry: LogEntry, previousHash: Uint8Array): Uint8Array {
  const bytes = Buffer.allocUnsafe(ENTRY_HEAD_BYTES + entry.payload.length);
  writeNumber(bytes, entry.index, 5);
  writeNumber(bytes, entry.term, 13);
  bytes.writeUInt32BE(entry.payload.length, 21);
  bytes.set(previousHash, 25);
  bytes.set(entry.payload, ENTRY_HEAD_BYTES);
  return seal(bytes, entry.type === 'normal' ? FORMAT : MEMBERSHIP_FORMAT);
}

/** Reads the row of `index`. Throws LogDamage when its bytes are not those that were written. */
export function decodeEntry(
  value: Uint8Array,
  index: number,
): { readonly entry: LogEntry; readonly previousHash: Uint8Array } {
  const bytes = unseal(value, `entry ${index}`, ENTRY_HEAD_BYTES, ENTRY_FORMATS);
  const found = readNumber(bytes, 5);
  if (found !== index) throw new LogDamage(index, `the row of entry ${index} holds entry ${found}`);
  const length = bytes.readUInt32BE(21);
  if (bytes.length !== ENTRY_HEAD_BYTES + length) {
    throw new LogDamage(index, `entry ${index} says ${length} bytes of payload and has others`);
  }
  const previousHash = bytes.subarray(25, ENTRY_HEAD_BYTES);
  const payload = bytes.subarray(ENTRY_HEAD_BYTES);
  const previous = { index: index - 1, hash: previousHash };
  const type = bytes[0] === FORMAT ? 'normal' : 'membership';
  return { entry: nextEntry(previous, readNumber(bytes, 13), payload, type), previousHash };
}

export function encodeHardState(state: HardState): Uint8Array {
  const bytes = Buffer.allocUnsafe(HARD_STATE_BYTES);
  writeNumber(bytes, state.term, 5);
  writeNumber(bytes, state.vote, 13);
  writeNumber(bytes, state.commit, 21);
  return seal(bytes);
}

export function decodeHardState(value: Uint8Array): HardState {
  const bytes = unseal(value, 'the hard state', HARD_STATE_BYTES);
  return { term: readNumber(bytes, 5), vote: readNumber(bytes, 13), commit: readNumber(bytes, 21) };
}

/** Also for those who keep a witness of a log elsewhere. */
export function encodeWitness(witness: LogWitness): Uint8Array {
  const bytes = Buffer.allocUnsafe(WITNESS_BYTES);
  writeNumber(bytes, witness.index, 5);
  writeNumber(bytes, witness.term, 13);
  bytes.set(witness.hash, 21);
  return seal(bytes);
}

export function decodeWitness(value: Uint8Array): LogWitness {
  const bytes = unseal(value, 'the witness', WITNESS_BYTES);
  return {
    index: readNumber(bytes, 5),
    term: readNumber(bytes, 13),
    hash: bytes.subarray(21, WITNESS_BYTES),
  };
}

/** Which state belongs to the log: the number of its database. */
export function encodeGeneration(generation: number): Uint8Array {
  const bytes = Buffer.allocUnsafe(GENERATION_BYTES);
  writeNumber(bytes, generation, 5);
  return seal(bytes);
}

export function decodeGeneration(value: Uint8Array): number {
  return readNumber(unseal(value, 'the generation', GENERATION_BYTES), 5);
}

/** A row that is one text. */
export function encodeText(text: string): Uint8Array {
  const utf8 = Buffer.from(text);
  const bytes = Buffer.allocUnsafe(CHECKED_FROM + utf8.length);
  bytes.set(utf8, CHECKED_FROM);
  return seal(bytes);
}

/** `what` is for the refusal of a damaged one. */
export function decodeText(value: Uint8Array, what: string): string {
  return unseal(value, what, CHECKED_FROM).toString('utf8', CHECKED_FROM);
}

function seal(bytes: Buffer, format = FORMAT): Buffer {
  bytes[0] = format;
  bytes.writeUInt32BE(checksumOf(bytes), 1);
  return bytes;
}

/** The format counts, so that a record of one cannot pass for a record of the other. */
function checksumOf(bytes: Buffer): number {
  return (crc32c(bytes.subarray(CHECKED_FROM)) ^ (bytes[0]! - FORMAT)) >>> 0;
}

function unseal(
  value: Uint8Array,
  what: string,
  leastBytes: number,
  formats: readonly number[] = [FORMAT],
): Buffer {
  const bytes = viewOf(value);
  if (bytes.length < leastBytes) {
    throw new LogDamage(undefined, `${what} has ${bytes.length} bytes`);
  }
  if (!formats.includes(bytes[0]!)) {
    throw new LogDamage(undefined, `${what} has the format ${bytes[0]}`);
  }
  if (bytes.readUInt32BE(1) !== checksumOf(bytes)) {
    throw new LogDamage(undefined, `${what} does not match its checksum`);
  }
  return bytes;
}

function viewOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

/** Numbers are whole and below 2^53; they take eight bytes so that keys order by them. */
function writeNumber(bytes: Buffer, value: number, at: number): void {
  bytes.writeUInt32BE(Math.floor(value / 2 ** 32), at);
  bytes.writeUInt32BE(value % 2 ** 32, at + 4);
}

function readNumber(bytes: Buffer, at: number): number {
  return bytes.readUInt32BE(at) * 2 ** 32 + bytes.readUInt32BE(at + 4);
}
