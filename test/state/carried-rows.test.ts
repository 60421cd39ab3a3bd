// A datacenter that follows entry by entry, takes in snapshots of the primary, and has tokens of its own all the while:
// whatever the order, what is void stays void and is found by whoever may delete it, and no row is left of what is
// gone.

import fc from 'fast-check';
import t from 'tap';
import type { NamespaceName } from '../../src/acl/ids.ts';
import type { Token } from '../../src/acl/token.ts';
import type { Change, RequestMark } from '../../src/state/commands/commands.ts';
import { NEWEST_LEVEL } from '../../src/state/commands/feature-levels.ts';
import type { GlobalSnapshot } from '../../src/state/global-log/global-snapshot.ts';
import type { Replication } from '../../src/state/global-log/replication.ts';
import { hasLostNamespace, isOrphaned } from '../../src/state/reads/standing.ts';
import { decodeNumber } from '../../src/state/rows/layout/packing.ts';
import { methodKey } from '../../src/state/rows/objects/objects.ts';
import { decodeRetiredNamespace } from '../../src/state/rows/objects/retired-namespace.ts';
import { decodeKeyspaces, KEYSPACES_KEY } from '../../src/state/rows/store/keyspaces.ts';
import { ROW, textsInKey } from '../../src/state/rows/tables.ts';
import { MemoryKv } from '../support/memory-kv.ts';
import {
  accessorNumbered,
  aNamespace,
  aNamespaceName,
  anAuthMethod,
  aToken,
} from '../support/state-and-service/fixtures.ts';
import {
  BUILTINS,
  collect,
  MachineHarness,
  orphansIn,
} from '../support/state-and-service/machine-harness.ts';
import { inOrder, requireRowsFromNothing, requireSame } from './rows-from-nothing.ts';

const NUMBERS = [1, 2, 3, 4, 5, 6];
const ACCESSORS = NUMBERS.map(accessorNumbered);
const SPACES = ['default', 'team', 'other'].map(aNamespaceName);

/** The primary, or the one that follows. */
type Place = 0 | 1;

/** An auth method by its namespace and name. */
type MethodName = readonly [NamespaceName, string];

type Step =
  | { readonly kind: 'namespace' | 'no namespace'; readonly name: NamespaceName }
  | { readonly kind: 'method' | 'no method'; readonly method: MethodName }
  | {
      readonly kind: 'token';
      readonly at: Place;
      readonly number: number;
      readonly secret: number;
      readonly namespace: NamespaceName;
      readonly method: MethodName | undefined;
      readonly isLocal: boolean;
    }
  | { readonly kind: 'no token' | 'reap'; readonly at: Place; readonly number: number }
  | { readonly kind: 'follow' | 'begin' | 'carry' | 'commit' | 'forget' | 'fork' | 'rejoin' };

const one = <const Kind>(...kinds: readonly Kind[]): fc.Arbitrary<Kind> =>
  fc.constantFrom(...kinds);
const METHODS: readonly MethodName[] = [
  [SPACES[0]!, 'login'],
  [SPACES[1]!, 'own'],
];
const at = one<Place>(0, 1);
const number = one(...NUMBERS);
const name = one(...SPACES.slice(1));
const method = one(...METHODS);
const namespace = one(SPACES[0]!, SPACES[1]!, SPACES[1]!);
const token = { number, secret: number, namespace, method: fc.option(method, { nil: undefined }) };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ kind: one('namespace', 'no namespace'), name }) },
  { weight: 2, arbitrary: fc.record({ kind: one('method', 'no method'), method }) },
  {
    weight: 6,
    arbitrary: fc.record({ kind: one('token'), at, ...token, isLocal: fc.boolean() }),
  },
  { weight: 3, arbitrary: fc.record({ kind: one('no token', 'no token', 'reap'), at, number }) },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: one('follow', 'begin', 'carry', 'carry', 'carry', 'commit', 'commit', 'forget'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: one('fork', 'rejoin') }) },
);
const steps = fc.array(step, { minLength: 30, maxLength: 120, size: 'max' });

