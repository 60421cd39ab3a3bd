// The global log: begun, followed, trimmed. Following is compare-and-set: a batch of entries says where
// it starts, and what does not fit is told by a verdict and changes nothing. Entries that were proposed
// twice, by two leaders or out of order, are harmless for that reason alone.

import { AssertionError, must } from '../../../cluster/base/assert.ts';
import { AclError, invalid } from '../../acl/error.ts';
import type { ChangeSet } from '../change-set.ts';
import type { ChangeOf } from '../commands/commands.ts';
import type { Answer } from '../commands/outcome.ts';
import { epochAt } from '../global-log/chain.ts';
import { type GlobalCursor, isSameCursor, originHash } from '../global-log/cursor.ts';
import {
  cursorAfter,
  entryHash,
  entryOf,
  type GlobalEntry,
  linksOf,
} from '../global-log/global-entry.ts';
import { entryKey } from '../global-log/global-log-writer.ts';
import { type EntryRange, isPrimary, type Replication } from '../global-log/replication.ts';
import type { Verdict, VerdictAnswer } from '../global-log/verdict.ts';
import { rememberRequest } from '../rows/bookkeeping.ts';
import { type Fields, fieldsOrNone } from '../rows/layout/packing.ts';
import { applyEffects, fittingEffects } from './arrived-effects.ts';
import type { ApplyContext } from './checks.ts';

/** Entries that one command drops: deleting them must not keep the event loop for long. */
export const TRIM_ENTRIES_MAX = 1024;

export function applyGlobalLogBegin(
  { changes }: ApplyContext,
  { datacenter, primary, isWitness }: ChangeOf<'global-log.begin'>,
): Answer {
  const { replication, position } = changes;
  if (replication !== undefined) {
    if (replication.datacenter === datacenter) return { type: 'done' };
    throw invalid(`This datacenter is called ${replication.datacenter}, and not ${datacenter}`);
  }
  if (isWitness && primary === datacenter) throw invalid('A witness cannot be the primary');
  const hash = originHash(position, changes.globalDigest);
  const { epoch, seq } = position;
  changes.beginLog({
    datacenter,
    federationId: '',
    isWitness,
    cursor: { epoch, seq, hash },
    epochs: [{ epoch, startSeq: seq + 1, startHash: hash, primary }],
    maxEpochPromised: epoch,
    votedFor: primary,
    datacenters: [{ name: primary, isVoter: true, isWitness: false }],
    datacentersSeq: 0,
    first: seq + 1,
    keptBytes: 0,
    divergent: [],
    gone: [],
    unused: [],
    isDiverged: false,
  });
  return { type: 'done' };
}

export function applyGlobalLogApply(
  { changes }: ApplyContext,
  { epoch, from, entries, to }: ChangeOf<'global-log.apply'>,
): VerdictAnswer {
  const { replication } = changes;
  const refusal = replication === undefined ? 'not-begun' : refusalOf(replication, epoch, from);
  if (replication === undefined || refusal !== undefined) return verdictOf(changes, refusal!);
  const chain = chainOf(epoch, from, entries, to);
  if (chain === undefined) return verdictOf(changes, 'broken-chain');
  // Whoever sends it has begun that epoch: no lower one is heard any more.
  if (epoch > replication.maxEpochPromised) {
    changes.changeReplication({ ...replication, maxEpochPromised: epoch, votedFor: undefined });
  }
  for (const arrived of chain) {
    const verdict = arrive(changes, arrived);
    if (verdict !== undefined) return verdictOf(changes, verdict);
  }
  return verdictOf(changes, 'applied');
}

/** What a verdict says of the datacenter, as the command leaves it. */
export function verdictOf({ replication }: ChangeSet, verdict: Verdict): VerdictAnswer {
  return {
    type: 'verdict',
    verdict,
    cursor: replication?.cursor,
    maxEpochPromised: replication?.maxEpochPromised ?? 0,
  };
}

function refusalOf(
  replication: Replication,
  epoch: number,
  from: GlobalCursor,
): Verdict | undefined {
  if (isPrimary(replication)) return 'primary';
  if (epoch < replication.maxEpochPromised) return 'fenced';
  if (replication.isDiverged) return 'reset';
  return isSameCursor(from, replication.cursor) ? undefined : 'other-cursor';
}

