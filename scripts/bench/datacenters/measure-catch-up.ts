// How fast a secondary catches up: with entries that were written while the line was cut, and with a
// snapshot when it has nothing at all; and what memory both sides take meanwhile.

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { dataFolderOf } from '../../cluster/cluster-plan.ts';
import { asExpected, runLoad } from '../load.ts';
import { MemoryWatch, processorMs } from '../process-figures.ts';
import { seed } from '../seed.ts';
import { DatacentersUnderLoad, PRIMARY, SECONDARY, until } from './datacenters-under-load.ts';
import { CREATE_REQUEST } from './measure-lag.ts';

export interface CatchUpFigures {
  readonly what: 'entries' | 'snapshot';
  readonly delayMs: number;
  readonly count: number;
  /** From the first entry that arrived to the last; of a snapshot, from the start of the server that lacks it. */
  readonly seconds: number;
  readonly perSecond: number;
  /** Processor time of the two leaders for a thousand. */
  readonly primaryMsPerThousand: number;
  readonly secondaryMsPerThousand: number;
  /** The most that the leaders took. */
  readonly primaryMib: number;
  readonly secondaryMib: number;
}

const WRITE_CONNECTIONS = 64;
const WRITE_SLICE_MS = 1_000;
/** Looking takes time of the server that is looked at. */
const LOOK_MS = 100;

/** Cuts the line, writes so many entries at the primary, and heals it. */
export async function measureEntries(
  datacenters: DatacentersUnderLoad,
  count: number,
  delayMs: number,
): Promise<CatchUpFigures> {
  await datacenters.converged(datacenters.allNames);
  datacenters.delay(delayMs);
  datacenters.cut();
  const primary = await datacenters.leader(PRIMARY);
  const secondary = await datacenters.leader(SECONDARY);
  const startSeq = await datacenters.seq(primary);
  while ((await datacenters.seq(primary)) < startSeq + count) await write(datacenters);
  const goal = await datacenters.seq(primary);
  const watched = watch(datacenters, primary, secondary);
  datacenters.heal();
  const looks = async (): Promise<number> => await datacenters.seq(secondary);
  let fromSeq = startSeq;
  await until('entries arrive', async () => {
    fromSeq = await looks();
    return fromSeq > startSeq;
  });
  const fromMs = performance.now();
  await until('all entries are there', async () => (await looks()) >= goal, LOOK_MS);
  const seconds = (performance.now() - fromMs) / 1000;
  return { what: 'entries', delayMs, ...watched(goal - fromSeq, seconds) };
}

/** So many objects for a datacenter that has nothing; one server on each side. */
export async function measureSnapshot(
  workFolder: string,
  count: number,
  delayMs: number,
): Promise<CatchUpFigures> {
  const folder = join(workFolder, 'snapshot');
  const datacenters = await DatacentersUnderLoad.open(folder, 1);
  const [primary, secondary] = datacenters.allNames as readonly [string, string];
  try {
    await seed(dataFolderOf(folder, primary), count);
    const { cluster } = datacenters;
    cluster.start(primary);
    await cluster.ready(primary);
    datacenters.delay(delayMs);
    const { digestGlobal: goal } = await datacenters.figures(primary);
    const fromMs = performance.now();
    cluster.start(secondary);
    const watched = watch(datacenters, primary, secondary);
    await until(
      'the snapshot is in place',
      async () => {
        const { digestGlobal } = await datacenters.figures(secondary);
        return digestGlobal === goal;
      },
      LOOK_MS,
    );
    const seconds = (performance.now() - fromMs) / 1000;
    return { what: 'snapshot', delayMs, ...watched(count, seconds) };
  } finally {
    await datacenters.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

type Watched = Omit<CatchUpFigures, 'what' | 'delayMs'>;

/** Gives what tells the figures, once it is done. */
function watch(
  datacenters: DatacentersUnderLoad,
  ...names: readonly [string, string]
): (count: number, seconds: number) => Watched {
  const pids = names.map((name) => datacenters.pid(name));
  const memory = new MemoryWatch(pids);
  const before = pids.map(processorMs);
  return (count, seconds) => {
    const [primaryMib = Number.NaN, secondaryMib = Number.NaN] = memory.end();
    const perThousand = (place: number): number =>
      (1000 * (processorMs(pids[place]!) - before[place]!)) / count;
    return {
      ...{ count, seconds, perSecond: count / seconds, primaryMib, secondaryMib },
      primaryMsPerThousand: perThousand(0),
      secondaryMsPerThousand: perThousand(1),
    };
  };
}

async function write(datacenters: DatacentersUnderLoad): Promise<void> {
  const result = await runLoad({
    host: '127.0.0.1',
    ports: (await datacenters.ports(PRIMARY)).slice(0, 1),
    connections: WRITE_CONNECTIONS,
    durationMs: WRITE_SLICE_MS,
    warmUpMs: 0,
    expectedStatus: 200,
    request: () => CREATE_REQUEST,
  });
  asExpected(result);
}
