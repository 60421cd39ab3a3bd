// Archives whose bytes are all as they were written, and whose content no server here has written: by hand, by
// a newer release, by a program with a mistake. What cannot be gone on with is refused before anything changes.

import t from 'tap';
import type { KvRow } from '../../../cluster/platform/kv.ts';
import { adoptSha256 } from '../../../cluster/platform/sha256.ts';
import type { AclError } from '../../../src/acl/error.ts';
import { systemSha256 } from '../../../src/platform-node/hashes/system-sha256.ts';
import { inspectArchive } from '../../../src/state/archive/archive-reader.ts';
import { decodeRecord, encodeRecord } from '../../../src/state/rows/layout/record-codec.ts';
import { NAMESPACES } from '../../../src/state/rows/objects/objects.ts';
import { encodeRetiredNamespace } from '../../../src/state/rows/objects/retired-namespace.ts';
import { isObjectRow, isRestoredRow, ROW, rowKey } from '../../../src/state/rows/tables.ts';
import { MemoryKv } from '../../support/memory-kv.ts';
import {
  accessorNumbered,
  aToken,
  secretNumbered,
} from '../../support/state-and-service/fixtures.ts';
import {
  BUILTINS,
  MachineHarness,
  orphansIn,
} from '../../support/state-and-service/machine-harness.ts';
import { requireSame } from '../rows-from-nothing.ts';
import { archiveWith, contentOfServer, trueTo } from './crafted-archive.ts';
import {
  type Changed,
  ofEveryKind,
  SECRET_OF_METHOD,
  UNREADABLE,
  withMeta,
  withMore,
} from './foreign-archives.ts';
import { Group, plainStore, restore, restoredRows } from './restoring.ts';

adoptSha256(systemSha256);

/** What is said that is not true of the rows. */
const UNTRUE: readonly (readonly [string, Changed, RegExp])[] = [
  [
    'local tokens',
    withMeta(({ totals }) => ({ totals: { ...totals, localTokens: 2 } })),
    /it has 1 local tokens, and says 2/,
  ],
  [
    'the digest of what all share',
    withMeta(({ fullDigest }) => ({ globalDigest: fullDigest })),
    /its global objects have the digest/,
  ],
  [
    'a digest that is none',
    withMeta(() => ({ fullDigest: new Uint8Array(31) })),
    /its digests are none/,
  ],
  [
    'totals that are none',
    withMeta(({ totals }) => ({ totals: { ...totals, roles: -1 } })),
    /its totals are none/,
  ],
];

t.test(
  'restore: what no server here can go on with is refused before anything changes',
  async (t) => {
    const content = await contentOfServer(await ofEveryKind());
    const group = new Group();
    await group.one(BUILTINS);
    const { machine, generations } = group.leader;
    const cases = [
      ...UNREADABLE.map(([what, change, says]) => [what, trueTo(change(content)), says] as const),
      ...UNTRUE.map(([what, change, says]) => [what, change(content), says] as const),
    ];
    const before = [machine.index(), machine.position(), machine.digests(), machine.usesLevel];
    for (const [what, changed, says] of cases) {
      const archive = await archiveWith(changed, content.meta);
      const refusal = await restore(group.archives, archive).catch((error: AclError) => error);
      t.match(refusal, { name: 'AclError', code: 'malformed', message: says }, what);
      const { message } = refusal as AclError;
      const isNewer = what === 'a level of a newer release';
      const found = isNewer ? 'a newer release wrote the snapshot' : 'the snapshot is damaged';
      t.match(message, new RegExp(`^nothing was changed: ${found}: `), what);
      for (const secret of [SECRET_OF_METHOD, secretNumbered(3)]) t.notMatch(message, secret, what);
      t.equal(group.steps.length, 1, `${what}: nothing was proposed`);
      t.same([...generations.stores.keys()], [0], `${what}: no trace is left`);
    }
    t.same([machine.index(), machine.position(), machine.digests(), machine.usesLevel], before);
    await restore(group.archives, await archiveWith(content));
    t.equal(machine.totals().tokens, 6, 'and what is right still passes');
  },
);

