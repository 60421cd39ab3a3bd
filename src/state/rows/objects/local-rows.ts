// The rows that live in one datacenter alone and that no other row tells: local tokens, remembered
// requests and pending logins. What follows from tokens is made again wherever they are put.

import type { KvReader } from '../../../../cluster/platform/kv.ts';
import { isGlobalRow } from '../../global-effects.ts';
import { IN_ONE_PIECE_BYTES } from '../../in-one-piece.ts';
import { behind, ROW } from '../tables.ts';

const KINDS: readonly number[] = [
  ROW.token,
  ROW.request,
  ROW.requestByTime,
  ROW.pendingLogin,
  ROW.pendingLoginByTime,
];

/** Their keys behind a key, in order, and no more than are read in one piece; none when there are no more. */
export async function localRows(
  reader: KvReader,
  after: Uint8Array | undefined,
  limit: number,
): Promise<readonly Uint8Array[]> {
  const keys: Uint8Array[] = [];
  let bytes = 0;
  for (const kind of KINDS) {
    const to = Uint8Array.of(kind + 1);
    const start = Uint8Array.of(kind);
    const from = after === undefined || Buffer.compare(after, start) < 0 ? start : behind(after);
    if (Buffer.compare(from, to) >= 0) continue;
    for await (const rows of reader.rows({ from, to })) {
      for (const { key, value } of rows) {
        if (isGlobalRow(key, value)) continue;
        keys.push(key);
        bytes += value.length;
        if (keys.length >= limit || bytes >= IN_ONE_PIECE_BYTES) return keys;
      }
    }
  }
  return keys;
}
