// Up to where the datacenters have the global log, by what each has acknowledged. Pure. It is Raft's commit
// rule one level up: what a majority has counts only once that majority has an entry of this reign, because
// an older entry that is on a majority can still be lost to a primary that never had it (Raft's figure 8).
// Who is not listed yet may ask for more, and never for less: the others elect by the list that they know.

export interface Acknowledged {
  /** The datacenters that count, as the log lists them, this one among them. */
  readonly voters: readonly string[];
  /** Others that will be listed. */
  readonly joining: readonly string[];
  /** Others were removed: who has not heard of it elects by a list that has them. */
  readonly hasRemoved: boolean;
  /** The primary; it has everything up to its head. */
  readonly datacenter: string;
  readonly headSeq: number;
  /** The first entry of this reign. */
  readonly epochStartSeq: number;
  /** Of the other datacenters. */
  readonly ackedSeqOf: (datacenter: string) => number | undefined;
}

/** 0 while it is not known. Of those that are listed it is a majority, and of all together. */
export function majoritySeqOf(acknowledged: Acknowledged): number {
  const { voters, joining, hasRemoved } = acknowledged;
  const ofAll = halfSeqOf(acknowledged, [...voters, ...joining]);
  // Two elect nobody without the primary. To wait for the other one, lost for good, would let nobody join.
  const isSafe = joining.length === 0 || (voters.length <= 2 && !hasRemoved);
  const seq = isSafe ? ofAll : Math.min(ofAll, halfSeqOf(acknowledged, voters));
  return ofThisReign(acknowledged, seq);
}

/** What every datacenter has; 0 while it is not known. */
export function allSeqOf(acknowledged: Acknowledged): number {
  const { voters, joining } = acknowledged;
  return ofThisReign(acknowledged, Math.min(...seqsOf(acknowledged, [...voters, ...joining])));
}

/** What more than half of them have. */
function halfSeqOf(acknowledged: Acknowledged, names: readonly string[]): number {
  const seqs = seqsOf(acknowledged, names).sort((left, right) => right - left);
  return seqs[Math.floor(names.length / 2)] ?? 0;
}

function seqsOf(
  { datacenter, headSeq, ackedSeqOf }: Acknowledged,
  names: readonly string[],
): number[] {
  return names.map((each) => (each === datacenter ? headSeq : (ackedSeqOf(each) ?? 0)));
}

function ofThisReign({ epochStartSeq }: Acknowledged, seq: number): number {
  return seq >= epochStartSeq && Number.isFinite(seq) ? seq : 0;
}
