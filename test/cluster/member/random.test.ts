// Members that come, go, die, move and are cut off at random, while others write: whatever was answered
// stays, there is one group, and when all is quiet everybody is in it.
// Another draw: CONCLAVE_SEED=<seed>, and CONCLAVE_RUNS=<how many>.

import t from 'tap';
import {
  type MemberNode,
  type MemberSettings,
  MemberWorld,
} from '../../support/simulated/member-world.ts';
import { streamOf } from '../../support/simulated/simulated-world.ts';

const RUNS = Number(process.env.CONCLAVE_RUNS ?? 6);
const FIRST_SEED = Number(process.env.CONCLAVE_SEED ?? 1);
const STEPS = 60;

const SETTINGS: MemberSettings = {
  groupLimits: { keptCount: 10, heldCountMax: 200 },
  timing: { cleanupAfterMs: 60_000, replaceAfterMs: 20_000, intakeIdleMs: 5_000 },
};

class Run {
  readonly world: MemberWorld;
  readonly #draw: () => number;
  nodes: MemberNode[] = [];
  #freshCount = 0;
  #port = 9_000;
  readonly did: string[] = [];

  constructor(seed: number) {
    this.#draw = streamOf(seed);
    this.world = new MemberWorld(seed);
  }

  async go(): Promise<void> {
    this.nodes = [...(await this.world.group(this.#below(2) === 0 ? 3 : 5, SETTINGS))];
    for (let step = 0; step < STEPS; step += 1) {
      await this.#step();
      await this.world.run(this.#below(800));
    }
    await this.#calm();
  }

  /** All that is there comes up, sees each other, and becomes one group. */
  async #calm(): Promise<void> {
    const { world } = this;
    world.net.heal();
    world.net.delayMs = 1;
    for (const node of this.nodes) if (!node.isUp) await world.start(node);
    await world.until(
      'all are in the group or know that they are not',
      () => {
        this.nodes = this.nodes.filter(({ stands }) => stands !== 'removed');
        const leader = this.nodes.find((node) => node.isLeader);
        const names = leader?.up.groupRecord().members.map(({ id }) => id) ?? [];
        return (
          this.nodes.every(({ id }) => names.includes(id)) && names.length === this.nodes.length
        );
      },
      200_000,
    );
    const leader = await world.settled(this.nodes, 200_000);
    await world.writes(leader, 3);
    await world.checkEven(this.nodes);
  }

  async #step(): Promise<void> {
    const pick = this.#below(12);
    const node = this.nodes[this.#below(this.nodes.length)]!;
    if (pick < 4) await this.#write();
    else if (pick === 4) this.#crash(node);
    else if (pick < 7) await this.#startOne();
    else if (pick === 7) this.#cut(node);
    else if (pick === 8) this.world.net.heal();
    else if (pick === 9) await this.#change();
    else if (pick === 10) await this.#move(node);
    else this.world.net.delayMs = 1 + this.#below(15);
  }

  async #write(): Promise<void> {
    const leader = this.nodes.find((node) => node.isLeader);
    if (leader === undefined) return;
    try {
      await this.world.write(leader);
    } catch {
      this.did.push('a write came to nothing');
    }
  }

  #crash(node: MemberNode): void {
    if (!node.isUp || this.nodes.filter((each) => !each.isUp).length >= 2) return;
    this.did.push(`crash ${node.name}`);
    this.world.crash(node, { lands: this.#draw() < 0.5 });
  }

  async #startOne(): Promise<void> {
    const down = this.nodes.find((node) => !node.isUp);
    if (down === undefined) return;
    this.did.push(`start ${down.name}`);
    await this.world.start(down);
  }

  #cut(node: MemberNode): void {
    const others = this.nodes.filter((each) => each !== node && this.#draw() < 0.6);
    this.did.push(`cut ${node.name} from ${others.map(({ name }) => name).join(' ')}`);
    this.world.cut([node], others);
  }

  /** Somebody is added, removed or replaced, while all are there: what is lost must be no quorum. */
  async #change(): Promise<void> {
    const { world } = this;
    await this.#calm();
    // A learner has no vote yet: without it the others are one fewer than they seem.
    await world.until('all vote', () => this.nodes.every((node) => !node.group.includes('(')));
    const leader = this.nodes.find((node) => node.isLeader)!;
    const others = this.nodes.filter((node) => node !== leader);
    const chosen = others[this.#below(others.length)]!;
    const kind = this.#below(3);
    if (kind === 0 && this.nodes.length < 6) {
      this.#freshCount += 1;
      this.did.push(`add f${this.#freshCount}`);
      const join = [leader.name, chosen.name];
      const fresh = world.node(`f${this.#freshCount}`, { ...SETTINGS, join });
      this.nodes.push(fresh);
      await world.start(fresh);
    } else if (kind === 1 && this.nodes.length > 3) {
      this.did.push(`remove ${chosen.name}`);
      await world.result(leader.up.removeMember(chosen.up.node));
    } else if (kind === 2) {
      this.did.push(`a new disk for ${chosen.name}`);
      world.crash(chosen);
      const fresh = world.node(chosen.name, { ...SETTINGS, join: [leader.name] });
      this.nodes = this.nodes.map((each) => (each === chosen ? fresh : each));
      await world.start(fresh);
      await world.until(
        'it is in',
        () => leader.up.groupRecord().members.some(({ id }) => id === fresh.id),
        200_000,
      );
    }
  }

  async #move(node: MemberNode): Promise<void> {
    if (!node.isUp) return;
    this.did.push(`move ${node.name}`);
    await this.world.stop(node);
    this.#port += 1;
    // Whoever moves knows where the others are: retry_join is by name.
    node.settings = {
      ...node.settings,
      join: this.nodes.map(({ name }) => name),
      port: this.#port,
    };
    await this.world.start(node);
  }

  #below(count: number): number {
    return Math.floor(this.#draw() * count);
  }
}

t.test(
  'members: whatever comes and goes, what was answered stays and all come together',
  async (test) => {
    for (let seed = FIRST_SEED; seed < FIRST_SEED + RUNS; seed += 1) {
      const rerun = `CONCLAVE_SEED=${seed} CONCLAVE_RUNS=1 node ${process.argv[1]}`;
      const run = new Run(seed);
      try {
        await run.go();
      } catch (error) {
        test.fail(`${rerun}\n${run.did.join(', ')}\n${String(error).slice(0, 3_000)}`);
        continue;
      }
      test.same(run.world.violations, [], rerun);
      const ids = new Set(run.nodes.map(({ clusterId }) => clusterId));
      test.equal(ids.size, 1, rerun);
    }
  },
);
