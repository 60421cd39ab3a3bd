// Which void tokens can be deleted: those whose time has passed, and those whose auth method or namespace is gone.
// Where only local ones may be, very many others can lie among them for as long as the primary cannot be reached.
// So a search looks at a bounded number of rows, and says where the next one goes on.

import type { KvReader, KvRow } from '../../../cluster/platform/kv.ts';
import { type AccessorId, uuidOfBytes } from '../../acl/ids.ts';
import { IN_ONE_PIECE_BYTES } from '../in-one-piece.ts';
import { decodeRecord, TOKEN_CODEC } from '../rows/layout/record-codec.ts';
import { isLocalTokenRow } from '../rows/layout/token-row.ts';
import { decodeRetiredNamespace, isNeverLostKey } from '../rows/objects/retired-namespace.ts';
import { behind, idAtEnd, ROW, rangeOf, rowKey } from '../rows/tables.ts';

/** A part of the void tokens, in the order of the rows that say so. */
export interface VoidTokenSearch<Place> {
  /** What all share is not looked for. */
  readonly isLocalOnly: boolean;
  /** Where the last search ended; undefined for the beginning. */
  readonly after: Place | undefined;
  /** Rows that are looked at, at most; and none behind the one that makes them IN_ONE_PIECE_BYTES. */
  readonly limit: number;
}

export interface FoundTokens<Place> {
  readonly accessorIds: readonly AccessorId[];
  /** Rows that were looked at. */
  readonly looked: number;
  /** Where this search ended; undefined where no row was ever looked at. */
  readonly last: Place | undefined;
  /** Whether nothing is left behind that place. */
  readonly isEnd: boolean;
}

/** The row of an expiry. */
export type ExpiryPlace = Uint8Array;

/** A token of an auth method or a namespace that is gone. */
export interface OrphanPlace {
  /** The row that says what is gone, or the place behind it when it was gone through. */
  readonly retired: Uint8Array;
  /** The row of a token of it; undefined for none yet. */
  readonly token: Uint8Array | undefined;
}

/** Tokens whose time lies before `nowMs`, oldest first. */
export async function expiredTokens(
  reader: KvReader,
  { nowMs, after, limit, isLocalOnly }: VoidTokenSearch<ExpiryPlace> & { readonly nowMs: number },
): Promise<FoundTokens<ExpiryPlace>> {
  const from = after === undefined ? rowKey('tokenByExpiry') : behind(after);
  const to = rowKey('tokenByExpiry', Math.max(0, nowMs));
  const rows: KvRow[] = [];
  for await (const slice of reader.rows({ from, to, limit })) rows.push(...slice);
  const looks = new Looks(reader);
  for (const { key } of rows) {
    if (looks.isPieceFull) break;
    looks.at(key, isLocalOnly ? isLocalTokenRow : undefined);
  }
  const { accessorIds, looked } = looks;
  const last = rows[looked - 1]?.key ?? after;
  return { accessorIds, looked, last, isEnd: looked === rows.length && looked < limit };
}

/** Tokens whose auth method is gone, and local ones whose namespace is. */
export async function orphanedTokens(
  reader: KvReader,
  { after, limit, isLocalOnly }: VoidTokenSearch<OrphanPlace>,
): Promise<FoundTokens<OrphanPlace>> {
  const looks = new Looks(reader);
  let last = after;
  for await (const { key: retired, value } of retiredRows(reader, after?.retired)) {
    const { accessorIds, looked } = looks;
    if (looked >= limit || looks.isPieceFull) return { accessorIds, looked, last, isEnd: false };
    const { from, to } = rangeOf(tokensOf(retired));
    const begun = after !== undefined && isSame(after.retired, retired) ? after.token : undefined;
    const range = { from: begun === undefined ? from : behind(begun), to, limit: limit - looked };
    const isWanted = wantedOf(retired, value, isLocalOnly);
    last = { retired, token: begun };
    for await (const slice of reader.rows(range)) {
      for (const { key } of slice) {
        if (looks.isPieceFull) break;
        looks.at(key, isWanted);
        last = { retired, token: key };
      }
      if (looks.isPieceFull) break;
    }
    if (looks.looked >= limit || looks.isPieceFull) continue;
    // So many may be gone that to find nothing of each is much, too.
    if (looks.looked === looked) looks.looked += 1;
    last = { retired: behind(retired), token: undefined };
  }
  const { accessorIds, looked } = looks;
  const isEnd = looked < limit && !looks.isPieceFull;
  return { accessorIds, looked, last, isEnd };
}

/** Whether a token, by its row, is looked for. */
type IsWanted = (row: Uint8Array) => boolean;

/** What one search has looked at, and found. */
class Looks {
  readonly accessorIds: AccessorId[] = [];
  looked = 0;
  readonly #reader: KvReader;
  #bytes = 0;

  constructor(reader: KvReader) {
    this.#reader = reader;
  }

  get isPieceFull(): boolean {
    return this.#bytes >= IN_ONE_PIECE_BYTES;
  }

  /** At a row that names a token at its end. Without a question its own row is not read. */
  at(key: Uint8Array, isWanted: IsWanted | undefined): void {
    this.looked += 1;
    const id = idAtEnd(key);
    const row = isWanted && this.#reader.get(rowKey('token', id));
    this.#bytes += row?.length ?? 0;
    if (isWanted !== undefined && (row === undefined || !isWanted(row))) return;
    this.accessorIds.push(uuidOfBytes(id) as AccessorId);
  }
}

/** What is gone and still has tokens, from a row on. */
async function* retiredRows(
  reader: KvReader,
  first: Uint8Array | undefined,
): AsyncGenerator<KvRow> {
  for (const kind of ['retiredMethod', 'retiredNamespace'] as const) {
    const { from, to } = rangeOf(rowKey(kind));
    if (first !== undefined && Buffer.compare(first, to) >= 0) continue;
    const isInside = first !== undefined && Buffer.compare(first, from) > 0;
    for await (const rows of reader.rows({ from: isInside ? first : from, to })) {
      yield* rows.filter(({ key }) => !isNeverLostKey(key));
    }
  }
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0;
}

/** What the rows of its tokens begin with: both kinds of keys name it in the same way. */
function tokensOf(retired: Uint8Array): Uint8Array {
  const prefix = Uint8Array.from(retired);
  prefix[0] = retired[0] === ROW.retiredMethod ? ROW.tokenByMethod : ROW.tokenByNamespace;
  return prefix;
}

function wantedOf(
  retired: Uint8Array,
  value: Uint8Array,
  isLocalOnly: boolean,
): IsWanted | undefined {
  if (retired[0] === ROW.retiredMethod) return isLocalOnly ? isLocalTokenRow : undefined;
  const { upTo } = decodeRetiredNamespace(value);
  return (row) => isLocalTokenRow(row) && decodeRecord(TOKEN_CODEC, row).createIndex <= upTo;
}
