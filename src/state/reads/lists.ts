// Lists of the state, in slices of bounded size, as of the moment of the call. A list of one namespace
// goes through that namespace's own index rows; a list of all namespaces goes through the objects, or
// merges the index rows of each namespace where only those have the order that the list promises.

import { unreachable } from '../../../cluster/base/unreachable.ts';
import type { Kv, KvRange, KvReader } from '../../../cluster/platform/kv.ts';
import type { AuthMethod } from '../../acl/auth-method.ts';
import type { BindingRule } from '../../acl/binding-rule.ts';
import { invalid } from '../../acl/error.ts';
import { lookupBytes, type NamespaceName, type PolicyId } from '../../acl/ids.ts';
import type { Namespace } from '../../acl/namespace.ts';
import type { NamespaceScope } from '../../acl/namespace-selection.ts';
import type { Policy } from '../../acl/policy.ts';
import type { Role } from '../../acl/role.ts';
import type { Token } from '../../acl/token.ts';
import { nameKey } from '../../acl/values/names.ts';
import { idsOf } from '../rows/layout/id-list.ts';
import type { Stamped } from '../rows/layout/stamp.ts';
import {
  AUTH_METHODS,
  BINDING_RULES,
  methodKey,
  NAMESPACES,
  namedObjectKey,
  type ObjectTable,
  POLICIES,
  ROLES,
  TOKENS,
} from '../rows/objects/objects.ts';
import {
  behind,
  idAtEnd,
  namedKey,
  type RowKind,
  rangeOf,
  rowKey,
  textsInKey,
} from '../rows/tables.ts';
import type { Page, TokenFilter } from '../view.ts';
import { mergedIds } from './merged-ids.ts';
import { filtered, joined, keysOf, nothing, objectsIn, once } from './object-slices.ts';
import { readAuthMethod } from './reads.ts';

/** What lists are made from. */
type Listed = Pick<Kv, 'get' | 'rows' | 'snapshot'>;

/**
 * Where an object stands in its list: give it as `after` to go on behind it. (Of roles that are listed
 * by a policy, the place is the id.)
 */
export function pageKeyOf(
  object:
    | Pick<Token, 'accessorId'>
    | { readonly id: string }
    | { readonly namespace: NamespaceName; readonly name: string }
    | Pick<Namespace, 'name'>,
): string {
  if ('accessorId' in object) return object.accessorId;
  if (!('name' in object)) return object.id;
  // A policy and a role have an id too, but their lists go by name.
  return 'namespace' in object ? namedObjectKey(object) : object.name;
}

/** The tokens of a namespace that has nearly all there are: from their own rows in turn, and no index. */
export function listTokensOfMost(
  kv: Listed,
  namespace: NamespaceName,
  page: Page,
): AsyncIterable<readonly Token[]> {
  const range = rangeBehind(rowKey('token'), afterIdOf(page));
  const tokens = objectsIn(kv, TOKENS, { ...range, sliceRows: page.sliceRows });
  const isOwn = (token: Token): boolean => token.namespace === namespace;
  return filtered(tokens, isOwn, page.limit);
}

export function listTokens(
  kv: Listed,
  scope: NamespaceScope,
  filter: TokenFilter | undefined,
  page: Page,
): AsyncIterable<readonly Token[]> {
  const afterId = afterIdOf(page);
  if (filter === undefined)
    return listById(kv, TOKENS, { byNamespace: 'tokenByNamespace', scope, page });
  const prefixOf = tokenFilterPrefix(kv, filter);
  if (prefixOf === undefined) return nothing();
  return listMerged(kv, TOKENS, { scope, prefixOf, afterId, page });
}

