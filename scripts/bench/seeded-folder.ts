// A data folder with tokens for one measurement. To make a million takes minutes, so they can be kept: what is
// measured is then a copy.

import { cpSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { seed } from './seed.ts';

export interface SeededFolder {
  /** The caller's to change. */
  readonly folder: string;
  /** NaN where they were there already. */
  readonly createsPerSecond: number;
}

/** `kept` is where tokens are kept between runs; undefined: nowhere. */
export async function seededFolder({
  tokens,
  workFolder,
  kept,
}: {
  readonly tokens: number;
  readonly workFolder: string;
  readonly kept: string | undefined;
}): Promise<SeededFolder> {
  const folder = join(workFolder, `tokens-${tokens}`);
  if (kept === undefined) return { folder, createsPerSecond: await making(folder, tokens) };
  const whole = join(kept, `tokens-${tokens}`);
  const createsPerSecond = existsSync(whole) ? Number.NaN : await makeWhole(whole, tokens);
  cpSync(whole, folder, { recursive: true });
  return { folder, createsPerSecond };
}

/** It has its name when it is complete: a run that was ended leaves nothing that looks like it. */
async function makeWhole(whole: string, tokens: number): Promise<number> {
  const unfinished = `${whole}.unfinished`;
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { recursive: true });
  const createsPerSecond = await making(unfinished, tokens);
  renameSync(unfinished, whole);
  return createsPerSecond;
}

function making(folder: string, tokens: number): Promise<number> {
  process.stderr.write(`bench: making ${tokens} tokens\n`);
  return seed(folder, tokens);
}
