// Turns the items of an authorization request, which are plain texts, into queries, or refuses them
// with the texts of compatibility.md 4.7.

import { AclError } from '../acl/error.ts';
import type { NamespaceName } from '../acl/ids.ts';
import { excerpt, quoted } from '../rules/source-text.ts';
import type { AccessQuery, Resource } from './access-query.ts';

/** Most questions in one request. */
export const AUTHORIZATIONS_MAX = 64;

export interface AuthorizationItem {
  /** One of the known resources, in lower case. */
  readonly resource: string;
  /** In any letter case. */
  readonly access: string;
  readonly segment: string;
  /** As it was given; undefined where none was. */
  readonly namespace: string | undefined;
}

const READ_WRITE = ['read', 'write'] as const;

/** What may be asked from outside; the other resources and accesses are for the service itself. */
const ACCESSES: ReadonlyMap<string, readonly string[]> = new Map<Resource, readonly string[]>([
  ['acl', READ_WRITE],
  ['agent', READ_WRITE],
  ['event', READ_WRITE],
  ['intention', READ_WRITE],
  ['key', [...READ_WRITE, 'list', 'write-prefix']],
  ['keyring', READ_WRITE],
  ['mesh', READ_WRITE],
  ['node', READ_WRITE],
  ['operator', READ_WRITE],
  ['peering', READ_WRITE],
  ['query', READ_WRITE],
  ['service', READ_WRITE],
  ['session', READ_WRITE],
]);

/** Throws AclError `malformed` where one request has too many items, whatever they are. */
export function requireFewAuthorizations(items: readonly unknown[]): void {
  if (items.length <= AUTHORIZATIONS_MAX) return;
  const text = `Refusing to process more than ${AUTHORIZATIONS_MAX} authorizations at once`;
  throw new AclError('malformed', text);
}

/**
 * All items or none: one bad item refuses the batch. `namespaceOf` says which namespace an item means. Throws
 * AclError `malformed`.
 */
export function parseAuthorizations(
  items: readonly AuthorizationItem[],
  namespaceOf: (given: string | undefined) => NamespaceName,
): readonly AccessQuery[] {
  requireFewAuthorizations(items);
  return items.map((item) => parseAuthorization(item, namespaceOf(item.namespace)));
}

/** Throws AclError `malformed` for a resource or an access that cannot be asked for. */
function parseAuthorization(item: AuthorizationItem, namespace: NamespaceName): AccessQuery {
  const { resource, segment } = item;
  const accesses = ACCESSES.get(resource);
  if (accesses === undefined) {
    throw new AclError('malformed', `Invalid ACL resource requested: ${quoted(resource)}`);
  }
  const access = item.access.toLowerCase();
  if (!accesses.includes(access)) {
    throw new AclError(
      'malformed',
      `Invalid access level for ${resource} resource: ${excerpt(item.access)}`,
    );
  }
  // The table above holds only pairs that AccessQuery has.
  return { resource, access, segment, namespace } as AccessQuery;
}
