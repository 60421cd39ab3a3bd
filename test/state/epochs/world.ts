// What tests of moving the primary share.

import type { Change } from '../../../src/state/commands/commands.ts';
import { decodeEntry } from '../../../src/state/global-log/global-entry.ts';
import type { GlobalSnapshot } from '../../../src/state/global-log/global-snapshot.ts';
import type { Replication } from '../../../src/state/global-log/replication.ts';
import { MemoryKv } from '../../support/memory-kv.ts';
import { aPolicy } from '../../support/state-and-service/fixtures.ts';
import { BUILTINS, MachineHarness } from '../../support/state-and-service/machine-harness.ts';

export const NAMES = ['dc1', 'dc2', 'w'] as const;

export type Name = (typeof NAMES)[number];

export const DATACENTERS = [
  { name: 'dc1', isVoter: true, isWitness: false },
  { name: 'dc2', isVoter: true, isWitness: false },
  { name: 'w', isVoter: true, isWitness: true },
];

/** Two datacenters and a witness, of which the first one is primary. */
export class World {
  readonly machines: Readonly<Record<Name, MachineHarness>> = {
    dc1: new MachineHarness(new MemoryKv()),
    dc2: new MachineHarness(new MemoryKv()),
    w: new MachineHarness(new MemoryKv()),
  };
  #written = 0;

  static async open(): Promise<World> {
    const world = new World();
    for (const name of NAMES) {
      const begin = { datacenter: name, primary: 'dc1', isWitness: name === 'w' };
      await world.machines[name].one({ type: 'global-log.begin', ...begin });
    }
    await world.machines.dc1.one(BUILTINS);
    const two = [DATACENTERS[0]!, DATACENTERS[1]!];
    await world.say('dc1', { type: 'datacenters.set', datacenters: two, majoritySeq: 0 });
    await world.sync('dc1', 'dc2');
    const majoritySeq = world.at('dc1').cursor.seq;
    await world.say('dc1', { type: 'datacenters.set', datacenters: DATACENTERS, majoritySeq });
    await world.sync('dc1', 'dc2');
    await world.sync('dc1', 'w');
    return world;
  }

  at(name: Name): Replication {
    return this.machines[name].machine.replication()!;
  }

  async say(name: Name, change: Change): Promise<string> {
    const outcome = await this.machines[name].one(change);
    if (outcome.kind === 'refused') return outcome.code;
    return outcome.answer.type === 'verdict' ? outcome.answer.verdict : outcome.answer.type;
  }

  /** A new policy; whether it was written. */
  async write(name: Name): Promise<boolean> {
    this.#written += 1;
    const policy = aPolicy(this.#written);
    return (await this.say(name, { type: 'policy.set', presence: 'create', policy })) === 'policy';
  }

  /** Entries of one, applied by the other. */
  async sync(from: Name, to: Name, countMax = 1000): Promise<string> {
    const [source, target] = [this.at(from), this.at(to)];
    const { machine } = this.machines[from];
    const found = await machine.globalEntries(target.cursor.seq, 1 << 20);
    if (found === undefined || source.isDiverged) return 'not-kept';
    const entries = found.slice(0, countMax);
    const last = entries.at(-1);
    if (last === undefined) return 'nothing';
    const { epoch: lastEpoch, seq } = decodeEntry(last);
    const hash = machine.globalHashAt(seq)!;
    const { epoch } = source.epochs.at(-1)!;
    const change = { epoch, from: target.cursor, entries, to: { epoch: lastEpoch, seq, hash } };
    return await this.say(to, { type: 'global-log.apply', ...change });
  }

  promise(voter: Name, candidate: Name, epoch: number): Promise<string> {
    const at = this.at(candidate).cursor;
    return this.say(voter, { type: 'epoch.promise', epoch, candidate, at });
  }

  start(name: Name, epoch: number, promises: readonly Name[], isForced = false): Promise<string> {
    const isFromFork = this.at(name).isDiverged;
    return this.say(name, { type: 'epoch.start', epoch, promises, isForced, isFromFork });
  }

  fence(name: Name, by: Name): Promise<string> {
    return this.say(name, { type: 'epoch.fence', epochs: this.at(by).epochs });
  }

  /** All objects of one, taken in by the other. */
  async take(from: Name, to: Name): Promise<string> {
    const snapshot = await this.machines[from].machine.globalSnapshot();
    return snapshot === undefined ? 'not-kept' : await this.takeIn(snapshot, to);
  }

  async takeIn(snapshot: GlobalSnapshot, to: Name): Promise<string> {
    const { header } = snapshot;
    const id = 'one';
    let verdict = await this.say(to, { type: 'global-snapshot.begin', id, header });
    let number = 0;
    for await (const rows of snapshot.pieces()) {
      number += 1;
      if (verdict !== 'applied' || to === 'w') break;
      verdict = await this.say(to, { type: 'global-snapshot.chunk', id, number, rows });
    }
    await snapshot.close();
    if (verdict !== 'applied') return verdict;
    const carry = { type: 'global-snapshot.carry', id } as const;
    await this.say(to, { ...carry, number: 1, keys: [], isLast: false });
    const keys = await this.machines[to].machine.localRows(undefined, 1000);
    await this.say(to, { ...carry, number: 2, keys, isLast: true });
    return await this.say(to, { type: 'global-snapshot.commit', id });
  }

  async entriesOf(name: Name): Promise<readonly { readonly id: string; readonly hash: string }[]> {
    const { machine } = this.machines[name];
    const kept = machine.keptEntries();
    if (kept === undefined) return [];
    const entries = (await machine.globalEntries(kept.first - 1, 1 << 24))!;
    return entries.map((bytes) => {
      const { epoch, seq } = decodeEntry(bytes);
      return { id: `${epoch}.${seq}`, hash: hexOf(machine.globalHashAt(seq)!) };
    });
  }
}

export const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