/** The prefix of the filter's index rows in a namespace; undefined when nothing can match. */
function tokenFilterPrefix(
  reader: KvReader,
  filter: TokenFilter,
): ((namespace: string) => Uint8Array) | undefined {
  switch (filter.by) {
    case 'policy':
    case 'role': {
      const id = lookupBytes(filter.id);
      const kind = filter.by === 'policy' ? 'tokenByPolicy' : 'tokenByRole';
      return id === undefined ? undefined : (namespace) => rowKey(kind, namespace, id);
    }
    case 'service-name':
      return (namespace) => rowKey('tokenByService', namespace, nameKey(filter.name));
    case 'auth-method': {
      const method = readAuthMethod(reader, filter.namespace, filter.name);
      if (method === undefined) return undefined;
      return (namespace) => methodKey('tokenByMethod', method, namespace);
    }
    default:
      return unreachable(filter);
  }
}

export function listPolicies(
  kv: Listed,
  scope: NamespaceScope,
  page: Page,
): AsyncIterable<readonly Policy[]> {
  return listByName(kv, POLICIES, { kinds: ['policyByName', 'policy'], scope, page });
}

export function listRoles(
  kv: Listed,
  scope: NamespaceScope,
  policyId: PolicyId | undefined,
  page: Page,
): AsyncIterable<readonly Role[]> {
  if (policyId === undefined) {
    return listByName(kv, ROLES, { kinds: ['roleByName', 'role'], scope, page });
  }
  const id = lookupBytes(policyId);
  if (id === undefined) return nothing();
  const prefixOf = (namespace: string): Uint8Array => rowKey('roleByPolicy', namespace, id);
  return listMerged(kv, ROLES, { scope, prefixOf, afterId: afterIdOf(page), page });
}

export function listAuthMethods(
  kv: Listed,
  scope: NamespaceScope,
  page: Page,
): AsyncIterable<readonly AuthMethod[]> {
  const range = namedRange('authMethod', scope, page.after);
  return objectsIn(kv, AUTH_METHODS, limited(range, page));
}

export function listBindingRules(
  kv: Listed,
  scope: NamespaceScope,
  authMethod: string | undefined,
  page: Page,
): AsyncIterable<readonly BindingRule[]> {
  if (authMethod === undefined)
    return listById(kv, BINDING_RULES, { byNamespace: 'ruleByNamespace', scope, page });
  const afterId = afterIdOf(page);
  if (scope.kind === 'one') {
    const ids = idsOf(kv.get(namedKey('rulesOfMethod', scope.name, authMethod)));
    const wanted = ids.filter((id) => afterId === undefined || Buffer.compare(id, afterId) > 0);
    const keys = wanted.slice(0, page.limit).map((id) => rowKey('bindingRule', id));
    return joined(kv.snapshot(), BINDING_RULES, () => once(keys));
  }
  const range = rangeBehind(rowKey('bindingRule'), afterId);
  const isWanted = (rule: BindingRule): boolean => nameKey(rule.authMethod) === nameKey(authMethod);
  return filtered(objectsIn(kv, BINDING_RULES, range), isWanted, page.limit);
}

export function listNamespaces(kv: Listed, page: Page): AsyncIterable<readonly Namespace[]> {
  const whole = rangeOf(rowKey('namespace'));
  const { after } = page;
  if (after?.includes('/')) throw noSuchPage(after);
  const range =
    after === undefined ? whole : { ...whole, from: behind(rowKey('namespace', after)) };
  return objectsIn(kv, NAMESPACES, limited(range, page));
}

/** By id: all objects of a table, or those that a namespace's index rows point at. */
function listById<T extends Stamped>(
  kv: Listed,
  table: ObjectTable<T>,
  {
    byNamespace,
    scope,
    page,
  }: {
    readonly byNamespace: 'tokenByNamespace' | 'ruleByNamespace';
    readonly scope: NamespaceScope;
    readonly page: Page;
  },
): AsyncIterable<readonly T[]> {
  const primary = table.name === 'tokens' ? 'token' : 'bindingRule';
  const prefix = scope.kind === 'all' ? rowKey(primary) : rowKey(byNamespace, scope.name);
  const range = rangeBehind(prefix, afterIdOf(page));
  if (scope.kind === 'all') return objectsIn(kv, table, limited(range, page));
  return joined(kv.snapshot(), table, (snapshot) =>
    keysOf(snapshot.rows(limited(range, page)), ({ key }) => rowKey(primary, idAtEnd(key))),
  );
}

