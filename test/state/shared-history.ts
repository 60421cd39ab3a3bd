// What the history alone says of all that datacenters share, at every place of every log that one of them wrote: who
// is at a place has what was written up to there, however it came.

import type { StateMachine } from '../../src/state/machine.ts';
import {
  KEYS,
  type Links,
  POLICIES,
  ROLES,
  type Rules,
  SPACES,
  type Space,
} from './history-objects.ts';
import type { MethodName } from './token-lives.ts';

/** Marks are never given twice: what is made anew under a name is another one. */
export interface Shared {
  readonly policies: ReadonlyMap<number, Rules>;
  readonly roles: ReadonlyMap<number, Omit<Links, 'roles'>>;
  readonly spaces: ReadonlyMap<string, { readonly mark: string }>;
  readonly methods: ReadonlyMap<MethodName, { readonly mark: string }>;
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
  tokens: new Map(),
};

export const SPACE_OF: Readonly<Record<MethodName, Space>> = { login: 'default', own: 'team' };

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
export function within(shared: Shared, space: Space, { policies, roles }: Links): Links {
  const isNear = (each: Space | undefined): boolean => each === space || each === 'default';
  return {
    policies: policies.filter((each) => shared.policies.has(each) && isNear(POLICIES[each]?.space)),
    roles: roles.filter((each) => shared.roles.has(each) && isNear(ROLES[each]?.space)),
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

/** What the token of a namespace may write, of `QUESTIONS`. */
export function mayWrite(
  shared: Shared,
  { links }: { readonly space: Space; readonly links: Links },
): readonly string[] {
  const own = said(shared, links);
  return QUESTIONS.filter((question) => own.get(question) === 'write');
}

/** What there may be rules of. */
export const QUESTIONS: readonly string[] = SPACES.flatMap((space) =>
  KEYS.map((key) => `key ${key} in ${space}`),
);

type Says = 'write' | 'deny';

/** What all that is linked says together: to deny is stronger. */
function said(shared: Shared, { policies, roles }: Links): ReadonlyMap<string, Says> {
  const found = new Map<string, Says>();
  const throughRoles = roles.flatMap((each) => shared.roles.get(each)?.policies ?? []);
  for (const number of [...policies, ...throughRoles]) {
    const rules = shared.policies.get(number);
    if (rules === undefined) continue;
    const { space } = POLICIES[number]!;
    for (const key of rules.writes) {
      const question = `key ${key} in ${space}`;
      if (found.get(question) !== 'deny') found.set(question, 'write');
    }
    for (const key of rules.denies) found.set(`key ${key} in ${space}`, 'deny');
  }
  return found;
}
