// What an operator is told where what a candidate lacks lies behind a restore, and of those that answer only witnesses
// have it. A witness has nothing of what was restored, so it can make nobody's log go on from there: while it is there
// nobody is elected. Whoever has the objects is to go first; where nobody has them any more, the archive has.

import type { PromotionState } from '../promotion-port.ts';
import type { Ballot, Standing } from './ballot.ts';

export interface RestoreAhead {
  /** The candidate. */
  readonly datacenter: string;
  readonly state: Pick<PromotionState, 'epochs' | 'witnesses'>;
  /** What the others said. */
  readonly ballot: Ballot;
  /** Witnesses that have it, the furthest first; not empty. */
  readonly stuck: readonly Standing[];
}

/** Who has it and what to do about it. */
export function restoreAheadText(ahead: RestoreAhead): string {
  const { datacenter, state, stuck } = ahead;
  const names = stuck.map((each) => each.datacenter);
  const epoch = stuck[0]?.cursor.epoch;
  const writer = state.epochs.find((each) => each.epoch === epoch)?.primary;
  const away = awayOf(ahead, writer);
  const has = `${names.join(', ')} has more, behind a restore, and nothing of what was restored`;
  const force = `\`conclave operator promote ${datacenter} --force …\``;
  const restore = restoreText(ahead, writer, away);
  const wayOn = `stop ${names.join(', ')}, then ${force}, and restore ${restore}`;
  if (away.length > 0) {
    const who = away.map((each) => (each === writer ? `${each}, which wrote it,` : each));
    const start = `${who.join(' and ')} may have it: start that one first, and ask again`;
    return `${has}. ${start}; if it is gone for good, ${wayOn}`;
  }
  const norWriter = writer === undefined ? '' : `, not ${writer} either, which wrote it`;
  return `${has}. Nobody with objects has it any more${norWriter}: ${wayOn}`;
}

/** An archive is restored by the datacenter that it is of: whoever restored it, which may be there no more. */
function restoreText(
  { datacenter }: RestoreAhead,
  writer: string | undefined,
  away: readonly string[],
): string {
  if (writer === undefined || writer === datacenter) return 'the archive once more';
  const isThere = !away.includes(writer);
  return isThere
    ? `the archive once more, at ${writer} when it is the primary again`
    : `an archive of ${datacenter}`;
}

/** Datacenters with objects that did not say how far they are. */
function awayOf(
  { datacenter, state, ballot }: RestoreAhead,
  writer: string | undefined,
): readonly string[] {
  const silent = [...ballot].flatMap(([each, answer]) =>
    typeof answer === 'string' ? [each] : [],
  );
  // The last writer may be listed no more, and was not asked then.
  const isUnasked = writer !== undefined && writer !== datacenter && !ballot.has(writer);
  const away = isUnasked ? [...silent, writer] : silent;
  return away.filter((each) => !state.witnesses.includes(each));
}
