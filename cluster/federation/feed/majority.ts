// Up to where the datacenters have the global log, by what each has acknowledged. Pure. It is Raft's commit
// rule one level up: what a majority has counts only once that majority has an entry of this reign, because
// an older entry that is on a majority can still be lost to a primary that never had it (Raft's figure 8).

export interface Acknowledged {
  /** The datacenters that count, this one among them. */
  readonly voters: readonly string[];
  /** The primary; it has everything up to its head. */
  readonly datacenter: string;
  readonly headSeq: number;
  /** The first entry of this reign. */
  readonly epochStartSeq: number;
  /** Of the other datacenters. */
  readonly ackedSeqOf: (datacenter: string) => number | undefined;
}

/** 0 while it is not known. */
export function majoritySeqOf(acknowledged: Acknowledged): number {
  const { voters } = acknowledged;
  const seqs = seqsOf(acknowledged).sort((left, right) => right - left);
  return ofThisReign(acknowledged, seqs[Math.floor(voters.length / 2)] ?? 0);
}

/** What every datacenter that counts has; 0 while it is not known. */
export function allSeqOf(acknowledged: Acknowledged): number {
  return ofThisReign(acknowledged, Math.min(...seqsOf(acknowledged)));
}

function seqsOf({ voters, datacenter, headSeq, ackedSeqOf }: Acknowledged): number[] {
  return voters.map((each) => (each === datacenter ? headSeq : (ackedSeqOf(each) ?? 0)));
}

function ofThisReign({ epochStartSeq }: Acknowledged, seq: number): number {
  return seq >= epochStartSeq && Number.isFinite(seq) ? seq : 0;
}
