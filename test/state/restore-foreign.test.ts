// Archives whose bytes are all as they were written, and whose content no server here has written: by hand, by
// a newer release, by a program with a mistake. What cannot be gone on with is refused before anything changes.

import fc from 'fast-check';
import t from 'tap';
import { adoptSha256 } from '../../cluster/platform/sha256.ts';
import type { KvRow } from '../../cluster/platform/kv.ts';
import type { AclError } from '../../src/acl/error.ts';
import { systemSha256 } from '../../src/platform-node/hashes/system-sha256.ts';
import { inspectArchive } from '../../src/state/archive/archive-reader.ts';
import type { Change } from '../../src/state/commands/commands.ts';
import { NEWEST_LEVEL } from '../../src/state/commands/feature-levels.ts';
import type { Meta } from '../../src/state/rows/meta.ts';
import { COUNTER_MAX } from '../../src/state/rows/meta-check.ts';
import { encodeMeta } from '../../src/state/rows/meta.ts';
import {
  type Field,
  type Fields,
  fieldsOrNone,
  pack,
  unpack,
} from '../../src/state/rows/packing.ts';
import { encodeRetiredNamespace } from '../../src/state/rows/retired-namespace.ts';
import { CHAIN_ORIGIN, chained, packedRows } from '../../src/state/snapshot/snapshot-format.ts';
import { isObjectRow, isRestoredRow, ROW, rowKey } from '../../src/state/rows/tables.ts';
import {
  accessorNumbered,
  aBindingRule,
  aNamespace,
  anAuthMethod,
  aPolicy,
  aRole,
  aToken,
  policyIdNumbered,
  roleIdNumbered,
  secretNumbered,
} from '../support/fixtures.ts';
import {
  BUILTINS,
  MachineHarness,
  orphansIn,
  replaceableMachine,
} from '../support/machine-harness.ts';
import { MemoryKv } from '../support/memory-kv.ts';
import {
  archiveWith,
  chunksWith,
  type Content,
  contentOfServer,
  trueTo,
} from './crafted-archive.ts';
import { Group, namesOf, plainStore, restore, restoredRows, type Server } from './restoring.ts';
import { requireRowsFromNothing, requireSame } from './rows-from-nothing.ts';

adoptSha256(systemSha256);

const SECRET_OF_METHOD = 'hunter2';

/** Something of every kind that a restore brings back. */
async function ofEveryKind(): Promise<Server> {
  const server = replaceableMachine();
  const inTeam = { namespace: 'team' as never };
  const changes: readonly Change[] = [
    BUILTINS,
    { type: 'namespace.set', presence: 'create', namespace: aNamespace('team') },
    { type: 'policy.set', presence: 'create', policy: aPolicy(1) },
    { type: 'policy.set', presence: 'create', policy: aPolicy(2, inTeam) },
    {
      type: 'role.set',
      presence: 'create',
      role: aRole(1, { policies: [policyIdNumbered(1)] }),
    },
    {
      type: 'auth-method.set',
      presence: 'either',
      method: anAuthMethod('login', { config: { Key: SECRET_OF_METHOD } }),
    },
    { type: 'auth-method.set', presence: 'either', method: anAuthMethod('gone') },
    { type: 'binding-rule.set', presence: 'create', rule: aBindingRule(1) },
    { type: 'binding-rule.set', presence: 'create', rule: aBindingRule(2) },
    { type: 'bootstrap', token: aToken(1), resetIndex: undefined },
    { type: 'token.set', presence: 'create', token: aToken(2, { local: true, ...inTeam }) },
    {
      type: 'token.set',
      presence: 'create',
      token: aToken(3, {
        policies: [policyIdNumbered(1)],
        roles: [roleIdNumbered(1)],
        serviceIdentities: [{ serviceName: 'web', datacenters: ['dc1'] }],
        nodeIdentities: [{ nodeName: 'n', datacenter: 'dc1' }],
        expirationTime: '2027-01-01T00:00:00Z' as never,
      }),
    },
    { type: 'token.set', presence: 'create', token: ofLogin(4, { name: 'login', createIndex: 6 }) },
    { type: 'token.set', presence: 'create', token: ofLogin(5, { name: 'gone', createIndex: 7 }) },
    { type: 'auth-method.delete', namespace: 'default' as never, name: 'gone' },
  ];
  for (const each of changes) {
    const told = await server.tell(each);
    if (told !== 'ok') throw new Error(`${each.type}: ${told}`);
  }
  return server;
}

