// A state with something of every kind, and what somebody who is no server here could have made of it: rows and
// words that cannot be gone on with.

import type { KvRow } from '../../../cluster/platform/kv.ts';
import type { Change } from '../../../src/state/commands/commands.ts';
import { type Field, type Fields, pack, unpack } from '../../../src/state/rows/layout/packing.ts';
import type { Meta } from '../../../src/state/rows/meta.ts';
import { COUNTER_MAX } from '../../../src/state/rows/meta-check.ts';
import { encodeRetiredNamespace } from '../../../src/state/rows/objects/retired-namespace.ts';
import { ROW, rowKey } from '../../../src/state/rows/tables.ts';
import {
  aBindingRule,
  aNamespace,
  anAuthMethod,
  aPolicy,
  aRole,
  aToken,
  policyIdNumbered,
  roleIdNumbered,
  secretNumbered,
} from '../../support/state-and-service/fixtures.ts';
import { BUILTINS, replaceableMachine } from '../../support/state-and-service/machine-harness.ts';
import type { Content } from './crafted-archive.ts';
import type { Server } from './restoring.ts';

export const SECRET_OF_METHOD = 'hunter2';

/** Something of every kind that a restore brings back. */
export async function ofEveryKind(): Promise<Server> {
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

export type Changed = (content: Content) => Content;

export const withMeta =
  (change: (meta: Meta) => Partial<Meta>): Changed =>
  ({ rows, meta }) => ({ rows, meta: { ...meta, ...change(meta) } });

/** The first row of the kind, or the one at that place among them, with another value or key. */
const withRow =
  (kind: number, change: (row: KvRow) => KvRow, place = 0): Changed =>
  ({ rows, meta }) => {
    const chosen = rows.filter(({ key }) => key[0] === kind)[place]!;
    return { rows: rows.map((row) => (row === chosen ? change(row) : row)), meta };
  };

export const withValue = (kind: number, value: Uint8Array): Changed =>
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

export const withMore =
  (...more: readonly KvRow[]): Changed =>
  ({ rows, meta }) => ({ rows: [...rows, ...more], meta });

export const nothing = new Uint8Array();

/** What is refused, changed in rows of which all sums are made true afterwards; and what is said of it. */
export const UNREADABLE: readonly (readonly [string, Changed, RegExp])[] = [
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
    /a newer release wrote the snapshot: its datacenter used feature level 99, and this release reads up to/,
  ],
  ['a level that is none', withMeta(() => ({ level: 1.5 })), /its feature level is 1.5/],
];

function withName(record: Fields, name: string): Fields {
  return record.with(3, (record[3] as Fields).with(1, name));
}
