// What processes take, as Linux tells it; NaN where it does not say.

import { readFileSync } from 'node:fs';

/** Of the clock ticks in which /proc counts; the kernel shows users a hundred a second. */
const TICK_MS = 10;
const LOOK_MS = 200;

/** Processor time of all its threads since its start, milliseconds. */
export function processorMs(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name of the program stands in brackets, and may have blanks in it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
  } catch {
    return Number.NaN;
  }
}

/** Resident memory that is no file, MiB: files that are read stay in memory only while nobody needs it. */
export function anonymousMib(pid: number): number {
  try {
    const match = /RssAnon:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return match === null ? Number.NaN : Number(match[1]) / 1024;
  } catch {
    return Number.NaN;
  }
}

/** Looks at the memory of processes again and again until it is ended. */
export class MemoryWatch {
  readonly #pids: readonly number[];
  readonly #mostMib: number[];
  readonly #timer: NodeJS.Timeout;

  constructor(pids: readonly number[]) {
    this.#pids = pids;
    this.#mostMib = pids.map(anonymousMib);
    this.#timer = setInterval(() => this.#look(), LOOK_MS);
  }

  /** The most of each process, in the order in which they were named. */
  end(): readonly number[] {
    clearInterval(this.#timer);
    this.#look();
    return this.#mostMib;
  }

  #look(): void {
    for (const [place, pid] of this.#pids.entries()) {
      this.#mostMib[place] = Math.max(this.#mostMib[place] ?? Number.NaN, anonymousMib(pid));
    }
  }
}
