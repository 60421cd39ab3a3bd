// The bytes on disk: every record and every command, against bytes that were written once and are kept
// here for ever. A change of layout adds bytes to this list and never edits them: what old releases
// wrote must stay readable.

import t from 'tap';
import { DEFAULT_NAMESPACE } from '../../src/acl/ids.ts';
import type { Instant } from '../../src/acl/values/instant.ts';
import {
  CHANGE_NUMBER,
  decodeCommand,
  encodeCommand,
} from '../../src/state/commands/command-codec.ts';
import type { Change, ChangeOf, Command } from '../../src/state/commands/commands.ts';
import {
  decodeHeader,
  encodeHeader,
  type GlobalSnapshotHeader,
} from '../../src/state/global-log/global-snapshot.ts';
import {
  decodeReplication,
  encodeReplication,
  type Replication,
} from '../../src/state/global-log/replication.ts';
import { Digest, rowHash } from '../../src/state/rows/digest.ts';
import { pack, unpack } from '../../src/state/rows/layout/packing.ts';
import {
  AUTH_METHOD_CODEC,
  BINDING_RULE_CODEC,
  decodeRecord,
  encodeRecord,
  NAMESPACE_CODEC,
  POLICY_CODEC,
  type RecordCodec,
  ROLE_CODEC,
  TOKEN_CODEC,
} from '../../src/state/rows/layout/record-codec.ts';
import { decodeMeta, EMPTY_META, encodeMeta, type Meta } from '../../src/state/rows/meta.ts';
import { decodeRequest, encodeRequest } from '../../src/state/rows/request-row.ts';
import {
  decodeRestore,
  encodeRestore,
  type RestoreProgress,
} from '../../src/state/rows/restore-progress.ts';
import {
  decodeKeyspaces,
  encodeKeyspaces,
  type Keyspaces,
  ONE_KEYSPACE,
  placeOf,
} from '../../src/state/rows/store/keyspaces.ts';
import { afterPrefix, ROW, rowKey, textsInKey } from '../../src/state/rows/tables.ts';
import {
  aBindingRule,
  aCommand,
  accessorNumbered,
  aNamespace,
  anAuthMethod,
  aPolicy,
  aRole,
  aToken,
  policyIdNumbered,
  roleIdNumbered,
  ruleIdNumbered,
} from '../support/state-and-service/fixtures.ts';
import {
  GOLDEN_COMMANDS,
  GOLDEN_DRAWN_CREATE,
  GOLDEN_GLOBAL_HEADER,
  GOLDEN_KEYSPACES,
  GOLDEN_META,
  GOLDEN_RECORDS,
  GOLDEN_REPLICATION,
  GOLDEN_REQUESTS,
  GOLDEN_RESTORE,
  GOLDEN_START_FROM_FORK,
} from './golden-bytes.ts';

const FULL_TOKEN = aToken(1, {
  accessorId: 'ABCDEF01-2222-4333-8444-00000000000A' as never,
  description: 'übermäßig "quoted"\n',
  policies: [policyIdNumbered(1), policyIdNumbered(2)],
  roles: [roleIdNumbered(1)],
  serviceIdentities: [{ serviceName: 'web', datacenters: ['dc1', 'dc2'] }],
  nodeIdentities: [{ nodeName: 'n1', datacenter: 'dc1' }],
  templatedPolicies: [
    {
      templateId: 't3',
      templateName: 'builtin/service',
      variables: { name: 'api' },
      datacenters: [],
    },
    { templateId: 't5', templateName: 'builtin/dns', variables: undefined, datacenters: ['dc1'] },
  ],
  local: true,
  authMethod: { name: 'login', namespace: DEFAULT_NAMESPACE, createIndex: 2 ** 40 },
  expirationTime: '2026-01-01T01:00:00.123456789Z' as Instant,
});
const FULL_METHOD = anAuthMethod('login', {
  displayName: 'Log in',
  maxTokenTtlNs: 2n ** 62n + 1n,
  tokenLocality: 'global',
  config: JSON.parse('{"b":[1,null,true],"a":{"__proto__":"x"},"2":"two"}') as never,
  namespaceRules: [{ selector: 'value.team == "a"', bindNamespace: `\${value.team}` }],
});
const FULL_RULE = aBindingRule(1, {
  selector: 'value.x == "y"',
  bindType: 'templated-policy',
  bindName: 'builtin/service',
  bindVars: { name: `\${value.name}` },
});
const FULL_NAMESPACE = aNamespace('team', {
  policyDefaults: [policyIdNumbered(1)],
  roleDefaults: [roleIdNumbered(1)],
  meta: { owner: 'ops', empty: '' },
});
const FULL_ROLE = aRole(1, {
  policies: [policyIdNumbered(1)],
  serviceIdentities: [{ serviceName: 'web', datacenters: [] }],
  nodeIdentities: [{ nodeName: 'n1', datacenter: 'dc1' }],
  templatedPolicies: FULL_TOKEN.templatedPolicies,
});
const FULL_POLICY = aPolicy(1, { datacenters: ['dc1'], rules: 'node "" { policy = "read" }' });
const INDEXES = { createIndex: 7, modifyIndex: 2 ** 33 };
const MARK = { key: new Uint8Array(32).fill(1), fingerprint: new Uint8Array(32).fill(2) };

