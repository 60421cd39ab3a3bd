// Where an audit log lies: a file that only its owner may read, those that were full beside it as `.1` (the
// newest), `.2` and so on, and `.lock`, by which no other server writes to it; or standard output.

import { constants } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { AuditFile } from '../../audit/audit-trail.ts';
import { folderFlushed } from './durable-files.ts';
import { lockFolder } from './folder-lock.ts';

/** More than two records, however long. */
const TAIL_BYTES = 64 * 1024;
const MODE = 0o600;

export class RotatingFile implements AuditFile {
  readonly #path: string;
  /** So many that were full are kept; 0: none. */
  readonly #keptMax: number;
  #handle: FileHandle | undefined;
  #letGo: (() => Promise<void>) | undefined;
  #sizeBytes = 0;
  /** Whether a power cut leaves the file under its name: when it is opened it may just have been made. */
  #isNameOnDisk = false;

  constructor(path: string, keptMax: number) {
    this.#path = path;
    this.#keptMax = keptMax;
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  async open(): Promise<string> {
    await this.#closeHandle();
    const { O_APPEND, O_CREAT, O_RDWR } = constants;
    const handle = await open(this.#path, O_APPEND | O_CREAT | O_RDWR, MODE);
    this.#handle = handle;
    const stat = await handle.stat();
    // Beside a device or a pipe there is no place for one.
    if (stat.isFile()) await this.#lock();
    this.#isNameOnDisk = !stat.isFile();
    this.#sizeBytes = stat.size;
    return tailOf(handle, this.#sizeBytes);
  }

  async endOfAside(): Promise<string> {
    if (this.#keptMax === 0) return '';
    const handle = await open(`${this.#path}.1`).catch(unlessMissing);
    try {
      return handle === undefined ? '' : await tailOf(handle, (await handle.stat()).size);
    } finally {
      await handle?.close();
    }
  }

  async append(text: string, isSynced: boolean): Promise<void> {
    const handle = this.#opened();
    await handle.appendFile(text);
    this.#sizeBytes += Buffer.byteLength(text);
    if (!isSynced) return;
    await handle.datasync();
    if (this.#isNameOnDisk) return;
    await folderFlushed(dirname(this.#path));
    this.#isNameOnDisk = true;
  }

  async rotate(): Promise<void> {
    await this.#closeHandle();
    for (let place = this.#keptMax; place > 0; place -= 1) {
      const from = place === 1 ? this.#path : `${this.#path}.${place - 1}`;
      await rename(from, `${this.#path}.${place}`).catch(unlessMissing);
    }
    if (this.#keptMax === 0) await rm(this.#path, { force: true });
    await this.open();
  }

  async close(): Promise<void> {
    await this.#closeHandle();
    await this.#letGo?.();
    this.#letGo = undefined;
  }

  /** Records of two servers in one file would not be linked. Where no lock can be made, it goes without. */
  async #lock(): Promise<void> {
    if (this.#letGo !== undefined) return;
    const lock = await lockFolder(`${this.#path}.lock`);
    if (lock.kind === 'taken') throw new Error(`another server writes to ${this.#path}`);
    if (lock.kind === 'held') this.#letGo = lock.letGo;
  }

  async #closeHandle(): Promise<void> {
    const handle = this.#handle;
    this.#handle = undefined;
    await handle?.close();
  }

  #opened(): FileHandle {
    if (this.#handle === undefined) throw new Error(`${this.#path} is not open`);
    return this.#handle;
  }
}

function unlessMissing(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
}

/** Zeros at the end, which a machine whose power was cut leaves there, as many as it likes, are given as one. */
async function tailOf(handle: FileHandle, size: number): Promise<string> {
  const filled = await filledSize(handle, size);
  const start = Math.max(0, filled - TAIL_BYTES);
  const text = (await bytesAt(handle, { start, end: filled })).toString('utf8');
  return filled < size ? `${text}\0` : text;
}

/** Without the zeros at the end. */
async function filledSize(handle: FileHandle, size: number): Promise<number> {
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - TAIL_BYTES);
    const bytes = await bytesAt(handle, { start, end });
    const last = bytes.findLastIndex((byte) => byte !== 0);
    if (last >= 0) return start + last + 1;
    end = start;
  }
  return 0;
}

async function bytesAt(
  handle: FileHandle,
  { start, end }: { readonly start: number; readonly end: number },
): Promise<Buffer> {
  const wanted = end - start;
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(wanted), 0, wanted, start);
  return buffer.subarray(0, bytesRead);
}

/** Lines among what else a server prints. */
export class OutputFile implements AuditFile {
  readonly sizeBytes = 0;

  open(): Promise<string> {
    return Promise.resolve('');
  }

  endOfAside(): Promise<string> {
    return Promise.resolve('');
  }

  append(text: string): Promise<void> {
    return new Promise((resolve, reject) => {
      process.stdout.write(text, (error) => (error ? reject(error) : resolve()));
    });
  }

  async rotate(): Promise<void> {
    // It is never full.
  }

  async close(): Promise<void> {
    // It is not ours.
  }
}
