// What the rows of a state come to, wherever its store has put them: which keyspace is the current one is
// a matter of each store alone, and so is how far those that are unused are deleted.

import { decodeKeyspaces, KEYSPACES_KEY } from '../../../src/state/keyspaces.ts';
import { ROW } from '../../../src/state/tables.ts';
import { bytesOf, textOf } from '../world/key-text.ts';
import { RowsDigest } from '../world/rows-digest.ts';
import type { SortedRows } from '../world/sorted-rows.ts';

const KEYSPACES = textOf(KEYSPACES_KEY);
/** Kind and number, before the key of a row that is not in the first keyspace. */
const PREFIX_CHARS = 5;

/** `digest`: of all rows, as they lie there. */
export function stateDigest(rows: SortedRows, digest: string): string {
  const row = rows.get(KEYSPACES);
  if (row === undefined) return digest;
  const state = new RowsDigest();
  state.recount(rowsOfState(rows, decodeKeyspaces(row)));
  return state.text;
}

function* rowsOfState(
  rows: SortedRows,
  { current, staged }: ReturnType<typeof decodeKeyspaces>,
): Generator<{ readonly key: string; readonly value: Uint8Array }> {
  for (const { key, value } of rows.all()) {
    const kind = key.charCodeAt(0);
    if (kind === ROW.keyspaces) continue;
    if (kind !== ROW.inKeyspace) {
      const isOfFirst = kind > ROW.meta && kind < ROW.restore;
      if (!isOfFirst || current === 0) yield { key, value };
      continue;
    }
    const keyspace = Buffer.from(bytesOf(key)).readUInt32BE(1);
    const own = key.slice(PREFIX_CHARS);
    if (keyspace === current) yield { key: own, value };
    else if (keyspace === staged) yield { key: String.fromCharCode(ROW.staged) + own, value };
  }
}
