// An archive that no server of this federation has written: of another one whose datacenter had the same name, or of
// the time before a global log began. It is made of one that was: with another place, other indexes, other ids of
// policies and roles, without some objects, and without all that is local or came of logins.

import type { KvRow } from '../../../../../cluster/platform/kv.ts';
import type { Namespace } from '../../../../../src/acl/namespace.ts';
import type { Role } from '../../../../../src/acl/role.ts';
import type { Token } from '../../../../../src/acl/token.ts';
import { FIRST_LEVEL } from '../../../../../src/state/commands/feature-levels.ts';
import {
  decodeReplication,
  encodeReplication,
} from '../../../../../src/state/global-log/replication.ts';
import { decodeRecord, encodeRecord } from '../../../../../src/state/rows/layout/record-codec.ts';
import type { Stamped } from '../../../../../src/state/rows/layout/stamp.ts';
import type { Meta } from '../../../../../src/state/rows/meta.ts';
import { tableOfRow } from '../../../../../src/state/rows/objects/objects.ts';
import { isObjectRow, ROW } from '../../../../../src/state/rows/tables.ts';
import { archiveWith, contentOf, trueTo } from '../../../../state/archives/crafted-archive.ts';
import type { Behind } from '../../../checks/federation/global-chain.ts';
import { withWrites } from '../../../checks/federation/state-image.ts';
import { MANAGEMENT_SECRET } from '../../../subject/node-subject.ts';
import { SortedRows } from '../../../world/sorted-rows.ts';
import type { Stream } from '../../../world/stream.ts';

/** Of another federation, or of before there was any. */
export type Foreign = 'federation' | 'before-the-log';

export interface ForeignArchive {
  readonly bytes: Uint8Array;
  /** What all share behind its restore. */
  readonly objects: Behind;
}

type Row = KvRow & { readonly object: Stamped };

/** `archive`: one of the datacenter that is called `datacenter`. */
export async function foreignArchive(
  archive: Uint8Array,
  wish: { readonly foreign: Foreign; readonly datacenter: string; readonly stream: Stream },
): Promise<ForeignArchive> {
  const { foreign, datacenter, stream } = wish;
  const { rows, meta } = contentOf(archive);
  const shift = stream.pick([0, stream.below(50), stream.below(5000)] as const);
  const renames = stream.chance(0.5);
  const objects = rows
    .filter(({ key }) => isObjectRow(key[0]!))
    .map((row) => ({ ...row, object: objectIn(row) }))
    .filter((row) => isTaken(row, stream))
    .map(({ key, object }) => rowOf(key[0]!, changed(object, { shift, renames })));
  const log = foreign === 'federation' ? rows.filter(isOfLog).map(ofAnother) : [];
  const position =
    foreign === 'federation'
      ? {
          epoch: stream.pick([1, 1 + stream.below(4), 1000]),
          seq: stream.pick([stream.below(40), stream.below(4000)]),
        }
      : { epoch: 1, seq: 0 };
  const level = foreign === 'federation' ? meta.level : FIRST_LEVEL;
  const content = trueTo({
    rows: [...objects, ...log],
    meta: { ...shifted(meta, shift), position, level },
  });
  const { rows: shared, digest } = withWrites(
    SortedRows.EMPTY,
    objects.map(({ key, value }) => ({ type: 'put', key, value })),
  );
  const bytes = await archiveWith(content, content.meta, datacenter);
  return { bytes, objects: { rows: shared, digest } };
}

/** Whoever looks after the datacenters keeps the token for it, and what is built in. */
function isTaken({ key, object }: Row, stream: Stream): boolean {
  if (key[0] === ROW.token) {
    const { authMethod, local, secretId } = object as Token;
    if (local || authMethod !== undefined) return false;
    if (secretId === MANAGEMENT_SECRET || isBuiltin((object as Token).accessorId)) return true;
  }
  if (key[0] === ROW.policy || key[0] === ROW.role) {
    if (isBuiltin((object as Role).id)) return true;
  }
  // A rule whose method is gone is nobody's.
  if (key[0] === ROW.authMethod || key[0] === ROW.bindingRule || key[0] === ROW.namespace)
    return true;
  return stream.chance(0.7);
}

function changed(
  object: Stamped,
  { shift, renames }: { readonly shift: number; readonly renames: boolean },
): Stamped {
  const { createIndex, modifyIndex } = object;
  const moved = { ...object, createIndex: createIndex + shift, modifyIndex: modifyIndex + shift };
  if (!renames) return moved;
  const links = ['policies', 'roles', 'policyDefaults', 'roleDefaults'] as const;
  const all = moved as Stamped & Partial<Role & Token & Namespace>;
  const renamed = links.flatMap((name) => {
    const ids: readonly string[] | undefined = all[name];
    return ids === undefined ? [] : [[name, ids.map(another)] as const];
  });
  return {
    ...moved,
    ...(all.id !== undefined && { id: another(all.id) }),
    ...Object.fromEntries(renamed),
  };
}

/** The id that it has in the other federation. */
function another(id: string): string {
  if (isBuiltin(id)) return id;
  const first = (Number.parseInt(id.charAt(0), 16) + 8) % 16;
  return `${first.toString(16)}${id.slice(1)}`;
}

function isBuiltin(id: string): boolean {
  return id.startsWith('00000000-0000-0000-0000-');
}

function shifted(meta: Meta, by: number): Meta {
  const { bootstrapIndex, index, tableIndexes } = meta;
  return {
    ...meta,
    index: index + by,
    ...(bootstrapIndex !== undefined && { bootstrapIndex: bootstrapIndex + by }),
    tableIndexes: Object.fromEntries(
      Object.entries(tableIndexes).map(([name, at]) => [name, at + by]),
    ) as Meta['tableIndexes'],
  };
}

function objectIn({ key, value }: KvRow): Stamped {
  return decodeRecord(tableOfRow(key[0]!).codec, value);
}

function rowOf(kind: number, object: Stamped): KvRow {
  const table = tableOfRow(kind);
  return { key: table.keyOf(object), value: encodeRecord(table.codec, object) };
}

function isOfLog({ key }: KvRow): boolean {
  return key[0] === ROW.replication || key[0] === ROW.globalEntry;
}

function ofAnother(row: KvRow): KvRow {
  if (row.key[0] !== ROW.replication) return row;
  const there = decodeReplication(row.value);
  const federationId = 'ffffffff-ffff-4fff-8fff-ffffffffffff';
  const maxEpochPromised = there.maxEpochPromised + 7;
  return { ...row, value: encodeReplication({ ...there, federationId, maxEpochPromised }) };
}