function ofLogin(number: number, method: { readonly name: string; readonly createIndex: number }) {
  return aToken(number, { authMethod: { ...method, namespace: 'default' as never } });
}

type Changed = (content: Content) => Content;

const withMeta =
  (change: (meta: Meta) => Partial<Meta>): Changed =>
  ({ rows, meta }) => ({ rows, meta: { ...meta, ...change(meta) } });

/** The first row of the kind, or the one at that place among them, with another value or key. */
const withRow =
  (kind: number, change: (row: KvRow) => KvRow, place = 0): Changed =>
  ({ rows, meta }) => {
    const chosen = rows.filter(({ key }) => key[0] === kind)[place]!;
    return { rows: rows.map((row) => (row === chosen ? change(row) : row)), meta };
  };

const withValue = (kind: number, value: Uint8Array): Changed =>
  withRow(kind, ({ key }) => ({ key, value }));

/** The record again with another field at that place. */
const withField = (kind: number, place: number, field: Field, at = 0): Changed =>
  withRow(
    kind,
    ({ key, value }) => {
      const [format, createIndex, modifyIndex, fields] = unpack(value);
      const changed = (fields as Fields).with(place, field);
      return { key, value: pack([format!, createIndex!, modifyIndex!, changed]) };
    },
    at,
  );

const withStamps = (createIndex: number, modifyIndex: number): Changed =>
  withRow(ROW.role, ({ key, value }) => {
    const [format, , , fields] = unpack(value);
    return { key, value: pack([format!, createIndex, modifyIndex, fields!]) };
  });

const withMore =
  (...more: readonly KvRow[]): Changed =>
  ({ rows, meta }) => ({ rows: [...rows, ...more], meta });

const nothing = new Uint8Array();

