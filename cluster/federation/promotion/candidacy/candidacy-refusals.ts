// Why a candidate does not become primary, in words that say who stands in the way and what to do.

import type { PromotionState } from '../promotion-port.ts';
import { type PromotionRefusal, refused, wayOnWithout } from '../promotion-refusal.ts';
import { type Ballot, ballotText, type Count, type Standing } from './ballot.ts';
import type { Wish } from './wish.ts';

/** A majority may have it from this datacenter and that one alone: the own promise counts for nothing without it. */
export function lostText(
  passedOver: string,
  datacenter: string,
  { state, ballot }: { readonly state: PromotionState; readonly ballot: Ballot },
): string {
  const says = `${passedOver} has what ${datacenter} wrote and has lost, and does not give it now`;
  return `${says}: ${wayOnWithout(passedOver, datacenter, state)}. ${ballotText(ballot)}`;
}

/**
 * Whoever has begun the epoch that outran a reign is about to be heard of, and nobody but a person passes over it. Of a
 * primary that hands over nobody can have more than it, unless its disk was put back to an earlier day.
 */
export function passingOver({ kind }: Wish, count: Count, ballot: Ballot): PromotionRefusal {
  if (kind === 'renewed') return furtherThere(count, ballot);
  const names = count.further.map(({ datacenter }) => datacenter).join(', ');
  const says = `${names} has more than the primary, which has lost that, and a hand-over takes nothing`;
  return refused(`${says}: an election takes it first. ${ballotText(ballot)}`);
}

export function furtherThere(
  { further }: Pick<Count, 'further'>,
  ballot: Ballot,
  why = '',
): PromotionRefusal {
  const names = further.map(({ datacenter }) => datacenter).join(', ');
  const says = `${names} can be reached and has more: promote that one`;
  return refused(`${says}, or stop it if it is a witness. ${ballotText(ballot)}${why}`);
}

export function noMajority(ballot: Ballot, why = ''): PromotionRefusal {
  return refused(`there is no majority: ${ballotText(ballot)}${why}`);
}

/** What to do where these have more, and do not give it; the furthest first. Empty, or begins with a full stop. */
export function goesFirstText(
  further: readonly Standing[],
  { witnesses }: Pick<PromotionState, 'witnesses'>,
): string {
  const first = further.find(({ datacenter }) => !witnesses.includes(datacenter))?.datacenter;
  if (first === undefined) return '';
  return `. ${first} can be elected itself: \`conclave operator promote ${first} --election\`, asked at ${first}`;
}

/** Whoever was asked and does not answer may know more. */
export function already(datacenter: string, ballot: Ballot = new Map()): PromotionRefusal {
  const silent = new Map([...ballot].filter(([, answer]) => typeof answer === 'string'));
  const says = `${datacenter} is the primary already`;
  return refused(silent.size === 0 ? says : `${says}, and not all answer: ${ballotText(silent)}`);
}
