// The generations of the state on a node's disk. Which one is valid is written in the log's database, in
// the batch that makes it so; every other is what an interrupted or finished replacement left behind.

import type { Kv } from '../../cluster/platform/kv.ts';
import type { Generations } from '../state/snapshot/generations.ts';
import type { Platform } from './platform.ts';

type Databases = Pick<Platform, 'openKv' | 'dropKv' | 'kvGenerations' | 'logger'>;

/** Lets a machine that is opened on generation `current` take in others beside it. */
export function generationsOf(
  platform: Databases,
  current: number,
  onFatal: (cause: Error) => void,
): Generations {
  let inUse = current;
  const onFailure = (generation: number, cause: Error): void => {
    if (generation === inUse) onFatal(cause);
    else platform.logger.error({ cause, generation }, 'a state that is taken in cannot be kept');
  };
  return {
    current,
    open: async (generation) => {
      await platform.dropKv('state', generation);
      return platform.openKv('state', generation, (cause) => onFailure(generation, cause));
    },
    adopted: (generation) => {
      inUse = generation;
    },
    discard: (generation, kv) => drop(platform, generation, kv),
  };
}

/**
 * To be called before anything is written to the log's database. Throws when that database is new and a
 * state is there that only a log could have named: it was lost, and what it named must not be deleted.
 */
export async function requireLogOfState(platform: Databases, logKv: Kv): Promise<void> {
  const others = (await platform.kvGenerations('state')).filter((generation) => generation > 0);
  if (others.length === 0 || !(await isEmpty(logKv))) return;
  const folders = others.map((generation) => `state-${generation}`).join(', ');
  throw new Error(
    `the data folder has ${folders}, but its log is gone, which says whether that is valid: of ` +
      'several servers, move the folder away and let this one join anew (never put back an old copy of it); of ' +
      'one that is alone, restore it from a copy',
  );
}

/** Deletes what is not valid. After the valid state and its log were opened. */
export async function dropOtherGenerations(platform: Databases, current: number): Promise<void> {
  for (const generation of await platform.kvGenerations('state')) {
    if (generation !== current) await drop(platform, generation);
  }
}

async function drop(platform: Databases, generation: number, open?: Kv): Promise<void> {
  try {
    await open?.close();
    await platform.dropKv('state', generation);
  } catch (cause) {
    const says = 'a state that is not used any more cannot be deleted; the next start tries again';
    platform.logger.warn({ cause, generation }, says);
  }
}

async function isEmpty(kv: Kv): Promise<boolean> {
  for await (const rows of kv.rows({ from: Uint8Array.of(0), to: Uint8Array.of(0xff), limit: 1 })) {
    if (rows.length > 0) return false;
  }
  return true;
}