const OPENING: readonly Step[] = [
  { kind: 'namespace', name: SPACES[1]! },
  ...METHODS.map((each) => ({ kind: 'method', method: each }) as const),
  { kind: 'follow' },
];

/** A snapshot on its way in. */
interface Import {
  readonly snapshot: GlobalSnapshot;
  /** Batches of local rows so far. */
  number: number;
  after: Uint8Array | undefined;
  isLast: boolean;
}

const FORCED = { promises: [], isForced: true, isFromFork: false } as const;

class World {
  readonly dc1 = new MachineHarness(new MemoryKv());
  readonly dc2 = new MachineHarness(new MemoryKv());
  readonly reached = new Map<string, number>();
  #import: Import | undefined;
  /** dc2 has written as the primary by force, and has not gone back yet. */
  #isForked = false;
  readonly #requests: Uint8Array[] = [];

  async open(level = NEWEST_LEVEL): Promise<void> {
    for (const [place, each] of [this.dc1, this.dc2].entries()) {
      const begin = { datacenter: `dc${place + 1}`, primary: 'dc1', isWitness: false };
      await each.one({ type: 'global-log.begin', ...begin });
      await each.one({ type: 'level.raise', level });
    }
    await this.dc1.one(BUILTINS);
    for (const each of OPENING) await this.take(each);
  }

