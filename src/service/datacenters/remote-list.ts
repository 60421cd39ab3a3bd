// A list of another datacenter: it travels page by page, each as plain data, and is read here as if it
// were one. A page that is too large for one answer is asked for again with fewer objects.

import { AclError } from '../../acl/error.ts';
import type { Page } from '../../state/view.ts';
import { charsIn } from '../chars-in.ts';
import type { ListResult, ReadMeta } from '../views.ts';

/** Objects of one page. */
const PAGE_MAX = 200;
/** After a page that was too large. */
const SMALLER = 4;

/** One page as it travels. */
export interface ListPage<T> {
  readonly items: readonly T[];
  /** The key to go on from; undefined at the end of the list. */
  readonly next: string | undefined;
  readonly meta: ReadMeta;
}

/** Characters of texts behind which a page ends: it is in memory at both ends, and in one answer. */
const PAGE_CHARS = 1024 * 1024;

/** All of a list, which its page has bounded, or the beginning of one whose objects are long. */
export async function pageOf<T>(list: ListResult<T>): Promise<ListPage<T>> {
  const items: T[] = [];
  let chars = 0;
  for await (const slice of list.slices) {
    items.push(...slice);
    chars += charsIn(slice);
    if (chars >= PAGE_CHARS) break;
  }
  return { items, next: list.next(), meta: list.meta };
}

/** The list whose pages `ask` gets. The first one is got before it resolves. */
export async function listOfPages<T>(
  wanted: Page,
  ask: (page: Page) => Promise<ListPage<T>>,
): Promise<ListResult<T>> {
  let left = wanted.limit ?? Number.POSITIVE_INFINITY;
  let pageMax = PAGE_MAX;
  let nextKey: string | undefined;
  const get = async (after: string | undefined): Promise<ListPage<T>> => {
    for (;;) {
      const limit = Math.min(left, pageMax);
      try {
        return await ask({ after, limit });
      } catch (error) {
        const isTooLarge = error instanceof AclError && error.code === 'body-too-large';
        if (!isTooLarge || limit === 1) throw error;
        pageMax = Math.ceil(limit / SMALLER);
      }
    }
  };
  const first = await get(wanted.after);
  async function* slices(): AsyncGenerator<readonly T[]> {
    for (let page = first; ; page = await get(page.next)) {
      left -= page.items.length;
      nextKey = page.next;
      if (page.items.length > 0) yield page.items;
      if (left <= 0 || page.next === undefined) return;
    }
  }
  return { slices: slices(), next: () => nextKey, meta: first.meta };
}
