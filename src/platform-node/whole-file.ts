// Files that are there whole or not at all: written beside their place, synced, then renamed into it.
// What is found under the name is never half written, whatever ends the process or the machine.

import { randomUUID } from 'node:crypto';
import { constants, createReadStream } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
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

/** Opens a file that only its owner may read. Rejects when the folder cannot be written to. */
export async function createWholeFile(path: string): Promise<FileInProgress> {
  const beside = join(dirname(path), `.${basename(path)}.${randomUUID().slice(0, 8)}.partial`);
  const { O_CREAT, O_EXCL, O_WRONLY } = constants;
  const handle = await open(beside, O_CREAT | O_EXCL | O_WRONLY, 0o600);
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
      isOver = true;
      flushFolder(dirname(path));
    },
    discard: async () => {
      if (isOver) return;
      isOver = true;
      await handle.close().catch(() => undefined);
      await rm(beside, { force: true });
    },
  };
}

/** The bytes of a file as they are read; `-` is standard input. */
export function readChunks(path: string): AsyncIterable<Uint8Array> {
  return path === '-' ? process.stdin : createReadStream(path);
}
