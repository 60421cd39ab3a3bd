// Durations as clients write and read them: `1h30m`, `1.5h`, or a number of nanoseconds; always shown
// in one canonical form (`90s` becomes `1m30s`). Values are nanoseconds in 64 signed bits. What is an
// allowed length where is for the checks to say.

import { withoutTrailing } from '../../../cluster/base/without-trailing.ts';

const NS_BY_UNIT: ReadonlyMap<string, bigint> = new Map([
  ['ns', 1n],
  ['us', 1_000n],
  // Micro sign and Greek letter mu look the same, and both are in use.
  ['\u00b5s', 1_000n],
  ['\u03bcs', 1_000n],
  ['ms', 1_000_000n],
  ['s', 1_000_000_000n],
  ['m', 60_000_000_000n],
  ['h', 3_600_000_000_000n],
]);

export const SECOND_NS = 1_000_000_000n;
export const MINUTE_NS = 60n * SECOND_NS;
export const HOUR_NS = 60n * MINUTE_NS;
export const MAX_DURATION_NS = 2n ** 63n - 1n;
const MIN_DURATION_NS = -(2n ** 63n);

/** Longer whole numbers overflow in every unit. */
const WHOLE_DIGITS_MAX = 19;
/** The longest unit has 13 digits of nanoseconds: what comes later is less than one of them. */
const FRACTION_DIGITS_MAX = 18;

/** Beyond what anybody could mean. */
const TEXT_CHARS_MAX = 256;

const TERM = /(\d*)(?:\.(\d*))?([a-z\u00b5\u03bc]+)/y;

/** Nanoseconds of a duration text or of a whole number of them; undefined when it is neither. */
export function durationNsOf(value: string | number): bigint | undefined {
  if (typeof value === 'string') return parseDuration(value);
  if (!Number.isFinite(value)) return undefined;
  return within64Bits(BigInt(Math.trunc(value)));
}

/**
 * Reads duration text: an optional sign, then terms of a decimal number and a unit, or a bare `0`.
 * Undefined for anything else (no unit, blanks, days) and beyond 64 bits or 256 characters.
 */
export function parseDuration(text: string): bigint | undefined {
  if (text.length > TEXT_CHARS_MAX) return undefined;
  const isNegative = text.startsWith('-');
  const start = isNegative || text.startsWith('+') ? 1 : 0;
  if (text.length === start + 1 && text[start] === '0') return 0n;
  if (text.length === start) return undefined;
  let total = 0n;
  for (let place = start; place < text.length; place = TERM.lastIndex) {
    TERM.lastIndex = place;
    const term = TERM.exec(text);
    const ns = term === null ? undefined : nsOfTerm(term[1] ?? '', term[2] ?? '', term[3] ?? '');
    if (ns === undefined) return undefined;
    total += ns;
  }
  return within64Bits(isNegative ? -total : total);
}

function nsOfTerm(whole: string, fraction: string, unit: string): bigint | undefined {
  const unitNs = NS_BY_UNIT.get(unit);
  if (unitNs === undefined || (whole === '' && fraction === '')) return undefined;
  const digits = whole.replace(/^0+/, '');
  if (digits.length > WHOLE_DIGITS_MAX) return undefined;
  const used = fraction.slice(0, FRACTION_DIGITS_MAX);
  const fractionNs = (BigInt(used === '' ? 0 : used) * unitNs) / 10n ** BigInt(used.length);
  return BigInt(digits === '' ? 0 : digits) * unitNs + fractionNs;
}

function within64Bits(ns: bigint): bigint | undefined {
  return ns >= MIN_DURATION_NS && ns <= MAX_DURATION_NS ? ns : undefined;
}

/** The canonical text: `0s`, `1.5ms`, `31m20s`, `24h0m0s`. Parsing it gives the same value again. */
export function formatDuration(ns: bigint): string {
  const sign = ns < 0n ? '-' : '';
  const size = ns < 0n ? -ns : ns;
  if (size === 0n) return '0s';
  if (size < 1_000n) return `${sign}${size}ns`;
  if (size < 1_000_000n) return `${sign}${decimal(size, 3)}\u00b5s`;
  if (size < SECOND_NS) return `${sign}${decimal(size, 6)}ms`;
  const hours = size / HOUR_NS;
  const minutes = (size % HOUR_NS) / MINUTE_NS;
  const seconds = `${decimal(size % MINUTE_NS, 9)}s`;
  if (hours > 0n) return `${sign}${hours}h${minutes}m${seconds}`;
  return minutes > 0n ? `${sign}${minutes}m${seconds}` : `${sign}${seconds}`;
}

/** `value` divided by 10^`places`, without trailing zeros. */
function decimal(value: bigint, places: number): string {
  const digits = value.toString().padStart(places + 1, '0');
  const fraction = withoutTrailing(digits.slice(-places), '0');
  const whole = digits.slice(0, -places);
  return fraction === '' ? whole : `${whole}.${fraction}`;
}
