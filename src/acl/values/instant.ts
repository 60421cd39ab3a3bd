// A moment in time as clients write it, RFC 3339, normalised to UTC with the digits it was given.
// Two texts of one moment may differ (offset, trailing zeros), so moments are compared by their
// nanoseconds, never as text. Which moments are allowed where is for the checks to say.

import { assert, must } from '../../../cluster/base/assert.ts';

declare const brand: unique symbol;
/** RFC 3339 text in UTC, e.g. `2026-11-21T06:17:45.123Z`; up to nine digits of fraction. */
export type Instant = string & { readonly [brand]: 'Instant' };

/** What clients send for "no time" and what is shown for it. */
export const ZERO_INSTANT = '0001-01-01T00:00:00Z' as Instant;

/** A moment in the three forms that the checks need. `ms` is rounded down. */
export interface Moment {
  readonly instant: Instant;
  readonly ms: number;
  /** Nanoseconds since 1970, exact. */
  readonly ns: bigint;
}

const RFC_3339 =
  /^(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))$/;

/**
 * Reads RFC 3339 text, or gives undefined. Taken: any offset below a day, `t` and `z` in lower case,
 * up to nine digits of fraction. Refused: leap seconds, 24:00, days that the month does not have, and
 * moments that fall outside the years 0000 to 9999 once they are in UTC.
 */
export function parseInstant(text: string): Moment | undefined {
  const parts = RFC_3339.exec(text);
  if (parts === null) return undefined;
  const [, date, time, fraction = '', sign = '+', offsetHours = '00', offsetMinutes = '00'] = parts;
  if (offsetHours > '23' || offsetMinutes > '59') return undefined;
  const localMs = wholeSecondsMs(`${date}T${time}`);
  if (localMs === undefined) return undefined;
  const offsetMs = (Number(offsetHours) * 60 + Number(offsetMinutes)) * 60_000;
  const utcMs = sign === '+' ? localMs - offsetMs : localMs + offsetMs;
  const seconds = offsetMs === 0 ? `${date}T${time}` : secondsTextOf(utcMs);
  if (seconds === undefined) return undefined;
  return {
    instant: `${seconds}${fraction === '' ? '' : `.${fraction}`}Z` as Instant,
    ms: utcMs + Number(fraction.slice(0, 3).padEnd(3, '0')),
    ns: BigInt(utcMs) * 1_000_000n + BigInt(fraction.padEnd(9, '0')),
  };
}

/** The milliseconds of `YYYY-MM-DDTHH:MM:SS`, or undefined when the calendar has no such second. */
function wholeSecondsMs(text: string): number | undefined {
  const moment = new Date(`${text}Z`);
  // It carries 30 February over into March and takes 24:00. Other days, hours and seconds that are none are no number.
  const isThere =
    moment.getUTCDate() === Number(text.slice(8, 10)) &&
    moment.getUTCHours() === Number(text.slice(11, 13));
  return isThere ? moment.getTime() : undefined;
}

/** `YYYY-MM-DDTHH:MM:SS` of a moment, or undefined outside the years of four digits. */
function secondsTextOf(ms: number): string | undefined {
  const text = new Date(ms).toISOString();
  return text.length === 24 ? text.slice(0, 19) : undefined;
}

/** The moment of a clock reading, with three digits of fraction. */
export function instantOfMs(ms: number): Instant {
  const text = new Date(ms).toISOString();
  assert(text.length === 24, 'the clock is within the years of four digits', { ms });
  return text as Instant;
}

/** The moment of `ns`, with three digits of fraction where they are enough and nine where not. */
export function instantOfNs(ns: bigint): Instant {
  const rest = ((ns % 1_000_000n) + 1_000_000n) % 1_000_000n;
  const wholeMs = instantOfMs(Number((ns - rest) / 1_000_000n));
  if (rest === 0n) return wholeMs;
  return `${wholeMs.slice(0, -1)}${rest.toString().padStart(6, '0')}Z` as Instant;
}

/** Milliseconds since 1970, rounded down. Cheap enough to ask for every token of a list. */
export function instantMs(instant: Instant): number {
  return Date.parse(instant);
}

/** Nanoseconds since 1970. */
export function instantNs(instant: Instant): bigint {
  return must(parseInstant(instant), 'an instant').ns;
}

/** Negative when `left` is the earlier moment, 0 when both are the same one. */
export function compareInstants(left: Instant, right: Instant): number {
  const difference = instantNs(left) - instantNs(right);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

const ZERO_NS = instantNs(ZERO_INSTANT);

/** Whether a moment is the one that clients send for "no time". */
export function isZeroMoment(moment: Moment): boolean {
  return moment.ns === ZERO_NS;
}
