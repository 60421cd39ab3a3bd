// An entry that was left behind on a fork, as a change that the primary can make anew. It goes through the
// same checks as any other change; what is there already is only put over at the ModifyIndex that the
// operator has looked at.

import { unreachable } from '../../../cluster/base/unreachable.ts';
import { sha256 } from '../../../cluster/platform/sha256.ts';
import { AclError, invalid } from '../../acl/error.ts';
import type { AccessorId, BindingRuleId, NamespaceName, PolicyId, RoleId } from '../../acl/ids.ts';
import type { Change, RequestMark } from '../../state/commands/commands.ts';
import { type EntryObject, objectsOf } from '../../state/global-log/entry-objects.ts';
import { encodeEntry, type GlobalEntry } from '../../state/global-log/global-entry.ts';
import { isVoid } from '../../state/reads/standing.ts';
import type { Stamped } from '../../state/rows/layout/stamp.ts';
import type { StateView } from '../../state/view.ts';

/** So many tokens a refusal names. */
const NAMED_MAX = 10;

/** Throws 'invalid' for an entry that no single change makes. */
export function changeOfEntry(entry: GlobalEntry): Change {
  const objects = objectsOf(entry);
  const main = mainOf(objects);
  if (main !== undefined) return main.object === undefined ? deletion(main) : setting(main);
  const areTokens = objects.every(({ kind, object }) => kind === 'token' && object === undefined);
  if (objects.length > 0 && areTokens) {
    return { type: 'token.reap', accessorIds: objects.map(({ id }) => id as AccessorId) };
  }
  const what =
    objects.length === 0
      ? `changed no object (${entry.body.kind})`
      : 'changed many objects at once';
  throw invalid(`Entry ${entry.epoch}.${entry.seq} cannot be made again: it ${what}. Discard it`);
}

/** The object that the entry was about: what else it deleted went with that one. */
function mainOf(objects: readonly EntryObject[]): EntryObject | undefined {
  if (objects.length === 1) return objects[0];
  const methods = objects.filter(({ kind }) => kind === 'auth-method');
  const areDeleted = objects.every(({ object }) => object === undefined);
  return methods.length === 1 && areDeleted ? methods[0] : undefined;
}

/**
 * The ModifyIndex that the change is made at, 0 for an object that is not there; undefined for tokens that
 * are looked at one by one. Nothing is put over what has another one, whatever was known when it was proposed.
 */
export function casOfChange(change: Change, cas: number | undefined): number | undefined {
  return change.type === 'token.reap' ? undefined : (cas ?? 0);
}

/**
 * Throws 'cas-mismatch' when the object is there and `cas` does not name it as it is; and where it was there before
 * the entry, and somebody has deleted it since, unless `cas` says that it is not there.
 */
export function requireLookedAt(
  view: StateView,
  { entry, change, cas }: { entry: GlobalEntry; change: Change; cas: number | undefined },
): void {
  if (change.type === 'token.reap') return;
  const found = presentObject(view, change);
  if (found !== undefined && found.modifyIndex !== cas) {
    const text = `the object is there with ModifyIndex ${found.modifyIndex}: look at it, and name that index with cas to put the entry over it`;
    throw new AclError('cas-mismatch', text);
  }
  if (found !== undefined || cas !== undefined || !('presence' in change)) return;
  // All others are never made by a change of what was there.
  if (change.presence !== 'either' || isMadeBy(mainOf(objectsOf(entry))?.object)) return;
  const text =
    'the object was changed by the entry, and has been deleted since: name cas=0 to make it anew';
  throw new AclError('cas-mismatch', text);
}

/**
 * Throws 'invalid' for an entry that deleted tokens because they were void there, where some of them are not here: to
 * make it again would delete none of these, and whoever did it took them for revoked.
 */
