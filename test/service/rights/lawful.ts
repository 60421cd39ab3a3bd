// Whether a change was allowed at its place in the log: by the state right before it, worked out anew, without
// anything that the service keeps, and without what it looked at when it let the change in.

import type { Links } from '../../../src/acl/checks/links.ts';
import type { NamespaceName } from '../../../src/acl/ids.ts';
import type { Unstamped } from '../../../src/acl/stamped.ts';
import type { Token } from '../../../src/acl/token.ts';
import type { ServiceDeps } from '../../../src/service/deps.ts';
import { CallerResolver } from '../../../src/service/rights/caller-resolver.ts';
import { mayAcl, mayNamespace } from '../../../src/service/rights/permissions.ts';
import { decodeCommand } from '../../../src/state/commands/command-codec.ts';
import type { Command } from '../../../src/state/commands/commands.ts';
import type { Harness } from '../harness.ts';

/** What took effect, and what its caller lacked for it. */
export interface Judged {
  readonly effects: Map<string, number>;
  readonly unlawful: string[];
}

/** From now on each change of the harness is looked at in the moment in which it is applied. */
export function judge({ machine, deps }: Harness): Judged {
  const judged: Judged = { effects: new Map(), unlawful: [] };
  const { effects, unlawful } = judged;
  const apply = machine.apply.bind(machine);
  const looked: typeof apply = async (entries) => {
    const command = decodeCommand(entries[0]!.payload);
    const { type } = command.change;
    const lacks = lacking(deps, command);
    const outcomes = await apply(entries);
    const [outcome] = outcomes;
    if (outcome?.kind === 'applied' && !outcome.replayed) {
      effects.set(type, (effects.get(type) ?? 0) + 1);
      if (lacks.length > 0) unlawful.push(`${type}: ${lacks.join(', ')}`);
    }
    return outcomes;
  };
  Object.assign(machine, { apply: looked });
  return judged;
}

const NO_LINKS: Links = { policies: [], roles: [] };

/** What it would have to be refused for. */
function lacking(deps: ServiceDeps, { change, principal }: Command): readonly string[] {
  const { view } = deps;
  const callers = new CallerResolver(deps);
  const token = principal && view.token(principal);
  // Nobody may do what is asked without a token here.
  const isDead = token === undefined || callers.isVoid(token);
  const caller = isDead ? undefined : callers.holderOf(token);
  const over = ({ namespace }: { readonly namespace: NamespaceName }): readonly string[] =>
    caller !== undefined && mayAcl(caller, 'write', namespace) ? [] : [`acl:write in ${namespace}`];
  const named = (name: string): readonly string[] =>
    caller !== undefined && mayNamespace(caller, 'write', name) ? [] : [`namespace:write ${name}`];
  const lent = (after: Links, before: Links): readonly string[] => [
    ...after.policies
      .filter((id) => !before.policies.includes(id))
      .flatMap((id) => over(view.policy(id) ?? { namespace: 'nowhere' as NamespaceName })),
    ...after.roles
      .filter((id) => !before.roles.includes(id))
      .flatMap((id) => over(view.role(id) ?? { namespace: 'nowhere' as NamespaceName })),
  ];
  switch (change.type) {
    case 'token.set': {
      const existing = view.token(change.token.accessorId);
      if (existing !== undefined) return [...over(existing), ...lent(change.token, existing)];
      if (change.token.authMethod !== undefined) return unbound(deps, change.token);
      return [...over(change.token), ...lent(change.token, NO_LINKS)];
    }
    case 'token.delete': {
      const existing = view.token(change.accessorId);
      const isLogout = existing?.authMethod !== undefined && principal === existing.accessorId;
      return existing === undefined || isLogout ? [] : over(existing);
    }
    case 'policy.set':
      return over(view.policy(change.policy.id) ?? change.policy);
    case 'role.set': {
      const existing = view.role(change.role.id);
      const links = { ...NO_LINKS, policies: change.role.policies };
      const before = { ...NO_LINKS, policies: existing?.policies ?? [] };
      return [...over(existing ?? change.role), ...lent(links, before)];
    }
    case 'binding-rule.set':
      return over(view.bindingRule(change.rule.id) ?? change.rule);
    case 'auth-method.set':
      return over(change.method);
    case 'auth-method.delete':
      return over(change);
    case 'namespace.set': {
      const { policyDefaults: policies, roleDefaults: roles, name } = change.namespace;
      const existing = view.namespace(name);
      const before = existing && {
        policies: existing.policyDefaults,
        roles: existing.roleDefaults,
      };
      return [...named(name), ...lent({ policies, roles }, before ?? NO_LINKS)];
    }
    case 'policy.delete':
    case 'role.delete':
    case 'binding-rule.delete': {
      const existing =
        change.type === 'policy.delete'
          ? view.policy(change.id)
          : change.type === 'role.delete'
            ? view.role(change.id)
            : view.bindingRule(change.id);
      return existing === undefined ? [] : over(existing);
    }
    default:
      return [];
  }
}

/** What the binding rules of its method do not give to the token of a login. */
function unbound({ view }: ServiceDeps, { authMethod, policies, roles }: Unstamped<Token>) {
  const { namespace, name, createIndex } = authMethod!;
  if (view.authMethod(namespace, name)?.createIndex !== createIndex) return [`method ${name}`];
  const rules = [...view.bindingRulesOf(namespace, name)];
  const isBound = (type: string, bindName: string | undefined): boolean =>
    rules.some((rule) => rule.bindType === type && rule.bindName === bindName);
  return [
    ...policies.filter((id) => !isBound('policy', view.policy(id)?.name)),
    ...roles.filter((id) => !isBound('role', view.role(id)?.name)),
  ].map((id) => `rule for ${id}`);
}
