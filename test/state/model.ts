// The state in the simplest form that can be right: maps of objects, and a few lines a command. Slow,
// without index rows, digests or batches; what it answers is what the state machine must answer.

import type { AuthMethod } from '../../src/acl/auth-method.ts';
import type { BindingRule } from '../../src/acl/binding-rule.ts';
import type { AclErrorCode } from '../../src/acl/error.ts';
import { ANONYMOUS_ACCESSOR, DEFAULT_NAMESPACE } from '../../src/acl/ids.ts';
import type { Namespace } from '../../src/acl/namespace.ts';
import type { Policy } from '../../src/acl/policy.ts';
import type { Role } from '../../src/acl/role.ts';
import type { Token } from '../../src/acl/token.ts';
import type { Change, Command } from '../../src/state/commands/commands.ts';

type Said = 'ok' | AclErrorCode;
interface Stamped {
  readonly createIndex: number;
  readonly modifyIndex: number;
}

const lower = (text: string): string => text.toLowerCase();
const nameOf = (object: { readonly namespace: string; readonly name: string }): string =>
  `${object.namespace}/${lower(object.name)}`;

export class Model {
  readonly tokens = new Map<string, Token>();
  readonly policies = new Map<string, Policy>();
  readonly roles = new Map<string, Role>();
  readonly methods = new Map<string, AuthMethod>();
  readonly rules = new Map<string, BindingRule>();
  readonly namespaces = new Map<string, Namespace>();
  index = 0;
  seq = 0;

  /** What the command comes to. */
  apply({ change, timeMs, cas }: Command): Said {
    const effects: boolean[] = [];
    const touch = (isLocal = false): void => void effects.push(isLocal);
    const said = this.#change(change, timeMs, cas, touch);
    if (effects.length > 0) this.index += 1;
    if (effects.includes(false)) this.seq += 1;
    return said;
  }

