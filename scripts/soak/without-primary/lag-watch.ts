// Holds what servers tell of lag against what is so: while the primary is away its secondaries say that they are,
// for as long as they are, and do not count as ready where that is asked; the primary says what each of them lacks.

import type { NodeDescription } from '../../cluster/cluster-files.ts';
import type { Absence } from './absence.ts';
import type { Asker } from './asker.ts';

export interface LagWatchOptions {
  readonly asker: Asker;
  readonly absence: Absence;
  readonly primary: string;
}

interface Told {
  readonly HeadPosition: string;
  readonly Datacenters: readonly {
    readonly Name: string;
    readonly State: string;
    readonly Position: string | null;
    readonly LagEntries: number | null;
    readonly LagSeconds: number | null;
  }[];
}

/** Until all have noticed, on a machine that has no time: then the words are judged. */
const NOTICED_MS = 30_000;
const READY_LAG = '10s';
const MS_OF_SECOND = 1_000;

export class LagWatch {
  readonly #options: LagWatchOptions;
  readonly #mostSeconds = new Map<string, number>();
  readonly #mostEntries = new Map<string, number>();
  readonly #caughtUpMs = new Map<string, number>();
  /** What each secondary said itself that it has. */
  readonly #seqs = new Map<string, number>();
  #mendedMs: number | undefined;
  lookCount = 0;

  constructor(options: LagWatchOptions) {
    this.#options = options;
  }

  /** The primary can be reached again from now on. */
  mended(): void {
    this.#mendedMs = performance.now();
  }

  /** Of the secondaries by name: the most seconds that they told, the most entries that the primary told. */
  figures(): readonly (readonly [string, string])[] {
    return [...this.#mostSeconds].flatMap(([name, seconds]) => {
      const caughtUpMs = this.#caughtUpMs.get(name);
      const caughtUp = caughtUpMs === undefined ? 'never' : `${(caughtUpMs / 1_000).toFixed(1)} s`;
      return [
        [`${name}: most lag that it told`, `${seconds.toFixed(0)} s`],
        [`${name}: most that it lacked, by the primary`, `${this.#mostEntries.get(name)} entries`],
        [`${name}: has everything, after the primary was back`, caughtUp],
      ] as const;
    });
  }

  async look(node: NodeDescription): Promise<void> {
    const { asker, absence, primary } = this.#options;
    const { http, datacenter } = node;
    const wasAway = absence.watch();
    const lastsMs = absence.lastsMs ?? 0;
    const answer = await asker.ask({ http, path: '/v1/acl/replication' });
    if (answer?.status !== 200) return;
    this.lookCount += 1;
    const told = JSON.parse(answer.text) as Told;
    const isJudged = lastsMs > NOTICED_MS && wasAway();
    if (datacenter === primary) this.#lookAtFollowers(node, told, isJudged);
    else this.#lookAtOwn(node, told, isJudged ? lastsMs : undefined);
    if (isJudged && datacenter !== primary) await this.#mustNotBeReady(node, wasAway);
  }

  #lookAtOwn({ name, datacenter }: NodeDescription, told: Told, awayMs: number | undefined): void {
    const { asker } = this.#options;
    const own = told.Datacenters.find(({ Name }) => Name === datacenter);
    const seconds = own?.LagSeconds ?? 0;
    this.#seqs.set(datacenter, seqIn(own?.Position));
    this.#mostSeconds.set(datacenter, Math.max(this.#mostSeconds.get(datacenter) ?? 0, seconds));
    if (awayMs === undefined) {
      this.#noteCaughtUp(datacenter, own);
      return;
    }
    const least = (awayMs - NOTICED_MS) / MS_OF_SECOND;
    if (own?.State !== 'away') asker.fault(`${name}: says ${own?.State} without the primary`);
    if (seconds < least)
      asker.fault(`${name}: tells a lag of ${seconds} s, and it is ${least} s at least`);
  }

  #noteCaughtUp(datacenter: string, own: Told['Datacenters'][number] | undefined): void {
    if (this.#mendedMs === undefined || this.#caughtUpMs.has(datacenter)) return;
    if (own?.State === 'live' && own.LagEntries === 0 && own.LagSeconds === 0)
      this.#caughtUpMs.set(datacenter, performance.now() - this.#mendedMs);
  }

  #lookAtFollowers({ name }: NodeDescription, told: Told, isJudged: boolean): void {
    const { asker, primary } = this.#options;
    for (const { Name, State, LagEntries } of told.Datacenters) {
      if (Name === primary || LagEntries === null) continue;
      this.#mostEntries.set(Name, Math.max(this.#mostEntries.get(Name) ?? 0, LagEntries));
      const lacks = seqIn(told.HeadPosition) - (this.#seqs.get(Name) ?? 0);
      if (!isJudged) continue;
      if (State !== 'away') asker.fault(`${name}: says ${State} of ${Name}, which is cut off`);
      if (LagEntries < lacks)
        asker.fault(
          `${name}: says that ${Name} lacks ${LagEntries} entries, and it lacks ${lacks}`,
        );
    }
  }

  async #mustNotBeReady({ name, http }: NodeDescription, wasAway: () => boolean): Promise<void> {
    const { asker } = this.#options;
    const [plain, bound] = await Promise.all([
      asker.ask({ http, path: '/readyz' }),
      asker.ask({ http, path: `/readyz?max_lag=${READY_LAG}` }),
    ]);
    if (!wasAway()) return;
    if (plain !== undefined && plain.status !== 200)
      asker.fault(`${name}: is not ready without the primary: ${plain.text}`);
    if (bound !== undefined && bound.status !== 503)
      asker.fault(`${name}: is said to be less than ${READY_LAG} behind`);
  }
}

function seqIn(position: string | null | undefined): number {
  return Number(position?.split('.')[1] ?? 0);
}
