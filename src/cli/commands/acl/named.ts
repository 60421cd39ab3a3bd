// Naming an object that has both an id and a name: `--id`, `--name`, or an argument that is either.

import type { Command } from 'commander';
import { exactlyOne } from '../../command-line.ts';

export interface NamedOptions {
  readonly id?: string;
  readonly name?: string;
}

export interface Named {
  readonly by: 'id' | 'name';
  readonly given: string;
}

export function addNamedFlags(command: Command): void {
  command.option('--id <id>', 'id, the beginning of it, or name').option('--name <name>', 'name');
}

/** Which object is meant. Throws UsageError when none or several are named. */
export function namedOf(options: NamedOptions, argument: string | undefined): Named {
  const given = exactlyOne([
    ['an id or name', argument],
    ['--id', options.id],
    ['--name', options.name],
  ]);
  return { by: options.name === undefined ? 'id' : 'name', given };
}

/** In an update that names its object otherwise, `--name` is the new name, as scripts know it. */
export function newNameOf(
  options: NamedOptions & { readonly newName?: string },
  argument: string | undefined,
): { readonly which: NamedOptions; readonly newName: string | undefined } {
  const { id, name, newName } = options;
  const isNamedOtherwise = id !== undefined || argument !== undefined;
  if (newName !== undefined || !isNamedOtherwise) return { which: options, newName };
  return { which: id === undefined ? {} : { id }, newName: name };
}
