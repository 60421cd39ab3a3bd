// What a datacenter had where another chain left its own, made of what it has now and of the entries that it keeps:
// each of them says what it left of an object, so what is behind the fork is undone by what was said last before it.
// Whether all that came out is what it was, the digest says that the entry before the fork has of all objects.

import type { KvReader } from '../../../cluster/platform/kv.ts';
import { AclError } from '../../acl/error.ts';
import { Digest, rowHash } from '../rows/digest.ts';
import { decodeRecord } from '../rows/layout/record-codec.ts';
import { tableOfRow } from '../rows/objects/objects.ts';
import { nameOf } from '../rows/store/rows-before.ts';
import { forkOf, rangesOf } from './chain.ts';
import type { GlobalCursor } from './cursor.ts';
import { decodeEntry, entryHash, type GlobalEntry } from './global-entry.ts';
import { rowsBackIn } from './kept-entries.ts';
import { currentEpoch, type EpochStart, type Replication } from './replication.ts';

/** The last place that two chains share, and what is otherwise there than it is now. */
export interface BeforeFork {
  readonly cursor: GlobalCursor;
  /** Of the other chain, up to the epoch that left the own one. */
  readonly epochs: readonly EpochStart[];
  /** Of all global objects there. */
  readonly digest: Uint8Array;
  readonly datacenters: Pick<Replication, 'datacenters' | 'datacentersSeq'>;
  /** By `nameOf` the key: rows of objects as they were; without a value where there was none. */
  readonly rows: ReadonlyMap<string, RowThen>;
}

export interface RowThen {
  readonly key: Uint8Array;
  readonly value: Uint8Array | undefined;
}

/** Of the objects that were changed behind the fork: all of them are held in memory. */
const ROWS_MAX = 100_000;
const BYTES_MAX = 64 * 1024 * 1024;

/** `globalDigest`: of what is there now. Rejects with AclError where what is kept does not say what was there. */
export async function beforeFork(
  reader: KvReader,
  { replication, globalDigest }: { replication: Replication; globalDigest: Uint8Array },
  theirs: readonly EpochStart[],
): Promise<BeforeFork> {
  const { seq, epochs } = requireFork(replication, theirs);
  const undoing = new Undoing(replication, globalDigest);
  let found: Found | undefined;
  for await (const { entry, hash } of entriesBack(reader, replication)) {
    if (entry.seq > seq) undoing.leave(entry);
    else {
      found ??= { cursor: { epoch: entry.epoch, seq: entry.seq, hash }, digest: entry.digest };
      if (!undoing.find(entry)) break;
    }
  }
  const next = epochs.at(-1)!;
  if (found === undefined || Buffer.compare(found.cursor.hash, next.startHash) !== 0) {
    throw notKept(`the entry ${next.startSeq - 1} that the later reign follows is not kept here`);
  }
  return { ...found, epochs, ...undoing.end(found) };
}

/** Where the other chain left, and its epochs up to the one that did. Throws AclError where it is no later reign. */
function requireFork(
  replication: Replication,
  theirs: readonly EpochStart[],
): { readonly seq: number; readonly epochs: readonly EpochStart[] } {
  const fork = forkOf(replication, theirs);
  const next = theirs.find(({ epoch }) => epoch > (fork?.epoch ?? 0));
  if (fork === undefined || next === undefined || fork.seq >= replication.cursor.seq) {
    throw notKept('the own log is not beside that chain');
  }
  if (fork.seq !== next.startSeq - 1) {
    throw notKept('the own log has left that chain, and not that one the own');
  }
  const { epoch } = currentEpoch(replication);
  const bound = Math.max(epoch + 1, replication.maxEpochPromised);
  if (next.epoch < bound) {
    throw notKept(`epoch ${next.epoch} left this chain, and ${bound} is the least that is taken`);
  }
  return { seq: fork.seq, epochs: theirs.filter(({ epoch: each }) => each <= next.epoch) };
}

/** The entry at the fork. */
type Found = Pick<BeforeFork, 'cursor' | 'digest'>;

interface ReadEntry {
  readonly entry: GlobalEntry;
  readonly hash: Uint8Array;
}

