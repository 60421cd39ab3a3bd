// The generations of the state on a node's disk. Which one is valid is written in the log's database, in
// the batch that makes it so; every other is what an interrupted or finished replacement left behind.

import { readGeneration } from '../../cluster/log/durable-log.ts';
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
 * To be called before anything is written to the log's database, and before the state is opened. Throws when that
 * database is new and a state is there that only a log could have named, or when it names one that is not there while
 * others are: one of the two was lost, or is an old copy, and what is there must not be deleted.
 */
export async function requireLogOfState(platform: Databases, logKv: Kv): Promise<void> {
  const generations = await platform.kvGenerations('state');
  if (await isEmpty(logKv)) {
    const named = generations.filter((generation) => generation > 0);
    if (named.length === 0) return;
    throw new Error(
      `the data folder has ${foldersOf(named)}, but its log is gone, which says whether that is valid: ${WAY_BACK}`,
    );
  }
  const current = readGeneration(logKv);
  if (generations.length === 0 || generations.includes(current)) return;
  throw new Error(
    `the data folder has ${foldersOf(generations)}, and its log names ${foldersOf([current])}, which is not there: ` +
      `log and state are not of one copy; ${WAY_BACK}`,
  );
}

const WAY_BACK =
  'of several servers, move the folder away and let this one join anew (never put back an old copy of it); of ' +
  'one that is alone, restore it from a copy';

function foldersOf(generations: readonly number[]): string {
  return generations
    .map((generation) => (generation === 0 ? 'state' : `state-${generation}`))
    .join(', ');
}

/**
 * Deletes what is not valid, if there is any, behind `requireValid`, which rejects where the one that is opened and its
 * log do not go together: then the others may be what is left of the data.
 */
export async function dropOtherGenerations(
  platform: Databases,
  current: number,
  requireValid: () => Promise<unknown>,
): Promise<void> {
  const all = await platform.kvGenerations('state');
  const others = all.filter((generation) => generation !== current);
  if (others.length === 0) return;
  await requireValid();
  for (const generation of others) await drop(platform, generation);
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
