// Files that are there whole or not at all: written beside their place, synced, then renamed into it.
// What is found under the name is never half written, whatever ends the process or the machine. A half of it that is
// left behind holds secrets, too, so none is by a signal that can be heard.

import { randomUUID } from 'node:crypto';
import { constants, createReadStream, rmSync } from 'node:fs';
import { lstat, open, realpath, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { flushFolder } from './durable-files.ts';

/** A file on its way into its place. */
export interface FileInProgress {
  write(chunk: Uint8Array): Promise<void>;
  /** What was written, as the disk gives it back. */
  readBack(): AsyncIterable<Uint8Array>;
  /** It is on disk, and takes the place of whatever had its name. */
  commit(): Promise<void>;
  /** Leaves no trace. Harmless after `commit`. */
  discard(): Promise<void>;
}

/**
 * Opens a file that only its owner may read; a link leads to the file that it stands for. Rejects when the folder
 * cannot be written to, or what has the name is no file: a device or a pipe would be replaced by one.
 */
export async function createWholeFile(given: string): Promise<FileInProgress> {
  const path = await placeOf(given);
  const beside = join(dirname(path), `.${basename(path)}.${randomUUID().slice(0, 8)}.partial`);
  const { O_CREAT, O_EXCL, O_WRONLY } = constants;
  const handle = await open(beside, O_CREAT | O_EXCL | O_WRONLY, 0o600);
  const stopListening = removedBySignals(beside);
  let isOver = false;
  return {
    write: async (chunk) => {
      await handle.writeFile(chunk);
    },
    readBack: () => createReadStream(beside),
    commit: async () => {
      await handle.sync();
      await handle.close();
      await rename(beside, path);
      stopListening();
      isOver = true;
      flushFolder(dirname(path));
    },
    discard: async () => {
      if (isOver) return;
      isOver = true;
      await handle.close().catch(() => undefined);
      await rm(beside, { force: true });
      stopListening();
    },
  };
}

const ENDING_SIGNALS: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/** Whoever ends the process in the middle finds nothing there, and the process ended by that signal. */
function removedBySignals(path: string): () => void {
  const stopListening = (): void => {
    for (const each of ENDING_SIGNALS) process.off(each, onSignal);
  };
  const onSignal = (signal: NodeJS.Signals): void => {
    rmSync(path, { force: true });
    stopListening();
    process.kill(process.pid, signal);
    // Process 1, as in a container, is spared its own signals.
    if (process.pid === 1) process.exit(1);
  };
  for (const each of ENDING_SIGNALS) process.on(each, onSignal);
  return stopListening;
}

/** Where a file of that name is, or will be. */
async function placeOf(path: string): Promise<string> {
  const there = await lstat(path).catch(() => undefined);
  if (there === undefined || there.isFile()) return path;
  if (there.isSymbolicLink()) return await placeOf(await realpath(path));
  throw new Error(`${path} is there and is no file: name a file`);
}

/** The bytes of a file as they are read; `-` is standard input. */
export function readChunks(path: string): AsyncIterable<Uint8Array> {
  return path === '-' ? process.stdin : createReadStream(path);
}