export function requireVoidTokens(
  view: StateView,
  { epoch, seq }: Pick<GlobalEntry, 'epoch' | 'seq'>,
  change: Change,
  nowMs: number,
): void {
  if (change.type !== 'token.reap') return;
  const living = change.accessorIds.filter((id) => {
    const token = view.token(id);
    return token !== undefined && !isVoid(token, view, nowMs);
  });
  if (living.length === 0) return;
  const named = living.slice(0, NAMED_MAX).join(', ');
  const all = living.length > NAMED_MAX ? `${named} and ${living.length - NAMED_MAX} more` : named;
  throw invalid(
    `Entry ${epoch}.${seq} cannot be made again: it deleted tokens whose time was over, or whose auth method was ` +
      `gone, and that is not so here of ${all}. Delete those that shall be gone, then discard it`,
  );
}

/** So that making it twice changes nothing; a repeat by the client that asked first is the same request. */
export function markOfEntry(entry: GlobalEntry): RequestMark {
  if (entry.request !== undefined) {
    const { key, fingerprint } = entry.request;
    return { key, fingerprint };
  }
  const hash = sha256(encodeEntry(entry));
  return { key: hash, fingerprint: hash };
}

function setting({ kind, object }: EntryObject): Change {
  const made = object as Stamped;
  const { createIndex: _created, modifyIndex: _modified, ...unstamped } = made;
  const presence = isMadeBy(made) ? 'create' : 'update';
  switch (kind) {
    case 'token':
      return { type: 'token.set', presence, token: unstamped as never };
    case 'policy':
      return { type: 'policy.set', presence, policy: unstamped as never };
    case 'role':
      return { type: 'role.set', presence, role: unstamped as never };
    case 'auth-method':
      return { type: 'auth-method.set', presence: 'either', method: unstamped as never };
    case 'binding-rule':
      return { type: 'binding-rule.set', presence, rule: unstamped as never };
    case 'namespace':
      return { type: 'namespace.set', presence: 'either', namespace: unstamped as never };
    default:
      return unreachable(kind);
  }
}

function deletion({ kind, id, namespace }: EntryObject): Change {
  switch (kind) {
    case 'token':
      return { type: 'token.delete', accessorId: id as AccessorId };
    case 'policy':
      return { type: 'policy.delete', id: id as PolicyId };
    case 'role':
      return { type: 'role.delete', id: id as RoleId };
    case 'auth-method':
      return { type: 'auth-method.delete', namespace: namespace as NamespaceName, name: id };
    case 'binding-rule':
      return { type: 'binding-rule.delete', id: id as BindingRuleId };
    case 'namespace':
      return { type: 'namespace.delete', name: id as NamespaceName };
    default:
      return unreachable(kind);
  }
}

/** Whether it was not there before the change that has left it so. */
function isMadeBy(object: Stamped | undefined): boolean {
  return object?.createIndex === object?.modifyIndex;
}

function presentObject(view: StateView, change: Change): Stamped | undefined {
  switch (change.type) {
    case 'token.set':
      return change.presence === 'update' ? view.token(change.token.accessorId) : undefined;
    case 'token.delete':
      return view.token(change.accessorId);
    case 'policy.set':
      return change.presence === 'update' ? view.policy(change.policy.id) : undefined;
    case 'policy.delete':
      return view.policy(change.id);
    case 'role.set':
      return change.presence === 'update' ? view.role(change.role.id) : undefined;
    case 'role.delete':
      return view.role(change.id);
    case 'auth-method.set':
      return view.authMethod(change.method.namespace, change.method.name);
    case 'auth-method.delete':
      return view.authMethod(change.namespace, change.name);
    case 'binding-rule.set':
      return change.presence === 'update' ? view.bindingRule(change.rule.id) : undefined;
    case 'binding-rule.delete':
      return view.bindingRule(change.id);
    case 'namespace.set':
      return view.namespace(change.namespace.name);
    case 'namespace.delete':
      return view.namespace(change.name);
    default:
      return undefined;
  }
}
