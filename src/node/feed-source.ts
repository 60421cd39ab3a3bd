// The global log of this server's state as the feed reads it: entries with the places that their bytes
// say, and where a cursor of another datacenter lies in it.

import type { EntrySource, Location } from '../../cluster/federation/entry-source.ts';
import {
  type GlobalCursor,
  type GlobalEntry,
  LOG_START,
} from '../../cluster/federation/global-log.ts';
import { must } from '../../cluster/base/assert.ts';
import { entryHash, entryLinks } from '../state/global-log/global-entry.ts';
import type { StateMachine } from '../state/machine.ts';

type LogOfState = Pick<
  StateMachine,
  | 'replication'
  | 'keptEntries'
  | 'globalEntries'
  | 'recentEntries'
  | 'globalHashAt'
  | 'entryTimeMs'
  | 'globalDigestAt'
  | 'keptSizeAfter'
  | 'tableIndex'
  | 'onGlobalLogMoved'
>;

/** The figures that the primary tells its followers: the index of each table. The order is on the wire. */
export const TABLES_OF_FIGURES = ['policies', 'roles', 'tokens'] as const;

export function feedSourceOf(machine: LogOfState): EntrySource {
  return {
    get head() {
      return machine.replication()?.cursor ?? LOG_START;
    },
    get kept() {
      const kept = machine.keptEntries();
      if (kept !== undefined) return { afterSeq: kept.first - 1, sizeBytes: kept.bytes };
      return { afterSeq: machine.replication()?.cursor.seq ?? 0, sizeBytes: 0 };
    },
    onMoved: (listener) => machine.onGlobalLogMoved(listener),
    locate: (cursor) => locationOf(machine, cursor),
    read: async (afterSeq, maxBytes) => {
      const recent = machine.recentEntries(afterSeq, maxBytes);
      if (recent !== undefined) return recent;
      const entries = await machine.globalEntries(afterSeq, maxBytes);
      return entries && placed(entries);
    },
    digestAt: (cursor) => machine.globalDigestAt(cursor),
    sizeAfter: (seq) => machine.keptSizeAfter(seq),
    figures: () => TABLES_OF_FIGURES.map((table) => machine.tableIndex(table)),
    writtenAtMs: (seq) => machine.entryTimeMs(seq),
  };
}

function locationOf(machine: LogOfState, cursor: GlobalCursor): Location {
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
  // Where a log begins, nothing is before it that it could have in common with another one.
  return { kind: 'diverged', forkSeq: 0 };
}

/** Each entry holds the hash of the one before: only that of the last one has to be made. */
function placed(entries: readonly Uint8Array[]): readonly GlobalEntry[] {
  const links = entries.map((bytes) => must(entryLinks(bytes), 'an entry of the own log'));
  return entries.map((bytes, place) => {
    const { epoch, seq } = links[place]!;
    return { epoch, seq, hash: links[place + 1]?.prevHash ?? entryHash(bytes), bytes };
  });
}
