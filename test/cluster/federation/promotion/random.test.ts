// Elections in any order: no promise counts twice, and what a majority has survives.
// Another draw: CONCLAVE_SEED=<seed>; more of them: CONCLAVE_RUNS=<count>.

import t from 'tap';
import { type Datacenter, PromotionWorld } from '../promotion-model.ts';
import { SEED } from './elections.ts';

const RUNS = Number(process.env.CONCLAVE_RUNS ?? 60);

/** Entries that were acknowledged as `majority`: hash by seq, for as long as nobody forces anything. */
class Durable {
  readonly #hashBySeq = new Map<number, string>();
  #seen = 0;

  note({ entries, majoritySeq }: Datacenter): void {
    for (const { seq, hash } of entries.slice(0, majoritySeq)) {
      this.#hashBySeq.set(seq, Buffer.from(hash).toString('hex'));
    }
    this.#seen = Math.max(this.#seen, majoritySeq);
  }

  get count(): number {
    return this.#seen;
  }

  missingIn({ entries }: Datacenter): number | undefined {
    for (const [seq, hash] of this.#hashBySeq) {
      const entry = entries[seq - 1];
      if (entry === undefined || Buffer.from(entry.hash).toString('hex') !== hash) return seq;
    }
    return undefined;
  }
}

t.test(
  'random: an epoch has one owner (G1), and what a majority has survives every election (G4)',
  async (test) => {
    let startCount = 0;
    let durableCount = 0;
    let divergentCount = 0;
    for (let seed = SEED; seed < SEED + RUNS; seed += 1) {
      const voters = ['dc1', 'dc2', 'dc3', 'dc4', 'dc5'].slice(0, seed % 2 === 0 ? 3 : 5);
      const world = new PromotionWorld(seed, voters);
      world.all.at(-1)!.isWitness = seed % 3 === 0;
      const { draw } = world.time;
      const below = (count: number): number => Math.floor(draw() * count);
      const any = (): Datacenter => world.all[below(world.all.length)]!;
      const durable = new Durable();
      const work: Promise<unknown>[] = [];
      for (const { promotion } of world.all) promotion.start();
      for (let step = 0; step < 150; step += 1) {
        const which = below(20);
        world.lossPart = which === 0 ? 0.2 : world.lossPart * 0.9;
        if (which === 1) world.cuts.add(`${any().name} ${any().name}`);
        else if (which === 2) world.cuts.clear();
        else if (which === 3)
          work.push(
            any()
              .promotion.elect()
              .catch(() => undefined),
          );
        else if (which === 4)
          work.push(
            any()
              .promotion.handOver(any().name)
              .catch(() => undefined),
          );
        else if (which < 10) any().write(`${step}`);
        else {
          const [follower, primary] = [any(), any()];
          if (!world.cuts.has(`${follower.name} ${primary.name}`))
            follower.follow(primary, 1 + below(4));
        }
        await world.time.run(below(30));
        for (const each of world.all) {
          if (!each.isPrimary) continue;
          durable.note(each);
        }
        const latest = world.latest;
        const missing = durable.missingIn(latest);
        if (missing !== undefined) {
          world.violations.push(`G4: ${latest.name} lacks ${missing}, which a majority had`);
        }
        if (world.violations.length > 0) break;
      }
      world.cuts.clear();
      world.lossPart = 0;
      await world.time.run(60_000);
      for (const { promotion } of world.all) promotion.stop();
      await Promise.all(work);
      startCount += world.starts.size;
      durableCount += durable.count;
      divergentCount += world.all.filter(({ divergent }) => divergent.length > 0).length;
      if (world.violations.length > 0) {
        const again = `CONCLAVE_SEED=${seed} CONCLAVE_RUNS=1 node ${process.argv[1]}`;
        test.fail(`seed ${seed}; again: ${again}\n${world.violations.join('\n')}`);
        return;
      }
    }
    test.comment(
      `seeds ${SEED} to ${SEED + RUNS - 1}: ${startCount} epochs, ${durableCount} entries, ${divergentCount} suffixes`,
    );
    if (RUNS < 60) return;
    test.ok(startCount > RUNS && durableCount > RUNS && divergentCount > 0, 'it came to all of it');
  },
);
