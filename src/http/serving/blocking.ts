// Blocking queries: a read with an index waits until there is something newer. After every wake the
// operation runs again as a whole, authorization included, so no answer is ever given with rights that
// were lost during the wait: a revoked token ends it with 403. (Deployed servers authorize once,
// before the wait; a watch that outlives its token is nothing that a client could want.)

import type { ReadMeta } from '../../service/views.ts';
import type { Exchange } from '../wire/exchange.ts';
import type { Blocking } from './call-of.ts';
import type { Parked, Place } from './parked.ts';

/** What the loop asks about an answer. */
export interface Watched<Result> {
  readonly run: () => Result | Promise<Result>;
  readonly metaOf: (result: Result) => ReadMeta;
  /**
   * What tells one answer from the next beside the index: the ModifyIndex of a single object, 0 for a
   * missing one. Undefined: every newer index counts.
   */
  readonly versionOf: (result: Result) => number | undefined;
  /** Whether there is no point in waiting for another answer. */
  readonly isFinal: (result: Result) => boolean;
  /** Called for answers that are not given, so that a list lets go of what it holds. */
  readonly discard: (result: Result) => Promise<void>;
}

interface BlockingRead<Result> {
  readonly blocking: Blocking;
  readonly watched: Watched<Result>;
}

/**
 * The answer of a read, after a wait when the request asks for one. Undefined when the client went
 * away meanwhile. Rejects as the operation does, and with 'unavailable' where too many wait.
 */
export async function answerWhenNewer<Result>(
  exchange: Exchange,
  parked: Parked,
  asked: BlockingRead<Result>,
): Promise<Result | undefined> {
  const { blocking, watched } = asked;
  const first = await watched.run();
  const isNewer = blocking.index === 0 || watched.metaOf(first).index > blocking.index;
  if (isNewer || watched.isFinal(first)) return first;
  const seen = seenOf(watched, first);
  await watched.discard(first);
  return parked.inPlace(exchange.client, (place) => newsAfter(seen, exchange, place, asked));
}

/** What is remembered of an answer that is not given. */
interface Seen {
  readonly meta: ReadMeta;
  readonly version: number | undefined;
}

function seenOf<Result>(watched: Watched<Result>, result: Result): Seen {
  return { meta: watched.metaOf(result), version: watched.versionOf(result) };
}

async function newsAfter<Result>(
  first: Seen,
  exchange: Exchange,
  place: Place,
  { blocking, watched }: BlockingRead<Result>,
): Promise<Result | undefined> {
  const { clock, random, operations } = exchange.parts;
  const waitMs = blocking.waitMs * (1 + random.fraction() / 16);
  const deadlineMs = clock.monotonicMs() + waitMs;
  for (let seen = first; ; ) {
    const { meta } = seen;
    const remainingMs = deadlineMs - clock.monotonicMs();
    await place.run(exchange.response, (cancel) =>
      operations.waitForChange(meta.watch, meta.index, remainingMs, cancel),
    );
    if (exchange.isOver) return undefined;
    const next = await watched.run();
    const isLast = place.isClosing || clock.monotonicMs() >= deadlineMs;
    if (isLast || isNews(watched, { blocking, ...seen }, next)) return next;
    seen = seenOf(watched, next);
    await watched.discard(next);
  }
}

/** Whether an answer ends the wait that began with an older one. */
function isNews<Result>(
  watched: Watched<Result>,
  before: Seen & { readonly blocking: Blocking },
  next: Result,
): boolean {
  if (watched.isFinal(next)) return true;
  const { index } = watched.metaOf(next);
  // The state was replaced by an older one: whoever watches must hear of it.
  if (index < before.meta.index) return true;
  if (index <= before.blocking.index) return false;
  const version = watched.versionOf(next);
  return version === undefined || version !== before.version;
}
