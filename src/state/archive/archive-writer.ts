// An archive on its way out, made from a snapshot as it is asked for; archive-format.ts says what is in it.

import { must } from '../../../cluster/base/assert.ts';
import type { StateSnapshot } from '../snapshot/snapshot-writer.ts';
import { ENTRY, metaOf } from './archive-format.ts';
import type { ArchiveInfo } from './archive-info.ts';
import { memberOf } from './archive-members.ts';
import { ArchiveTally } from './archive-tally.ts';
import { blocksOf } from './archive-tar.ts';

/** What only the server that writes an archive knows. */
export type ArchiveOrigin = Pick<ArchiveInfo, 'release' | 'datacenter' | 'cluster' | 'createdMs'>;

/** The archive of a snapshot, from its first byte to its last. The caller closes the snapshot. */
export async function* writeArchive(
  snapshot: StateSnapshot,
  origin: ArchiveOrigin,
): AsyncGenerator<Uint8Array> {
  const modifiedMs = origin.createdMs;
  const meta = metaOf(infoOf(snapshot, origin));
  const first = memberOf(blocksOf({ name: ENTRY.meta, content: meta, modifiedMs }));
  const tally = new ArchiveTally(modifiedMs, meta, first);
  yield first;
  for await (const chunk of snapshot.chunks()) {
    const member = memberOf(blocksOf({ name: ENTRY.state, content: chunk, modifiedMs }));
    tally.add(chunk, member);
    yield member;
  }
  yield tally.lastMember();
}

function infoOf({ meta }: StateSnapshot, origin: ArchiveOrigin): ArchiveInfo {
  const applied = must(meta.appliedEntry, 'an entry in the state that is archived');
  return {
    ...origin,
    index: meta.index,
    position: `${meta.position.epoch}.${meta.position.seq}`,
    logIndex: applied.index,
    logTerm: applied.term,
    totals: meta.totals,
  };
}
