// Up to where the datacenters have the global log, by what each has acknowledged. Pure. It is Raft's commit
// rule one level up: what a majority has counts only once that majority has an entry of this reign, because
// an older entry that is on a majority can still be lost to a primary that never had it (Raft's figure 8).
// Who is not listed yet may ask for more, and never for less: the others elect by the list that they know.

export interface Acknowledged {
  /** The datacenters that count, as the log lists them, this one among them. */
  readonly voters: readonly string[];
  /** Others that will be listed. */
  readonly joining: readonly string[];
  /** Those of the voters that have a vote and the log, and nothing of what a restore brought. */
  readonly witnesses: readonly string[];
  /** Of the last restore, whose objects no entry has; 0 where none is known. */
  readonly restoredSeq: number;
  /** The primary; it has everything up to its head. */
  readonly datacenter: string;
  readonly headSeq: number;
  /** The first entry of this reign. */
  readonly epochStartSeq: number;
  /** Of the other datacenters. */
  readonly ackedSeqOf: (datacenter: string) => number | undefined;
}

/**
 * 0 while it is not known. Of those that are listed it is a majority, and of all together. Of two that are listed it
 * takes both, whoever joins: the second one may elect by an earlier list, with one that was removed since.
 */
export function majoritySeqOf(acknowledged: Acknowledged): number {
  const { voters, joining } = acknowledged;
  const ofListed = halfSeqOf(acknowledged, voters);
  const ofAll = halfSeqOf(acknowledged, [...voters, ...joining]);
  const usable = usableSeqOf(acknowledged);
  return ofThisReign(acknowledged, Math.min(ofListed, ofAll, usable));
}

/**
 * Up to where a witness is of use: what it has behind a restore leads nobody on who has not what was restored. So that
 * counts as soon as no majority could be left that has a candidate, and only such as has not.
 */
function usableSeqOf(acknowledged: Acknowledged): number {
  const { voters, witnesses, restoredSeq } = acknowledged;
  const candidates = voters.filter((each) => !witnesses.includes(each));
  const stuck = seqsOf(acknowledged, candidates).filter((seq) => seq < restoredSeq);
  const isUsable = stuck.length === 0 || (stuck.length + witnesses.length) * 2 <= voters.length;
  return isUsable ? Infinity : restoredSeq - 1;
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
