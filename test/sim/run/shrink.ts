// Makes a run that fails shorter: fewer clients, fewer faults, an earlier end, as long as the same
// checker still finds something. What is left is where to look.

import type { Cuts } from './cuts.ts';
import type { RunOptions } from './run-options.ts';
import type { RunResult } from './run-seed.ts';

const RUNS_MAX = 120;

export interface Shrunk {
  readonly cuts: Cuts;
  readonly result: RunResult;
  readonly runCount: number;
}

export async function shrink(
  options: RunOptions,
  failed: RunResult,
  run: (cuts: Cuts) => Promise<RunResult>,
): Promise<Shrunk> {
  const shrinking = new Shrinking(options, failed, run);
  await shrinking.endEarlier();
  await shrinking.withoutSnapshots();
  await shrinking.withoutDeputies();
  await shrinking.withoutGrants();
  await shrinking.withoutLocalRights();
  await shrinking.withoutChangedTokens();
  await shrinking.withoutExiles();
  await shrinking.withoutRestores();
  await shrinking.withoutForks();
  await shrinking.withoutPutBacks();
  await shrinking.withoutAbsences();
  await shrinking.withoutRushes();
  await shrinking.withoutForeigners();
  await shrinking.withoutPairs();
  await shrinking.withoutOlder();
  await shrinking.fewerClients();
  await shrinking.fewerFaults();
  await shrinking.fewerClients();
  return shrinking.best();
}

class Shrinking {
  readonly #options: RunOptions;
  readonly #run: (cuts: Cuts) => Promise<RunResult>;
  readonly #checker: string | undefined;
  #cuts: Cuts = {};
  #result: RunResult;
  #runCount = 0;

  constructor(options: RunOptions, failed: RunResult, run: (cuts: Cuts) => Promise<RunResult>) {
    this.#options = options;
    this.#run = run;
    this.#result = failed;
    this.#checker = failed.violation?.checker;
  }

  best(): Shrunk {
    return { cuts: this.#cuts, result: this.#result, runCount: this.#runCount };
  }

  /** What comes after the failure has no part in it. */
  async endEarlier(): Promise<void> {
    const atMs = this.#result.violation?.atMs ?? this.#options.safetyMs;
    if (atMs < this.#options.safetyMs) await this.#try({ safetyMs: Math.ceil(atMs) + 1 });
  }

  async withoutSnapshots(): Promise<void> {
    if (this.#options.limits.keptCount !== undefined) await this.#try({ keepsAll: true });
  }

  async withoutDeputies(): Promise<void> {
    if (this.#options.federation?.hasDeputies === true) await this.#try({ hasNoDeputies: true });
  }

  async withoutGrants(): Promise<void> {
    if (this.#options.federation?.hasGrants === true) await this.#try({ hasNoGrants: true });
  }

  async withoutLocalRights(): Promise<void> {
    if (this.#options.federation?.hasLocalRights === true) {
      await this.#try({ hasNoLocalRights: true });
    }
  }

  async withoutChangedTokens(): Promise<void> {
    if (this.#options.federation?.hasChangedTokens === true) {
      await this.#try({ hasNoChangedTokens: true });
    }
  }

  async withoutExiles(): Promise<void> {
    if (this.#options.plan.some(({ of }) => of === 'exile')) await this.#try({ hasNoExiles: true });
  }

  async withoutRestores(): Promise<void> {
    if (this.#options.plan.some(({ of }) => of === 'restore')) {
      await this.#try({ hasNoRestores: true });
    }
  }

  async withoutForks(): Promise<void> {
    if (this.#options.plan.some(({ of }) => of === 'fork')) await this.#try({ hasNoForks: true });
  }

  async withoutPutBacks(): Promise<void> {
    if (this.#options.plan.some(({ of }) => of === 'put-back')) {
      await this.#try({ hasNoPutBacks: true });
    }
  }

  async withoutAbsences(): Promise<void> {
    if (this.#options.plan.some(({ of }) => of === 'absence')) {
      await this.#try({ hasNoAbsences: true });
    }
  }

  async withoutRushes(): Promise<void> {
    if (this.#options.plan.some(({ of }) => of === 'rush')) await this.#try({ hasNoRushes: true });
  }

  async withoutForeigners(): Promise<void> {
    if (this.#options.plan.some(({ of }) => of === 'foreign')) {
      await this.#try({ hasNoForeigners: true });
    }
  }

  async withoutPairs(): Promise<void> {
    if (this.#options.plan.some(({ of }) => of === 'pair')) await this.#try({ hasNoPairs: true });
  }

  async withoutOlder(): Promise<void> {
    const { olderHosts = [] } = this.#options.federation ?? {};
    if (olderHosts.length > 0) await this.#try({ areAllNew: true });
  }

  async fewerClients(): Promise<void> {
    const count = this.#cuts.clientCount ?? this.#options.clientCount;
    for (let fewer = 1; fewer < count; fewer += 1) {
      if (await this.#try({ clientCount: fewer })) return;
    }
  }

  /** Leaves out halves, then quarters, down to single faults. */
  async fewerFaults(): Promise<void> {
    let places = this.#options.plan.map((_, place) => place);
    if (await this.#try({ only: [] })) return;
    for (let size = Math.ceil(places.length / 2); size >= 1; ) {
      const before = places.length;
      for (let from = 0; from < places.length; ) {
        const fewer = places.filter((_, place) => place < from || place >= from + size);
        if (await this.#try({ only: fewer })) places = fewer;
        else from += size;
      }
      if (size === 1 && places.length === before) return;
      size = size === 1 ? 1 : Math.ceil(size / 2);
      if (this.#runCount >= RUNS_MAX) return;
    }
  }

  async #try(more: Cuts): Promise<boolean> {
    if (this.#runCount >= RUNS_MAX) return false;
    this.#runCount += 1;
    const cuts = { ...this.#cuts, ...more };
    const result = await this.#run(cuts);
    if (result.violation === undefined || result.violation.checker !== this.#checker) return false;
    this.#cuts = cuts;
    this.#result = result;
    return true;
  }
}
