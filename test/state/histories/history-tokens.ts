// What the steps of a history that concern tokens are: as commands, and as what the history says when they took effect.

import type { Unstamped } from '../../../src/acl/stamped.ts';
import type { Token } from '../../../src/acl/token.ts';
import type { Instant } from '../../../src/acl/values/instant.ts';
import { tokenLinksOf } from '../../../src/service/objects/resolve-links.ts';
import type { Change } from '../../../src/state/commands/commands.ts';
import type { Outcome } from '../../../src/state/commands/outcome.ts';
import type { StateMachine } from '../../../src/state/machine.ts';
import {
  accessorNumbered,
  aNamespaceName,
  aToken,
  secretNumbered,
} from '../../support/state-and-service/fixtures.ts';
import {
  type Links,
  linkIds,
  type Place,
  POLICIES,
  ROLES,
  SPACE_OF,
  type Space,
  TTL_MS,
} from './history-objects.ts';
import type { LinksStep, Step, TokenStep } from './history-steps.ts';
import {
  including,
  numberNamed,
  requireWithin,
  type Shared,
  within,
  without,
} from './shared-history.ts';
import type { Life, TokenLives } from './token-lives.ts';

export interface TokenStepDone {
  readonly change: Change;
  /** It took effect: what all share then; undefined where that is what it was. */
  done(outcome: Outcome, shared: Shared): Shared | undefined;
}

/** Where a step is taken. */
export interface Here {
  readonly place: Place;
  readonly machine: StateMachine;
  /** What all share there, before the batch. */
  readonly shared: Shared;
  /** Whether what all share is written there. */
  readonly doesWrite: boolean;
  readonly nowMs: number;
  readonly batch: number;
  /** What this batch would make, by number. */
  readonly fresh: Map<number, Unstamped<Token>>;
  readonly lives: TokenLives;
  /** A new one each time. */
  readonly mark: () => string;
}

export function tokenStep(here: Here, step: Step): TokenStepDone {
  switch (step.kind) {
    case 'token':
      return made(here, step);
    case 'links':
      return linked(here, step);
    case 'no token':
      return deleted(here, step.number);
    default:
      throw new Error(`${step.kind} is not of tokens`);
  }
}

function made(here: Here, step: TokenStep): TokenStepDone {
  const { machine, shared, place, nowMs, batch, lives } = here;
  const { number, space } = step;
  const method = step.method && shared.methods.get(step.method);
  const from = step.method && aNamespaceName(SPACE_OF[step.method]);
  const origin = method && machine.authMethod(from!, step.method!)!;
  const isLocal = step.isLocal || !here.doesWrite;
  const expiresMs = step.doesExpire ? nowMs + TTL_MS : undefined;
  const secret = step.secret ?? number;
  const links = linksOf(here, space, step);
  const mark = here.mark();
  const token = aToken(number, {
    secretId: secretNumbered(secret),
    namespace: aNamespaceName(space),
    description: mark,
    ...linkIds(links),
    local: isLocal,
    authMethod: origin && {
      name: origin.name,
      namespace: origin.namespace,
      createIndex: origin.createIndex,
    },
    expirationTime:
      expiresMs === undefined ? undefined : (new Date(expiresMs).toISOString() as Instant),
  });
  here.fresh.set(number, token);
  const life: Life = {
    ...{ mark, batch, number, secret, space, isLocal, at: place, links, expiresMs },
    spaceMark: shared.spaces.get(space)?.mark ?? 'none',
    method: method && step.method,
    methodMark: method?.mark,
    over: undefined,
  };
  const done = (_: Outcome, now: Shared): Shared | undefined => {
    requireWithin(now, space, links);
    lives.add(life);
    if (isLocal) return undefined;
    return { ...now, tokens: including(now.tokens, number, { mark, space, links }) };
  };
  return { change: { type: 'token.set', presence: 'create', token }, done };
}

function linked(here: Here, step: LinksStep): TokenStepDone {
  const { machine, fresh, lives } = here;
  const { number } = step;
  const found = machine.token(accessorNumbered(number)) ?? fresh.get(number) ?? aToken(number);
  const links = linksOf(here, found.namespace as string as Space, step);
  const token = { ...found, ...linkIds(links) };
  const done = (outcome: Outcome, now: Shared): Shared | undefined => {
    const answer = outcome.kind === 'applied' ? outcome.answer : undefined;
    const changed = answer?.type === 'token' ? answer.token : undefined;
    requireWithin(now, changed?.namespace as string as Space, links);
    const known = now.tokens.get(number);
    if (known === undefined || changed?.local === true) {
      lives.link(changed?.description ?? '', links);
      return undefined;
    }
    return { ...now, tokens: including(now.tokens, number, { ...known, links }) };
  };
  return { change: { type: 'token.set', presence: 'update', token }, done };
}

function deleted({ machine, place, batch, lives }: Here, number: number): TokenStepDone {
  const accessorId = accessorNumbered(number);
  const mark = machine.token(accessorId)?.description ?? '';
  const done = (outcome: Outcome, now: Shared): Shared | undefined => {
    const answer = outcome.kind === 'applied' ? outcome.answer : undefined;
    if (answer?.type !== 'deleted' || !answer.existed) return undefined;
    if (now.tokens.has(number)) return { ...now, tokens: without(now.tokens, number) };
    lives.end(place, number, { mark, batch });
    return undefined;
  };
  return { change: { type: 'token.delete', accessorId }, done };
}

/** What a step links to, of what is there; by name as the service finds it, which must be what the history says. */
function linksOf(
  { machine, shared }: Here,
  space: Space,
  { links, isByName }: { readonly links: Links; readonly isByName: boolean },
): Links {
  if (!isByName) return within(shared, space, links);
  const numbers = (
    named: typeof POLICIES,
    there: ReadonlyMap<number, unknown>,
    each: readonly number[],
  ): readonly number[] => {
    const found = each.map((number) =>
      numberNamed(named, there, { name: named[number]!.name, space }),
    );
    return [...new Set(found.filter((number) => number !== undefined))];
  };
  const policies = numbers(POLICIES, shared.policies, links.policies);
  const roles = numbers(ROLES, shared.roles, links.roles);
  const found = tokenLinksOf(
    machine,
    {
      policies: policies.map((each) => ({ name: POLICIES[each]!.name.toUpperCase() })),
      roles: roles.map((each) => ({ name: ROLES[each]!.name })),
    },
    aNamespaceName(space),
  );
  const { identities } = links;
  const [text, shall] = [found, linkIds({ policies, roles, identities })].map((each) =>
    JSON.stringify([each.policies, each.roles]),
  );
  if (text !== shall) throw new Error(`names in ${space} mean ${text}, not ${shall}`);
  return { policies, roles, identities };
}
