// An archive on its way out, made from a snapshot as it is asked for.

import { constants, deflateRawSync } from 'node:zlib';
import { must } from '../../cluster/base/assert.ts';
import {
  type ArchiveInfo,
  CHECK_BYTES,
  firstCheck,
  frameOf,
  LENGTH_BYTES,
  MAGIC,
} from './archive-format.ts';
import { chained } from './snapshot-format.ts';
import type { StateSnapshot } from './snapshot-writer.ts';

/** What only the server that writes an archive knows. */
export type ArchiveOrigin = Pick<ArchiveInfo, 'release' | 'datacenter' | 'cluster' | 'createdMs'>;

/** Quick: a chunk takes the event loop a few milliseconds. */
const LEVEL = constants.Z_BEST_SPEED;

/** The archive of a snapshot, from its first byte to its last. The caller closes the snapshot. */
export async function* writeArchive(
  snapshot: StateSnapshot,
  origin: ArchiveOrigin,
): AsyncGenerator<Uint8Array> {
  yield MAGIC;
  const header = frameOf(Buffer.from(JSON.stringify(infoOf(snapshot, origin))));
  yield header;
  let check = chained(firstCheck(), header);
  for await (const chunk of snapshot.chunks()) {
    const frame = frameOf(deflateRawSync(chunk, { level: LEVEL }));
    check = chained(check, frame);
    yield frame;
  }
  const end = Buffer.alloc(LENGTH_BYTES + CHECK_BYTES);
  end.set(check, LENGTH_BYTES);
  yield end;
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