  async take(given: Step): Promise<void> {
    switch (given.kind) {
      case 'namespace':
        return this.#write({
          type: 'namespace.set',
          presence: 'either',
          namespace: aNamespace(given.name),
        });
      case 'no namespace':
        return this.#write({ type: 'namespace.delete', name: given.name });
      case 'method':
        return this.#write({ type: 'auth-method.set', presence: 'either', method: of(given) });
      case 'no method':
        return this.#write({ type: 'auth-method.delete', ...addressOf(given) });
      case 'token':
        return this.#token(given);
      case 'no token':
        return this.#remove(given);
      case 'reap':
        await this.#say(given.at, { type: 'token.reap', accessorIds: ACCESSORS });
        return;
      case 'follow':
        return this.#follow();
      case 'begin':
        return this.#begin();
      case 'carry':
        return this.#carry(1);
      case 'commit':
        return this.#commit();
      case 'forget':
        return this.#forget();
      case 'fork':
        return this.#fork();
      case 'rejoin':
        return this.#rejoin();
    }
  }

  async close(): Promise<void> {
    await this.#import?.snapshot.close();
  }

  /** `ok`, a verdict, or the code of a refusal. */
  async #say(place: Place, change: Change, request?: RequestMark): Promise<string> {
    const outcome = await (place === 0 ? this.dc1 : this.dc2).one(change, { request });
    const answer = outcome.kind === 'applied' ? outcome.answer : undefined;
    const said = answer?.type === 'verdict' ? answer.verdict : 'ok';
    const what = `${change.type} ${outcome.kind === 'refused' ? outcome.code : said}`;
    this.reached.set(what, (this.reached.get(what) ?? 0) + 1);
    return outcome.kind === 'refused' ? outcome.code : said;
  }

  /** What all share, in whichever may. */
  async #write(change: Change): Promise<void> {
    await this.#say(0, change);
    if (this.#isForked) await this.#say(1, change);
  }

  async #token({ at: place, method: from, ...given }: Step & { kind: 'token' }): Promise<void> {
    const { machine } = place === 0 ? this.dc1 : this.dc2;
    const found = from && machine.authMethod(...from);
    const made = aToken(given.number, {
      secretId: aToken(given.secret).secretId,
      namespace: given.namespace,
      local: given.isLocal || (place === 1 && !this.#isForked),
      authMethod: found && {
        name: found.name,
        namespace: found.namespace,
        createIndex: found.createIndex,
      },
    });
    await this.#say(place, { type: 'token.set', presence: 'create', token: made }, this.#mark());
  }

  async #remove(given: { readonly at: Place; readonly number: number }): Promise<void> {
    const accessorId = accessorNumbered(given.number);
    await this.#say(given.at, { type: 'token.delete', accessorId }, this.#mark());
  }

  #mark(): RequestMark {
    const key = new Uint8Array(32);
    new DataView(key.buffer).setUint32(0, this.#requests.length + 1);
    this.#requests.push(key);
    return { key, fingerprint: new Uint8Array(32) };
  }

  async #forget(): Promise<void> {
    const change = { type: 'request-id.forget', keys: this.#requests.slice(-4) } as const;
    for (const place of [0, 1] as const) await this.#say(place, change);
  }

  async #follow(): Promise<void> {
    const from = this.dc2.machine.cursor()!;
    const entries = (await this.dc1.machine.globalEntries(from.seq, 1 << 24)) ?? [];
    const to = this.dc1.machine.cursor()!;
    await this.#say(1, { type: 'global-log.apply', epoch: to.epoch, from, entries, to });
  }

  async #begin(): Promise<void> {
    await this.close();
    this.#import = undefined;
    const snapshot = (await this.dc1.machine.globalSnapshot())!;
    const { header } = snapshot;
    let said = await this.#say(1, { type: 'global-snapshot.begin', id: 'one', header });
    let count = 0;
    for await (const rows of snapshot.pieces()) {
      if (said !== 'applied') break;
      count += 1;
      said = await this.#say(1, { type: 'global-snapshot.chunk', id: 'one', number: count, rows });
    }
    if (said === 'applied') this.#import = { snapshot, number: 0, after: undefined, isLast: false };
    else await snapshot.close();
  }

  async #carry(limit: number): Promise<void> {
    const under = this.#import;
    if (under === undefined || under.isLast) return;
    under.number += 1;
    const isFirst = under.number === 1;
    const keys = isFirst ? [] : await this.dc2.machine.localRows(under.after, limit);
    under.isLast = !isFirst && keys.length < limit;
    under.after = keys.at(-1) ?? under.after;
    const { number: batch, isLast } = under;
    await this.#say(1, { type: 'global-snapshot.carry', id: 'one', number: batch, keys, isLast });
  }

  async #commit(): Promise<void> {
    while (this.#import?.isLast === false) await this.#carry(2);
    if (this.#import === undefined) return;
    const before = localTokensIn(this.dc2).filter((each) => isGone(each, this.dc2));
    const said = await this.#say(1, { type: 'global-snapshot.commit', id: 'one' });
    await this.close();
    this.#import = undefined;
    if (said !== 'applied') return;
    const isBack = ({ accessorId, createIndex }: Token): boolean => {
      const now = this.dc2.machine.token(accessorId);
      return now?.createIndex === createIndex && !isGone(now, this.dc2);
    };
    // What was deleted on a fork alone is not deleted.
    const back = this.#isForked ? undefined : before.find(isBack);
    if (back !== undefined) throw new Error(`${back.accessorId} was void and is not any more`);
    this.#isForked = false;
  }

  async #fork(): Promise<void> {
    if (this.#isForked) return;
    const epoch = standingOf(this.dc2).maxEpochPromised + 1;
    this.#isForked = (await this.#say(1, { type: 'epoch.start', epoch, ...FORCED })) === 'applied';
  }

  async #rejoin(): Promise<void> {
    if (!this.#isForked || standingOf(this.dc2).isDiverged) return;
    const promised = [this.dc1, this.dc2].map((each) => standingOf(each).maxEpochPromised);
    await this.#say(0, { type: 'epoch.start', epoch: Math.max(...promised) + 1, ...FORCED });
    await this.#say(1, { type: 'epoch.fence', epochs: standingOf(this.dc1).epochs });
    this.#isForked = standingOf(this.dc2).isDiverged;
  }
}

const standingOf = ({ machine }: MachineHarness): Replication => machine.replication()!;

const of = ({ method: [space, wanted] }: { readonly method: MethodName }) =>
  anAuthMethod(wanted, { namespace: space });

const addressOf = ({ method: [space, wanted] }: { readonly method: MethodName }) => ({
  namespace: space,
  name: wanted,
});

function isGone(given: Token, { machine }: MachineHarness): boolean {
  return isOrphaned(given, machine) || hasLostNamespace(given, machine);
}

function tokensIn({ machine }: MachineHarness): readonly Token[] {
  return ACCESSORS.flatMap((id) => machine.token(id) ?? []);
}