interface RecordCase {
  readonly codec: RecordCodec<{ createIndex: number; modifyIndex: number }>;
  readonly object: object;
}

const recordCase = <T extends { readonly createIndex: number; readonly modifyIndex: number }>(
  codec: RecordCodec<T>,
  object: Omit<T, 'createIndex' | 'modifyIndex'>,
): RecordCase => ({ codec: codec as never, object: { ...object, ...INDEXES } });

const RECORDS: Readonly<Record<keyof typeof GOLDEN_RECORDS, RecordCase>> = {
  token: recordCase(TOKEN_CODEC, FULL_TOKEN),
  'plain token': recordCase(TOKEN_CODEC, aToken(1)),
  policy: recordCase(POLICY_CODEC, FULL_POLICY),
  role: recordCase(ROLE_CODEC, FULL_ROLE),
  'auth method': recordCase(AUTH_METHOD_CODEC, FULL_METHOD),
  'binding rule': recordCase(BINDING_RULE_CODEC, FULL_RULE),
  namespace: recordCase(NAMESPACE_CODEC, FULL_NAMESPACE),
};

const CHANGES: { readonly [Type in Change['type']]: ChangeOf<Type> } = {
  'token.set': { type: 'token.set', presence: 'create', token: FULL_TOKEN },
  'token.delete': { type: 'token.delete', accessorId: accessorNumbered(1) },
  'token.reap': { type: 'token.reap', accessorIds: [accessorNumbered(1), accessorNumbered(2)] },
  'policy.set': { type: 'policy.set', presence: 'update', policy: FULL_POLICY },
  'policy.delete': { type: 'policy.delete', id: policyIdNumbered(1) },
  'role.set': { type: 'role.set', presence: 'create', role: FULL_ROLE },
  'role.delete': { type: 'role.delete', id: roleIdNumbered(1) },
  'auth-method.set': { type: 'auth-method.set', presence: 'either', method: FULL_METHOD },
  'auth-method.delete': {
    type: 'auth-method.delete',
    namespace: DEFAULT_NAMESPACE,
    name: 'login',
  },
  'binding-rule.set': { type: 'binding-rule.set', presence: 'create', rule: FULL_RULE },
  'binding-rule.delete': { type: 'binding-rule.delete', id: ruleIdNumbered(1) },
  'namespace.set': { type: 'namespace.set', presence: 'either', namespace: FULL_NAMESPACE },
  'namespace.delete': { type: 'namespace.delete', name: FULL_NAMESPACE.name },
  bootstrap: { type: 'bootstrap', token: aToken(1), resetIndex: 12 },
  'ensure-builtins': {
    type: 'ensure-builtins',
    policies: [aPolicy(1)],
    tokens: [aToken(1)],
    namespace: aNamespace('default'),
  },
  'request-id.trim': { type: 'request-id.trim', keys: [MARK.key] },
  'pending-login.set': {
    type: 'pending-login.set',
    key: 'state',
    value: Uint8Array.of(0, 255),
    expiresMs: 2 ** 41,
  },
  'pending-login.delete': { type: 'pending-login.delete', keys: ['state', ''] },
  'restore.begin': { type: 'restore.begin', id: 'one' },
  'restore.chunk': { type: 'restore.chunk', id: 'one', number: 300, rows: Uint8Array.of(1, 2) },
  'restore.commit': {
    type: 'restore.commit',
    id: 'one',
    chunkCount: 300,
    chain: new Uint8Array(32).fill(3),
    metaRow: Uint8Array.of(4, 5),
  },
  'restore.abandon': { type: 'restore.abandon', id: 'one' },
  'global-log.begin': {
    type: 'global-log.begin',
    datacenter: 'dc2',
    primary: 'dc1',
    isWitness: false,
  },
  'global-log.apply': {
    type: 'global-log.apply',
    epoch: 3,
    from: { epoch: 2, seq: 300, hash: new Uint8Array(32).fill(5) },
    entries: [Uint8Array.of(1), Uint8Array.of(2, 3)],
    to: { epoch: 3, seq: 302, hash: new Uint8Array(32).fill(6) },
  },
  'global-log.trim': { type: 'global-log.trim', upTo: 300 },
  'global-snapshot.begin': {
    type: 'global-snapshot.begin',
    id: 'one',
    header: Uint8Array.of(4, 5),
  },
  'global-snapshot.chunk': {
    type: 'global-snapshot.chunk',
    id: 'one',
    number: 300,
    rows: Uint8Array.of(1, 2),
  },
  'global-snapshot.carry': {
    type: 'global-snapshot.carry',
    id: 'one',
    number: 2,
    keys: [Uint8Array.of(10, 1), Uint8Array.of(70)],
    isLast: true,
  },
  'global-snapshot.commit': { type: 'global-snapshot.commit', id: 'one' },
  'request-id.forget': { type: 'request-id.forget', keys: [MARK.key] },
  'datacenters.set': {
    type: 'datacenters.set',
    datacenters: [
      { name: 'dc1', isVoter: true, isWitness: false },
      { name: 'w', isVoter: true, isWitness: true },
    ],
    majoritySeq: 300,
  },
  'epoch.promise': {
    type: 'epoch.promise',
    epoch: 3,
    candidate: 'dc2',
    at: { epoch: 2, seq: 300 },
  },
  'epoch.start': {
    type: 'epoch.start',
    epoch: 3,
    promises: ['dc2', 'w'],
    isForced: false,
    isFromFork: false,
  },
  'epoch.fence': {
    type: 'epoch.fence',
    epochs: [{ epoch: 3, startSeq: 301, startHash: new Uint8Array(32).fill(5), primary: 'dc2' }],
  },
  'divergent.discard': { type: 'divergent.discard', epoch: 2, upTo: 310 },
  'divergent.drop': { type: 'divergent.drop', epoch: 2, seq: 310 },
  'datacenter.remove': {
    type: 'datacenter.remove',
    name: 'dc2',
    majoritySeq: 300,
    isForced: true,
  },
  'datacenter.allow': { type: 'datacenter.allow', name: 'dc2' },
  'federation.adopt': { type: 'federation.adopt', federationId: 'fed' },
  'level.raise': { type: 'level.raise', level: 3 },
};

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/**
 * Byte strings come back as views of another class, and objects in commands with empty places for
 * their indexes; what they hold is what counts.
 */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return hex(value);
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).filter(
    ([key, each]) => !(['createIndex', 'modifyIndex'].includes(key) && each === 0),
  );
  return Object.fromEntries(fields.map(([key, each]) => [key, plain(each)]));
}

