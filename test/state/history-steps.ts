// What happens to three datacenters: see HistoryWorld.

import fc from 'fast-check';
import {
  type Defaults,
  type Links,
  NO_LINKS,
  type Place,
  type RoleLinks,
  type Rules,
  type Space,
} from './history-objects.ts';
import type { MethodName } from './token-lives.ts';

/** Accessor ids and secrets are few: tokens meet those of others. */
export const NUMBERS = [1, 2, 3, 4, 5, 6, 7];

export type TokenStep = {
  readonly kind: 'token';
  readonly at: Place;
  readonly number: number;
  /** Another number than its own, for those that share a secret. */
  readonly secret: number | undefined;
  readonly space: Space;
  readonly method: MethodName | undefined;
  readonly links: Links;
  /** The links are given by their names. */
  readonly isByName: boolean;
  readonly isLocal: boolean;
  readonly doesExpire: boolean;
};

export type LinksStep = {
  readonly kind: 'links';
  readonly at: Place;
  readonly number: number;
  readonly links: Links;
  readonly isByName: boolean;
};

export type Step =
  | TokenStep
  | LinksStep
  | { readonly kind: 'no token'; readonly at: Place; readonly number: number }
  | { readonly kind: 'space' | 'passing'; readonly space: 'team' | 'other' }
  | { readonly kind: 'no space'; readonly space: 'team' | 'other'; readonly isMadeAnew: boolean }
  | { readonly kind: 'defaults'; readonly space: Space; readonly defaults: Defaults }
  | { readonly kind: 'method' | 'no method'; readonly name: MethodName }
  | {
      readonly kind: 'policy';
      readonly number: number;
      readonly presence: 'create' | 'update';
      readonly rules: Rules;
    }
  | {
      readonly kind: 'role';
      readonly number: number;
      readonly presence: 'create' | 'update';
      readonly links: RoleLinks;
    }
  | { readonly kind: 'no policy'; readonly number: number }
  | { readonly kind: 'no role'; readonly number: number }
  | {
      readonly kind: 'follow';
      readonly at: Place;
      readonly isFork: boolean;
      readonly entries: number;
      readonly with: readonly Step[];
    }
  | { readonly kind: 'begin'; readonly at: Place; readonly isFork: boolean }
  | { readonly kind: 'carry' | 'commit' | 'wait' | 'discard' }
  | { readonly kind: 'restore' }
  | { readonly kind: 'reap' | 'restart' | 'fork' | 'settle' | 'archive'; readonly at: Place };

export const one = <const Kind>(...kinds: readonly Kind[]): fc.Arbitrary<Kind> =>
  fc.constantFrom(...kinds);
const at = one<Place>(0, 1, 1, 1, 2);
/** Whom it hears: on a fork there are two. */
const isFork = fc.boolean();
const number = one(...NUMBERS);
const space = one('default', 'default', 'team', 'team', 'other');
const lost = one('team', 'other');
const policies = fc.subarray([1, 2, 3, 4, 5], { maxLength: 3 });
const roles = fc.subarray([1, 2, 3, 4], { maxLength: 2 });
const identities = fc.oneof(
  { weight: 2, arbitrary: fc.constant([]) },
  fc.subarray([1, 2, 3, 4, 5, 6], { maxLength: 3 }),
);
const links = fc.record({ policies, roles, identities });
const method = fc.option(one('login', 'own'), { nil: undefined });
const isByName = one(false, false, true);
const made = {
  at,
  number,
  secret: fc.option(number, { nil: undefined, freq: 4 }),
  space,
  method,
  links,
  isByName,
  isLocal: fc.boolean(),
  doesExpire: one(false, false, false, true),
};
const write: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: one('token'), ...made }) },
  { weight: 3, arbitrary: fc.record({ kind: one('links'), at, number, links, isByName }) },
  { weight: 2, arbitrary: fc.record({ kind: one('no token'), at, number }) },
);
const presence = one('create', 'update');
const rules = fc.record({
  writes: fc.subarray([1, 2, 3]),
  denies: fc.oneof(fc.constant([]), fc.subarray([1, 2, 3])),
});
const shared: fc.Arbitrary<Step> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ kind: one('space', 'passing'), space: lost }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: one('no space'), space: lost, isMadeAnew: fc.boolean() }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: one('defaults'),
      space,
      defaults: fc.oneof(
        { weight: 2, arbitrary: fc.record({ policies, roles }) },
        fc.constant(NO_LINKS),
      ),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: one('method', 'method', 'no method'), name: one('login', 'own') }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: one('policy'), number: one(1, 2, 3, 4, 5), presence, rules }),
  },
  { weight: 1, arbitrary: fc.record({ kind: one('no policy'), number: one(1, 2, 3, 4, 5) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: one('role'),
      number: one(1, 2, 3, 4),
      presence,
      links: fc.record({ policies, identities }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: one('no role'), number: one(1, 2, 3, 4) }) },
);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 10, arbitrary: write },
  { weight: 8, arbitrary: shared },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: one('follow'),
      at,
      isFork,
      entries: one(1, 3, 99),
      with: fc.array(write, { maxLength: 3 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: one('begin'), at, isFork }) },
  { weight: 5, arbitrary: fc.record({ kind: one('carry', 'carry', 'commit') }) },
  { weight: 2, arbitrary: fc.record({ kind: one('reap', 'restart'), at }) },
  { weight: 2, arbitrary: fc.record({ kind: one('wait', 'discard') }) },
  { weight: 2, arbitrary: fc.record({ kind: one('fork', 'settle', 'settle'), at }) },
  { weight: 1, arbitrary: fc.record({ kind: one('archive'), at }) },
  { weight: 1, arbitrary: fc.record({ kind: one('restore') }) },
);
export const histories = fc.array(step, { minLength: 20, maxLength: 90, size: 'max' });
