// What the state was at certain places of the log, so that servers can compare: whatever the batches
// they apply, they pass the same places, and there their digests are equal or one of them is wrong.

/** Of every so many entries of the log, the digest is kept. */
export const CHECKPOINT_INTERVAL = 256;
/** So many of the newest are remembered. */
const CHECKPOINTS_MAX = 16;

/** The full digest of the state as of one entry of the log. */
export interface DigestCheckpoint {
  /** Of the log. */
  readonly index: number;
  /** In hex. */
  readonly digest: string;
}

export function isCheckpoint(logIndex: number): boolean {
  return logIndex % CHECKPOINT_INTERVAL === 0;
}

export class DigestCheckpoints {
  /** Ascending. */
  #checkpoints: readonly DigestCheckpoint[] = [];

  add(fresh: readonly DigestCheckpoint[]): void {
    if (fresh.length === 0) return;
    this.#checkpoints = [...this.#checkpoints, ...fresh].slice(-CHECKPOINTS_MAX);
  }

  /** The state is another one. */
  clear(): void {
    this.#checkpoints = [];
  }

  get last(): DigestCheckpoint | undefined {
    return this.#checkpoints.at(-1);
  }

  /** Undefined when it is no place of comparison, not reached yet, or too long ago. */
  at(logIndex: number): string | undefined {
    return this.#checkpoints.find(({ index }) => index === logIndex)?.digest;
  }
}