t.test('records: are written as they always were, and read back whole', async (test) => {
  for (const [name, { codec, object }] of Object.entries(RECORDS)) {
    const golden = GOLDEN_RECORDS[name as keyof typeof GOLDEN_RECORDS];
    test.equal(hex(encodeRecord(codec, object as never)), golden, `${name} is written so`);
    const read = decodeRecord(codec, Buffer.from(golden, 'hex'));
    test.strictSame(plain(read), plain(object), `${name} is read so`);
  }
});

t.test('commands: are written as they always were, and read back whole', async (test) => {
  for (const [type, change] of Object.entries(CHANGES)) {
    const isMarked = type === 'token.set';
    const command: Command = aCommand(change, {
      cas: isMarked ? 0 : undefined,
      request: isMarked ? MARK : undefined,
    });
    const golden = GOLDEN_COMMANDS[type as Change['type']];
    test.equal(hex(encodeCommand(command)), golden, `${type} is written so`);
    const read = decodeCommand(Buffer.from(golden, 'hex'));
    test.strictSame(plain(read), plain(command), `${type} is read so`);
  }
  const drawn = aCommand({ type: 'token.set', presence: 'create-drawn', token: aToken(1) });
  test.equal(hex(encodeCommand(drawn)), GOLDEN_DRAWN_CREATE, 'a drawn create is written so');
  const readDrawn = decodeCommand(Buffer.from(GOLDEN_DRAWN_CREATE, 'hex'));
  test.strictSame(plain(readDrawn), plain(drawn), 'a drawn create is read so');
  const fromFork = aCommand({ ...CHANGES['epoch.start'], isFromFork: true } as Change);
  test.equal(hex(encodeCommand(fromFork)), GOLDEN_START_FROM_FORK);
  const readStart = decodeCommand(Buffer.from(GOLDEN_START_FROM_FORK, 'hex'));
  test.strictSame(plain(readStart), plain(fromFork));
  const numbers = Object.values(CHANGE_NUMBER);
  test.equal(new Set(numbers).size, numbers.length, 'no number has two meanings');
});

