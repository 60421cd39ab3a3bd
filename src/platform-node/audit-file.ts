// Where an audit log lies: a file that only its owner may read, those that were full beside it as `.1` (the
// newest), `.2` and so on; or standard output.

import { constants } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import type { AuditFile } from '../audit/audit-trail.ts';

/** More than two records, however long. */
const TAIL_BYTES = 64 * 1024;
const MODE = 0o600;

export class RotatingFile implements AuditFile {
  readonly #path: string;
  /** So many that were full are kept; 0: none. */
  readonly #keptMax: number;
  #handle: FileHandle | undefined;
  #sizeBytes = 0;

  constructor(path: string, keptMax: number) {
    this.#path = path;
    this.#keptMax = keptMax;
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  async open(): Promise<string> {
    await this.close();
    const { O_APPEND, O_CREAT, O_RDWR } = constants;
    const handle = await open(this.#path, O_APPEND | O_CREAT | O_RDWR, MODE);
    this.#handle = handle;
    this.#sizeBytes = (await handle.stat()).size;
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
    if (isSynced) await handle.datasync();
  }

  async rotate(): Promise<void> {
    await this.close();
    for (let place = this.#keptMax; place > 0; place -= 1) {
      const from = place === 1 ? this.#path : `${this.#path}.${place - 1}`;
      await rename(from, `${this.#path}.${place}`).catch(unlessMissing);
    }
    if (this.#keptMax === 0) await rm(this.#path, { force: true });
    await this.open();
  }

  async close(): Promise<void> {
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

async function tailOf(handle: FileHandle, size: number): Promise<string> {
  const start = Math.max(0, size - TAIL_BYTES);
  const wanted = size - start;
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(wanted), 0, wanted, start);
  return buffer.toString('utf8', 0, bytesRead);
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