function localTokensIn(harness: MachineHarness): readonly Token[] {
  return tokensIn(harness).filter(({ local }) => local);
}

/** A store with the rows of its current keyspace, all under their own keys. */
function currentRows(kv: MemoryKv): MemoryKv {
  const { current } = decodeKeyspaces(kv.get(KEYSPACES_KEY));
  const prefix = current === 0 ? '' : `65${current.toString(16).padStart(8, '0')}`;
  const rows = kv.dump().flatMap((row) => {
    const [key = '', value = ''] = row.split(' ');
    if (!key.startsWith(prefix) || (current === 0 && key.startsWith('65'))) return [];
    const place = Buffer.from(key.slice(prefix.length), 'hex').toString('latin1');
    return [[place, Buffer.from(value, 'hex')] as const];
  });
  return new MemoryKv(rows);
}

/** Throws where something is there that follows from nothing, or is not found. */
async function requireNothingLeft(harness: MachineHarness): Promise<void> {
  const kv = currentRows(harness.kv);
  requireRowsFromNothing(kv, harness.machine);
  const tokens = tokensIn(harness);
  const gone = tokens.filter((each) => isGone(each, harness)).map(({ accessorId }) => accessorId);
  // One whose method and namespace are both gone is come by twice.
  const found = new Set<string>(await orphansIn(harness.machine));
  requireSame('orphans', inOrder([...found]), inOrder(gone));
  const rows = kv.dump().map((row) => {
    const [key = '', value = ''] = row.split(' ');
    return { key: Buffer.from(key, 'hex'), value: Buffer.from(value, 'hex') };
  });
  const keysOf = (kind: number, from: number): readonly string[] =>
    rows.filter(({ key }) => key[0] === kind).map(({ key }) => key.subarray(from).toString('hex'));
  requireSame('requests', inOrder(keysOf(ROW.requestByTime, 9)), inOrder(keysOf(ROW.request, 1)));
  const counted = new Map<string, number>();
  for (const { authMethod } of tokens) {
    if (authMethod === undefined) continue;
    const key = Buffer.from(methodKey('methodTokens', authMethod)).toString('hex').slice(2);
    counted.set(key, (counted.get(key) ?? 0) + 1);
  }
  for (const { key, value } of rows) {
    const rest = key.toString('hex').slice(2);
    if (key[0] === ROW.methodTokens) requireSame(rest, decodeNumber(value), counted.get(rest));
    if (key[0] === ROW.retiredMethod) requireSame(rest, counted.has(rest), true);
    if (key[0] === ROW.retiredNamespace) requireHeld(textsInKey(key, 1)[0]!, value, tokens);
  }
  requireSame('methods', inOrder(keysOf(ROW.methodTokens, 1)), inOrder([...counted.keys()]));
  const all = await collect(harness.machine.tokens({ kind: 'all' }, undefined, {}));
  for (const space of SPACES) {
    const here = all.filter((each) => each.namespace === space).length;
    requireSame(`tokens of ${space}`, harness.machine.counts(space).tokens, here);
  }
}

function requireHeld(space: string, value: Uint8Array, tokens: readonly Token[]): void {
  const { upTo, tokens: held } = decodeRetiredNamespace(value);
  const found = tokens.filter(
    (each) => each.local && each.namespace === space && each.createIndex <= upTo,
  );
  requireSame(`void tokens of ${space}`, held, found.length);
  if (held === 0) throw new Error(`nothing is left in ${space}, and it is remembered`);
}

t.test(
  'random orders: what is void is found, and of what is gone nothing is left',
  async (test) => {
    const reached = new Map<string, number>();
    const property = fc.asyncProperty(steps, async (all) => {
      const world = new World();
      await world.open();
      for (const each of all) {
        await world.take(each);
        await requireNothingLeft(world.dc1);
        await requireNothingLeft(world.dc2);
      }
      await world.close();
      for (const [what, count] of world.reached)
        reached.set(what, (reached.get(what) ?? 0) + count);
    });
    await fc.assert(property, { numRuns: 30, endOnFailure: true });
    for (const [what, least] of [
      ['global-snapshot.commit applied', 8],
      ['global-log.apply applied', 20],
      ['epoch.fence applied', 2],
    ] as const) {
      test.ok((reached.get(what) ?? 0) >= least, `${what}: ${reached.get(what)}`);
    }
  },
);

