// What the history alone says of all that datacenters share, at every place of every log that one of them wrote: who
// is at a place has what was written up to there, however it came.

import type { StateMachine } from '../../../src/state/machine.ts';
import {
  type Defaults,
  IDENTITIES,
  KEYS,
  type Links,
  type MethodName,
  type MethodSays,
  NO_LINKS,
  type Place,
  POLICIES,
  ROLES,
  type RoleLinks,
  type RuleSays,
  type Rules,
  SPACES,
  type Space,
} from './history-objects.ts';

/** Marks are never given twice: what is made anew under a name is another one. */
export interface Shared {
  readonly policies: ReadonlyMap<number, Rules>;
  readonly roles: ReadonlyMap<number, RoleLinks>;
  readonly spaces: ReadonlyMap<string, { readonly mark: string; readonly defaults: Defaults }>;
  readonly methods: ReadonlyMap<MethodName, { readonly mark: string } & MethodSays>;
  readonly rules: ReadonlyMap<number, RuleSays>;
  readonly tokens: ReadonlyMap<
    number,
    { readonly mark: string; readonly space: Space; readonly links: Links }
  >;
}

const NOTHING: Shared = {
  policies: new Map(),
  roles: new Map(),
  spaces: new Map(),
  methods: new Map(),
  rules: new Map(),
  tokens: new Map(),
};

type Machine = Pick<StateMachine, 'cursor' | 'globalHashAt'>;

export class SharedHistory {
  /** By the hash that names all of a log up to there. */
  readonly #byHash = new Map<string, Shared>();

  /** It has begun, and shares nothing yet. */
  began(machine: Machine): void {
    this.#byHash.set(placeOf(machine), NOTHING);
  }

  /** What is where it is. */
  at(machine: Machine): Shared {
    const found = this.#byHash.get(placeOf(machine));
    if (found === undefined) throw new Error('it is where nobody ever was');
    return found;
  }

  /** Behind that place it wrote these, one entry for each. */
  wrote(machine: Machine, afterSeq: number, written: readonly Shared[]): void {
    const count = machine.cursor()!.seq - afterSeq;
    if (count !== written.length) throw new Error(`${count} entries, not ${written.length}`);
    for (const [number, each] of written.entries()) {
      this.#byHash.set(textOf(machine.globalHashAt(afterSeq + 1 + number)!), each);
    }
  }
}

function placeOf(machine: Machine): string {
  return textOf(machine.cursor()!.hash);
}

function textOf(hash: Uint8Array): string {
  return Buffer.from(hash).toString('hex');
}

/** With one more or another one under that key. */
export function including<Key, Value>(
  map: ReadonlyMap<Key, Value>,
  key: Key,
  value: Value,
): ReadonlyMap<Key, Value> {
  return new Map([...map, [key, value]]);
}

export function without<Key, Value>(
  map: ReadonlyMap<Key, Value>,
  ...keys: readonly Key[]
): ReadonlyMap<Key, Value> {
  return new Map([...map].filter(([key]) => !keys.includes(key)));
}

/** Those that lead into the namespace or `default`, to what is there. */
export function within(shared: Shared, space: Space, links: Links): Links {
  const { policies, roles, identities } = links;
  const isNear = (each: Space | undefined): boolean => each === space || each === 'default';
  return {
    policies: policies.filter((each) => shared.policies.has(each) && isNear(POLICIES[each]?.space)),
    roles: roles.filter((each) => shared.roles.has(each) && isNear(ROLES[each]?.space)),
    identities,
  };
}

/** Throws where something was written that leads elsewhere. */
export function requireWithin(shared: Shared, space: Space, links: Links): void {
  const [text, shall] = [links, within(shared, space, links)].map((each) => JSON.stringify(each));
  if (text !== shall) throw new Error(`in ${space} there was linked to ${text}, not ${shall}`);
}

/** Whom a name means to whoever is in that namespace. */
export function numberNamed(
  named: typeof POLICIES,
  there: ReadonlyMap<number, unknown>,
  { name, space }: { readonly name: string; readonly space: Space },
): number | undefined {
  const of = (place: Space): number | undefined =>
    [...there.keys()].find((each) => named[each]?.name === name && named[each].space === place);
  return of(space) ?? of('default');
}

/** What the token of a namespace may write there, of `QUESTIONS`: where it says nothing itself, the defaults do. */
export function mayWrite(
  { shared, place }: { readonly shared: Shared; readonly place: Place },
  { space, links }: { readonly space: Space; readonly links: Links },
): readonly string[] {
  const own = said({ shared, place }, { space, links });
  const defaults = { ...NO_LINKS, ...shared.spaces.get(space)?.defaults };
  const byDefault = said({ shared, place }, { space, links: defaults });
  return QUESTIONS.filter((each) => (own.get(each) ?? byDefault.get(each)) === 'write');
}

/** Services and nodes that there may be identities of. */
const NAMES = ['service web', 'service api', 'node web'];
/** What there may be rules of. */
export const QUESTIONS: readonly string[] = SPACES.flatMap((space) =>
  [...KEYS.map((key) => `key ${key}`), ...NAMES].map((what) => `${what} in ${space}`),
);

const STRENGTH = { read: 1, write: 2, deny: 3 };
type Says = keyof typeof STRENGTH;

/** What all that is linked says together there: to deny is strongest. */
function said(
  { shared, place }: { readonly shared: Shared; readonly place: Place },
  { space, links }: { readonly space: Space; readonly links: Links },
): ReadonlyMap<string, Says> {
  const found = new Map<string, Says>();
  const say = (says: Says, what: string, where: Space): void => {
    const before = found.get(`${what} in ${where}`) ?? 'read';
    const strongest = STRENGTH[says] > STRENGTH[before] ? says : before;
    found.set(`${what} in ${where}`, strongest);
  };
  // Identities speak for the namespace of who holds them.
  const take = ({ policies, identities }: RoleLinks, holder: Space): void => {
    for (const number of policies) {
      const { writes = [], denies = [] } = shared.policies.get(number) ?? {};
      for (const key of writes) say('write', `key ${key}`, POLICIES[number]!.space);
      for (const key of denies) say('deny', `key ${key}`, POLICIES[number]!.space);
    }
    for (const { writes, at } of identities.map((each) => IDENTITIES[each]!)) {
      if (at !== undefined && at !== place) continue;
      say('write', writes, holder);
      // It may look others up.
      const isNode = writes.startsWith('node');
      for (const each of NAMES) if (!(isNode && each.startsWith('node'))) say('read', each, holder);
    }
  };
  take(links, space);
  for (const number of links.roles) {
    const role = shared.roles.get(number);
    if (role !== undefined) take(role, ROLES[number]!.space);
  }
  return found;
}
