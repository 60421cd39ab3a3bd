// An archive by somebody else's hand: rows and words about them that no server here wrote, with checksums,
// totals and digests that are all true.

import type { KvRow } from '../../../cluster/platform/kv.ts';
import { ArchiveReader } from '../../../src/state/archive/archive-reader.ts';
import { writeArchive } from '../../../src/state/archive/archive-writer.ts';
import { Digest, rowHash } from '../../../src/state/rows/digest.ts';
import { isLocalTokenRow } from '../../../src/state/rows/layout/token-row.ts';
import { decodeMeta, encodeMeta, type Meta } from '../../../src/state/rows/meta.ts';
import { isObjectRow, ROW } from '../../../src/state/rows/tables.ts';
import { RowParser } from '../../../src/state/snapshot/row-parser.ts';
import {
  CHAIN_ORIGIN,
  CHUNK,
  chained,
  fieldsChunk,
  fieldsIn,
  packedRows,
  ROWS_CHUNK_BYTES,
  SNAPSHOT_FORMAT,
} from '../../../src/state/snapshot/snapshot-format.ts';
import type { StateSnapshot } from '../../../src/state/snapshot/snapshot-writer.ts';
import { archived } from './restoring.ts';

/** What an archive has in it. */
export interface Content {
  readonly rows: readonly KvRow[];
  readonly meta: Meta;
}

export function contentOf(archive: Uint8Array): Content {
  const chunks = [...new ArchiveReader().take(archive)];
  const parser = new RowParser((says) => new Error(says));
  const isOfRows = (chunk: Uint8Array): boolean => chunk[0] === CHUNK.rows;
  const rows = chunks.filter(isOfRows).flatMap((chunk) => parser.take(chunk.subarray(1)));
  const [, metaRow] = fieldsIn(chunks[0]!);
  return { rows, meta: decodeMeta(metaRow as Uint8Array) };
}

export async function contentOfServer(server: Parameters<typeof archived>[0]): Promise<Content> {
  return contentOf(await archived(server));
}

/** Rows in order, with totals and digests that are theirs; what else the words say stays as it is. */
export function trueTo({ rows, meta }: Content): Content {
  const ordered = [...rows].sort((left, right) => Buffer.compare(left.key, right.key));
  const [full, global] = [new Digest(), new Digest()];
  const count = (kind: number): number => ordered.filter(({ key }) => key[0] === kind).length;
  let localTokens = 0;
  for (const { key, value } of ordered) {
    if (!isObjectRow(key[0]!)) continue;
    const isLocal = key[0] === ROW.token && isLocalOrNone(value);
    if (isLocal) localTokens += 1;
    full.add(rowHash(key, value));
    if (!isLocal) global.add(rowHash(key, value));
  }
  const totals = {
    tokens: count(ROW.token),
    policies: count(ROW.policy),
    roles: count(ROW.role),
    authMethods: count(ROW.authMethod),
    bindingRules: count(ROW.bindingRule),
    localTokens,
    namespaces: count(ROW.namespace),
  };
  const digests = { fullDigest: full.bytes(), globalDigest: global.bytes() };
  return { rows: ordered, meta: { ...meta, ...digests, totals } };
}

/** The chunks of a snapshot with this content, as it is. */
export function chunksWith({ rows, meta }: Content): readonly Uint8Array[] {
  const header = fieldsChunk(CHUNK.header, [SNAPSHOT_FORMAT, encodeMeta(meta)]);
  const packed = packedRows(rows);
  const chunks: Uint8Array[] = [header];
  for (let at = 0; at < packed.length; at += ROWS_CHUNK_BYTES - 1) {
    const piece = packed.subarray(at, at + ROWS_CHUNK_BYTES - 1);
    chunks.push(Buffer.concat([Uint8Array.of(CHUNK.rows), piece]));
  }
  const chain = chunks.reduce(chained, CHAIN_ORIGIN);
  return [...chunks, fieldsChunk(CHUNK.trailer, [rows.length, chain])];
}

/** An archive with this content, as it is; what it says in front is that of `meta`. */
export async function archiveWith(
  content: Content,
  meta: Meta = content.meta,
  datacenter = 'dc1',
): Promise<Uint8Array> {
  const snapshot: StateSnapshot = {
    appliedEntry: meta.appliedEntry,
    groupRecord: meta.groupRecord,
    meta,
    chunks: async function* chunks() {
      yield* chunksWith(content);
    },
    close: () => Promise.resolve(),
  };
  const origin = { release: '1.2.3', datacenter, cluster: 'a-cluster', createdMs: 0 };
  const parts: Uint8Array[] = [];
  for await (const part of writeArchive(snapshot, origin)) parts.push(part);
  return Buffer.concat(parts);
}

/** Of what no codec reads, nobody knows where it lives. */
function isLocalOrNone(value: Uint8Array): boolean {
  try {
    return isLocalTokenRow(value);
  } catch {
    return false;
  }
}
