// What operations on objects of a namespace have in common: who asks, whose rights count, and what there is. Policies,
// roles and binding rules have an id that is unique in all namespaces; policies, roles and auth methods have a name in
// theirs.

import { type NamespaceName, requireLookupUuid } from '../../acl/ids.ts';
import { objectMissing } from '../../acl/refusals.ts';
import type { StateView } from '../../state/view.ts';
import { watchKey } from '../../state/watch.ts';
import { readMetaOf, readResultOf } from '../reading.ts';
import type { Caller } from '../rights/caller.ts';
import { requireAcl } from '../rights/permissions.ts';
import {
  addressed,
  type NamespaceField,
  namedNamespace,
  namespaceOf,
  requireNamespaceExists,
  requireNotElsewhere,
} from '../rights/select-namespace.ts';
import type { Request, Service } from '../service.ts';
import type { ReadResult } from '../views.ts';

interface InNamespace {
  readonly namespace: NamespaceName;
}

export interface KindById<T extends InNamespace> {
  readonly noun: 'policy' | 'role' | 'binding rule';
  readonly table: 'policies' | 'roles' | 'binding-rules';
  readonly find: (view: StateView, id: string) => T | undefined;
}

export interface KindByName<T> {
  readonly noun: 'policy' | 'role' | 'auth method';
  readonly table: 'policies' | 'roles' | 'auth-methods';
  readonly named: (view: StateView, namespace: NamespaceName, name: string) => T | undefined;
}

export interface Placed {
  readonly caller: Caller;
  readonly namespace: NamespaceName;
}

/** Where a new object comes, for somebody who may make it there. Throws the refusal. */
export function placeOfNew(service: Service, request: Request, body: NamespaceField): Placed {
  const caller = service.callers.resolve(request.call.secret);
  const namespace = namespaceOf(service, request, caller, body).name;
  requireAcl(caller, 'write', namespace);
  requireNamespaceExists(service.view, namespace);
  return { caller, namespace };
}

/** Rejects with the refusal of whoever may not read in the namespace. */
export async function readById<T extends InNamespace, View>(
  service: Service,
  { noun, table, find }: KindById<T>,
  id: string,
  { call, show }: Pick<Request, 'call'> & { readonly show: (object: T) => View },
): Promise<ReadResult<View>> {
  const meta = readMetaOf(service, table, watchKey({ id }));
  const caller = service.callers.resolve(call.secret);
  const found = find(service.view, id);
  const { namespace, object } = addressed(service, { call }, caller, { found });
  requireAcl(caller, 'read', namespace.name);
  requireLookupUuid(noun, id);
  const shown = object && show(object);
  return readResultOf(meta, shown, () => objectMissing(noun, namedNamespace(namespace)));
}

/** Rejects with the refusal of whoever may not read in the namespace. */
export async function readByName<T, View>(
  service: Service,
  { noun, table, named }: KindByName<T>,
  name: string,
  { call, show }: Pick<Request, 'call'> & { readonly show: (object: T) => View },
): Promise<ReadResult<View>> {
  const caller = service.callers.resolve(call.secret);
  const namespace = namespaceOf(service, { call }, caller);
  requireAcl(caller, 'read', namespace.name);
  const meta = readMetaOf(service, table, watchKey({ namespace: namespace.name, name }));
  const object = named(service.view, namespace.name, name);
  const shown = object && show(object);
  return readResultOf(meta, shown, () => objectMissing(noun, namedNamespace(namespace)));
}

/** What is to be updated, undefined where there is none, for somebody who may write there. Throws the refusal. */
export function toUpdate<T extends InNamespace>(
  service: Service,
  { find }: KindById<T>,
  id: string,
  { request, body }: { readonly request: Request; readonly body: NamespaceField },
): Placed & { readonly existing: T | undefined } {
  const caller = service.callers.resolve(request.call.secret);
  const found = find(service.view, id);
  const { namespace, object } = addressed(service, request, caller, { found, body });
  requireAcl(caller, 'write', namespace.name);
  return { caller, namespace: namespace.name, existing: object };
}

/** What is to be deleted, undefined where there is none, for somebody who may write there. Throws the refusal. */
export function toDelete<T extends InNamespace>(
  service: Service,
  { noun, find }: KindById<T>,
  id: string,
  request: Request,
): T | undefined {
  const caller = service.callers.resolve(request.call.secret);
  const found = find(service.view, id);
  const { namespace, object, elsewhere } = addressed(service, request, caller, { found });
  requireAcl(caller, 'write', namespace.name);
  requireLookupUuid(noun, id);
  if (object === undefined) requireNotElsewhere(caller, namespace, noun, elsewhere);
  return object;
}