/** By namespace and lower-cased name. */
function listByName<T extends Stamped>(
  kv: Listed,
  table: ObjectTable<T>,
  {
    kinds: [byName, primary],
    scope,
    page,
  }: {
    /** The index rows by name, and the rows that they point at. */
    readonly kinds: readonly [RowKind, RowKind];
    readonly scope: NamespaceScope;
    readonly page: Page;
  },
): AsyncIterable<readonly T[]> {
  const range = limited(namedRange(byName, scope, page.after), page);
  return joined(kv.snapshot(), table, (snapshot) =>
    keysOf(snapshot.rows(range), ({ value }) => rowKey(primary, value)),
  );
}

interface MergedList {
  readonly scope: NamespaceScope;
  prefixOf(namespace: string): Uint8Array;
  readonly afterId: Uint8Array | undefined;
  readonly page: Page;
}

/** By id, from index rows that are ordered by id in each namespace only. */
function listMerged<T extends Stamped>(
  kv: Listed,
  table: ObjectTable<T>,
  { scope, prefixOf, afterId, page }: MergedList,
): AsyncIterable<readonly T[]> {
  const primary = table.name === 'tokens' ? 'token' : 'role';
  const rangeIn = (namespace: string): KvRange => ({
    ...rangeBehind(prefixOf(namespace), afterId),
    sliceRows: page.sliceRows,
  });
  return joined(kv.snapshot(), table, async function* (snapshot) {
    const namespaces = scope.kind === 'one' ? [scope.name] : await namespaceNames(snapshot);
    const ids = mergedIds(snapshot, namespaces.map(rangeIn), page);
    for await (const slice of ids) yield slice.map((id) => rowKey(primary, id));
  });
}

async function namespaceNames(reader: KvReader): Promise<readonly string[]> {
  const names: string[] = [];
  for await (const rows of reader.rows(rangeOf(rowKey('namespace')))) {
    for (const { key } of rows) names.push(...textsInKey(key, 1));
  }
  return names;
}

interface Range {
  readonly from: Uint8Array;
  readonly to: Uint8Array;
}

/** Keys of names in a scope, behind a page key: `namespace/name`. Without a `/` it is of a list of another kind. */
function namedRange(kind: RowKind, scope: NamespaceScope, after: string | undefined): Range {
  const prefix = scope.kind === 'all' ? rowKey(kind) : rowKey(kind, scope.name);
  if (after === undefined) return rangeOf(prefix);
  const slash = after.indexOf('/');
  const namespace = after.slice(0, Math.max(slash, 0)) as NamespaceName;
  // A place in another namespace would begin the list there.
  const isElsewhere = scope.kind === 'one' && namespace !== scope.name;
  if (slash < 0 || isElsewhere) throw noSuchPage(after);
  const key = namedKey(kind, namespace, after.slice(slash + 1));
  return { from: behind(key), to: rangeOf(prefix).to };
}

function afterIdOf({ after }: Page): Uint8Array | undefined {
  if (after === undefined) return undefined;
  const id = lookupBytes(after);
  if (id === undefined) throw noSuchPage(after);
  return id;
}

function noSuchPage(after: string): Error {
  return invalid(`Invalid next: "${after}" is no place in this list`);
}

/** The rows of ids with the prefix: all of them, or those behind one. */
function rangeBehind(prefix: Uint8Array, afterId: Uint8Array | undefined): Range {
  const whole = rangeOf(prefix);
  if (afterId === undefined) return whole;
  return { ...whole, from: behind(Buffer.concat([prefix, afterId])) };
}

function limited(range: Range, { limit, sliceRows }: Page): KvRange {
  return limit === undefined ? { ...range, sliceRows } : { ...range, sliceRows, limit };
}