/** What is refused, changed in rows of which all sums are made true afterwards; and what is said of it. */
const UNREADABLE: readonly (readonly [string, Changed, RegExp])[] = [
  [
    'a built-in policy of a newer format',
    withValue(ROW.policy, pack([2, 1, 1, []])),
    /row \d+: the row policy 00000000-0000-0000-0000-000000000001 has format 2, known here is 1/,
  ],
  ['a token of a newer format', withValue(ROW.token, pack([2, 1, 1, []])), /has format 2/],
  [
    'no record',
    withValue(ROW.token, Uint8Array.of(0xc1, 0xff, 0)),
    /the row token .* cannot be read/,
  ],
  ['no fields', withValue(ROW.role, pack([1, 1, 1, null])), /the row role .* cannot be read/],
  ['too few fields', withValue(ROW.role, pack([1, 1, 1, []])), /the row role .* cannot be read/],
  [
    'a text that is none',
    withField(ROW.token, 3, 5),
    /the row token .* has a field that no such object has: description/,
  ],
  ['no secret', withField(ROW.token, 1, ''), /no such object has: secretId/],
  ['a link to no id', withField(ROW.token, 4, ['x'], 1), /no such object has: policies/],
  [
    'a moment that is none',
    withField(ROW.token, 12, 'soon', 1),
    /no such object has: expirationTime/,
  ],
  ['a flag that is none', withField(ROW.token, 9, 0), /no such object has: local/],
  ['an identity that is none', withField(ROW.role, 5, [['x', 1]]), /has: serviceIdentities/],
  ['a method of an unknown type', withField(ROW.authMethod, 2, 'saml'), /no such object has: type/],
  ['a TTL that is none', withField(ROW.authMethod, 5, 1), /no such object has: maxTokenTtlNs/],
  [
    'a configuration that is no JSON',
    withField(ROW.authMethod, 7, `{"Key":${SECRET_OF_METHOD}`),
    /authMethod .* cannot be read/,
  ],
  [
    'a rule that binds to nothing',
    withField(ROW.bindingRule, 5, 'x'),
    /no such object has: bindType/,
  ],
  ['words about a namespace that are none', withField(ROW.namespace, 4, '{"a":1}'), /has: meta/],
  [
    'an object in the place of another',
    withField(ROW.policy, 0, policyIdNumbered(77)),
    /the row policy .* is not at the place of the object that is in it/,
  ],
  ['a namespace in the place of another', withField(ROW.namespace, 0, 'x'), /is not at the place/],
  [
    'an index beyond that of the state',
    withStamps(1, 10_000),
    /changed at 10000, in a state of index/,
  ],
  ['a change before the making', withStamps(2, 1), /was made at 2 and changed at 1/],
  ['an index that is none', withStamps(0, 1), /no such object has: createIndex/],
  ['an unknown kind', withMore({ key: Uint8Array.of(89), value: nothing }), /kind \(89\)/],
  ['a second meta row', withMore({ key: rowKey('meta'), value: nothing }), /kind \(1\)/],
  ['rows of a store', withMore({ key: rowKey('inKeyspace', 'x'), value: nothing }), /kind \(101\)/],
  ['keyspaces of a store', withMore({ key: rowKey('keyspaces'), value: nothing }), /kind \(100\)/],
  [
    'two tokens of one secret',
    withField(ROW.token, 1, secretNumbered(3), 1),
    /the row token \S+ and the row token \S+ have one secret/,
  ],
  [
    'two policies of one name',
    withRow(
      ROW.policy,
      ({ key, value }) => ({ key, value: pack(withName(unpack(value), 'GLOBAL-management')) }),
      1,
    ),
    /the row policy \S+ and the row policy \S+ have one name/,
  ],
  [
    'a namespace that is lost in a way of a newer release',
    withMore({ key: rowKey('retiredNamespace', 'team'), value: pack([2, 1]) }),
    /the row retiredNamespace 7465616d00 does not hold what such a row does/,
  ],
  [
    'a namespace that is lost beyond the index',
    withMore({
      key: rowKey('retiredNamespace', 'team'),
      value: encodeRetiredNamespace({ upTo: 10_000, tokens: 1 }),
    }),
    /the row retiredNamespace 7465616d00 is beyond index/,
  ],
  ['an index without room', withMeta(() => ({ index: Number.MAX_SAFE_INTEGER })), /its index is 9/],
  [
    'one step too far',
    withMeta(() => ({ index: COUNTER_MAX + 1 })),
    /its index is 4503599627370497/,
  ],
  [
    'an index that is no number',
    withMeta(() => ({ index: 'x' as never })),
    /its index is no number/,
  ],
  ['an index below nothing', withMeta(() => ({ index: -1 })), /its index is -1/],
  [
    'an epoch without room',
    withMeta(() => ({ position: { epoch: COUNTER_MAX + 1, seq: 1 } })),
    /its position is 4503599627370497.1/,
  ],
  [
    'a seq without room',
    withMeta(() => ({ position: { epoch: 1, seq: Number.MAX_SAFE_INTEGER } })),
    /its position is 1.9007199254740991/,
  ],
  [
    'a list that changed later than all',
    withMeta(({ tableIndexes, index }) => ({
      tableIndexes: { ...tableIndexes, roles: index + 1 },
    })),
    /it has an index beyond its own/,
  ],
  [
    'a bootstrap of the future',
    withMeta(({ index }) => ({ bootstrapIndex: index + 1 })),
    /it has an index beyond its own/,
  ],
  [
    'a level of a newer release',
    withMeta(() => ({ level: 99 })),
    /a newer release wrote it: its datacenter used feature level 99, and this release reads up to/,
  ],
  ['a level that is none', withMeta(() => ({ level: 1.5 })), /its feature level is 1.5/],
];

function withName(record: Fields, name: string): Fields {
  return record.with(3, (record[3] as Fields).with(1, name));
}

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
      t.match(message, /^nothing was changed: the snapshot is damaged: /, what);
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

t.test('restore: how many tokens a lost namespace has left is counted anew', async (t) => {
  const content = await contentOfServer(await ofEveryKind());
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
});

