// Plain files and folders that must be found again after a power cut: what others rely on is on the disk
// when these return.

import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Makes the folder and those above it when they are missing; only its owner may look inside. */
export function makeFolder(path: string): void {
  if (existsSync(path) && statSync(path).isDirectory()) return;
  const above = dirname(path);
  if (above !== path) makeFolder(above);
  // One by one: in a folder that takes none, making all at once tries for ever.
  mkdirSync(path, { mode: 0o700 });
  // The name of a folder is kept by the one above it.
  flushFolder(above);
}

/** A file that only its owner may read, whole or not at all: written aside and renamed. */
export function writeWhole(path: string, text: string): void {
  const aside = `${path}.new`;
  const file = openSync(aside, 'w', 0o600);
  try {
    // A disk may take less than it is given: that is no failure, and the rest is given again.
    writeFileSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(aside, path);
  flushFolder(dirname(path));
}

/** A file that was made, renamed or removed is so on disk when its folder is. */
export function flushFolder(path: string): void {
  const directory = openSync(path, 'r');
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}

/** The same, beside whatever else the process does meanwhile. */
export async function folderFlushed(path: string): Promise<void> {
  const directory = await open(path);
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
