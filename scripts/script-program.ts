// What the scripts of `package.json` have in common at the command line: help, and a refusal that names the
// option.

import { Command, InvalidArgumentError } from 'commander';

const REFUSED_STATUS = 2;

/** `typed` is what one types before the options. Help ends with status 0, a refused option with 2. */
export function scriptProgram(typed: string, does: string): Command {
  return new Command(typed)
    .description(does)
    .showHelpAfterError(`\`${typed} --help\` says more.`)
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : REFUSED_STATUS));
}

/** A value of an option, 0 to 2^53 - 1. Throws what commander prints with the name of the option. */
export function wholeNumber(text: string): number {
  const found = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(found)) {
    throw new InvalidArgumentError(`${text} is no whole number.`);
  }
  return found;
}

/** Several, with commas between. */
export function wholeNumbers(text: string): readonly number[] {
  return text.split(',').map(wholeNumber);
}
