// What links of tokens and roles lead to, as a group of commands sees it. Many tokens of a group link to the
// same few policies: each row is unpacked once, and again when the group changes it.

import { lookupBytes, type NamespaceName } from '../../../acl/ids.ts';
import type { Policy } from '../../../acl/policy.ts';
import type { Role } from '../../../acl/role.ts';
import { decodeRecord } from '../layout/record-codec.ts';
import type { Getter } from '../store/getter.ts';
import { rowKey } from '../tables.ts';
import { type ObjectTable, POLICIES } from './objects.ts';

export class LinkTargets {
  readonly #rows: Getter;
  /** By the very bytes of the row: rows that are changed get others. */
  readonly #namespaceByValue = new Map<Uint8Array, NamespaceName>();

  /** `rows` gives the same bytes for a row until it is changed. */
  constructor(rows: Getter) {
    this.#rows = rows;
  }

  /** Of the policy or role with that id; undefined where there is none. */
  namespaceOf<T extends Policy | Role>(
    table: ObjectTable<T>,
    id: string,
  ): NamespaceName | undefined {
    const bytes = lookupBytes(id);
    if (bytes === undefined) return undefined;
    const kind = table.name === POLICIES.name ? 'policy' : 'role';
    const value = this.#rows.get(rowKey(kind, bytes));
    if (value === undefined) return undefined;
    const known = this.#namespaceByValue.get(value);
    if (known !== undefined) return known;
    const { namespace } = decodeRecord(table.codec, value);
    this.#namespaceByValue.set(value, namespace);
    return namespace;
  }
}
