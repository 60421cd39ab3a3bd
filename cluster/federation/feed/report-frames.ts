// What a follower tells of itself, and what it hears of how far it is, as bytes of a call and its answer.
// docs/WIRE.md has the table.

import { packed, unpacked } from '../../wire/call-payload.ts';
import { WHY_MAX } from '../../wire/frame.ts';
import { arrayOf, bytesOf, countOf, fieldsOf, textOf } from '../../wire/shape.ts';
import { WireDamage } from '../../wire/wire-damage.ts';
import type { GlobalCursor } from '../global-log.ts';
import { cursorFields, cursorOf } from './feed-frames.ts';

/** Of a digest, in bytes. */
const DIGEST_MAX = 64;
const FIGURES_MAX = 16;

/** How a follower stands, by its leader. */
export interface FeedReport {
  readonly session: number;
  readonly cursor: GlobalCursor;
  /** Of all that the log speaks of, exactly at the cursor; undefined: it has nothing of it. */
  readonly digest: Uint8Array | undefined;
  /** What went wrong last, and how long ago; undefined: nothing did. */
  readonly error: { readonly text: string; readonly ageMs: number } | undefined;
}

export interface ReportAnswer {
  /** The primary's digest at the cursor of the report; undefined: it does not know it any more. */
  readonly digest: Uint8Array | undefined;
  /** What the follower lacks. */
  readonly lagBytes: number;
  /** Of the primary. */
  readonly headSeq: number;
  /** Numbers that the primary's state has at that head. The feed does not know what they count. */
  readonly figures: readonly number[];
}

export function encodeReport({ session, cursor, digest, error }: FeedReport): Uint8Array {
  const said = error && [error.text.slice(0, WHY_MAX), Math.max(0, Math.floor(error.ageMs))];
  return packed(session, cursorFields(cursor), digest ?? null, said ?? null);
}

/** Throws WireDamage. */
export function decodeReport(bytes: Uint8Array): FeedReport {
  const [session, cursor, digest, error] = unpacked(bytes, 'a report of the feed', 4);
  return {
    session: countOf(session, 'session'),
    cursor: cursorOf(cursor, 'cursor'),
    digest: digestOf(digest),
    error: error === null ? undefined : errorOf(error),
  };
}

export function encodeReportAnswer(answer: ReportAnswer): Uint8Array {
  const { digest, lagBytes, headSeq, figures } = answer;
  return packed(digest ?? null, Math.floor(lagBytes), headSeq, figures);
}

/** Throws WireDamage. */
export function decodeReportAnswer(bytes: Uint8Array): ReportAnswer {
  const [digest, lagBytes, headSeq, figures] = unpacked(bytes, 'an answer to a report', 4);
  return {
    digest: digestOf(digest),
    lagBytes: countOf(lagBytes, 'lagBytes'),
    headSeq: countOf(headSeq, 'headSeq'),
    figures: arrayOf(figures, 'figures', FIGURES_MAX).map((each) => countOf(each, 'a figure')),
  };
}

function digestOf(value: unknown): Uint8Array | undefined {
  if (value === null) return undefined;
  const digest = bytesOf(value, 'digest');
  if (digest.length <= DIGEST_MAX) return digest;
  throw new WireDamage(`a digest of ${digest.length} bytes`);
}

function errorOf(value: unknown): NonNullable<FeedReport['error']> {
  const [text, ageMs] = fieldsOf(value, 'an error', 2);
  return { text: textOf(text, 'text', WHY_MAX), ageMs: countOf(ageMs, 'ageMs') };
}
