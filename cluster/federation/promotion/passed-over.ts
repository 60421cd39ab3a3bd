// Who has, of the reigns that this datacenter began, what is lost here: whoever lacks that is neither promised nor
// begins anything. A primary whose data folders were put back to an earlier day knows of it by what others tell alone.

import { type GlobalCursor, isFurther } from '../global-log.ts';
import type { AskLeaderOptions } from './ask-leader.ts';
import { askPlaces } from './ask-places.ts';
import { endOf } from './candidacy/ballot.ts';
import type { PromiseAsk } from './promotion-frames.ts';

export interface Ahead {
  readonly datacenter: string;
  /** With a seq of 0, some of that epoch. */
  readonly upTo: Pick<GlobalCursor, 'epoch' | 'seq'>;
}

export interface PassedOverOptions extends AskLeaderOptions {
  /** The own one. */
  readonly datacenter: string;
  /** Others that have more of the reigns of this datacenter than it has itself, and up to where. */
  readonly ahead: () => readonly Ahead[];
  /** Resolves when whoever is there has told that: soon behind the start of a reign, else at once. Never rejects. */
  readonly haveTold: () => Promise<void>;
}

export interface PassedOverAsk extends Pick<PromiseAsk, 'candidate' | 'cursor'> {
  /** Where the own datacenter is. */
  readonly own: GlobalCursor;
  /** So long others are asked. */
  readonly deadlineMs: number;
}

/** Who has what is lost here, and the candidate has not; or may have. While some are asked others may tell so. */
export async function passedOverBy(
  options: PassedOverOptions,
  ask: PassedOverAsk,
): Promise<string | undefined> {
  const { ahead, haveTold } = options;
  const { candidate, cursor } = ask;
  const others = () => ahead().filter(({ datacenter }) => datacenter !== candidate);
  const isKnown = ({ upTo }: Ahead) => upTo.seq > 0 || upTo.epoch !== cursor.epoch;
  const asked = others()
    .filter((each) => !isKnown(each))
    .map(async ({ datacenter }) => [datacenter, await placeOf(options, datacenter, ask)] as const);
  const [answers] = await Promise.all([Promise.all(asked), haveTold()]);
  // Whoever does not say how far it is may have all of it.
  const places = new Map(answers);
  const upToOf = (each: Ahead) =>
    isKnown(each) ? each.upTo : (places.get(each.datacenter) ?? endOf(each.upTo));
  return others().find((each) => isFurther(upToOf(each), cursor))?.datacenter;
}

/** How far that one is in an epoch of which others tell; undefined where it does not say so. */
async function placeOf(
  options: PassedOverOptions,
  datacenter: string,
  { own: cursor, deadlineMs }: PassedOverAsk,
): Promise<Ahead['upTo'] | undefined> {
  const candidate = options.datacenter;
  const question = { datacenter, candidate, cursor, deadlineMs };
  const told = await askPlaces(options, question);
  const [first, ...others] = told.map((each) => each.cursor);
  return first && others.reduce((most, each) => (isFurther(each, most) ? each : most), first);
}