t.test('restore: an archive of a higher level than the group uses has to wait', async (t) => {
  const source = await ofEveryKind();
  await source.one({ type: 'level.raise', level: 3 });
  const archive = await archiveWith(await contentOfServer(source));
  const group = new Group();
  await group.one(BUILTINS);
  await group.one({ type: 'level.raise', level: 2 });
  const says =
    'nothing was changed: the archive is of feature level 3, and this datacenter uses 2, ' +
    'which rises when all its servers are upgraded';
  await t.rejects(restore(group.archives, archive), { code: 'unavailable', message: says });
  t.equal(group.steps.length, 2, 'nothing was proposed');
  await group.one({ type: 'level.raise', level: 3 });
  await restore(group.archives, archive);
  t.equal(group.leader.machine.totals().tokens, 6);
});

/** What may be found in a place where something else belongs. */
const ODD: readonly Field[] = [
  null,
  true,
  0,
  -1,
  1.5,
  2 ** 53,
  7n,
  '',
  'x',
  policyIdNumbered(9),
  [],
  [[]],
  ['x'],
  new Uint8Array(16),
];

interface Draw {
  readonly row: number;
  readonly how: 'byte' | 'value' | 'field' | 'inner' | 'key' | 'lost' | 'twice' | 'meta';
  readonly place: number;
  readonly odd: Field;
}

const draw: fc.Arbitrary<Draw> = fc.record({
  row: fc.nat(),
  how: fc.constantFrom('byte', 'value', 'field', 'field', 'inner', 'key', 'lost', 'twice', 'meta'),
  place: fc.nat(),
  odd: fc.constantFrom(...ODD),
});

/** A word about the rows that is another one. */
const META_CHANGES: readonly ((meta: Meta, odd: never) => Partial<Meta>)[] = [
  (_, index) => ({ index }),
  (_, epoch) => ({ position: { epoch, seq: 1 } }),
  (_, seq) => ({ position: { epoch: 1, seq } }),
  ({ tableIndexes }, roles) => ({ tableIndexes: { ...tableIndexes, roles } }),
  (_, bootstrapIndex) => ({ bootstrapIndex }),
  (_, level) => ({ level }),
  (_, groupRecord) => ({ groupRecord }),
];

/** One row, or one word about them, as the draw says; sums are true afterwards. */
function changedBy({ row, how, place, odd }: Draw, content: Content): Content {
  const { rows, meta } = content;
  if (how === 'meta') {
    const change = META_CHANGES[place % META_CHANGES.length]!;
    return trueTo({ rows, meta: { ...meta, ...change(meta, odd as never) } });
  }
  const objects = rows.filter(({ key }) => isObjectRow(key[0]!));
  // Rows of objects are few, and matter most.
  const from = row % 2 === 0 ? objects : rows;
  const chosen = from[(row >> 1) % from.length]!;
  const instead = rowsInstead(chosen, { how, place, odd });
  return trueTo({ rows: rows.flatMap((each) => (each === chosen ? instead : [each])), meta });
}

function rowsInstead(row: KvRow, { how, place, odd }: Omit<Draw, 'row'>): readonly KvRow[] {
  const { key, value } = row;
  switch (how) {
    case 'byte':
      return [{ key, value: withByte(value, place) }];
    case 'value':
      return [{ key, value: pack([odd, odd]) }];
    case 'key':
      return [{ key: withByte(key, 1 + (place % Math.max(1, key.length - 1))), value }];
    case 'twice':
      return [row, { key: withByte(key, key.length - 1), value }];
    case 'lost':
      return [];
    default:
      return [{ key, value: withOdd(value, { how, place, odd }) }];
  }
}

function withByte(bytes: Uint8Array, place: number): Uint8Array {
  const changed = Uint8Array.from(bytes);
  if (changed.length > 0) changed[place % changed.length]! ^= 1 << (place % 8);
  return changed;
}

