// The few plain files that a server reads: its configuration, certificates, and the file that allows
// bootstrapping again. And the folders of its databases by name and number, which come and go whole.

import {
  closeSync,
  existsSync,
  fchmodSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { writeWhole } from './durable-files.ts';

/** The whole file as text. Throws with the path in the message. */
export function readTextFile(path: string): string {
  return readFileSync(path, 'utf8');
}

const STANDARD_INPUT = 0;
const INPUT_CHUNK_BYTES = 64 * 1024;
/** Between two looks at a standard input that says that there is nothing yet. */
const INPUT_PAUSE_MS = 20;

/** Everything on standard input as text; waits for its end, also in a pipe that has nobody wait. */
export function readStandardInput(): string {
  const chunks: Buffer[] = [];
  for (;;) {
    const chunk = Buffer.alloc(INPUT_CHUNK_BYTES);
    const count = readOrWait(STANDARD_INPUT, chunk);
    if (count === 0) return Buffer.concat(chunks).toString('utf8');
    chunks.push(chunk.subarray(0, count));
  }
}

function readOrWait(descriptor: number, into: Buffer): number {
  for (;;) {
    try {
      return readSync(descriptor, into);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, INPUT_PAUSE_MS);
    }
  }
}

/** The name of this machine without its domain. */
export function shortHostName(): string {
  return hostname().split('.')[0] ?? 'localhost';
}

/** The folder of one database: its bare name is generation 0. */
export function databaseFolder(dataFolder: string, name: string, generation: number): string {
  return join(dataFolder, generation === 0 ? name : `${name}-${generation}`);
}

/** Where LevelDB's own files lie in the folder of a database. */
export function levelFolder(folder: string): string {
  return join(folder, 'level');
}

/** The generations of a database that are there, whole or not, in ascending order. */
export function databaseGenerations(dataFolder: string, name: string): readonly number[] {
  const generations: number[] = [];
  for (const file of readdirSync(dataFolder)) {
    const number = file === name ? '0' : file.slice(name.length + 1);
    const generation = Number(number);
    const isOne = /^\d{1,15}$/.test(number);
    if (isOne && file === databaseFolder('', name, generation)) generations.push(generation);
  }
  return generations.sort((left, right) => left - right);
}

/** Deletes a folder and all in it; harmless when there is none. */
export async function deleteFolder(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true });
}

const BOOTSTRAP_RESET_FILE = 'acl-bootstrap-reset';

/**
 * Reads and deletes `acl-bootstrap-reset` in the data folder, in that order: whatever comes of the
 * attempt, the file allows one. Undefined when there is no file, or none for whoever asks: then it stays; its text
 * otherwise.
 */
export function takeBootstrapReset(
  dataFolder: string,
  isForAsker: (text: string) => boolean,
): string | undefined {
  const path = join(dataFolder, BOOTSTRAP_RESET_FILE);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  if (!isForAsker(text)) return undefined;
  rmSync(path);
  return text;
}

/** Writes `text` to a file that only its owner may read, also when the file was there before. */
export function writeSecretFile(path: string, text: string): void {
  const descriptor = openSync(path, 'w', 0o600);
  try {
    // Before the first byte: a file that was there keeps its mode when it is opened.
    fchmodSync(descriptor, 0o600);
    writeFileSync(descriptor, text);
  } finally {
    closeSync(descriptor);
  }
}

const NODE_ID_FILE = 'node-id';
const DATABASES = ['log', 'state'];
const NODE_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * The id in the data folder's `node-id` file; `fresh` becomes it in a folder that holds nothing yet. With
 * another id a server would stand beside the group that its log belongs to: a lost one is never made anew.
 */
export function keptNodeId(dataFolder: string, fresh: string): string {
  const path = join(dataFolder, NODE_ID_FILE);
  const isNew = DATABASES.every((name) => databaseGenerations(dataFolder, name).length === 0);
  if (!existsSync(path) && isNew) writeWhole(path, `${fresh}\n`);
  const id = existsSync(path) ? readFileSync(path, 'utf8').trim() : '';
  if (NODE_ID.test(id)) return id;
  throw new Error(
    `${path} does not hold the id of a server any more: restore it from a copy, or move the data folder ` +
      'away and let this server join anew',
  );
}
