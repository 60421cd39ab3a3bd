// Up to where the primary's log may be trimmed. Pure. Every datacenter has a slot: what it has not
// acknowledged is kept for it, within bounds of size and age. Beyond them its slot is dropped: the datacenter
// will need a snapshot. What a majority has not acknowledged is kept within the same bounds, slot or not: after
// a forced move it may be all that is left of it.

export interface RetentionLimits {
  readonly maxBytes: number;
  readonly maxAgeMs: number;
  /** The last entries are kept in any case: a short absence should not cost a snapshot. */
  readonly keepEntries: number;
}

export const DEFAULT_RETENTION: RetentionLimits = {
  maxBytes: 1024 * 1024 * 1024,
  maxAgeMs: 24 * 3_600_000,
  keepEntries: 10_000,
};

/** What is kept for one datacenter. */
export interface Slot {
  readonly datacenter: string;
  /** Undefined: not known in this reign, so all that there is may be needed. */
  readonly ackedSeq: number | undefined;
}

export interface RetentionQuestion {
  readonly headSeq: number;
  readonly kept: { readonly afterSeq: number; readonly sizeBytes: number };
  readonly slots: readonly Slot[];
  /** What follows is needed by whoever takes a snapshot; undefined: nobody does. */
  readonly pinnedSeq: number | undefined;
  /** What follows is not known to be at a majority of the datacenters: it may be here alone. */
  readonly majoritySeq: number;
  readonly nowMs: number;
  /** Wall clock; undefined where the entry is not kept. */
  readonly writtenAtMs: (seq: number) => number | undefined;
  readonly limits: RetentionLimits;
}

export interface Retention {
  /** Everything up to it may go; what is gone already stays gone. */
  readonly trimSeq: number;
  readonly dropped: readonly { readonly datacenter: string; readonly says: string }[];
}

export function retentionOf(question: RetentionQuestion): Retention {
  const { headSeq, kept, limits, majoritySeq, pinnedSeq = headSeq, slots } = question;
  const sizeSeq = Math.min(seqBySize(question), headSeq - 1);
  const ageSeq = Math.min(seqByAge(question), headSeq - 1);
  const boundSeq = Math.max(kept.afterSeq, sizeSeq, ageSeq);
  const ackedSeqs = slots.map(({ ackedSeq }) => ackedSeq ?? kept.afterSeq);
  const needed = [pinnedSeq, majoritySeq, ...ackedSeqs];
  const wantedSeq = Math.min(headSeq - limits.keepEntries, ...needed);
  const why = sizeSeq >= ageSeq ? `${limits.maxBytes} bytes` : `${limits.maxAgeMs} ms`;
  const dropped = slots
    .filter(({ ackedSeq }) => (ackedSeq ?? kept.afterSeq) < boundSeq)
    .map(({ datacenter, ackedSeq }) => ({
      datacenter,
      says: `${datacenter} has acknowledged ${ackedSeq ?? 'nothing'} of ${headSeq}, and no more than ${why} of the global log are kept: it will need a snapshot`,
    }));
  return { trimSeq: Math.max(boundSeq, wantedSeq), dropped };
}

/** Entries are taken to be of one size: what is left is measured again. */
function seqBySize({ headSeq, kept, limits }: RetentionQuestion): number {
  const { afterSeq, sizeBytes } = kept;
  if (sizeBytes <= limits.maxBytes) return afterSeq;
  const part = (sizeBytes - limits.maxBytes) / sizeBytes;
  return afterSeq + Math.ceil(part * (headSeq - afterSeq));
}

/** The last entry that is too old. Times grow with seqs, but for clocks that were set. */
function seqByAge({ headSeq, kept, limits, nowMs, writtenAtMs }: RetentionQuestion): number {
  const isOld = (seq: number): boolean => {
    const atMs = writtenAtMs(seq);
    return atMs !== undefined && nowMs - atMs > limits.maxAgeMs;
  };
  let oldSeq = kept.afterSeq;
  let youngSeq = headSeq + 1;
  while (youngSeq - oldSeq > 1) {
    const middle = Math.floor((oldSeq + youngSeq) / 2);
    if (isOld(middle)) oldSeq = middle;
    else youngSeq = middle;
  }
  return oldSeq;
}
