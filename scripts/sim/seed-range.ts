// Which seeds to run, as the command line says it.

import { InvalidArgumentError } from 'commander';
import { wholeNumber } from '../script-program.ts';

export interface SeedRange {
  readonly from: number;
  readonly count: number;
}

/** `1000` is so many, `5001-6000` is from the one through the other. Throws what commander prints. */
export function seedRange(text: string): Partial<SeedRange> & Pick<SeedRange, 'count'> {
  const [first = '', last] = text.split('-');
  if (last === undefined) return { count: wholeNumber(first) };
  const range = { from: wholeNumber(first), count: wholeNumber(last) - wholeNumber(first) + 1 };
  if (range.count < 1) throw new InvalidArgumentError(`${text} is no range of seeds.`);
  return range;
}
