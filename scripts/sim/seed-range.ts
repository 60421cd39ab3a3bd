// Which seeds to run, as the command line says it.

import { wholeNumber } from './whole-number.ts';

export interface SeedRange {
  readonly from: number;
  readonly count: number;
}

/** `1000` is so many from `from` on, `5001-6000` is from the one through the other. */
export function seedRange(text: string, from: number): SeedRange {
  const [first = '', last] = text.split('-');
  if (last === undefined) return { from, count: wholeNumber(first) };
  const range = { from: wholeNumber(first), count: wholeNumber(last) - wholeNumber(first) + 1 };
  if (range.count < 1) throw new Error(`${text} is no range of seeds`);
  return range;
}