t.test('commands: what a newer release wrote is not skipped', async (test) => {
  test.throws(() => decodeCommand(Buffer.from('960163cf0000000000000000c0c090', 'hex')), {
    name: 'AssertionError',
  });
  test.throws(() => decodeCommand(Buffer.from('960203cf0000000000000000c0c090', 'hex')), {
    name: 'AssertionError',
  });
  test.throws(() => decodeCommand(Buffer.from('96', 'hex')));
});

t.test('meta: is written as it always was, and read back whole in every format', async (test) => {
  test.same(decodeMeta(encodeMeta(EMPTY_META)), EMPTY_META);
  const meta: Meta = {
    ...EMPTY_META,
    appliedEntry: { index: 2 ** 40, term: 3, hash: Buffer.alloc(32, 7) },
    index: 12,
    position: { epoch: 2, seq: 34 },
    bootstrapIndex: 5,
    globalDigest: Buffer.alloc(32, 1),
    fullDigest: Buffer.alloc(32, 2),
    tableIndexes: { ...EMPTY_META.tableIndexes, 'binding-rules': 9 },
    totals: { ...EMPTY_META.totals, tokens: 3, localTokens: 2, namespaces: 1 },
    groupRecord: Buffer.of(1, 2, 3),
  };
  test.equal(hex(encodeMeta(meta)), GOLDEN_META[2]);
  const read = (golden: string): unknown => plain(decodeMeta(Buffer.from(golden, 'hex')));
  test.strictSame(read(GOLDEN_META[2]), plain(meta));
  const withoutGroup: Meta = { ...meta, groupRecord: undefined };
  test.strictSame(read(GOLDEN_META[1]), plain(withoutGroup), 'format 1 knew of no group');
  const raised: Meta = { ...meta, level: 3 };
  test.equal(hex(encodeMeta(raised)), GOLDEN_META[3], 'a level is there once it was raised');
  test.strictSame(read(GOLDEN_META[3]), plain(raised));
  test.throws(() => decodeMeta(Buffer.from(`9904${GOLDEN_META[1].slice(4)}`, 'hex')), {
    name: 'AssertionError',
  });
});

