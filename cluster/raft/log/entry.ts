// One slot of the log, and how large entries count against the limits.
// The payload is opaque here; only the type tells whether raft itself must understand it.

/** Names one entry for good: a leader never issues two entries with one term and index. */
export interface EntryId {
  readonly term: number;
  readonly index: number;
}

/** Names no entry: none has a term of 0. */
export const NO_ENTRY: EntryId = { term: 0, index: 0 };

/** What an entry carries: the caller's bytes, or an encoded membership change. */
export type EntryType = 'normal' | 'membership';

/** One slot of the log. Never changed once made: storage, messages and Ready share it. */
export interface Entry extends EntryId {
  readonly type: EntryType;
  readonly data: Uint8Array;
}

/** An entry that has no place in the log yet. */
export interface ProposedEntry {
  readonly type: EntryType;
  readonly data: Uint8Array;
}

/** Payload of the entry that a new leader appends, and of the change that leaves a joint state. */
export const NO_DATA = new Uint8Array(0);

/** What an entry costs beside its payload when it is sent or stored: term, index, type, length. */
export const ENTRY_OVERHEAD_BYTES = 24;

/** Size that counts against message and apply limits. */
export function entriesSizeBytes(entries: readonly Entry[]): number {
  let sizeBytes = 0;
  for (const entry of entries) sizeBytes += ENTRY_OVERHEAD_BYTES + entry.data.length;
  return sizeBytes;
}

/** Size that counts against the uncommitted and in-flight limits: zero for empty entries. */
export function payloadSizeBytes(entries: readonly ProposedEntry[]): number {
  let sizeBytes = 0;
  for (const entry of entries) sizeBytes += entry.data.length;
  return sizeBytes;
}

/** The longest prefix within `maxBytes`, but always the first entry, so that nothing gets stuck. */
export function limitSize(entries: readonly Entry[], maxBytes: number): readonly Entry[] {
  let sizeBytes = 0;
  for (const [position, entry] of entries.entries()) {
    sizeBytes += ENTRY_OVERHEAD_BYTES + entry.data.length;
    if (position > 0 && sizeBytes > maxBytes) return entries.slice(0, position);
  }
  return entries;
}

/**
 * Whether `entries` may follow `prev` in the log of a leader of `term`: indexes without a gap,
 * terms that never fall and never exceed the leader's.
 */
export function isLogSlice(prev: EntryId, entries: readonly Entry[], term: number): boolean {
  let last = prev;
  for (const entry of entries) {
    if (entry.index !== last.index + 1 || entry.term < last.term) return false;
    last = entry;
  }
  return last.term <= term;
}