t.test('a method that is gone: its tokens are found by whoever is primary next', async (test) => {
  const world = new World();
  await world.open();
  const login = METHODS[0]!;
  const given = { kind: 'token', at: 0, namespace: SPACES[0]!, isLocal: false } as const;
  await world.take({ ...given, number: 1, secret: 1, method: login });
  await world.take({ ...given, number: 2, secret: 2, method: METHODS[1] });
  await world.take({ kind: 'no method', method: login });
  for (const kind of ['begin', 'commit'] as const) await world.take({ kind });
  const { machine } = world.dc2;
  test.same(machine.digests(), world.dc1.machine.digests());
  await requireNothingLeft(world.dc2);
  await world.take({ kind: 'fork' });
  const found = await orphansIn(machine);
  test.same(found, [accessorNumbered(1)], 'and no token of one that is there');
  await world.take({ kind: 'reap', at: 1, number: 1 });
  test.equal(machine.token(accessorNumbered(1)), undefined);
  test.ok(machine.token(accessorNumbered(2)));
  await requireNothingLeft(world.dc2);
  await world.close();
});

/** dc2 has such void tokens in a namespace that was made again, and that the primary has deleted one of all in. */
async function afterLostNamespace(level: number, lost: readonly number[]): Promise<World> {
  const world = new World();
  await world.open(level);
  const team = SPACES[1]!;
  const given = { kind: 'token', namespace: team, method: undefined } as const;
  // Its indexes are ahead of those of the primary.
  for (let round = 0; round < 10; round += 1) {
    await world.take({ ...given, at: 1, number: 6, secret: 6, isLocal: true });
    await world.take({ kind: 'no token', at: 1, number: 6 });
  }
  for (const number of lost) {
    await world.take({ ...given, at: 1, number, secret: number, isLocal: true });
  }
  await world.take({ kind: 'no method', method: METHODS[1]! });
  await world.take({ kind: 'no namespace', name: team });
  await world.take({ kind: 'follow' });
  await world.take({ kind: 'namespace', name: team });
  await world.take({ ...given, at: 0, number: 2, secret: 2, isLocal: false });
  await world.take({ kind: 'follow' });
  const { machine } = world.dc2;
  const { createIndex } = machine.token(accessorNumbered(2))!;
  t.ok(createIndex <= machine.namespaceLostUpTo(team), 'made later, with a lower index');
  await world.take({ kind: 'no token', at: 0, number: 2 });
  await world.take({ kind: 'follow' });
  t.equal(machine.token(accessorNumbered(2)), undefined);
  t.same(machine.digests().global, world.dc1.machine.digests().global);
  return world;
}

t.test('a namespace that is gone: its tokens stay void whatever all share', async (test) => {
  for (const level of [7, 8]) {
    const world = await afterLostNamespace(level, [1]);
    const found = world.dc2.machine.token(accessorNumbered(1))!;
    test.equal(isGone(found, world.dc2), level >= 8, `at level ${level}`);
    if (level >= 8) await requireNothingLeft(world.dc2);
    await world.take({ kind: 'reap', at: 1, number: 1 });
    test.equal(world.dc2.machine.token(accessorNumbered(1)) === undefined, level >= 8);
    await world.close();
  }
});

t.test(
  'a namespace that is gone: its tokens stay void until the last one is deleted',
  async (test) => {
    const world = await afterLostNamespace(8, [1, 3]);
    const { dc2 } = world;
    await world.take({ kind: 'no token', at: 1, number: 1 });
    test.ok(isGone(dc2.machine.token(accessorNumbered(3))!, dc2));
    await requireNothingLeft(dc2);
    await world.take({ kind: 'no token', at: 1, number: 3 });
    test.equal(dc2.machine.namespaceLostUpTo(SPACES[1]!), 0);
    await world.close();
  },
);