t.test(
  'restores: their rows are written as they always were, and read back whole',
  async (test) => {
    const progress: RestoreProgress = {
      id: 'one',
      timeMs: 2 ** 41,
      chunkCount: 300,
      rowCount: 70_000,
      chain: new Uint8Array(32).fill(3),
      digest: new Uint8Array(32).fill(4),
      lastKey: Uint8Array.of(10, 1),
    };
    test.equal(hex(encodeRestore(progress)), GOLDEN_RESTORE);
    const read = decodeRestore(Buffer.from(GOLDEN_RESTORE, 'hex'));
    test.strictSame(plain(read), plain(progress));
    const keyspaces: Readonly<Record<keyof typeof GOLDEN_KEYSPACES, Keyspaces>> = {
      restored: { current: 1, staged: undefined, unused: [0, 300] },
      restoring: { current: 0, staged: 1, unused: [] },
    };
    for (const [name, each] of Object.entries(keyspaces)) {
      const golden = GOLDEN_KEYSPACES[name as keyof typeof GOLDEN_KEYSPACES];
      test.equal(hex(encodeKeyspaces(each)), golden);
      test.strictSame(decodeKeyspaces(Buffer.from(golden, 'hex')), each);
    }
    test.strictSame(decodeKeyspaces(undefined), ONE_KEYSPACE);
    const [, ...newer] = unpack(encodeKeyspaces(ONE_KEYSPACE));
    test.throws(() => decodeKeyspaces(pack([2, ...newer])), { name: 'AssertionError' });
    for (const kind of ['meta', 'restore', 'replication', 'keyspaces'] as const) {
      const key = rowKey(kind);
      test.equal(placeOf(keyspaces.restored, key), key, 'in no keyspace');
    }
    test.equal(hex(placeOf(keyspaces.restored, rowKey('policy'))), '650000000114');
  },
);

t.test('keys: order as their parts do, and no text is the beginning of another', async (test) => {
  const texts = [
    '',
    '\0',
    '\0\0',
    '\0a',
    '\x01',
    '\x01\x01',
    '\x01\x02',
    'a',
    'a\0',
    'a\0b',
    'ab',
    'b',
    'é',
  ];
  const keys = texts.map((text) => rowKey('roleByName', text, 'x'));
  const sorted = [...keys].sort(Buffer.compare);
  test.same(sorted.map(hex), keys.map(hex));
  for (const [place, key] of keys.entries()) {
    test.same(textsInKey(key, 2), [texts[place], 'x']);
    const prefix = rowKey('roleByName', texts[place]!);
    const inRange = keys.filter(
      (each) => Buffer.compare(each, prefix) >= 0 && Buffer.compare(each, afterPrefix(prefix)) < 0,
    );
    test.same(inRange.map(hex), [hex(key)]);
  }
  test.ok(Buffer.compare(rowKey('tokenByExpiry', 255), rowKey('tokenByExpiry', 2 ** 40)) < 0);
  test.same(afterPrefix(Uint8Array.of(1, 255, 255)), Uint8Array.of(2));
  const numbers = Object.values(ROW);
  test.equal(new Set(numbers).size, numbers.length, 'no number has two meanings');
});

t.test('keys: texts and bytes of any length are in them whole', async (test) => {
  // Each is far longer than what any key before it took.
  let length = 300;
  for (const letter of ['a', '€']) {
    length *= 7;
    const text = letter.repeat(length);
    const key = rowKey('tokenByService', text, 7);
    test.equal(key.length, 1 + Buffer.byteLength(text) + 1 + 8);
    test.ok(textsInKey(key, 1)[0] === text);
    length *= 7;
    const bytes = new Uint8Array(length).fill(1);
    test.same(rowKey('token', bytes), Buffer.concat([Uint8Array.of(ROW.token), bytes]));
  }
});

t.test('digests: are the numbers that they always were', async (test) => {
  const digest = new Digest();
  for (const kind of [1, 2, 3]) digest.add(hashOfRow(kind, `row ${kind}`));
  digest.subtract(hashOfRow(9, 'none'));
  const known = 'b5808eff61be2e2397955fdfe1ee95d871a8e2496912d1d3ebc4b3e1e0d8c1ac';
  test.equal(digest.hex(), known);
  test.equal(Buffer.from(digest.bytes()).toString('hex'), known);
  test.equal(new Digest(digest.bytes()).hex(), known);
});

function hashOfRow(kind: number, text: string): Uint8Array {
  return rowHash(Buffer.from([kind]), Buffer.from(text));
}

