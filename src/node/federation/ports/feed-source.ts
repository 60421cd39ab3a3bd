// The global log of this server's state as the feed reads it: entries with the places that their bytes
// say, and where a cursor of another datacenter lies in it. An entry that does not lead to the next one, or to
// the place that the state says, is damaged: it is as good as trimmed, so who needs it gets a snapshot.

import { must } from '../../../../cluster/base/assert.ts';
import type { EntrySource, Location } from '../../../../cluster/federation/entry-source.ts';
import {
  type GlobalCursor,
  type GlobalEntry,
  LOG_START,
  positionText,
} from '../../../../cluster/federation/global-log.ts';
import { epochAt, standingOf } from '../../../state/global-log/chain.ts';
import type { Position } from '../../../state/global-log/cursor.ts';
import type { EntryLinks } from '../../../state/global-log/entry-head.ts';
import { entryHash, entryLinks } from '../../../state/global-log/global-entry.ts';
import type { StateMachine } from '../../../state/machine.ts';

type LogOfState = Pick<
  StateMachine,
  | 'replication'
  | 'keptEntries'
  | 'globalEntries'
  | 'recentEntries'
  | 'globalHashAt'
  | 'entryTimeMs'
  | 'isRestoreAt'
  | 'globalDigestAt'
  | 'keptSizeAfter'
  | 'tableIndex'
  | 'onGlobalLogMoved'
>;

/** The figures that the primary tells its followers: the index of each table. The order is on the wire. */
const TABLES_OF_FIGURES = ['policies', 'roles', 'tokens'] as const;

/** `onDamaged` is told of the seq of each damaged entry that is met. */
export function feedSourceOf(machine: LogOfState, onDamaged: (seq: number) => void): EntrySource {
  let damaged: Position | undefined;
  const meet = (seq: number): void => {
    const { epochs } = must(machine.replication(), 'a global log');
    damaged = { epoch: epochAt(epochs, seq), seq };
    onDamaged(seq);
  };
  const leadsToDamaged = (cursor: GlobalCursor): boolean => {
    const replication = machine.replication();
    if (damaged === undefined || replication === undefined) return false;
    // A fork may have been left with it: what has its number then is another entry.
    return cursor.seq < damaged.seq && standingOf(replication, damaged) === 'replicated';
  };
  const restoredSeq = restoredSeqOf(machine);
  return {
    get head() {
      return machine.replication()?.cursor ?? LOG_START;
    },
    get restoredSeq() {
      return restoredSeq();
    },
    get kept() {
      const kept = machine.keptEntries();
      if (kept !== undefined) return { afterSeq: kept.first - 1, sizeBytes: kept.bytes };
      return { afterSeq: machine.replication()?.cursor.seq ?? 0, sizeBytes: 0 };
    },
    onMoved: (listener) => machine.onGlobalLogMoved(listener),
    locate: (cursor) => {
      if (leadsToDamaged(cursor)) return { kind: 'trimmed' };
      const location = locationOf(machine, cursor);
      if (location.kind !== 'damaged') return location;
      meet(cursor.seq + 1);
      return { kind: 'trimmed' };
    },
    read: async (afterSeq, maxBytes) => {
      const recent = machine.recentEntries(afterSeq, maxBytes);
      if (recent !== undefined) return recent;
      const all = await machine.globalEntries(afterSeq, maxBytes);
      const entries = all && soundOf(machine, afterSeq, all);
      if (all === undefined || entries?.length === all.length) return entries;
      meet(afterSeq + 1 + entries!.length);
      return entries!.length === 0 ? undefined : entries;
    },
    digestAt: (cursor) => machine.globalDigestAt(cursor),
    sizeAfter: (seq) => machine.keptSizeAfter(seq),
    figures: () => TABLES_OF_FIGURES.map((table) => machine.tableIndex(table)),
    writtenAtMs: (seq) => {
      // Told with each frame, of the newest.
      const [recent] = machine.recentEntries(seq - 1, 0) ?? [];
      return recent === undefined ? machine.entryTimeMs(seq) : entryLinks(recent.bytes)?.timeMs;
    },
  };
}

/** Nothing of before a restore is kept, so it is the first entry that is. Asked at every acknowledgement. */
function restoredSeqOf(machine: LogOfState): () => number {
  let looked = { place: '', isRestore: false };
  return () => {
    const replication = machine.replication();
    if (replication === undefined || replication.first > replication.cursor.seq) return 0;
    const { epochs, first } = replication;
    const place = positionText({ epoch: epochs.at(-1)!.epoch, seq: first });
    if (place !== looked.place) looked = { place, isRestore: machine.isRestoreAt(first) };
    return looked.isRestore ? first : 0;
  };
}

/** `damaged`: it is on the chain, and the entry behind it does not lead on. */
function locationOf(
  machine: LogOfState,
  cursor: GlobalCursor,
): Location | { readonly kind: 'damaged' } {
  const replication = machine.replication();
  if (replication === undefined) return { kind: 'trimmed' };
  const next = replication.epochs.find(({ epoch }) => epoch > cursor.epoch);
  if (next !== undefined && cursor.seq >= next.startSeq) {
    return { kind: 'diverged', forkSeq: next.startSeq - 1 };
  }
  const { seq: headSeq } = replication.cursor;
  if (cursor.seq > headSeq) return { kind: 'diverged', forkSeq: headSeq };
  const hash = machine.globalHashAt(cursor.seq);
  if (hash === undefined) return { kind: 'trimmed' };
  if (Buffer.compare(hash, cursor.hash) === 0) return { kind: 'kept' };
  // The hash was named by the next entry. Where the entry itself is kept, it knows better.
  if (machine.globalDigestAt(cursor) !== undefined) return { kind: 'damaged' };
  // Where a log begins, nothing is before it that it could have in common with another one.
  return { kind: 'diverged', forkSeq: 0 };
}

/** The entries behind `afterSeq`, up to the first that is not what the next one, or the state, says of it. */
function soundOf(
  machine: LogOfState,
  afterSeq: number,
  all: readonly Uint8Array[],
): readonly GlobalEntry[] {
  const links = all.map(entryLinks);
  const entries: GlobalEntry[] = [];
  for (const [place, bytes] of all.entries()) {
    const seq = afterSeq + 1 + place;
    const hash = entryHash(bytes);
    const next = links[place + 1];
    const wanted = next === undefined ? machine.globalHashAt(seq) : next.prevHash;
    if (!isEntry(links[place], seq, { hash, wanted })) break;
    entries.push({ epoch: links[place]!.epoch, seq, hash, bytes });
  }
  return entries;
}

/** `wanted`: undefined where nobody knows it any more. */
function isEntry(
  links: EntryLinks | undefined,
  seq: number,
  { hash, wanted }: { readonly hash: Uint8Array; readonly wanted: Uint8Array | undefined },
): boolean {
  const isIts = wanted === undefined || Buffer.compare(hash, wanted) === 0;
  return links?.seq === seq && isIts;
}
