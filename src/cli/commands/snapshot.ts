// `conclave snapshot …`: the whole state of a datacenter to a file, from a file, and a look into one. Keys
// stay on this side: what is encrypted is encrypted here.

import type { Command } from 'commander';
import { messageOf } from '../../../cluster/base/message-of.ts';
import { addGroup, addLeaf, addLocalLeaf, exactlyOne } from '../command-line.ts';
import { CommandFailed } from '../failed.ts';
import { archiveKeyOf } from '../flags/archive-key.ts';
import { type ArchiveSource, archiveIn, inspected, nameOf } from '../flags/archive-source.ts';
import type { Printer } from '../printer.ts';
import type { Session } from '../session.ts';
import { archiveFields, archiveParts, sizeText } from '../show/archive.ts';
import type { FileInProgress, Surroundings } from '../surroundings.ts';
import { UsageError } from '../usage-error.ts';

interface KeyOptions {
  readonly keyFile?: string;
}

type Chunks = AsyncIterable<Uint8Array>;

/** Adds `snapshot` and its commands to the program. */
export function addSnapshotCommands(program: Command, surroundings: Surroundings): void {
  const snapshot = addGroup(program, 'snapshot', 'save, restore and inspect the whole state');
  addLeaf<KeyOptions>(snapshot, surroundings, {
    name: 'save',
    says: 'save the state of the datacenter; the file is there whole or not at all',
    argument: ['[file]', 'file to write, or - for standard output'],
    flags: (command) => addKeyFlag(command, 'encrypt it with the key in this file'),
    run: save,
  });
  addLeaf<KeyOptions>(snapshot, surroundings, {
    name: 'restore',
    says: 'replace the state of every server of the datacenter by that of an archive',
    argument: ['[file]', 'archive, or - for standard input'],
    flags: (command) => addKeyFlag(command, 'the key that it was encrypted with'),
    run: restore,
  });
  addLocalLeaf<KeyOptions>(snapshot, surroundings, {
    name: 'inspect',
    says: 'check an archive to its last byte, and show what is in it; asks no server',
    argument: ['[file]', 'archive, or - for standard input'],
    flags: (command) => addKeyFlag(command, 'the key that it was encrypted with'),
    run: inspect,
  });
}

function addKeyFlag(command: Command, says: string): void {
  command.option('--key-file <path>', `${says} (\`conclave keygen\` makes one)`);
}

function sourceOf(
  surroundings: Surroundings,
  { keyFile }: KeyOptions,
  argument: string | undefined,
): ArchiveSource {
  const path = exactlyOne([['a file', argument]]);
  const key = keyFile === undefined ? undefined : archiveKeyOf(surroundings, keyFile);
  return { path, key };
}

async function save(
  session: Session,
  options: KeyOptions,
  argument: string | undefined,
): Promise<void> {
  const wanted = sourceOf(session.surroundings, options, argument);
  if (wanted.path === '-') await saveToOutput(session, wanted);
  else await saveToFile(session, wanted);
}

async function saveToOutput(session: Session, { key }: ArchiveSource): Promise<void> {
  const { out } = session.surroundings;
  if (out.isTerminal) throw new UsageError('an archive is nothing for a terminal: name a file');
  const { value } = await session.client.snapshot.save();
  for await (const chunk of sealedIf(session.surroundings, key, value)) {
    await written(() => out.write(chunk));
  }
}

/** Half an archive is no success, also where its reader has seen enough. */
async function written(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const reason = messageOf(error);
    throw new CommandFailed(
      `the archive is cut off: standard output takes no more of it: ${reason}`,
      { cause: error },
    );
  }
}

async function saveToFile(session: Session, { path, key }: ArchiveSource): Promise<void> {
  const { surroundings } = session;
  const file = await created(surroundings, path);
  try {
    const { value } = await session.client.snapshot.save();
    let sizeBytes = 0;
    for await (const chunk of sealedIf(surroundings, key, value)) {
      await onDisk(path, () => file.write(chunk));
      sizeBytes += chunk.length;
    }
    const written = file.readBack();
    const archive = key === undefined ? written : surroundings.sealing.unsealed(key, written);
    const info = await inspected(archive, 'what came from the server is no whole archive');
    await onDisk(path, () => file.commit());
    const isEncrypted = key !== undefined;
    const size = `${sizeText(sizeBytes)}${isEncrypted ? ', encrypted' : ''}`;
    await session.done(
      archiveFields(info, { sizeBytes, isEncrypted }),
      `Saved and verified a snapshot of index ${info.index} in ${path} (${size}).`,
    );
  } finally {
    await file.discard();
  }
}

function sealedIf({ sealing }: Surroundings, key: Uint8Array | undefined, archive: Chunks): Chunks {
  return key === undefined ? archive : sealing.sealed(key, archive);
}

async function created(surroundings: Surroundings, path: string): Promise<FileInProgress> {
  return await onDisk(path, () => surroundings.createFile(path));
}

async function onDisk<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const reason = messageOf(error);
    const text = `cannot write ${path}: ${reason}\nNext: choose a place with room where this user may write; nothing was left there.`;
    throw new CommandFailed(text, { cause: error });
  }
}

async function restore(
  session: Session,
  options: KeyOptions,
  argument: string | undefined,
): Promise<void> {
  const { surroundings } = session;
  const source = sourceOf(surroundings, options, argument);
  // What can be read twice is looked at to its end before a server hears of it.
  if (source.path !== '-') {
    await inspected(archiveIn(surroundings, source), `${source.path} was not sent`);
  }
  const { value } = await session.client.snapshot.restore(archiveIn(surroundings, source));
  await session.done(
    value,
    `Restored ${nameOf(source.path)}: every server of the datacenter has its state, from index ${value.Index} on.`,
  );
  await session.note('Tokens are those of the archive now: yours may be another one.');
}

async function inspect(
  printer: Printer,
  options: KeyOptions,
  argument: string | undefined,
): Promise<void> {
  const source = sourceOf(printer.surroundings, options, argument);
  let sizeBytes = 0;
  const archive = archiveIn(printer.surroundings, source, (count) => {
    sizeBytes += count;
  });
  const info = await inspected(archive, `${nameOf(source.path)} is of no use`);
  const about = { sizeBytes, isEncrypted: source.key !== undefined };
  await printer.show(archiveFields(info, about), () => archiveParts(info, about));
}
