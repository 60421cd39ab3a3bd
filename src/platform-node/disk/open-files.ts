// How many files a process may have open, and who gets how many of them. A database that cannot open another
// file ends the process, and every connection is a file: strangers may take so many of them and no more.

import { readFileSync } from 'node:fs';

/** For the databases, the links between servers and all else, where there is enough. */
const KEPT_FILES = 4_096;

export interface FileShares {
  /** Connections of clients, over all listeners. */
  readonly clientsMax: number;
  /** Connections to the port between servers of which it is not known who is there. */
  readonly strangersMax: number;
}

/** The shares of a process that may have so many files open; undefined: it is not known, and nothing is bounded. */
export function fileSharesOf(filesMax: number | undefined): FileShares {
  if (filesMax === undefined) return { clientsMax: Infinity, strangersMax: Infinity };
  return {
    clientsMax: Math.max(Math.floor(filesMax / 2), filesMax - KEPT_FILES),
    strangersMax: Math.floor(filesMax / 8),
  };
}

/** How many files this process may have open, as far as the system tells. */
export function openFilesMax(): number | undefined {
  try {
    return openFilesIn(readFileSync('/proc/self/limits', 'latin1'));
  } catch {
    return undefined;
  }
}

/** The soft limit of open files in the text that Linux has of a process. */
export function openFilesIn(limits: string): number | undefined {
  const count = /^Max open files +(\d+) /m.exec(limits)?.[1];
  return count === undefined ? undefined : Number(count);
}
