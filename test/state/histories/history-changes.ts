// What the steps of a history that all share are: as commands, and as what is there behind them.

import type { Change } from '../../../src/state/commands/commands.ts';
import {
  aNamespace,
  aNamespaceName,
  policyIdNumbered,
  roleIdNumbered,
  ruleIdNumbered,
} from '../../support/state-and-service/fixtures.ts';
import {
  linkIds,
  METHOD_OF_RULE,
  methodNamed,
  NO_LINKS,
  POLICIES,
  policyNumbered,
  ROLES,
  roleNumbered,
  ruleNumbered,
  SPACE_OF,
} from './history-objects.ts';
import type { Step } from './history-steps.ts';
import { including, requireWithin, type Shared, within, without } from './shared-history.ts';

export interface SharedStep {
  readonly change: Change;
  /** What all share when it took effect. */
  after(shared: Shared): Shared;
}

/** What a step is for whoever writes what all share, as that is there; with a mark of its own. */
export function sharedStep(shared: Shared, mark: string, step: Step): SharedStep {
  switch (step.kind) {
    case 'space':
      return {
        change: {
          type: 'namespace.set',
          presence: 'create',
          namespace: aNamespace(step.space, { description: mark }),
        },
        after: ({ spaces, ...rest }) => ({
          ...rest,
          spaces: including(spaces, step.space, { mark, defaults: NO_LINKS }),
        }),
      };
    case 'no space':
      return {
        change: { type: 'namespace.delete', name: aNamespaceName(step.space) },
        after: (shared) => {
          requireEmpty(shared, step.space);
          return { ...shared, spaces: without(shared.spaces, step.space) };
        },
      };
    case 'defaults':
      return defaultsStep(shared, step);
    case 'method':
    case 'no method':
      return methodStep(mark, step);
    case 'policy':
    case 'no policy':
      return policyStep(step);
    case 'rule':
    case 'no rule':
      return ruleStep(step);
    case 'role':
    case 'no role':
      return roleStep(shared, step);
    default:
      throw new Error(`${step.kind} is not shared`);
  }
}

function defaultsStep(
  before: Shared,
  step: Extract<Step, { readonly kind: 'defaults' }>,
): SharedStep {
  const { space } = step;
  const defaults = within(before, space, { ...NO_LINKS, ...step.defaults });
  const { policies: policyDefaults, roles: roleDefaults } = linkIds(defaults);
  const description = before.spaces.get(space)?.mark ?? '';
  const namespace = aNamespace(space, { description, policyDefaults, roleDefaults });
  return {
    change: { type: 'namespace.set', presence: 'update', namespace },
    after: ({ spaces, ...rest }) => {
      const known = spaces.get(space);
      if (known === undefined) throw new Error(`${space} was changed, and is not there`);
      return { ...rest, spaces: including(spaces, space, { ...known, defaults }) };
    },
  };
}

function requireEmpty(shared: Shared, space: string): void {
  const { tokens, policies, roles, methods } = shared;
  const isIn = (each: { readonly space: string } | undefined): boolean => each?.space === space;
  const isEmpty =
    ![...tokens.values()].some(isIn) &&
    ![...policies.keys()].some((each) => isIn(POLICIES[each])) &&
    ![...roles.keys()].some((each) => isIn(ROLES[each])) &&
    ![...methods.keys()].some((each) => SPACE_OF[each] === space);
  if (!isEmpty) throw new Error(`${space} was deleted with something in it`);
}

function methodStep(
  mark: string,
  step: Extract<Step, { readonly kind: 'method' | 'no method' }>,
): SharedStep {
  const { name } = step;
  if (step.kind === 'no method') {
    const ofIt = Object.keys(METHOD_OF_RULE)
      .map(Number)
      .filter((each) => METHOD_OF_RULE[each] === name);
    return {
      change: { type: 'auth-method.delete', namespace: aNamespaceName(SPACE_OF[name]), name },
      after: ({ methods, rules, ...rest }) => ({
        ...rest,
        methods: without(methods, name),
        rules: without(rules, ...ofIt),
      }),
    };
  }
  const { says } = step;
  const method = methodNamed(name, says, mark);
  return {
    change: { type: 'auth-method.set', presence: 'either', method },
    // One that is changed stays the one that it is.
    after: ({ methods, ...rest }) => ({
      ...rest,
      methods: including(methods, name, { mark: methods.get(name)?.mark ?? mark, ...says }),
    }),
  };
}

function ruleStep(step: Extract<Step, { readonly kind: 'rule' | 'no rule' }>): SharedStep {
  const { number } = step;
  if (step.kind === 'no rule') {
    return {
      change: { type: 'binding-rule.delete', id: ruleIdNumbered(number) },
      after: ({ rules, ...rest }) => ({ ...rest, rules: without(rules, number) }),
    };
  }
  const { presence, says } = step;
  return {
    change: { type: 'binding-rule.set', presence, rule: ruleNumbered(number, says) },
    after: ({ rules, ...rest }) => {
      if (!rest.methods.has(METHOD_OF_RULE[number]!)) throw new Error('a rule without its method');
      return { ...rest, rules: including(rules, number, says) };
    },
  };
}

function policyStep(step: Extract<Step, { readonly kind: 'policy' | 'no policy' }>): SharedStep {
  const { number } = step;
  if (step.kind === 'no policy') {
    return {
      change: { type: 'policy.delete', id: policyIdNumbered(number) },
      after: (shared) => ({ ...shared, policies: without(shared.policies, number) }),
    };
  }
  const { presence, rules } = step;
  return {
    change: { type: 'policy.set', presence, policy: policyNumbered(number, rules) },
    after: (shared) => {
      if (!shared.spaces.has(POLICIES[number]!.space))
        throw new Error('a policy without its namespace');
      return { ...shared, policies: including(shared.policies, number, rules) };
    },
  };
}

function roleStep(
  before: Shared,
  step: Extract<Step, { readonly kind: 'role' | 'no role' }>,
): SharedStep {
  const { number } = step;
  const { space } = ROLES[number]!;
  if (step.kind === 'no role') {
    return {
      change: { type: 'role.delete', id: roleIdNumbered(number) },
      after: (shared) => ({ ...shared, roles: without(shared.roles, number) }),
    };
  }
  const { presence } = step;
  const links = within(before, space, { ...NO_LINKS, ...step.links });
  return {
    change: { type: 'role.set', presence, role: roleNumbered(number, links) },
    after: (shared) => {
      requireWithin(shared, space, links);
      return { ...shared, roles: including(shared.roles, number, links) };
    },
  };
}
