// What the datacenters said to a candidate, counted. Pure.

import { type GlobalCursor, isFurther, positionText } from '../../global-log.ts';
import type { PromiseAnswer } from '../promotion-frames.ts';

/** By datacenter; text: why there is no answer. */
export type Ballot = ReadonlyMap<string, PromiseAnswer | string>;

export interface Count {
  readonly promised: readonly string[];
  /** With the candidate's own promise, if it has a vote. */
  readonly hasMajority: boolean;
  /** Datacenters that answered, and have what the candidate has not; who has most comes first. */
  readonly further: readonly Standing[];
  /** Datacenters that answered, and have promised this epoch to another one, or a later one, or tell of it. */
  readonly rivals: readonly string[];
  /** The greatest epoch that anybody has promised, or tells of. */
  readonly maxEpoch: number;
}

/** How far a datacenter is. */
export interface Standing {
  readonly datacenter: string;
  readonly cursor: GlobalCursor;
}

export interface BallotOf {
  readonly voters: readonly string[];
  readonly candidate: string;
  /** What each was asked to have no more than. */
  readonly cursorFor: (datacenter: string) => GlobalCursor;
  /** What they were asked to promise. */
  readonly epoch: number;
  /** Whether it has all that it ever acknowledged, so that its promise counts. */
  readonly isWhole: (voter: Standing) => boolean;
}

export function countOf(
  ballot: Ballot,
  { voters, candidate, cursorFor, epoch, isWhole }: BallotOf,
): Count {
  const answers = [...ballot].flatMap(([datacenter, answer]) =>
    typeof answer === 'string' ? [] : [{ datacenter, ...answer }],
  );
  const promised = answers
    .filter((answer) => answer.isGranted && isWhole(answer))
    .map(({ datacenter }) => datacenter);
  const votes = voters.filter((voter) => voter === candidate || promised.includes(voter));
  return {
    promised,
    hasMajority: votes.length * 2 > voters.length,
    further: furtherIn(ballot, cursorFor),
    rivals: answers
      .filter(({ isGranted, maxEpoch }) => !isGranted && maxEpoch >= epoch)
      .map(({ datacenter }) => datacenter),
    maxEpoch: Math.max(0, ...answers.map(({ maxEpoch }) => maxEpoch)),
  };
}

/** Who answered and has more than that one may have; who has most comes first. */
export function furtherIn(ballot: Ballot, cursorFor: BallotOf['cursorFor']): readonly Standing[] {
  return [...ballot]
    .flatMap(([datacenter, answer]) =>
      typeof answer === 'string' ? [] : [{ datacenter, cursor: answer.cursor }],
    )
    .filter(({ datacenter, cursor }) => isFurther(cursor, cursorFor(datacenter)))
    .sort(mostFirst);
}

/** Who said what, for people. */
export function ballotText(ballot: Ballot): string {
  const lines = [...ballot].map(([datacenter, answer]) => {
    if (typeof answer === 'string') return `${datacenter} does not answer (${answer})`;
    const { isGranted, cursor, maxEpoch } = answer;
    const promises = cursor.seq > 0 ? 'promises' : 'has nothing yet, and promises';
    const says = isGranted ? promises : 'does not promise';
    return `${datacenter} ${says} (at ${positionText(cursor)}, knows of epoch ${maxEpoch})`;
  });
  return lines.length === 0 ? 'there is no other datacenter' : lines.join('; ');
}

function mostFirst({ cursor: one }: Standing, { cursor: other }: Standing): number {
  return Number(isFurther(other, one)) - Number(isFurther(one, other));
}

/** Behind all entries of its reign that there will ever be. */
export function endOf<Place extends Pick<GlobalCursor, 'epoch' | 'seq'>>(place: Place): Place {
  return { ...place, seq: Number.MAX_SAFE_INTEGER };
}
