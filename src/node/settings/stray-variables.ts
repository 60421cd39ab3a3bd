// Environment variables that look like settings of a server and are none. They are told and not refused:
// orchestrators put variables into an environment by themselves, named after a service that may be called
// as this program is.

import { SETTING_KEYS, variableOf } from './settings-keys.ts';

const PREFIX = 'CONCLAVE_';

/** A variable that nobody reads. Its value is not looked at: it may be a secret. */
export interface StrayVariable {
  readonly variable: string;
  /** The variable of the setting that was probably meant. */
  readonly nearest: string | undefined;
}

/** `others` are variables that are read although they are no settings. */
export function strayVariables(
  environment: Readonly<Record<string, string | undefined>>,
  others: readonly string[],
): readonly StrayVariable[] {
  const settings = SETTING_KEYS.map(({ name }) => variableOf(name));
  return Object.keys(environment)
    .filter((name) => name.toUpperCase().startsWith(PREFIX))
    .filter((name) => !settings.includes(name) && !others.includes(name))
    .map((variable) => ({ variable, nearest: nearestOf(variable.toUpperCase(), settings) }));
}

/** Beyond so many characters names are not compared: no setting has one as long. */
const COMPARED_MAX = 100;
/** One letter in so many may be another one. */
const LETTERS_PER_SLIP = 4;

function nearestOf(variable: string, settings: readonly string[]): string | undefined {
  if (variable.length > COMPARED_MAX) return undefined;
  const name = bare(variable);
  let nearest: string | undefined;
  let fewest = Math.max(1, Math.floor(name.length / LETTERS_PER_SLIP)) + 1;
  for (const setting of settings) {
    const slips = slipsBetween(name, bare(setting));
    if (slips >= fewest) continue;
    nearest = setting;
    fewest = slips;
  }
  return nearest ?? shortestWith(wordsOf(name), settings);
}

function bare(variable: string): string {
  return variable.slice(PREFIX.length);
}

/** `TLS_CERT` is a part of one, and `HTTP_PORT` has its words in another order. */
function shortestWith(words: readonly string[], settings: readonly string[]): string | undefined {
  if (words.length === 0) return undefined;
  return settings
    .filter((setting) => {
      const known = wordsOf(bare(setting));
      return words.every((word) => known.some((each) => each.startsWith(word)));
    })
    .toSorted((a, b) => a.length - b.length)[0];
}

function wordsOf(name: string): readonly string[] {
  return name.split('_').filter((word) => word !== '');
}

/** How many letters are to be put in, left out or exchanged to make the one of the other. */
function slipsBetween(left: string, right: string): number {
  let above = Array.from({ length: right.length + 1 }, (_, place) => place);
  for (const [row, letter] of [...left].entries()) {
    const line = [row + 1];
    for (const [column, other] of [...right].entries()) {
      const exchanged = above[column]! + (letter === other ? 0 : 1);
      line.push(Math.min(exchanged, above[column + 1]! + 1, line[column]! + 1));
    }
    above = line;
  }
  return above.at(-1)!;
}
