// What happens to three datacenters: see HistoryWorld.

import fc from 'fast-check';
import {
  type Defaults,
  type Links,
  type MethodName,
  type MethodSays,
  NO_LINKS,
  type Place,
  type RoleLinks,
  type RuleSays,
  type Rules,
  type Space,
  type Who,
} from './history-objects.ts';

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

export type LoginStep = {
  readonly kind: 'login';
  readonly at: Place;
  /** Of the token that is made. */
  readonly number: number;
  readonly secret: number;
  readonly method: MethodName;
  readonly who: Who;
};

export type Step =
  | TokenStep
  | LinksStep
  | LoginStep
  | { readonly kind: 'logout'; readonly at: Place; readonly number: number }
  | { readonly kind: 'no token'; readonly at: Place; readonly number: number }
  | { readonly kind: 'space' | 'passing'; readonly space: 'team' | 'other' }
  | { readonly kind: 'no space'; readonly space: 'team' | 'other'; readonly isMadeAnew: boolean }
  | { readonly kind: 'defaults'; readonly space: Space; readonly defaults: Defaults }
  | { readonly kind: 'method'; readonly name: MethodName; readonly says: MethodSays }
  | { readonly kind: 'no method'; readonly name: MethodName }
  | {
      readonly kind: 'rule';
      readonly number: number;
      readonly presence: 'create' | 'update';
      readonly says: RuleSays;
    }
  | { readonly kind: 'no rule'; readonly number: number }
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
  | {
      readonly kind: 'reap' | 'restart' | 'raise' | 'fork' | 'settle' | 'archive';
      readonly at: Place;
    };

export const one = <const Kind>(...kinds: readonly Kind[]): fc.Arbitrary<Kind> =>
  fc.constantFrom(...kinds);
const at = one<Place>(0, 1, 1, 1, 2);
/** Whom it hears: on a fork there are two. */
const isFork = fc.boolean();
const number = one(...NUMBERS);
const space = one('default', 'team', 'other');
const lost = one('team', 'other');
const policies = fc.subarray([1, 2, 3, 4, 5], { maxLength: 3 });
const roles = fc.subarray([1, 2, 3, 4], { maxLength: 2 });
const identities = fc.oneof(
  { weight: 2, arbitrary: fc.constant([]) },
  fc.subarray([1, 2, 3, 4, 5, 6], { maxLength: 3 }),
);
const links = fc.record({ policies, roles, identities });
const methodName = one('login', 'own');
const method = fc.option(methodName, { nil: undefined });
const who = one('one', 'two');
const methodSays = fc.record({
  doesExpire: fc.boolean(),
  isGlobal: one(false, false, true),
  sends: fc.array(fc.record({ who, to: one('team', 'other') }), { maxLength: 2 }),
});
const ruleSays = fc.record({
  who: fc.option(who, { nil: undefined }),
  binds: fc.record({
    kind: one('role', 'role', 'policy', 'policy', 'service', 'node', 'templated-policy'),
    name: fc.option(who, { nil: undefined }),
  }),
});
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
    weight: 4,
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
  { weight: 2, arbitrary: fc.record({ kind: one('method'), name: methodName, says: methodSays }) },
  { weight: 2, arbitrary: fc.record({ kind: one('no method'), name: methodName }) },
  {
    weight: 4,
    arbitrary: fc.record({ kind: one('rule'), number: one(1, 2, 3, 4), presence, says: ruleSays }),
  },
  { weight: 1, arbitrary: fc.record({ kind: one('no rule'), number: one(1, 2, 3, 4) }) },
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
  { weight: 13, arbitrary: shared },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: one('login'),
      at,
      number,
      secret: number,
      method: methodName,
      who,
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: one('logout'), at, number }) },
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
  { weight: 3, arbitrary: fc.record({ kind: one('reap', 'restart', 'raise'), at }) },
  { weight: 2, arbitrary: fc.record({ kind: one('wait', 'discard') }) },
  { weight: 3, arbitrary: fc.record({ kind: one('fork', 'settle', 'settle'), at }) },
  { weight: 1, arbitrary: fc.record({ kind: one('archive'), at }) },
  { weight: 1, arbitrary: fc.record({ kind: one('restore') }) },
);
export const histories = fc.array(step, { minLength: 20, maxLength: 90, size: 'max' });

/** Which feature level there is at first, and how many more local writes, and higher indexes, the second one has. */
export interface Beginning {
  readonly level: number;
  readonly ahead: number;
}
export const beginnings: fc.Arbitrary<Beginning> = fc.record({
  level: one(2, 5, 7, 8, 8),
  ahead: one(0, 20),
});

const says = { doesExpire: false, isGlobal: false, sends: [] };
const rule = { who: undefined, binds: { kind: 'role', name: undefined } } as const;
/** What there is at first. */
export const OPENING: readonly Step[] = [
  { kind: 'space', space: 'team' },
  { kind: 'method', name: 'login', says },
  { kind: 'method', name: 'own', says },
  { kind: 'policy', number: 1, presence: 'create', rules: { writes: [1, 2], denies: [] } },
  { kind: 'policy', number: 2, presence: 'create', rules: { writes: [2, 3], denies: [] } },
  { kind: 'policy', number: 3, presence: 'create', rules: { writes: [3, 1], denies: [2] } },
  { kind: 'role', number: 1, presence: 'create', links: { policies: [2, 3], identities: [1] } },
  { kind: 'role', number: 2, presence: 'create', links: { policies: [3], identities: [2] } },
  { kind: 'role', number: 4, presence: 'create', links: { policies: [2, 3], identities: [4] } },
  { kind: 'rule', number: 1, presence: 'create', says: rule },
  { kind: 'rule', number: 2, presence: 'create', says: rule },
  { kind: 'space', space: 'other' },
];
