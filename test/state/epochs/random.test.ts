// Moving the primary in random orders of all steps over two datacenters and a witness.

import fc from 'fast-check';
import t from 'tap';
import { standingOf } from '../../../src/state/global-log/chain.ts';
import { type EntryRange, isPrimary } from '../../../src/state/global-log/replication.ts';
import { aToken } from '../../support/state-and-service/fixtures.ts';
import { hexOf, NAMES, type Name, World } from './world.ts';

type Step =
  | { readonly do: 'write'; readonly at: Name }
  | { readonly do: 'trim'; readonly at: Name; readonly kept: number }
  | {
      readonly do: 'sync' | 'fence' | 'take';
      readonly from: Name;
      readonly to: Name;
      readonly count: number;
    }
  | { readonly do: 'campaign'; readonly at: Name; readonly hears: readonly Name[] }
  | { readonly do: 'local'; readonly at: Name };

const name = fc.constantFrom(...NAMES);

const pair = fc.record({ from: name, to: name, count: fc.integer({ min: 1, max: 3 }) });

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('write' as const), at: name }) },
  { weight: 8, arbitrary: pair.map((each) => ({ do: 'sync' as const, ...each })) },
  { weight: 2, arbitrary: pair.map((each) => ({ do: 'fence' as const, ...each })) },
  { weight: 2, arbitrary: pair.map((each) => ({ do: 'take' as const, ...each })) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('local' as const), at: name }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('trim' as const),
      at: name,
      kept: fc.integer({ min: 0, max: 2 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('campaign' as const),
      at: fc.constantFrom('dc1' as const, 'dc2' as const),
      hears: fc.subarray([...NAMES]),
    }),
  },
);

/** What must hold of everything that happens in a world. */
class Checks {
  readonly #owners = new Map<number, Name>();
  readonly #hashes = new Map<string, string>();
  readonly #digests = new Map<string, string>();
  readonly #promised = new Map<Name, number>();
  /** Entries that more than half of the voters took under the epoch that they were written in. */
  readonly #durable = new Map<string, number>();
  readonly #written = new Map<string, Name>();
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  async wrote(at: Name): Promise<void> {
    const { epoch, seq } = this.#world.at(at).cursor;
    this.#written.set(`${epoch}.${seq}`, at);
    await this.look();
  }

  /** G1: at most one datacenter begins an epoch. */
  started(epoch: number, at: Name): void {
    const owner = this.#owners.get(epoch);
    if (owner !== undefined) throw new Error(`G1: epoch ${epoch} is of ${owner} and of ${at}`);
    this.#owners.set(epoch, at);
    const { epochs } = this.#world.at(at);
    const { startSeq } = epochs.at(-1)!;
    for (const [id, seq] of this.#durable) {
      const isOn = seq < startSeq && standingOf(this.#world.at(at), placeOf(id)) === 'replicated';
      if (!isOn) throw new Error(`G4: ${id} was on a majority, and ${at} begins without it`);
    }
  }

  applied(from: Name, to: Name): void {
    const { epoch } = this.#world.at(from).epochs.at(-1)!;
    const promised = this.#promised.get(to) ?? 0;
    if (epoch < promised)
      throw new Error(`G6: ${to} took epoch ${epoch} after promising ${promised}`);
  }

  async look(): Promise<void> {
    for (const at of NAMES) {
      const { maxEpochPromised, cursor, isDiverged } = this.#world.at(at);
      const before = this.#promised.get(at) ?? 0;
      if (maxEpochPromised < before) throw new Error(`G6: ${at} took back a promise`);
      this.#promised.set(at, maxEpochPromised);
      for (const { id, hash } of await this.#world.entriesOf(at)) {
        const known = this.#hashes.get(id) ?? hash;
        if (known !== hash) throw new Error(`G2: ${id} is two entries`);
        this.#hashes.set(id, known);
      }
      if (at === 'w' || isDiverged) continue;
      const { global } = this.#world.machines[at].machine.digests();
      const place = hexOf(cursor.hash);
      const known = this.#digests.get(place) ?? global;
      if (known !== global) throw new Error(`G8: ${at} has other objects at ${cursor.seq}`);
      this.#digests.set(place, known);
    }
    await this.#noteDurable();
  }

  /** An entry of the epoch that is current for a majority, on that majority. */
  async #noteDurable(): Promise<void> {
    for (const at of NAMES) {
      const primary = this.#world.at(at);
      if (!isPrimary(primary)) continue;
      const start = primary.epochs.at(-1)!;
      const reached = NAMES.map((each) => {
        const { cursor, maxEpochPromised, isDiverged } = this.#world.at(each);
        const isWith = maxEpochPromised === start.epoch && !isDiverged;
        return isWith && cursor.epoch === start.epoch ? cursor.seq : 0;
      }).sort((left, right) => right - left);
      const majority = reached[1]!;
      if (majority < start.startSeq) continue;
      for (let seq = start.startSeq; seq <= majority; seq += 1) {
        this.#durable.set(`${start.epoch}.${seq}`, seq);
      }
    }
  }

