// All global objects as of one entry of the global log, for a datacenter that cannot follow entry by
// entry: a header that says what they are, and pieces of rows; behind the objects the requests that are
// remembered. Local tokens are left out, byte for byte.

import type { KvReader, KvRow, KvSnapshot } from '../../../cluster/platform/kv.ts';
import { isGlobalRow } from '../global-effects.ts';
import { isSentRequest } from '../reads/shared-request.ts';
import {
  type Fields,
  orNull,
  orUndefined,
  pack,
  requireFormat,
  unpack,
} from '../rows/layout/packing.ts';
import { decodeMeta, type Meta } from '../rows/meta.ts';
import { META_KEY, OBJECT_KINDS, ROW } from '../rows/tables.ts';
import { packedRows, packedSize } from '../snapshot/snapshot-format.ts';
import type { GlobalCursor } from './cursor.ts';
import {
  cursorFields,
  cursorOf,
  type Datacenter,
  datacenterFields,
  datacenterOf,
  type EpochStart,
  epochFields,
  epochOf,
  nameClusters,
  type Replication,
  readReplication,
} from './replication.ts';

/** Of the rows in one piece; a single larger row makes a piece of its own. */
const GLOBAL_PIECE_BYTES = 64 * 1024;

/** What a snapshot is of. */
export interface GlobalSnapshotHeader {
  /** Of the datacenters that share it; empty where nobody knows. */
  readonly federationId: string;
  readonly cursor: GlobalCursor;
  readonly epochs: readonly EpochStart[];
  readonly datacenters: readonly Datacenter[];
  readonly datacentersSeq: number;
  /** Of the datacenter that sends it: no object has a greater one. */
  readonly index: number;
  readonly bootstrapIndex: number | undefined;
  /** Of all global objects. */
  readonly digest: Uint8Array;
}

/** Whoever takes one closes it. */
export interface GlobalSnapshot {
  readonly cursor: GlobalCursor;
  /** The bytes of the header. */
  readonly header: Uint8Array;
  /** In an order that is always the same: the piece of a number can be asked for again. */
  pieces(): AsyncIterable<Uint8Array>;
  /** Closing twice is harmless. */
  close(): Promise<void>;
}

/** Format 1 knew of no federation, format 2 of no clusters. */
const FORMAT = 3;
const WITHOUT_CLUSTERS = 2;
const OLDER_FORMATS: readonly unknown[] = [1, WITHOUT_CLUSTERS];

export function encodeHeader(header: GlobalSnapshotHeader): Uint8Array {
  return pack([
    nameClusters(header.datacenters) ? FORMAT : WITHOUT_CLUSTERS,
    cursorFields(header.cursor),
    header.epochs.map(epochFields),
    header.datacenters.map(datacenterFields),
    header.datacentersSeq,
    header.index,
    orNull(header.bootstrapIndex),
    header.digest,
    header.federationId,
  ]);
}

export function decodeHeader(bytes: Uint8Array): GlobalSnapshotHeader {
  const [format, cursor, epochs, datacenters, datacentersSeq, index, bootstrap, ...rest] =
    unpack(bytes);
  if (!OLDER_FORMATS.includes(format)) requireFormat('global snapshot', format, FORMAT);
  const [digest, federationId = ''] = rest;
  return {
    federationId,
    cursor: cursorOf(cursor as Fields),
    epochs: (epochs as readonly Fields[]).map(epochOf),
    datacenters: (datacenters as readonly Fields[]).map(datacenterOf),
    datacentersSeq,
    index,
    bootstrapIndex: orUndefined(bootstrap as number | null),
    digest,
  } as GlobalSnapshotHeader;
}

/** What the store holds now; undefined where its objects are not those of a place in the global log. */
export async function globalSnapshotOf(store: {
  snapshot(): KvSnapshot;
}): Promise<GlobalSnapshot | undefined> {
  const reader = store.snapshot();
  const metaRow = reader.get(META_KEY);
  const replication = readReplication(reader);
  const isWhole = replication !== undefined && !replication.isDiverged && !replication.isWitness;
  if (metaRow === undefined || !isWhole) {
    await reader.close();
    return undefined;
  }
  let closing: Promise<void> | undefined;
  return {
    cursor: replication.cursor,
    header: encodeHeader(headerOf(replication, decodeMeta(metaRow))),
    pieces: () => piecesOf((range) => reader.rows(range)),
    close: () => {
      closing ??= reader.close();
      return closing;
    },
  };
}

function headerOf(replication: Replication, meta: Meta): GlobalSnapshotHeader {
  const { federationId, cursor, epochs, datacenters, datacentersSeq } = replication;
  const { index, bootstrapIndex, globalDigest: digest } = meta;
  const said = { federationId, cursor, epochs, datacenters, datacentersSeq };
  return { ...said, index, bootstrapIndex, digest };
}

/** Of the rows that are read, those that other datacenters may have, in pieces. */
export async function* piecesOf(rowsOf: KvReader['rows']): AsyncGenerator<Uint8Array> {
  let rows: KvRow[] = [];
  let sizeBytes = 0;
  for (const kind of [...OBJECT_KINDS, ROW.request]) {
    const range = { from: Uint8Array.of(kind), to: Uint8Array.of(kind + 1) };
    for await (const slice of rowsOf(range)) {
      for (const row of slice) {
        const { key, value } = row;
        if (!isGlobalRow(key, value) && !isSentRequest(key, value)) continue;
        const rowBytes = packedSize(row);
        if (rows.length > 0 && sizeBytes + rowBytes > GLOBAL_PIECE_BYTES) {
          yield packedRows(rows);
          rows = [];
          sizeBytes = 0;
        }
        rows.push(row);
        sizeBytes += rowBytes;
      }
    }
  }
  if (rows.length > 0) yield packedRows(rows);
}