t.test('remembered deletions are read as ever, and tell a local token where they do', (test) => {
  for (const [name, golden] of Object.entries(GOLDEN_REQUESTS)) {
    const outcome = {
      kind: 'applied',
      answer: {
        type: 'deleted',
        existed: true,
        ...(name === 'local' && ({ isLocal: true } as const)),
      },
      index: 12,
      position: { epoch: 2, seq: 34 },
      replayed: true,
    } as const;
    const request = {
      fingerprint: new Uint8Array(32).fill(7),
      timeMs: Date.parse('2026-01-01T00:00:00Z'),
      outcome,
    };
    test.equal(hex(encodeRequest(request)), golden, `${name} is written so`);
    const read = decodeRequest(Buffer.from(golden, 'hex'));
    test.strictSame(plain(read), plain(request), `${name} is read so`);
  }
  test.end();
});

t.test(
  'the state of replication, and what a snapshot of it says, are read as ever',
  async (test) => {
    const hash = (byte: number): Uint8Array => new Uint8Array(32).fill(byte);
    const bytesOf = (golden: string): Uint8Array => Buffer.from(golden, 'hex');
    const epochs = [
      { epoch: 1, startSeq: 1, startHash: hash(5), primary: 'dc1' },
      { epoch: 3, startSeq: 301, startHash: hash(6), primary: 'dc2' },
    ];
    const datacenters = [
      { name: 'dc1', isVoter: true, isWitness: false },
      { name: 'w', isVoter: true, isWitness: true },
    ];
    const removed = { name: 'old', isVoter: false, isWitness: false, isRemoved: true } as const;
    const shared = { cursor: { epoch: 3, seq: 310, hash: hash(7) }, epochs, datacentersSeq: 200 };
    const replication: Replication = {
      ...shared,
      datacenter: 'dc1',
      federationId: 'fed',
      isWitness: false,
      maxEpochPromised: 4,
      votedFor: 'dc2',
      datacenters: [datacenters[0]!, removed, datacenters[1]!],
      first: 290,
      keptBytes: 4096,
      divergent: [{ epoch: 2, first: 301, last: 302 }],
      unused: [{ epoch: 1, first: 1, last: 9 }],
      isDiverged: true,
      gone: [{ epoch: 2, first: 301, last: 300 + 2 ** 20 }],
    };
    const old = { federationId: '', datacenters };
    const [dc1, , w] = replication.datacenters;
    const named = { datacenters: [{ ...dc1!, clusterId: 'one' }, removed, w!] };
    // While nothing says of clusters, an older release can go on with it.
    test.equal(hex(encodeReplication(replication)), GOLDEN_REPLICATION[3]);
    test.equal(hex(encodeReplication({ ...replication, ...named })), GOLDEN_REPLICATION[4]);
    for (const [golden, less] of [
      [GOLDEN_REPLICATION[4], named],
      [GOLDEN_REPLICATION[3], {}],
      [GOLDEN_REPLICATION[2], { gone: [] }],
      [GOLDEN_REPLICATION[1], { ...old, gone: [] }],
    ] as const) {
      const read = decodeReplication(bytesOf(golden));
      test.strictSame(plain(read), plain({ ...replication, ...less }));
    }
    const header: GlobalSnapshotHeader = {
      ...shared,
      federationId: 'fed',
      datacenters: replication.datacenters,
      index: 400,
      bootstrapIndex: 4,
      digest: hash(8),
    };
    test.equal(hex(encodeHeader(header)), GOLDEN_GLOBAL_HEADER[2]);
    test.strictSame(plain(decodeHeader(bytesOf(GOLDEN_GLOBAL_HEADER[2]))), plain(header));
    test.equal(hex(encodeHeader({ ...header, ...named })), GOLDEN_GLOBAL_HEADER[3]);
    const readNamed = decodeHeader(bytesOf(GOLDEN_GLOBAL_HEADER[3]));
    test.strictSame(plain(readNamed), plain({ ...header, ...named }));
    const readHeader = decodeHeader(bytesOf(GOLDEN_GLOBAL_HEADER[1]));
    test.strictSame(plain(readHeader), plain({ ...header, ...old }));
    // The format is behind the length of the list.
    const newer = (golden: string, at: number): Uint8Array =>
      bytesOf(`${golden.slice(0, at)}05${golden.slice(at + 2)}`);
    test.throws(() => decodeReplication(newer(GOLDEN_REPLICATION[4], 6)), /format/);
    test.throws(() => decodeHeader(newer(GOLDEN_GLOBAL_HEADER[3], 2)), /format/);
  },
);