/** Of a record, one of its fields; or one of what is in a field. */
function withOdd(value: Uint8Array, { how, place, odd }: Omit<Draw, 'row'>): Uint8Array {
  const record = fieldsOrNone(value);
  const fields = record?.[3];
  if (record === undefined || !Array.isArray(fields)) return pack([odd]);
  const at = place % fields.length;
  const inner: unknown = fields[at];
  const isDeeper = how === 'inner' && Array.isArray(inner) && inner.length > 0;
  const field = isDeeper ? (inner as Fields).with(0, odd) : odd;
  return pack(record.with(3, (fields as Fields).with(at, field)));
}

/** Throws unless the restored state is one that servers go on with, and the one that the archive says. */
async function requireSound(group: Group, { meta }: Content): Promise<void> {
  const { leader } = group;
  const { fullDigest } = meta;
  requireSame('the digest', leader.machine.digests().all, Buffer.from(fullDigest).toString('hex'));
  requireSame('the totals', leader.machine.totals(), meta.totals);
  for (const each of goingOn()) await group.one(each);
  await namesOf(leader.machine);
  await group.catchUp();
  const plain = await plainStore(leader.machine);
  requireRowsFromNothing(plain.kv, leader.machine);
  const other = await plainStore(group.follower.machine);
  requireSame('the servers', other.kv.dump(), plain.kv.dump());
  const again = new Group();
  await again.one(BUILTINS);
  await restore(again.archives, await archiveWith(await contentOfServer(leader)));
  requireSame('a second restore', again.leader.machine.digests(), leader.machine.digests());
}

/** Each object is met: changed, used or deleted. */
function* goingOn(): Generator<Change> {
  yield BUILTINS;
  for (let number = 0; number <= 6; number += 1) {
    yield { type: 'policy.set', presence: 'update', policy: aPolicy(number) };
    yield { type: 'role.set', presence: 'update', role: aRole(number) };
    yield { type: 'token.set', presence: 'update', token: aToken(number) };
    yield { type: 'token.reap', accessorIds: [accessorNumbered(number)] };
  }
  yield { type: 'auth-method.set', presence: 'either', method: anAuthMethod('login') };
  yield { type: 'token.set', presence: 'create', token: aToken(60) };
  yield { type: 'auth-method.delete', namespace: 'default' as never, name: 'login' };
  for (let number = 1; number <= 6; number += 1) {
    yield { type: 'token.delete', accessorId: accessorNumbered(number) };
    yield { type: 'policy.delete', id: policyIdNumbered(number) };
  }
  yield { type: 'namespace.delete', name: 'team' as never };
}

const SEED = Number(process.env.RESTORE_SEED ?? 20_261_123);
const RUNS = Number(process.env.RESTORE_RUNS ?? 200);

t.test(
  'restore: any change of what an archive says is refused, or a state to go on with',
  async (t) => {
    const again = `RESTORE_SEED=${SEED} RESTORE_RUNS=${RUNS} node dist/test/state/restore-foreign.test.js`;
    t.comment(`seed ${SEED}; again with: ${again}`);
    const content = await contentOfServer(await ofEveryKind());
    const counts = { refused: 0, restored: 0 };
    const run = async (drawn: Draw): Promise<void> => {
      const changed = changedBy(drawn, content);
      const group = new Group();
      await group.one(BUILTINS);
      const before = group.leader.machine.digests();
      const refusal = await restore(group.archives, await archiveWith(changed, content.meta)).then(
        () => undefined,
        (error: AclError) => error,
      );
      if (refusal === undefined) {
        counts.restored += 1;
        await requireSound(group, changed);
        return;
      }
      counts.refused += 1;
      if (refusal.code !== 'malformed') throw refusal;
      requireSame('what was proposed', group.steps.length, 1);
      requireSame('the state', group.leader.machine.digests(), before);
    };
    await fc.assert(fc.asyncProperty(draw, run), { numRuns: RUNS, seed: SEED });
    t.ok(counts.refused > RUNS / 10 && counts.restored > RUNS / 10, JSON.stringify(counts));
    t.comment(`seed ${SEED}; again with: ${again}`);
  },
);

