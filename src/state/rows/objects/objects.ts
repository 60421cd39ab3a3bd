// The tables of objects: for each, the key of an object's row, its codec, and every index row that
// follows from it. Index rows are a function of the object alone; the change set compares those of
// the old and the new object, so that no command ever writes an index row by hand.

import { must } from '../../../../cluster/base/assert.ts';
import { sha256 } from '../../../../cluster/platform/sha256.ts';
import type { AuthMethod } from '../../../acl/auth-method.ts';
import type { BindingRule } from '../../../acl/binding-rule.ts';
import { isUuid, lookupBytes, type NamespaceName, uuidOfBytes } from '../../../acl/ids.ts';
import type { Namespace } from '../../../acl/namespace.ts';
import type { Policy } from '../../../acl/policy.ts';
import type { Role } from '../../../acl/role.ts';
import type { AuthMethodOrigin, Token } from '../../../acl/token.ts';
import { instantMs } from '../../../acl/values/instant.ts';
import { nameKey } from '../../../acl/values/names.ts';
import type { ObjectCounts, TableName } from '../../view.ts';
import {
  AUTH_METHOD_CODEC,
  BINDING_RULE_CODEC,
  NAMESPACE_CODEC,
  POLICY_CODEC,
  type RecordCodec,
  ROLE_CODEC,
  TOKEN_CODEC,
} from '../layout/record-codec.ts';
import type { Stamped } from '../layout/stamp.ts';
import { type KeyPart, NO_BYTES, namedKey, ROW, type RowKind, rowKey } from '../tables.ts';

export interface IndexRow {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
}

export interface ObjectTable<T extends Stamped> {
  readonly name: TableName;
  readonly codec: RecordCodec<T>;
  keyOf(object: T): Uint8Array;
  indexRowsOf(object: T): readonly IndexRow[];
  /** True: its datacenter alone has it, and no other ever hears of it. */
  isLocal(object: T): boolean;
  /** What it counts as in its namespace; undefined for namespaces, which are in none. */
  readonly countedAs: keyof ObjectCounts | undefined;
  /** Its namespace; of a namespace, its own name. */
  namespaceOf(object: T): NamespaceName;
  /** Key of a row that counts objects like this one beside the namespace's own count. */
  counterKeyOf(object: T): Uint8Array | undefined;
  /** Key of a row that holds the ids of objects like this one: for those that are read at once. */
  listKeyOf(object: T): Uint8Array | undefined;
  /** What it is addressed by, one text an address; the first one is the identity that never changes. */
  watchKeysOf(object: T): readonly string[];
}

export const TOKENS: ObjectTable<Token> = {
  name: 'tokens',
  codec: TOKEN_CODEC,
  keyOf: (token) => rowKey('token', idBytes(token.accessorId)),
  indexRowsOf: tokenIndexRows,
  isLocal: (token) => token.local,
  countedAs: 'tokens',
  namespaceOf: (token) => token.namespace,
  counterKeyOf: ({ authMethod }) =>
    authMethod === undefined ? undefined : methodKey('methodTokens', authMethod),
  listKeyOf: () => undefined,
  watchKeysOf: (token) => [idKey(token.accessorId)],
};

export const POLICIES: ObjectTable<Policy> = {
  name: 'policies',
  codec: POLICY_CODEC,
  keyOf: (policy) => rowKey('policy', idBytes(policy.id)),
  indexRowsOf: ({ id, namespace, name }) => [
    { key: namedKey('policyByName', namespace, name), value: idBytes(id) },
  ],
  isLocal: () => false,
  countedAs: 'policies',
  namespaceOf: (policy) => policy.namespace,
  counterKeyOf: () => undefined,
  listKeyOf: () => undefined,
  watchKeysOf: (policy) => [idKey(policy.id), namedObjectKey(policy)],
};

export const ROLES: ObjectTable<Role> = {
  name: 'roles',
  codec: ROLE_CODEC,
  keyOf: (role) => rowKey('role', idBytes(role.id)),
  indexRowsOf: roleIndexRows,
  isLocal: () => false,
  countedAs: 'roles',
  namespaceOf: (role) => role.namespace,
  counterKeyOf: () => undefined,
  listKeyOf: () => undefined,
  watchKeysOf: (role) => [idKey(role.id), namedObjectKey(role)],
};

export const AUTH_METHODS: ObjectTable<AuthMethod> = {
  name: 'auth-methods',
  codec: AUTH_METHOD_CODEC,
  keyOf: ({ namespace, name }) => namedKey('authMethod', namespace, name),
  indexRowsOf: () => [],
  isLocal: () => false,
  countedAs: 'authMethods',
  namespaceOf: (method) => method.namespace,
  counterKeyOf: () => undefined,
  listKeyOf: () => undefined,
  watchKeysOf: (method) => [namedObjectKey(method)],
};

export const BINDING_RULES: ObjectTable<BindingRule> = {
  name: 'binding-rules',
  codec: BINDING_RULE_CODEC,
  keyOf: (rule) => rowKey('bindingRule', idBytes(rule.id)),
  indexRowsOf: ({ id, namespace }) => [
    { key: rowKey('ruleByNamespace', namespace, idBytes(id)), value: NO_BYTES },
  ],
  isLocal: () => false,
  countedAs: 'bindingRules',
  namespaceOf: (rule) => rule.namespace,
  counterKeyOf: () => undefined,
  listKeyOf: ({ namespace, authMethod }) => namedKey('rulesOfMethod', namespace, authMethod),
  watchKeysOf: (rule) => [idKey(rule.id)],
};

