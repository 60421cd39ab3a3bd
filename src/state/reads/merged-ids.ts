// Several ranges of index rows, each in the order of the ids at the end of its keys, as one list in
// that order. Each range is read as far as it is needed.

import type { KvRange, KvReader, KvRow } from '../../../cluster/platform/kv.ts';
import { idAtEnd } from '../rows/tables.ts';
import type { Page } from '../view.ts';

const SLICE_IDS = 256;

interface Run {
  readonly slices: AsyncIterator<readonly KvRow[]>;
  rows: readonly KvRow[];
  at: number;
}

/**
 * The ids of all ranges in order, at most `limit` of them, in slices of about what will be taken. Empty ranges cost
 * one look each.
 */
export async function* mergedIds(
  reader: KvReader,
  ranges: readonly KvRange[],
  { limit, sliceRows = SLICE_IDS }: Pick<Page, 'limit' | 'sliceRows'>,
): AsyncGenerator<readonly Uint8Array[]> {
  const opened: Run[] = [];
  try {
    let runs: Run[] = [];
    for (const range of ranges) {
      const run = { slices: reader.rows(range)[Symbol.asyncIterator](), rows: [], at: 0 };
      opened.push(run);
      if (await hasRow(run)) runs.push(run);
    }
    let left = limit ?? Number.POSITIVE_INFINITY;
    while (runs.length > 0 && left > 0) {
      const slice: Uint8Array[] = [];
      while (runs.length > 0 && slice.length < Math.min(sliceRows, SLICE_IDS, left)) {
        const run = firstOf(runs);
        slice.push(idAtEnd(run.rows[run.at]!.key));
        run.at += 1;
        if (!(await hasRow(run))) runs = runs.filter((other) => other !== run);
      }
      left -= slice.length;
      yield slice;
    }
  } finally {
    for (const run of opened) await run.slices.return?.();
  }
}

/** Whether the run has a row to take, after fetching its next slice if it must. */
async function hasRow(run: Run): Promise<boolean> {
  while (run.at >= run.rows.length) {
    const next = await run.slices.next();
    if (next.done === true) return false;
    run.rows = next.value;
    run.at = 0;
  }
  return true;
}

function firstOf(runs: readonly Run[]): Run {
  return runs.reduce((first, run) => {
    const order = Buffer.compare(
      idAtEnd(run.rows[run.at]!.key),
      idAtEnd(first.rows[first.at]!.key),
    );
    return order < 0 ? run : first;
  });
}
