// Deployed scripts write long flags with one hyphen and switches with a value (`-name x`,
// `-format=json`, `-local=false`). This rewrites them into the form that the parser knows, guided by
// the flags of the very command that is called; values are passed on untouched.

import type { Command, Option } from 'commander';
import { UsageError } from '../usage-error.ts';

/** What deployed scripts may write behind a switch. */
const ON = new Set(['1', 't', 'T', 'TRUE', 'true', 'True']);
const OFF = new Set(['0', 'f', 'F', 'FALSE', 'false', 'False']);

/**
 * The arguments with every known long flag written with two hyphens. Unknown ones stay as they are. Throws
 * UsageError for a switch with a value that says neither on nor off.
 */
export function normaliseArguments(root: Command, given: readonly string[]): readonly string[] {
  const written: string[] = [];
  let command = root;
  for (let place = 0; place < given.length; place += 1) {
    const argument = given[place]!;
    if (argument === '--') return [...written, ...given.slice(place)];
    if (!argument.startsWith('-') || argument === '-') {
      command = command.commands.find((child) => child.name() === argument) ?? command;
      written.push(argument);
      continue;
    }
    const flag = flagIn(argument);
    const option = optionOf(command, flag);
    written.push(...rewritten(argument, flag, option));
    // What follows is this flag's value even when it begins with a hyphen.
    if (option?.required === true && flag.value === undefined && place + 1 < given.length) {
      place += 1;
      requireValue(command, flag, given[place]!);
      written.push(given[place]!);
    }
  }
  return written;
}

interface Flag {
  readonly name: string;
  readonly value: string | undefined;
}

function flagIn(argument: string): Flag {
  const bare = argument.replace(/^--?/, '');
  const equals = bare.indexOf('=');
  if (equals === -1) return { name: bare, value: undefined };
  return { name: bare.slice(0, equals), value: bare.slice(equals + 1) };
}

function optionOf(command: Command, { name }: Flag): Option | undefined {
  return command.options.find(({ long, short }) => long === `--${name}` || short === `--${name}`);
}

/**
 * A script whose variable is empty, and stands without quotes, leaves no value: the next flag would be taken for it,
 * and what that one asks for, as of a token that it be local, would not be done.
 */
function requireValue(command: Command, { name }: Flag, value: string): void {
  if (!value.startsWith('-') || optionOf(command, flagIn(value)) === undefined) return;
  const next = flagIn(value).name;
  throw new UsageError(
    `--${name} has no value: --${next} follows, which is a flag itself; --${name}=${value.startsWith('--') ? '--' : '-'}${next} would be its value`,
  );
}

function rewritten(argument: string, flag: Flag, option: Option | undefined): readonly string[] {
  if (flag.name === 'help' && flag.value === undefined) return ['--help'];
  if (option === undefined) return [argument];
  if (option.isBoolean() && flag.value !== undefined) {
    if (OFF.has(flag.value)) return [];
    if (ON.has(flag.value)) return [`--${flag.name}`];
    throw new UsageError(`--${flag.name} is a switch: behind = it takes true or false`);
  }
  return [flag.value === undefined ? `--${flag.name}` : `--${flag.name}=${flag.value}`];
}
