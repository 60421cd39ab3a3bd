// The objects of the place where another chain left the own one, as a snapshot that a datacenter takes in itself:
// where nobody is left who could lend it one, it is made of its own objects and of the entries that it keeps.

import { must } from '../../../cluster/base/assert.ts';
import type { KvReader, KvRow, KvSnapshot } from '../../../cluster/platform/kv.ts';
import { AclError } from '../../acl/error.ts';
import { decodeMeta } from '../rows/meta.ts';
import { nameOf } from '../rows/store/rows-before.ts';
import { META_KEY } from '../rows/tables.ts';
import { type BeforeFork, beforeFork } from './before-fork.ts';
import { encodeHeader, type GlobalSnapshot, piecesOf } from './global-snapshot.ts';
import { type EpochStart, readReplication } from './replication.ts';

export interface ForkSnapshot extends GlobalSnapshot {
  /** Of the other chain, up to the one that left the own. */
  readonly epochs: readonly EpochStart[];
}

/** Rejects with AclError where the own chain has nothing beside theirs, or what is kept does not lead back. */
export async function forkSnapshotOf(
  store: { snapshot(): KvSnapshot },
  theirs: readonly EpochStart[],
): Promise<ForkSnapshot> {
  const reader = store.snapshot();
  try {
    const replication = readReplication(reader);
    if (replication === undefined || replication.isWitness) {
      throw new AclError('unavailable', 'there are no objects of a global log here');
    }
    const meta = decodeMeta(must(reader.get(META_KEY), 'the meta row'));
    const { globalDigest, index, bootstrapIndex } = meta;
    const before = await beforeFork(reader, { replication, globalDigest }, theirs);
    const { cursor, epochs, digest, datacenters } = before;
    const { federationId } = replication;
    const said = { federationId, cursor, epochs, ...datacenters, index, bootstrapIndex, digest };
    let closing: Promise<void> | undefined;
    return {
      cursor,
      epochs,
      header: encodeHeader(said),
      pieces: () => piecesOf((range) => rowsThen(reader.rows(range), before, range.from[0]!)),
      close: () => {
        closing ??= reader.close();
        return closing;
      },
    };
  } catch (error) {
    await reader.close();
    throw error;
  }
}

/**
 * Of the rows of one kind: what was there then. What is remembered of a request behind the fork may stay: its place
 * is lost, so it answers no repeat.
 */
async function* rowsThen(
  slices: ReturnType<KvReader['rows']>,
  { rows }: Pick<BeforeFork, 'rows'>,
  kind: number,
): AsyncGenerator<readonly KvRow[]> {
  const back = [...rows.values()]
    .flatMap(({ key, value }) => (key[0] === kind && value !== undefined ? [{ key, value }] : []))
    .sort((one, other) => Buffer.compare(one.key, other.key));
  let next = 0;
  for await (const slice of slices) {
    const then: KvRow[] = [];
    for (const row of slice) {
      while (next < back.length && Buffer.compare(back[next]!.key, row.key) < 0) {
        then.push(back[next]!);
        next += 1;
      }
      if (!rows.has(nameOf(row.key))) then.push(row);
    }
    yield then;
  }
  yield back.slice(next);
}
