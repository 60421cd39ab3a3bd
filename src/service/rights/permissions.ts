// Asks a caller's rights, and refuses in the words that deployed clients know. Who the caller is was
// found out before; what the rights are made of is not known here.

import { AclError } from '../../acl/error.ts';
import { ANONYMOUS_ACCESSOR, DEFAULT_NAMESPACE, type NamespaceName } from '../../acl/ids.ts';
import type { Caller } from './caller.ts';

export type Permission = 'acl:read' | 'acl:write' | 'operator:read' | 'operator:write';
type AclAccess = 'read' | 'write';

export function mayAcl(caller: Caller, access: AclAccess, namespace: NamespaceName): boolean {
  const query = { resource: 'acl', access, segment: '', namespace } as const;
  return caller.authorizer.decide(query) === 'allow';
}

/** Whether the caller may read or write the namespace object, by its own rules or as an operator. */
export function mayNamespace(caller: Caller, access: AclAccess, name: string): boolean {
  const query = {
    resource: 'namespace',
    access,
    segment: name,
    namespace: DEFAULT_NAMESPACE,
  } as const;
  return caller.authorizer.decide(query) === 'allow';
}

/** Whether the caller is an operator, who needs no rule for any single namespace. */
function mayOperate(caller: Caller, access: AclAccess): boolean {
  const query = {
    resource: 'operator',
    access,
    segment: '',
    namespace: DEFAULT_NAMESPACE,
  } as const;
  return caller.authorizer.decide(query) === 'allow';
}

/**
 * Throws 'permission-denied' unless the caller has the right over ACL objects of the namespace. Of a token that is
 * asked about by its id that is where it lives: whoever lacks the right at home, too, is told nothing of that.
 */
export function requireAcl(caller: Caller, access: AclAccess, namespace: NamespaceName): void {
  if (mayAcl(caller, access, namespace)) return;
  const home = caller.token.namespace;
  const decidedIn = mayAcl(caller, access, home) ? namespace : home;
  throw permissionDenied(caller, `acl:${access}`, { decidedIn });
}

/** Throws 'permission-denied' unless the caller has the right over the namespace object. */
export function requireNamespace(caller: Caller, access: AclAccess, name: string): void {
  if (mayNamespace(caller, access, name)) return;
  throw permissionDenied(caller, `namespace:${access}`, { name });
}

/** The caller, who may change what operators look after. Throws 'permission-denied'. */
export function requireOperator(caller: Caller): Caller {
  if (mayOperate(caller, 'write')) return caller;
  throw permissionDenied(caller, 'operator:write');
}

/** What a right is asked for. */
interface Denied {
  /** Of the thing, where it has one. */
  readonly name?: string;
  /** The namespace whose rules were asked, where rights differ by namespace. */
  readonly decidedIn?: NamespaceName;
}

/**
 * The refusal for a caller who lacks `permission`. Whoever asks why asks in the namespace of the token: where the
 * rules of another one were asked, the text says so. Which one that is may be nothing that the caller may know.
 */
export function permissionDenied(
  { token }: { readonly token: { readonly accessorId: string; readonly namespace: string } },
  permission: string,
  { name, decidedIn }: Denied = {},
): AclError {
  const isAnonymous = token.accessorId === ANONYMOUS_ACCESSOR;
  const who = isAnonymous ? 'anonymous token' : `token with AccessorID '${token.accessorId}'`;
  const isElsewhere = decidedIn !== undefined && decidedIn !== token.namespace;
  const where = isElsewhere ? ` outside its namespace "${token.namespace}"` : '';
  const what = `'${permission}'${name === undefined ? '' : ` on "${name}"`}${where}`;
  const hint = isAnonymous
    ? '. The anonymous token is used implicitly when a request does not specify a token.'
    : '';
  return new AclError(
    'permission-denied',
    `Permission denied: ${who} lacks permission ${what}${hint}`,
  );
}
