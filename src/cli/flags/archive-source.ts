// An archive that is read on this side: from a file or from standard input, opened with its key where it
// is encrypted. What does not fit the flags is told before anything else happens.

import { messageOf } from '../../../cluster/base/message-of.ts';
import { SealDamage } from '../../platform-node/disk/sealed-archive.ts';
import { ArchiveDamage } from '../../state/archive/archive-damage.ts';
import type { ArchiveInfo } from '../../state/archive/archive-info.ts';
import { inspectArchive } from '../../state/archive/archive-reader.ts';
import { SnapshotDamage } from '../../state/snapshot/snapshot-damage.ts';
import { CommandFailed } from '../failed.ts';
import type { Surroundings } from '../surroundings.ts';
import { UsageError } from '../usage-error.ts';

type Chunks = AsyncIterable<Uint8Array>;

/** Long enough to tell an encrypted archive. */
const START_BYTES = 32;

export interface ArchiveSource {
  readonly path: string;
  /** Undefined: it is not encrypted. */
  readonly key: Uint8Array | undefined;
}

/** The archive itself. Throws UsageError where the file cannot be read or the key is one too many or missing. */
export async function* archiveIn(
  surroundings: Surroundings,
  { path, key }: ArchiveSource,
  onRead: (sizeBytes: number) => void = () => undefined,
): AsyncGenerator<Uint8Array> {
  const file = readable(surroundings.readChunks(path), path, onRead);
  const start = await startOf(file);
  const isSealed = surroundings.sealing.isSealed(start);
  if (isSealed && key === undefined) {
    throw new UsageError(`${nameOf(path)} is encrypted: name its key with --key-file`);
  }
  if (!isSealed && key !== undefined) {
    throw new UsageError(`${nameOf(path)} is not encrypted: leave --key-file out`);
  }
  const all = following(start, file);
  yield* key === undefined ? all : surroundings.sealing.unsealed(key, all);
}

/** What an archive says of itself, once all of it is read and found whole. Throws CommandFailed. */
export async function inspected(archive: Chunks, what: string): Promise<ArchiveInfo> {
  try {
    return await inspectArchive(archive);
  } catch (error) {
    throw failureOf(error, what);
  }
}

/** What a person named. */
export function nameOf(path: string): string {
  return path === '-' ? 'standard input' : path;
}

/** Faults of the file and of this command line keep their words; the rest is damage. */
function failureOf(error: unknown, what: string): unknown {
  const isDamage =
    error instanceof ArchiveDamage ||
    error instanceof SnapshotDamage ||
    error instanceof SealDamage;
  return isDamage ? new CommandFailed(`${what}: ${error.message}`, { cause: error }) : error;
}

async function* readable(
  chunks: Chunks,
  path: string,
  onRead: (sizeBytes: number) => void,
): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of chunks) {
      onRead(chunk.length);
      yield chunk;
    }
  } catch (error) {
    const reason = messageOf(error);
    throw new UsageError(`cannot read ${nameOf(path)}: ${reason}`);
  }
}

async function startOf(source: AsyncIterator<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let sizeBytes = 0;
  while (sizeBytes < START_BYTES) {
    const next = await source.next();
    if (next.done === true) break;
    parts.push(next.value);
    sizeBytes += next.value.length;
  }
  return Buffer.concat(parts);
}

async function* following(
  start: Uint8Array,
  source: AsyncIterator<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  yield start;
  for (let next = await source.next(); next.done !== true; next = await source.next()) {
    yield next.value;
  }
}
