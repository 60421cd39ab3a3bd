// The logs of servers, the last lines first, and if wished what is added from then on. With several servers
// each line begins with the name of its server.

import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type { NodeDescription } from './cluster-files.ts';

const FIRST_BYTES = 8 * 1024;
const PIECE_BYTES = 256 * 1024;
const LOOK_MS = 250;

export interface ShowLogsOptions {
  readonly nodes: readonly NodeDescription[];
  /** Until the process ends, or nobody reads any more. */
  readonly isFollowed: boolean;
  /** Gives false when nobody reads any more. */
  readonly write: (text: string) => boolean;
}

export async function showLogs({ nodes, isFollowed, write }: ShowLogsOptions): Promise<void> {
  const readers = nodes.map(({ name, log }) => new LogReader(log, nodes.length > 1 ? name : ''));
  let isRead = true;
  for (const reader of readers) isRead = write(reader.take());
  while (isFollowed && isRead) {
    await pause(LOOK_MS);
    for (const reader of readers) isRead = write(reader.take());
  }
}

class LogReader {
  readonly #path: string;
  readonly #prefix: string;
  #offset: number | undefined;
  #rest = '';

  constructor(path: string, name: string) {
    this.#path = path;
    this.#prefix = name === '' ? '' : `${name}  `;
  }

  /** Whole lines that came since the last call. */
  take(): string {
    const lines = (this.#rest + this.#read()).split('\n');
    this.#rest = lines.pop() ?? '';
    return lines.map((line) => `${this.#prefix}${line}\n`).join('');
  }

  #read(): string {
    let file: number;
    try {
      file = openSync(this.#path, 'r');
    } catch {
      return '';
    }
    try {
      const { size } = fstatSync(file);
      const isFirst = this.#offset === undefined;
      const from = this.#offset ?? Math.max(0, size - FIRST_BYTES);
      const bytes = Buffer.alloc(Math.min(PIECE_BYTES, Math.max(0, size - from)));
      const count = readSync(file, bytes, 0, bytes.length, from);
      this.#offset = from + count;
      const text = bytes.toString('utf8', 0, count);
      // It begins in the middle of a line.
      return isFirst && from > 0 ? text.slice(text.indexOf('\n') + 1) : text;
    } finally {
      closeSync(file);
    }
  }
}