export const NAMESPACES: ObjectTable<Namespace> = {
  name: 'namespaces',
  codec: NAMESPACE_CODEC,
  keyOf: ({ name }) => rowKey('namespace', name),
  indexRowsOf: () => [],
  isLocal: () => false,
  countedAs: undefined,
  namespaceOf: (namespace) => namespace.name,
  counterKeyOf: () => undefined,
  listKeyOf: () => undefined,
  watchKeysOf: (namespace) => [namespace.name],
};

const TABLE_BY_KIND: ReadonlyMap<number, ObjectTable<Stamped>> = new Map(
  [
    [ROW.token, TOKENS],
    [ROW.policy, POLICIES],
    [ROW.role, ROLES],
    [ROW.authMethod, AUTH_METHODS],
    [ROW.bindingRule, BINDING_RULES],
    [ROW.namespace, NAMESPACES],
  ].map(([kind, table]) => [kind as number, table as unknown as ObjectTable<Stamped>]),
);

/** The table of the objects whose rows have keys that begin with this byte. */
export function tableOfRow(kind: number): ObjectTable<Stamped> {
  return must(TABLE_BY_KIND.get(kind), 'the kind of an object');
}

/** The 16 bytes of an id that is stored: it passed `isUuid` before it came here. */
export function idBytes(id: string): Uint8Array {
  return must(lookupBytes(id), 'a UUID');
}

let lastSecret: { readonly secretId: string; readonly hash: Uint8Array } = {
  secretId: '',
  hash: NO_BYTES,
};

/** The key of the row that leads from a secret to its token. The secret itself is in no key. */
export function secretKey(secretId: string): Uint8Array {
  // Making a token asks twice in a row: whether the secret is free, and where to put it.
  if (lastSecret.secretId !== secretId || secretId === '') {
    lastSecret = { secretId, hash: sha256(Buffer.from(secretId, 'utf8')) };
  }
  return rowKey('tokenBySecret', lastSecret.hash);
}

/** Keys of what belongs to one method: a later method of the same name is another one. */
export function methodKey(
  kind: 'tokenByMethod' | 'methodTokens' | 'retiredMethod',
  origin: AuthMethodOrigin,
  ...rest: readonly KeyPart[]
): Uint8Array {
  return namedKey(kind, origin.namespace, origin.name, origin.createIndex, ...rest);
}

/** How an object is watched by its id, wherever a caller put the hyphens; of a text that is no id, the text. */
export function idKey(id: string): string {
  return storedIdKey(id) ?? id.toLowerCase();
}

/** As `idKey`; undefined where no stored id can equal the text. */
export function storedIdKey(id: string): string | undefined {
  if (isUuid(id)) return id.toLowerCase();
  const bytes = lookupBytes(id);
  return bytes === undefined ? undefined : uuidOfBytes(bytes);
}

/** How an object is watched by its name: no id and no namespace has a slash. */
export function namedObjectKey(object: {
  readonly namespace: NamespaceName;
  readonly name: string;
}): string {
  return `${object.namespace}/${nameKey(object.name)}`;
}

function tokenIndexRows(token: Token): readonly IndexRow[] {
  const { namespace, authMethod, expirationTime } = token;
  const id = idBytes(token.accessorId);
  const rows: IndexRow[] = [
    { key: secretKey(token.secretId), value: id },
    pointer('tokenByNamespace', namespace, id),
  ];
  for (const policyId of token.policies) {
    rows.push(pointer('tokenByPolicy', namespace, idBytes(policyId), id));
  }
  for (const roleId of token.roles) {
    rows.push(pointer('tokenByRole', namespace, idBytes(roleId), id));
  }
  for (const name of serviceNamesOf(token)) {
    rows.push(pointer('tokenByService', namespace, name, id));
  }
  if (authMethod !== undefined) {
    const key = methodKey('tokenByMethod', authMethod, namespace, id);
    rows.push({ key, value: NO_BYTES });
  }
  if (expirationTime !== undefined) {
    rows.push(pointer('tokenByExpiry', Math.max(0, instantMs(expirationTime)), id));
  }
  return rows;
}

/** Lower-cased, each once: of service identities, and of `builtin/service` templated policies. */
function serviceNamesOf(token: Token): ReadonlySet<string> {
  const names = new Set<string>();
  for (const { serviceName } of token.serviceIdentities) names.add(nameKey(serviceName));
  for (const { templateName, variables } of token.templatedPolicies) {
    if (templateName === 'builtin/service') names.add(nameKey(variables?.name ?? ''));
  }
  return names;
}

function roleIndexRows(role: Role): readonly IndexRow[] {
  const { namespace } = role;
  const id = idBytes(role.id);
  const rows: IndexRow[] = [{ key: namedKey('roleByName', namespace, role.name), value: id }];
  for (const policyId of role.policies) {
    rows.push(pointer('roleByPolicy', namespace, idBytes(policyId), id));
  }
  return rows;
}

/** An index row that says all in its key. */
function pointer(kind: RowKind, ...parts: readonly KeyPart[]): IndexRow {
  return { key: rowKey(kind, ...parts), value: NO_BYTES };
}
