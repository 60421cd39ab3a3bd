// The global log as the feed sees it: places in one chain, and entries whose bytes mean nothing here.

/** A place in the global log, right behind the entry with that seq. */
export interface GlobalCursor {
  /** The reign of a primary in which the entry was written; 0 before the first. */
  readonly epoch: number;
  /** 0 before the first entry. */
  readonly seq: number;
  /** Of the entry, and so of all before it: 32 bytes. */
  readonly hash: Uint8Array;
}

export interface GlobalEntry extends GlobalCursor {
  readonly bytes: Uint8Array;
}

export const HASH_BYTES = 32;

/** Before the first entry. */
export const LOG_START: GlobalCursor = { epoch: 0, seq: 0, hash: new Uint8Array(HASH_BYTES) };

export function isSameCursor(one: GlobalCursor, other: GlobalCursor): boolean {
  const isSamePlace = one.epoch === other.epoch && one.seq === other.seq;
  return isSamePlace && Buffer.compare(one.hash, other.hash) === 0;
}

/** Later reigns are further, whatever their entries are. */
export function isFurther(
  one: Pick<GlobalCursor, 'epoch' | 'seq'>,
  other: Pick<GlobalCursor, 'epoch' | 'seq'>,
): boolean {
  return one.epoch === other.epoch ? one.seq > other.seq : one.epoch > other.epoch;
}

/** The position, as people see it. */
export function positionText({ epoch, seq }: Pick<GlobalCursor, 'epoch' | 'seq'>): string {
  return `${epoch}.${seq}`;
}