/** An entry of a chain whose hashes are right. */
interface ArrivedEntry {
  readonly bytes: Uint8Array;
  readonly hash: Uint8Array;
  /** Unpacked; what is in them has not been looked at. */
  readonly fields: Fields;
}

/** The entries, when they lead from one place to the other in a log of that epoch; else undefined. */
function chainOf(
  logEpoch: number,
  from: GlobalCursor,
  entries: readonly Uint8Array[],
  to: GlobalCursor,
): readonly ArrivedEntry[] | undefined {
  const chain: ArrivedEntry[] = [];
  let at = from;
  for (const bytes of entries) {
    const fields = fieldsOrNone(bytes);
    const links = fields === undefined ? undefined : linksOf(fields);
    if (fields === undefined || links === undefined) return undefined;
    const { epoch, seq, prevHash } = links;
    if (epoch < at.epoch || epoch > logEpoch || seq <= at.seq) return undefined;
    if (Buffer.compare(prevHash, at.hash) !== 0) return undefined;
    const hash = entryHash(bytes);
    chain.push({ bytes, hash, fields });
    at = cursorAfter(links, hash);
  }
  return isSameCursor(at, to) ? chain : undefined;
}

/** Takes the next entry in; undefined when it did. */
function arrive(changes: ChangeSet, { bytes, hash, fields }: ArrivedEntry): Verdict | undefined {
  const replication = must(changes.replication, 'a global log');
  const entry = readEntry(fields);
  if (entry === undefined || !isNext(replication.cursor, entry)) return 'broken-chain';
  if (entry.body.kind === 'reset' && !replication.isWitness) return 'reset';
  if (!replication.isWitness) {
    const effects = fittingEffects(changes, entry);
    if (effects === undefined) return 'diverged';
    applyEffects(changes, effects);
  }
  changes.endArrived(entry, { bytes, hash });
  if (!replication.isWitness) rememberArrived(changes, entry);
  return undefined;
}

/** A repeat of the request is known here, too. */
function rememberArrived(changes: ChangeSet, { request, timeMs }: GlobalEntry): void {
  if (request === undefined) return;
  const { index, position } = changes;
  const { answer } = request;
  const outcome = { kind: 'applied', answer, index, position, replayed: false } as const;
  rememberRequest(changes, request, timeMs, outcome);
}

/** Only a primary's first entry begins an epoch, and only a restore leaves seqs out. */
function isNext(cursor: GlobalCursor, { epoch, seq, body }: GlobalEntry): boolean {
  if (body.kind === 'reset') return true;
  return seq === cursor.seq + 1 && epoch > cursor.epoch === (body.kind === 'epoch-start');
}

/** Bytes that are no entry are refused; a format that is not known here ends the process. */
function readEntry(fields: Fields): GlobalEntry | undefined {
  try {
    return entryOf(fields);
  } catch (error) {
    if (error instanceof AssertionError) throw error;
    return undefined;
  }
}

export function applyGlobalLogTrim(
  { changes }: ApplyContext,
  { upTo }: ChangeOf<'global-log.trim'>,
): Answer {
  const { replication } = changes;
  if (replication === undefined) throw new AclError('unavailable', 'there is no global log here');
  let left = TRIM_ENTRIES_MAX;
  const unused: EntryRange[] = [];
  for (const range of replication.unused) {
    const count = Math.min(left, range.last - range.first + 1);
    for (let at = 0; at < count; at += 1) {
      changes.deleteRow(entryKey(range.epoch, range.first + at));
    }
    left -= count;
    if (range.first + count <= range.last) unused.push({ ...range, first: range.first + count });
  }
  changes.changeReplication({ ...replication, ...trimmed(changes, upTo, left), unused });
  return { type: 'done' };
}

function trimmed(
  changes: ChangeSet,
  upTo: number,
  countMax: number,
): Pick<Replication, 'first' | 'keptBytes'> {
  const replication = must(changes.replication, 'a global log');
  const { epochs, cursor } = replication;
  let { first, keptBytes } = replication;
  const end = Math.min(upTo, cursor.seq, first + countMax - 1);
  for (; first <= end; first += 1) {
    const key = entryKey(epochAt(epochs, first), first);
    keptBytes -= changes.get(key)?.length ?? 0;
    changes.deleteRow(key);
  }
  return { first, keptBytes };
}