t.test('inspect: says of an archive what a restore would say of its objects', async (t) => {
  const content = await contentOfServer(await ofEveryKind());
  const [[, change, says]] = UNREADABLE as readonly [(typeof UNREADABLE)[number]];
  const archive = await archiveWith(trueTo(change(content)));
  async function* pieces() {
    yield archive;
  }
  await t.rejects(inspectArchive(pieces()), { name: 'SnapshotDamage', message: says });
});

/** All that follows from objects, as somebody wrote it who was wrong about it. */
const FOLLOWING: readonly (readonly [string, (rows: readonly KvRow[]) => readonly KvRow[]])[] = [
  ['garbage', (rows) => rows.map(({ key }) => ({ key, value: Uint8Array.of(0xc1) }))],
  ['left out', () => []],
  ['of others', (rows) => rows.map(({ key }) => ({ key, value: new Uint8Array(16).fill(7) }))],
  [
    'of nobody',
    (rows) => rows.map(({ key, value }) => ({ key: Buffer.concat([key, Buffer.of(1)]), value })),
  ],
];

t.test(
  'restore: what follows from objects is made anew, whatever an archive says of it',
  async (t) => {
    const source = await ofEveryKind();
    const content = await contentOfServer(source);
    const follows = ({ key }: KvRow): boolean => isRestoredRow(key[0]!) && !isObjectRow(key[0]!);
    t.same(
      [...new Set(content.rows.filter(follows).map(({ key }) => key[0]))],
      [2, 11, 12, 13, 14, 15, 16, 17, 21, 31, 32, 41, 42, 51, 52],
      'every kind that follows is there',
    );
    for (const [what, change] of FOLLOWING) {
      const others = content.rows.filter((row) => !follows(row));
      const rows = [...others, ...change(content.rows.filter(follows))];
      const group = new Group();
      await group.one(BUILTINS);
      await restore(group.archives, await archiveWith(trueTo({ ...content, rows })));
      const plain = await plainStore(group.leader.machine);
      requireSame(what, restoredRows(plain.kv), restoredRows(source.kv));
      t.equal(group.leader.machine.tokenBySecret(secretNumbered(3))?.local, false, what);
      t.same(await orphansIn(group.leader.machine), [accessorNumbered(5)], what);
    }
  },
);

t.test('restore: local tokens elsewhere stay, at whatever index `default` was made', async (t) => {
  const group = new Group();
  await group.one({ ...LOG_OF_DC1, datacenter: 'dc1' });
  await group.one(BUILTINS);
  const other = new MachineHarness(new MemoryKv());
  await other.one({ ...LOG_OF_DC1, datacenter: 'dc2' });
  await takeSnapshot(group.leader, other);
  const local = aToken(60, { local: true });
  await other.one({ type: 'token.set', presence: 'create', token: local });
  const content = await contentOfServer(await ofEveryKind());
  const rows = content.rows.map((row) => (row.key[0] === ROW.namespace ? madeLater(row) : row));
  await restore(group.archives, await archiveWith(trueTo({ ...content, rows })));
  await takeSnapshot(group.leader, other);
  const { namespace } = local;
  const [here, there] = [group.leader, other].map(({ machine }) => machine.namespace(namespace));
  t.equal(here?.createIndex, 3, 'as the archive says');
  t.same(there, here);
  t.equal(other.machine.namespaceLostUpTo(namespace), 0, 'nobody can have deleted it');
  t.same(await orphansIn(other.machine, { isLocalOnly: true }), []);
  t.equal(other.machine.token(local.accessorId)?.local, true);
});