t.test('install: rows that cannot be read never become the state', async (t) => {
  const content = await contentOfServer(await ofEveryKind());
  const ofOther = UNREADABLE.filter(([what]) => !/^two|^a namespace that is lost/.test(what));
  const cases: readonly (readonly [string, Changed, RegExp])[] = [
    ...ofOther,
    ['counts', withValue(ROW.counts, Uint8Array.of(0xc1)), /the row counts .* does not hold/],
    ['an index row', withValue(ROW.tokenBySecret, nothing), /the row tokenBySecret does not hold/],
    ['a list', withValue(ROW.rulesOfMethod, Uint8Array.of(1)), /the row rulesOfMethod .* does not/],
    [
      'the place in the global log',
      withMore({ key: rowKey('replication'), value: Uint8Array.of(0xc1) }),
      /the row replication does not hold/,
    ],
  ];
  for (const [what, change, says] of cases) {
    const receiver = replaceableMachine();
    await receiver.one(BUILTINS);
    const before = receiver.kv.dump();
    const intake = await receiver.machine.beginInstall();
    const takeIn = async (): Promise<void> => {
      for (const chunk of chunksWith(trueTo(change(content)))) await intake.add(chunk);
      await intake.complete();
    };
    await t.rejects(takeIn(), { name: 'SnapshotDamage', message: says }, what);
    await intake.abandon();
    requireSame(what, receiver.kv.dump(), before);
  }
});

t.test('install: a state of a higher level than the program reads is not taken in', async (t) => {
  const content = await contentOfServer(await ofEveryKind());
  const source = chunksWith({ ...content, meta: { ...content.meta, level: 3 } });
  const { generations } = replaceableMachine();
  const receiver = new MachineHarness(new MemoryKv(), { generations, reads: 2 });
  const intake = await receiver.machine.beginInstall();
  await t.rejects(intake.add(source[0]!), { message: /used feature level 3, .* reads up to 2/ });
  await intake.abandon();
});

/** The commands of a restore of these rows, as a leader that looks at nothing would propose them. */
function commandsOf({ rows, meta }: Content): readonly Change[] {
  const packed = packedRows(rows.filter(({ key }) => isRestoredRow(key[0]!)));
  const chain = chained(CHAIN_ORIGIN, packed);
  return [
    { type: 'restore.begin', id: 'a' },
    { type: 'restore.chunk', id: 'a', number: 1, rows: packed },
    { type: 'restore.commit', id: 'a', chunkCount: 1, chain, metaRow: encodeMeta(meta) },
  ];
}

t.test(
  'apply: what cannot be read is refused by all servers, from the level on that says so',
  async (t) => {
    const content = await contentOfServer(await ofEveryKind());
    const broken = trueTo(withValue(ROW.policy, pack([2, 1, 1, []]))(content));
    const endless = withMeta(() => ({ index: Number.MAX_SAFE_INTEGER }))(content);
    const newer = withMeta(() => ({ level: NEWEST_LEVEL + 1 }))(content);
    const uncounted = withValue(ROW.counts, Uint8Array.of(0xc1))(content);
    const cases: readonly (readonly [string, Content, RegExp])[] = [
      ['a policy', broken, /the row policy \S+ has format 2/],
      ['counts', uncounted, /the row counts \S+ does not hold/],
      ['an index', endless, /its index is 9007199254740991/],
      ['a level', newer, /it is of feature level \d+, and 5 is used here/],
    ];
    const prefix = 'unavailable: the restore was refused, and nothing was changed: ';
    for (const [what, said, says] of cases) {
      const server = new MachineHarness(new MemoryKv());
      await server.one(BUILTINS);
      await server.one({ type: 'level.raise', level: 5 });
      const before = server.machine.digests();
      const told: string[] = [];
      for (const change of commandsOf(said)) told.push(await server.tell(change));
      const refusals = told.filter((each) => each !== 'ok');
      t.match(refusals[0], says, what);
      t.ok(refusals[0]?.startsWith(prefix), what);
      t.same(server.machine.digests(), before, what);
      t.equal(await server.tell(BUILTINS), 'ok', `${what}: and the server goes on`);

      const older = new MachineHarness(new MemoryKv());
      await older.one(BUILTINS);
      await older.one({ type: 'level.raise', level: 4 });
      for (const change of commandsOf(said)) {
        t.equal(await older.tell(change), 'ok', `${what}: as releases of before have done`);
      }
    }
  },
);
