// Single reads, by id and by name, over anything that gives values for keys: the store, a snapshot of
// it, or a change set with what it has not written yet. Unknown and malformed ids read as undefined.

import type { AuthMethod } from '../../acl/auth-method.ts';
import type { BindingRule } from '../../acl/binding-rule.ts';
import { lookupBytes, type NamespaceName } from '../../acl/ids.ts';
import type { Namespace } from '../../acl/namespace.ts';
import type { Policy } from '../../acl/policy.ts';
import type { Role } from '../../acl/role.ts';
import type { Token } from '../../acl/token.ts';
import { nameKey } from '../../acl/values/names.ts';
import { idsOf } from '../rows/layout/id-list.ts';
import { decodeRecord } from '../rows/layout/record-codec.ts';
import type { Stamped } from '../rows/layout/stamp.ts';
import {
  AUTH_METHODS,
  BINDING_RULES,
  NAMESPACES,
  type ObjectTable,
  POLICIES,
  ROLES,
  secretKey,
  TOKENS,
} from '../rows/objects/objects.ts';
import type { Getter } from '../rows/store/getter.ts';
import { namedKey, type RowKind, rowKey } from '../rows/tables.ts';

export function readToken(rows: Getter, accessorId: string): Token | undefined {
  return readById(rows, TOKENS, 'token', accessorId);
}

export function readTokenBySecret(rows: Getter, secretId: string): Token | undefined {
  const id = rows.get(secretKey(secretId));
  const token = id === undefined ? undefined : readAt(rows, TOKENS, rowKey('token', id));
  return token?.secretId === secretId ? token : undefined;
}

/**
 * Whether the text is an accessor id or a secret of a stored token. Accessor ids are public, so a
 * secret that differs from one in letter case alone counts as well.
 */
export function isIdInUse(rows: Getter, id: string): boolean {
  const bytes = lookupBytes(id);
  if (bytes !== undefined && rows.get(rowKey('token', bytes)) !== undefined) return true;
  if (rows.get(secretKey(id)) !== undefined) return true;
  const lower = id.toLowerCase();
  return lower !== id && rows.get(secretKey(lower)) !== undefined;
}

export function readPolicy(rows: Getter, id: string): Policy | undefined {
  return readById(rows, POLICIES, 'policy', id);
}

export function readPolicyByName(
  rows: Getter,
  namespace: NamespaceName,
  name: string,
): Policy | undefined {
  return readByName(rows, POLICIES, ['policyByName', 'policy'], { namespace, name });
}

export function readRole(rows: Getter, id: string): Role | undefined {
  return readById(rows, ROLES, 'role', id);
}

export function readRoleByName(
  rows: Getter,
  namespace: NamespaceName,
  name: string,
): Role | undefined {
  return readByName(rows, ROLES, ['roleByName', 'role'], { namespace, name });
}

export function readAuthMethod(
  rows: Getter,
  namespace: NamespaceName,
  name: string,
): AuthMethod | undefined {
  return readAt(rows, AUTH_METHODS, namedKey('authMethod', namespace, name));
}

export function readBindingRule(rows: Getter, id: string): BindingRule | undefined {
  return readById(rows, BINDING_RULES, 'bindingRule', id);
}

export function readNamespace(rows: Getter, name: string): Namespace | undefined {
  return readAt(rows, NAMESPACES, rowKey('namespace', name));
}

export function hasNamespace(rows: Getter, name: string): boolean {
  return rows.get(rowKey('namespace', name)) !== undefined;
}

/** The rules of one method, by id; each is read when it is its turn. */
export function* rulesOfMethod(
  rows: Getter,
  namespace: NamespaceName,
  name: string,
): Generator<BindingRule, void> {
  for (const id of ruleIdsOfMethod(rows, namespace, name)) {
    const rule = readAt(rows, BINDING_RULES, rowKey('bindingRule', id));
    if (rule !== undefined) yield rule;
  }
}

export function ruleIdsOfMethod(
  rows: Getter,
  namespace: NamespaceName,
  name: string,
): readonly Uint8Array[] {
  return idsOf(rows.get(namedKey('rulesOfMethod', namespace, name)));
}

/** The object whose row has this key. */
export function readAt<T extends Stamped>(
  rows: Getter,
  table: ObjectTable<T>,
  key: Uint8Array,
): T | undefined {
  const value = rows.get(key);
  return value === undefined ? undefined : decodeRecord(table.codec, value);
}

function readById<T extends Stamped>(
  rows: Getter,
  table: ObjectTable<T>,
  kind: RowKind,
  id: string,
): T | undefined {
  const bytes = lookupBytes(id);
  return bytes === undefined ? undefined : readAt(rows, table, rowKey(kind, bytes));
}

function readByName<T extends Policy | Role>(
  rows: Getter,
  table: ObjectTable<T>,
  [byName, byId]: readonly [RowKind, RowKind],
  wanted: { readonly namespace: NamespaceName; readonly name: string },
): T | undefined {
  const id = rows.get(namedKey(byName, wanted.namespace, wanted.name));
  const object = id === undefined ? undefined : readAt(rows, table, rowKey(byId, id));
  // The two rows were read one after the other: a batch may have come between them.
  return object !== undefined && nameKey(object.name) === nameKey(wanted.name) ? object : undefined;
}
