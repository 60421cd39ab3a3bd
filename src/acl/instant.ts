// A moment in time as clients write it, RFC 3339, normalised to UTC with the digits it was given.

declare const brand: unique symbol;
/** RFC 3339 text in UTC, e.g. `2026-11-21T06:17:45.123Z`; up to nine digits of fraction. */
export type Instant = string & { readonly [brand]: 'Instant' };

/** What clients send for "no time" and what is shown for it. */
export const ZERO_INSTANT = '0001-01-01T00:00:00Z' as Instant;
