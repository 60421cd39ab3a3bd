// The operations on namespaces themselves, for operators and for whoever has rules for that namespace.
// While namespaces are off there are none to speak of but `default`, and these operations are refused.

import type { NamespaceDraft } from '../../acl/checks/drafts.ts';
import type { Links } from '../../acl/checks/links.ts';
import {
  buildNamespace,
  requireDeletableNamespace,
  wantedName,
} from '../../acl/checks/namespace-checks.ts';
import { AclError } from '../../acl/error.ts';
import type { Namespace } from '../../acl/namespace.ts';
import { objectMissing } from '../../acl/refusals.ts';
import { watchKey } from '../../state/watch.ts';
import { dependencyOf } from '../dependencies.ts';
import type { OperationInput, OperationOutput } from '../operations.ts';
import { readMetaOf, readResultOf } from '../reading.ts';
import { NO_LINKS, requireMayAdd } from '../rights/lent-rights.ts';
import { mayNamespace, permissionDenied, requireNamespace } from '../rights/permissions.ts';
import type { Request, Service } from '../service.ts';
import type { NamespaceView, WriteResult } from '../views.ts';
import { commit, nothingDeleted } from '../writes/commit.ts';
import { namespaceNames } from './list-scope.ts';
import { listed } from './listing.ts';
import { namespaceViewOf } from './make-views.ts';
import { tokenLinksOf } from './resolve-links.ts';

export function createNamespace(
  service: Service,
  { draft }: OperationInput<'namespace.create'>,
  request: Request,
): Promise<OperationOutput<'namespace.create'>> {
  return writeNamespace(service, { draft, pathName: undefined, presence: 'create' }, request);
}

/** An upsert: the path names what shall exist. */
export function updateNamespace(
  service: Service,
  { name, draft }: OperationInput<'namespace.update'>,
  request: Request,
): Promise<OperationOutput<'namespace.update'>> {
  return writeNamespace(service, { draft, pathName: name, presence: 'either' }, request);
}

async function writeNamespace(
  service: Service,
  wanted: {
    readonly draft: NamespaceDraft;
    readonly pathName: string | undefined;
    readonly presence: 'create' | 'either';
  },
  request: Request,
): Promise<WriteResult<NamespaceView>> {
  requireEnabled(service);
  const { draft, pathName, presence } = wanted;
  const caller = service.callers.resolve(request.call.secret);
  requireNamespace(caller, 'write', wantedName(draft, pathName));
  const namespace = buildNamespace(draft, {
    pathName,
    resolveLinks: (name) => {
      const links = { policies: draft.policyDefaults, roles: draft.roleDefaults };
      return tokenLinksOf(service.view, links, name);
    },
  });
  const existing = service.view.namespace(namespace.name);
  const before = existing === undefined ? NO_LINKS : defaultsOf(existing);
  const key = dependencyOf('namespaces', namespace.name);
  const links = { after: defaultsOf(namespace), before, key };
  const checkedAgainst = requireMayAdd(service.view, caller, links);
  const change = { type: 'namespace.set', presence, namespace } as const;
  const result = await commit(service, { ...request, checkedAgainst }, change, 'namespace');
  service.metrics.count('acl.namespace.upsert');
  return result;
}

function defaultsOf(namespace: Pick<Namespace, 'policyDefaults' | 'roleDefaults'>): Links {
  return { policies: namespace.policyDefaults, roles: namespace.roleDefaults };
}

export async function readNamespace(
  service: Service,
  { name }: OperationInput<'namespace.read'>,
  { call }: Request,
): Promise<OperationOutput<'namespace.read'>> {
  requireEnabled(service);
  const meta = readMetaOf(service, 'namespaces', watchKey({ called: name }));
  const caller = service.callers.resolve(call.secret);
  requireNamespace(caller, 'read', name);
  const namespace = service.view.namespace(name);
  const shown = namespace && namespaceViewOf(namespace, service.names);
  return readResultOf(meta, shown, () => objectMissing('namespace', undefined));
}

export async function deleteNamespace(
  service: Service,
  { name }: OperationInput<'namespace.delete'>,
  request: Request,
): Promise<OperationOutput<'namespace.delete'>> {
  requireEnabled(service);
  const caller = service.callers.resolve(request.call.secret);
  requireNamespace(caller, 'write', name);
  requireDeletableNamespace(name);
  const namespace = service.view.namespace(name);
  if (namespace === undefined) return nothingDeleted(service);
  const change = { type: 'namespace.delete', name: namespace.name } as const;
  const result = await commit(service, request, change, 'deleted');
  service.metrics.count('acl.namespace.delete');
  return result;
}

/** Shows the namespaces that the caller may read; refused when there is none. */
export async function listNamespaces(
  service: Service,
  { page }: OperationInput<'namespace.list'>,
  { call }: Request,
): Promise<OperationOutput<'namespace.list'>> {
  requireEnabled(service);
  const meta = readMetaOf(service, 'namespaces');
  // Nothing is read for a stranger, and what counts behind the reading is what the caller may do then.
  service.callers.resolve(call.secret);
  const all = await namespaceNames(service.view);
  const caller = service.callers.resolve(call.secret);
  const readable = new Set<string>(all.filter((name) => mayNamespace(caller, 'read', name)));
  if (readable.size === 0) throw permissionDenied(caller, 'operator:read');
  const { names } = service;
  return listed({
    page,
    meta,
    fetch: (rest) => service.view.namespaces(rest),
    keyOf: (namespace) => namespace.name,
    keeps: (namespace) => readable.has(namespace.name),
    show: (namespace) => namespaceViewOf(namespace, names),
  });
}

function requireEnabled({ settings }: Service): void {
  if (!settings.namespacesEnabled) throw new AclError('malformed', 'Namespaces are not enabled');
}
