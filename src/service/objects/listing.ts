// Lists that are streamed: slices are read, filtered and shown one after the other, so that a list of
// a million objects holds a few hundred of them at a time. The limit counts what is shown, not what
// was read.

import type { Page } from '../../state/view.ts';
import type { ListResult, ReadMeta } from '../views.ts';

export interface Listing<Stored, Shown> {
  readonly page: Page;
  readonly meta: ReadMeta;
  /** All objects behind `after`, in the order of the list. */
  fetch(page: Page): AsyncIterable<readonly Stored[]>;
  keyOf(stored: Stored): string;
  keeps(stored: Stored): boolean;
  show(stored: Stored): Shown;
}

/** So many are read at once at least: of a small page all may be void. */
const LEAST_ROWS = 32;

/** The slices can be consumed once, and left before their end. */
export function listed<Stored, Shown>(listing: Listing<Stored, Shown>): ListResult<Shown> {
  const { page, meta } = listing;
  let nextKey: string | undefined;
  async function* slices(): AsyncGenerator<readonly Shown[]> {
    const { after, limit } = page;
    let left = limit ?? Number.POSITIVE_INFINITY;
    // No limit: some of what is read is not shown. One more than fits: is there a next page?
    const sliceRows = limit === undefined ? undefined : Math.max(limit + 1, LEAST_ROWS);
    for await (const slice of listing.fetch({ after, sliceRows })) {
      // Whether any of these is shown is for the next page to find out: there may be a million that are not.
      if (left === 0) return;
      const shown = slice.filter((stored) => listing.keeps(stored));
      const kept = shown.slice(0, left);
      left -= kept.length;
      const last = kept.at(-1);
      if (last !== undefined) nextKey = listing.keyOf(last);
      if (kept.length > 0) yield kept.map((stored) => listing.show(stored));
      if (shown.length > kept.length) return;
    }
    nextKey = undefined;
  }
  return { slices: slices(), next: () => nextKey, meta };
}