  /** G5: what was written is on the chain, or kept apart where it was written, or said to be gone there. */
  async nothingLost(primary: Name): Promise<void> {
    const at = this.#world.at(primary);
    const missing = new Map(
      [...this.#written].filter(([id]) => standingOf(at, placeOf(id)) !== 'replicated'),
    );
    for (const name of NAMES) {
      const { machine } = this.#world.machines[name];
      const apart = await machine.divergentEntries(1000);
      const gone = this.#world.at(name).gone.flatMap(idsOf);
      note('gone', gone.length);
      for (const id of [...apart.map(({ epoch, seq }) => `${epoch}.${seq}`), ...gone]) {
        if (missing.get(id) !== name) throw new Error(`G5: ${name} says that ${id} is lost`);
        missing.delete(id);
      }
    }
    for (const [id, name] of missing) throw new Error(`G5: ${id} of ${name} is nowhere`);
  }
}

function placeOf(id: string): { readonly epoch: number; readonly seq: number } {
  const [epoch = 0, seq = 0] = id.split('.').map(Number);
  return { epoch, seq };
}

function idsOf({ epoch, first, last }: EntryRange): readonly string[] {
  return Array.from({ length: last - first + 1 }, (_, place) => `${epoch}.${first + place}`);
}

const reached = new Map<string, number>();

function note(what: string, count = 1): void {
  reached.set(what, (reached.get(what) ?? 0) + count);
}

async function run(steps: readonly Step[]): Promise<void> {
  const world = await World.open();
  const checks = new Checks(world);
  checks.started(1, 'dc1');
  let locals = 20;
  for (const each of steps) {
    const said = await runStep(world, checks, each, () => (locals += 1));
    note(`${each.do} ${said}`);
    await checks.look();
  }
  await settle(world, checks);
}

async function runStep(
  world: World,
  checks: Checks,
  each: Step,
  next: () => number,
): Promise<string> {
  switch (each.do) {
    case 'write': {
      const isWritten = await world.write(each.at);
      if (isWritten) await checks.wrote(each.at);
      return String(isWritten);
    }
    case 'local': {
      const token = aToken(next(), { local: true });
      return world.say(each.at, { type: 'token.set', presence: 'create', token });
    }
    case 'trim': {
      const upTo = world.at(each.at).cursor.seq - each.kept;
      return world.say(each.at, { type: 'global-log.trim', upTo });
    }
    case 'sync': {
      if (each.from === each.to) return 'same';
      const promised = world.at(each.to).maxEpochPromised;
      const said = await world.sync(each.from, each.to, each.count);
      if (said === 'applied' && promised > 0) checks.applied(each.from, each.to);
      return said;
    }
    case 'fence':
      return each.from === each.to ? 'same' : world.fence(each.to, each.from);
    case 'take':
      return each.from === each.to ? 'same' : world.take(each.from, each.to);
    case 'campaign':
      return campaign(world, checks, each.at, each.hears);
  }
}

async function campaign(
  world: World,
  checks: Checks,
  at: Name,
  hears: readonly Name[],
): Promise<string> {
  const epoch = Math.max(...NAMES.map((each) => world.at(each).maxEpochPromised)) + 1;
  const promises: Name[] = [];
  for (const each of new Set([at, ...hears])) {
    if ((await world.promise(each, at, epoch)) === 'granted') promises.push(each);
  }
  const said = await world.start(at, epoch, promises);
  if (said === 'applied') {
    checks.started(epoch, at);
    await checks.wrote(at);
  }
  return said;
}

/** Everybody hears everybody: one primary is left, and all of them are where it is. */
async function settle(world: World, checks: Checks): Promise<void> {
  let primary: Name | undefined;
  for (let round = 0; round < 6 && primary === undefined; round += 1) {
    const newest = ['dc1', 'dc2'].sort(
      (left, right) => lastEpoch(world, right as Name) - lastEpoch(world, left as Name),
    ) as Name[];
    for (const at of NAMES) {
      if (lastEpoch(world, newest[0]!) > lastEpoch(world, at)) await world.fence(at, newest[0]!);
      if (world.at(at).isDiverged) await world.take(newest[0]!, at);
    }
    for (const at of newest) {
      if (primary === undefined && (await campaign(world, checks, at, NAMES)) === 'applied')
        primary = at;
    }
  }
  if (primary === undefined) throw new Error('G14: nobody becomes the primary');
  for (const at of NAMES) {
    if (at === primary) continue;
    await world.fence(at, primary);
    if ((await world.sync(primary, at)) !== 'applied') await world.take(primary, at);
    const [here, there] = [world.at(at), world.at(primary)];
    if (hexOf(here.cursor.hash) !== hexOf(there.cursor.hash))
      throw new Error(`G14: ${at} stays behind`);
  }
  await checks.look();
  await checks.nothingLost(primary);
}

const lastEpoch = (world: World, at: Name): number => world.at(at).epochs.at(-1)!.epoch;

t.test(
  'random orders: no promise is broken, no history has two forms, nothing is lost',
  async (test) => {
    await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), run), {
      numRuns: 80,
      seed: 20_261_122,
    });
    for (const what of [
      'campaign applied',
      'sync applied',
      'sync fenced',
      'fence applied',
      'take applied',
    ]) {
      test.ok((reached.get(what) ?? 0) > 5, `${what}: ${reached.get(what)}`);
    }
    test.ok((reached.get('gone') ?? 0) > 0, `gone: ${reached.get('gone')}`);
  },
);