  #change(
    change: Change,
    timeMs: number,
    cas: number | undefined,
    touch: (isLocal?: boolean) => void,
  ): Said {
    const stamp = <T>(object: T, old?: Stamped): T & Stamped => ({
      ...object,
      createIndex: old?.createIndex ?? this.index + 1,
      modifyIndex: this.index + 1,
    });
    const casFails = (old: Stamped | undefined): boolean =>
      cas !== undefined && cas !== (old?.modifyIndex ?? 0);
    switch (change.type) {
      case 'token.set': {
        const { token } = change;
        const old = this.tokens.get(lower(token.accessorId));
        if (change.presence === 'create') {
          if (!this.namespaces.has(token.namespace)) return 'invalid';
          if (lower(token.accessorId) === lower(token.secretId)) return 'duplicate';
          if (this.#isTaken(token.accessorId) || this.#isTaken(token.secretId)) return 'duplicate';
        } else {
          const isThere = old?.namespace === token.namespace && !isExpired(old, timeMs);
          if (!isThere) return 'update-target-missing';
        }
        if (casFails(change.presence === 'create' ? undefined : old)) return 'cas-mismatch';
        if (change.presence === 'update') {
          const same =
            old?.secretId === token.secretId &&
            old.local === token.local &&
            old.expirationTime === token.expirationTime &&
            JSON.stringify(old.authMethod) === JSON.stringify(token.authMethod);
          if (!same) return 'invalid';
        }
        if (this.#isOrphan(token)) return 'invalid';
        const { namespace } = token;
        if (!token.policies.every((id) => this.#reaches(namespace, this.policies.get(id)))) {
          return 'invalid';
        }
        if (!token.roles.every((id) => this.#reaches(namespace, this.roles.get(id)))) {
          return 'invalid';
        }
        this.tokens.set(lower(token.accessorId), stamp(token, old));
        touch(token.local);
        return 'ok';
      }
      case 'token.delete': {
        if (change.accessorId === ANONYMOUS_ACCESSOR) return 'invalid';
        const old = this.tokens.get(lower(change.accessorId));
        if (casFails(old)) return 'cas-mismatch';
        if (old !== undefined) touch(old.local);
        this.tokens.delete(lower(change.accessorId));
        return 'ok';
      }
      case 'token.reap':
        for (const id of change.accessorIds) {
          const old = this.tokens.get(lower(id));
          if (old === undefined || !(isExpired(old, timeMs) || this.#isOrphan(old))) continue;
          touch(old.local);
          this.tokens.delete(lower(id));
        }
        return 'ok';
      case 'policy.set':
        return this.#setNamed(this.policies, change.presence, change.policy, casFails, () => {
          this.policies.set(
            change.policy.id,
            stamp(change.policy, this.policies.get(change.policy.id)),
          );
          touch();
          return 'ok';
        });
      case 'policy.delete': {
        const old = this.policies.get(change.id);
        if (casFails(old)) return 'cas-mismatch';
        if (old !== undefined) touch();
        this.policies.delete(change.id);
        return 'ok';
      }
      case 'role.set':
        return this.#setNamed(this.roles, change.presence, change.role, casFails, () => {
          const { namespace, policies, id } = change.role;
          const reached = policies.every((each) =>
            this.#reaches(namespace, this.policies.get(each)),
          );
          if (!reached) return 'invalid';
          this.roles.set(id, stamp(change.role, this.roles.get(id)));
          touch();
          return 'ok';
        });
      case 'role.delete': {
        const old = this.roles.get(change.id);
        if (casFails(old)) return 'cas-mismatch';
        if (old !== undefined) touch();
        this.roles.delete(change.id);
        return 'ok';
      }
      case 'auth-method.set': {
        const { method } = change;
        if (!this.namespaces.has(method.namespace)) return 'invalid';
        const old = this.methods.get(nameOf(method));
        if (casFails(old)) return 'cas-mismatch';
        if (old !== undefined && old.type !== method.type) return 'invalid';
        this.methods.set(nameOf(method), stamp({ ...method, name: old?.name ?? method.name }, old));
        touch();
        return 'ok';
      }
      case 'auth-method.delete': {
        const old = this.methods.get(nameOf(change));
        if (casFails(old)) return 'cas-mismatch';
        if (old === undefined) return 'ok';
        touch();
        this.methods.delete(nameOf(change));
        for (const rule of [...this.rules.values()]) {
          const isOfIt = nameOf({ ...rule, name: rule.authMethod }) === nameOf(change);
          if (isOfIt) this.rules.delete(rule.id);
        }
        return 'ok';
      }
      case 'binding-rule.set': {
        const { rule, presence } = change;
        const old = this.rules.get(rule.id);
        if (presence === 'create') {
          if (!this.namespaces.has(rule.namespace)) return 'invalid';
          if (old !== undefined) return 'duplicate';
        } else if (old?.namespace !== rule.namespace) return 'update-target-missing';
        if (casFails(old)) return 'cas-mismatch';
        if (old !== undefined && lower(old.authMethod) !== lower(rule.authMethod)) return 'invalid';
        if (!this.methods.has(nameOf({ ...rule, name: rule.authMethod }))) return 'invalid';
        const authMethod = old?.authMethod ?? rule.authMethod;
        this.rules.set(rule.id, stamp({ ...rule, authMethod }, old));
        touch();
        return 'ok';
      }
      case 'binding-rule.delete': {
        const old = this.rules.get(change.id);
        if (casFails(old)) return 'cas-mismatch';
        if (old !== undefined) touch();
        this.rules.delete(change.id);
        return 'ok';
      }
      case 'namespace.set': {
        const { namespace, presence } = change;
        const old = this.namespaces.get(namespace.name);
        if (presence === 'create' && old !== undefined) return 'duplicate';
        if (presence === 'update' && old === undefined) return 'update-target-missing';
        if (casFails(old)) return 'cas-mismatch';
        const reached = namespace.policyDefaults.every((id) =>
          this.#reaches(namespace.name, this.policies.get(id)),
        );
        if (!reached) return 'invalid';
        this.namespaces.set(namespace.name, stamp(namespace, old));
        touch();
        return 'ok';
      }
      case 'namespace.delete': {
        if (change.name === DEFAULT_NAMESPACE) return 'invalid';
        const old = this.namespaces.get(change.name);
        if (casFails(old)) return 'cas-mismatch';
        if (old === undefined) return 'ok';
        const tables = [this.tokens, this.policies, this.roles, this.methods, this.rules];
        const held = tables.flatMap((table) => [...table.values()]);
        if (held.some(({ namespace }) => namespace === change.name)) return 'invalid';
        touch();
        this.namespaces.delete(change.name);
        return 'ok';
      }
      default:
        throw new Error(`the model does not know ${change.type}`);
    }
  }

  #setNamed<T extends Policy | Role>(
    table: ReadonlyMap<string, T>,
    presence: 'create' | 'update',
    object: Omit<T, 'createIndex' | 'modifyIndex'> & Pick<T, 'id' | 'name' | 'namespace'>,
    casFails: (old: Stamped | undefined) => boolean,
    finish: () => Said,
  ): Said {
    const old = table.get(object.id);
    if (presence === 'create') {
      if (!this.namespaces.has(object.namespace)) return 'invalid';
      if (old !== undefined) return 'duplicate';
    } else if (old?.namespace !== object.namespace) return 'update-target-missing';
    if (casFails(old)) return 'cas-mismatch';
    const bearer = [...table.values()].find((each) => nameOf(each) === nameOf(object));
    if (bearer !== undefined && bearer.id !== object.id) return 'duplicate';
    return finish();
  }

  #isTaken(id: string): boolean {
    return [...this.tokens.values()].some(
      ({ accessorId, secretId }) =>
        lower(accessorId) === lower(id) || lower(secretId) === lower(id),
    );
  }

  #isOrphan({ authMethod }: Pick<Token, 'authMethod'>): boolean {
    if (authMethod === undefined) return false;
    return this.methods.get(nameOf(authMethod))?.createIndex !== authMethod.createIndex;
  }

  #reaches(from: string, target: { readonly namespace: string } | undefined): boolean {
    return target !== undefined && [from, DEFAULT_NAMESPACE].includes(target.namespace);
  }
}

function isExpired({ expirationTime }: Pick<Token, 'expirationTime'>, nowMs: number): boolean {
  return expirationTime !== undefined && Date.parse(expirationTime) < nowMs;
}