/** The entries of the own chain from the last one back, as far as they are there, whatever is said to be kept. */
async function* entriesBack(
  reader: KvReader,
  { epochs, cursor }: Replication,
): AsyncGenerator<ReadEntry> {
  let { seq, hash } = cursor;
  for (const range of [...rangesOf(epochs, epochs[0]!.startSeq, cursor.seq)].reverse()) {
    for await (const slice of rowsBackIn(reader, range)) {
      for (const { value } of slice) {
        if (Buffer.compare(entryHash(value), hash) !== 0) return;
        const entry = decodeEntry(value);
        if (entry.seq !== seq) return;
        yield { entry, hash };
        hash = entry.prevHash;
        seq -= 1;
      }
    }
  }
}

/** What is undone, while the entries are gone through from the last one back. */
class Undoing {
  readonly #rows = new Map<string, RowThen>();
  /** Rows of which it is not known yet what they were. */
  readonly #missing = new Set<string>();
  /** Of all objects, as far as it is known what they were. */
  readonly #digest: Digest;
  #datacenters: BeforeFork['datacenters'] | undefined;
  #bytes = 0;

  constructor({ datacenters, datacentersSeq }: Replication, globalDigest: Uint8Array) {
    this.#datacenters = { datacenters, datacentersSeq };
    this.#digest = new Digest(globalDigest);
  }

  /** An entry behind the fork. Throws AclError. */
  leave({ body, index, isBootstrap }: GlobalEntry): void {
    if (body.kind === 'reset') throw notKept('a restore is behind the place to go back to');
    if (isBootstrap) throw notKept('a bootstrap is behind the place to go back to');
    if (body.kind === 'datacenters') this.#datacenters = undefined;
    if (body.kind !== 'effects') return;
    for (const { key, value } of body.effects) {
      const name = nameOf(key);
      // What was said of it last is what there is now.
      const isNow = !this.#rows.has(name);
      if (isNow && value !== undefined) this.#digest.subtract(rowHash(key, value));
      this.#rows.set(name, { key, value: undefined });
      // Who was made by it was not there before.
      const isMade = value !== undefined && createIndexOf(key, value) === index;
      if (isMade) this.#missing.delete(name);
      else this.#missing.add(name);
    }
    if (this.#rows.size > ROWS_MAX) throw notKept(`more than ${ROWS_MAX} objects were changed`);
  }

  /** An entry at the fork or before it. Whether one before it is wanted. Throws AclError. */
  find({ body, seq }: GlobalEntry): boolean {
    if (body.kind === 'datacenters') {
      this.#datacenters ??= { datacenters: body.datacenters, datacentersSeq: seq };
    }
    if (body.kind === 'effects' && this.#missing.size > 0) {
      for (const { key, value } of body.effects) this.#found(key, value);
    }
    const isComplete = this.#missing.size === 0 && this.#datacenters !== undefined;
    return !isComplete && body.kind !== 'reset';
  }

  /** Throws AclError where something is missing. */
  end({ cursor, digest }: Found): Pick<BeforeFork, 'rows' | 'datacenters'> {
    const count = this.#missing.size;
    const at = `${cursor.epoch}.${cursor.seq}`;
    if (count > 0) throw notKept(`no entry that is kept says what ${count} objects were at ${at}`);
    if (this.#datacenters === undefined) {
      throw notKept(`no entry that is kept says which datacenters there were at ${at}`);
    }
    if (Buffer.compare(this.#digest.bytes(), digest) !== 0) {
      throw notKept(`what is kept does not lead back to what there was at ${at}`);
    }
    return { rows: this.#rows, datacenters: this.#datacenters };
  }

  #found(key: Uint8Array, value: Uint8Array | undefined): void {
    const name = nameOf(key);
    if (!this.#missing.delete(name)) return;
    this.#rows.set(name, { key, value });
    if (value !== undefined) this.#digest.add(rowHash(key, value));
    this.#bytes += value?.length ?? 0;
    if (this.#bytes > BYTES_MAX) throw notKept(`more than ${BYTES_MAX} bytes were changed`);
  }
}

function createIndexOf(key: Uint8Array, value: Uint8Array): number {
  return decodeRecord(tableOfRow(key[0]!).codec, value).createIndex;
}

function notKept(text: string): AclError {
  return new AclError('unavailable', text);
}