/** As in a state that somebody has made by hand. */
function madeLater({ key, value }: KvRow): KvRow {
  const namespace = decodeRecord(NAMESPACES.codec, value);
  const later = { ...namespace, createIndex: 3, modifyIndex: 3 };
  return { key, value: encodeRecord(NAMESPACES.codec, later) };
}

const LOG_OF_DC1 = { type: 'global-log.begin', primary: 'dc1', isWitness: false } as const;

/** All that it has in one piece, and no local token but those that are there. */
async function takeSnapshot(from: MachineHarness, to: MachineHarness): Promise<void> {
  const id = 'one';
  const snapshot = (await from.machine.globalSnapshot())!;
  await to.one({ type: 'global-snapshot.begin', id, header: snapshot.header });
  let number = 0;
  for await (const rows of snapshot.pieces()) {
    number += 1;
    await to.one({ type: 'global-snapshot.chunk', id, number, rows });
  }
  await snapshot.close();
  const keys = await to.machine.localRows(undefined, 100);
  await to.one({ type: 'global-snapshot.carry', id, number: 1, keys: [], isLast: false });
  await to.one({ type: 'global-snapshot.carry', id, number: 2, keys, isLast: true });
  await to.one({ type: 'global-snapshot.commit', id });
}

t.test('restore: how many tokens a lost namespace has left is counted anew', async (t) => {
  const source = await ofEveryKind();
  const ofAll = aToken(7, { namespace: 'team' as never });
  await source.one({ type: 'token.set', presence: 'create', token: ofAll });
  const content = await contentOfServer(source);
  const lost = (name: string, upTo: number): KvRow => ({
    key: rowKey('retiredNamespace', name),
    value: encodeRetiredNamespace({ upTo, tokens: 5 }),
  });
  const group = new Group();
  await group.one(BUILTINS);
  const upTo = content.meta.index;
  const changed = trueTo(withMore(lost('team', upTo), lost('other', upTo))(content));
  await restore(group.archives, await archiveWith(changed));
  const { kv } = await plainStore(group.leader.machine);
  const left = encodeRetiredNamespace({ upTo, tokens: 1 });
  t.same(
    kv.get(rowKey('retiredNamespace', 'team')),
    Buffer.from(left),
    'one local token, whatever was said',
  );
  t.equal(kv.get(rowKey('retiredNamespace', 'other')), undefined, 'where none is left, no row');
  await group.one({ type: 'token.delete', accessorId: accessorNumbered(2) });
  const after = await plainStore(group.leader.machine);
  t.equal(after.kv.get(rowKey('retiredNamespace', 'team')), undefined);

  const { createIndex } = source.machine.token(accessorNumbered(2))!;
  for (const [index, tokens] of [
    [createIndex, 1],
    [createIndex - 1, 0],
  ] as const) {
    const other = new Group();
    await other.one(BUILTINS);
    await restore(
      other.archives,
      await archiveWith(trueTo(withMore(lost('team', index))(content))),
    );
    const lostUpTo = other.leader.machine.namespaceLostUpTo('team' as never);
    t.equal(lostUpTo, tokens * index, 'the last one of them counts');
  }
});

t.test('restore: an archive of a higher level than the group uses has to wait', async (t) => {
  const source = await ofEveryKind();
  await source.one({ type: 'level.raise', level: 3 });
  const archive = await archiveWith(await contentOfServer(source));
  const group = new Group();
  await group.one(BUILTINS);
  await group.one({ type: 'level.raise', level: 2 });
  const says =
    'nothing was changed: the archive is of feature level 3, and this datacenter uses 2: ' +
    'upgrade those that `conclave operator autopilot state` says it waits for';
  await t.rejects(restore(group.archives, archive), { code: 'unavailable', message: says });
  t.equal(group.steps.length, 2, 'nothing was proposed');
  await group.one({ type: 'level.raise', level: 3 });
  await restore(group.archives, archive);
  t.equal(group.leader.machine.totals().tokens, 6);
});
