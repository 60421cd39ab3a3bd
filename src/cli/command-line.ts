// Small words for describing commands: a group, a leaf that talks to a server, flags that may be given
// several times. Everything that is the same for every command is said here once.

import { type Command, InvalidArgumentError, Option } from 'commander';
import { CommandFailed, failureText } from './failed.ts';
import { addConnectionFlags, addFormatFlag, type ConnectionOptions } from './flags/connection.ts';
import { type Format, Printer } from './printer.ts';
import { Session } from './session.ts';
import type { Surroundings } from './surroundings.ts';
import { notBlank, UsageError } from './usage-error.ts';

/** A command that only holds others. */
export function addGroup(parent: Command, name: string, says: string): Command {
  return parent.command(name).description(says);
}

export interface LeafDescription<Options> {
  readonly name: string;
  readonly says: string;
  /** `[policy]`: an argument that may stand without a flag. */
  readonly argument?: readonly [syntax: string, says: string];
  /** Adds the flags of this command. */
  readonly flags?: (command: Command) => void;
  readonly run: (session: Session, options: Options, argument: string | undefined) => Promise<void>;
}

/** A command that talks to a server. Usage errors of `run` are shown with the command's usage. */
export function addLeaf<Options>(
  parent: Command,
  surroundings: Surroundings,
  leaf: LeafDescription<Options>,
): void {
  const command = parent.command(leaf.name).description(leaf.says);
  if (leaf.argument !== undefined) command.argument(...leaf.argument);
  leaf.flags?.(command);
  requireOnce(command);
  addConnectionFlags(command);
  command.action(async () => {
    const options = command.opts<Options & ConnectionOptions>();
    let session: Session | undefined;
    try {
      session = new Session(options, surroundings);
      await leaf.run(session, options, command.args[0]);
    } catch (error) {
      if (error instanceof UsageError) command.error(`error: ${error.message}`, { exitCode: 2 });
      throw session === undefined ? error : told(error, session);
    }
  });
}

export interface MetaOptions {
  readonly meta?: boolean;
}

/** A command that shows stored objects. One is shown with its hash and its indexes anyway, a list with `--meta`. */
export function addShowingLeaf<Options>(
  parent: Command,
  surroundings: Surroundings,
  leaf: LeafDescription<Options & MetaOptions>,
): void {
  addLeaf(parent, surroundings, {
    ...leaf,
    flags: (command) => {
      leaf.flags?.(command);
      command.option('--meta', 'with hash and indexes, as one object is shown without it');
    },
  });
}

export interface LocalLeafDescription<Options>
  extends Pick<LeafDescription<Options>, 'name' | 'says' | 'argument' | 'flags'> {
  /** With several arguments where `argument` takes them. */
  readonly run: (
    printer: Printer,
    options: Options,
    ...given: readonly (string | undefined)[]
  ) => Promise<void>;
}

/** A command that needs no server. */
export function addLocalLeaf<Options>(
  parent: Command,
  surroundings: Surroundings,
  leaf: LocalLeafDescription<Options>,
): void {
  const command = parent.command(leaf.name).description(leaf.says);
  if (leaf.argument !== undefined) command.argument(...leaf.argument);
  leaf.flags?.(command);
  requireOnce(command);
  addFormatFlag(command);
  command.action(async () => {
    const options = command.opts<Options & { readonly format?: Format }>();
    try {
      await leaf.run(new Printer(options.format, surroundings), options, ...command.args);
    } catch (error) {
      if (error instanceof UsageError) command.error(`error: ${error.message}`, { exitCode: 2 });
      throw error;
    }
  });
}

/**
 * Of a flag that is given twice the parser takes the last value: what the first one names would be left as it is, and
 * nothing said of it. Where the server is, and how output looks, may be said over again behind an alias of a shell.
 */
function requireOnce(command: Command): void {
  for (const option of command.options) {
    if (option.isBoolean() || repeatables.has(option)) continue;
    let isGiven = false;
    command.on(`option:${option.name()}`, () => {
      if (isGiven) command.error(`error: ${option.long} is given twice`, { exitCode: 2 });
      isGiven = true;
    });
  }
}

/** The error in the words that its reader needs, without any secret of the command line. */
function told(error: unknown, session: Session): unknown {
  const text = failureText(error, session.connection.address);
  return text === undefined ? error : new CommandFailed(session.scrubbed(text), { cause: error });
}

/** A flag that may be given several times; its values in order, none of them empty. */
export function addRepeatable(command: Command, flag: string, says: string): void {
  addCollected(command, { flag, says, collect: listOf(filled) });
}

/** Reads the value of a flag that names something: a script whose variable is empty has named nothing. */
export function filled(value: string): string {
  if (value.trim() === '') throw new InvalidArgumentError('It is empty.');
  return value;
}

/** What `--clear` takes away. */
export interface ClearOptions {
  readonly clear?: readonly string[];
}

/** `--clear`: takes one of these `parts` of an object away as a whole, which no empty text does. */
export function addClearFlag(command: Command, parts: readonly string[]): void {
  const choices = parts.join(', ');
  addCollected(command, {
    flag: '--clear <what>',
    says: `take it away as a whole: ${choices}`,
    collect: listOf((value) => {
      if (parts.includes(value)) return value;
      throw new InvalidArgumentError(`Allowed choices are ${choices}.`);
    }),
  });
}

/** Whether `--clear` names it. */
export function isCleared({ clear }: ClearOptions, part: string): boolean {
  return clear?.includes(part) === true;
}

const repeatables = new WeakSet<Option>();

interface Collected<Values> {
  readonly flag: string;
  readonly says: string;
  /** Takes one more value; `before` is what it made of the earlier ones. */
  readonly collect: (value: string, before?: Values) => Values;
}

/** A flag that may be given several times, and what becomes of its values. */
export function addCollected<Values>(
  command: Command,
  { flag, says, collect }: Collected<Values>,
): void {
  const option = new Option(flag, `${says} (repeatable)`).argParser(collect);
  repeatables.add(option);
  command.addOption(option);
}

function listOf(
  read: (value: string) => string,
): (value: string, before?: readonly string[]) => readonly string[] {
  return (value, before = []) => [...before, read(value)];
}

/** `--cas`: only if the object is still the one that was looked at. */
export function addCasFlag(command: Command): void {
  command.option('--cas <index>', 'only if the ModifyIndex is still this one', wholeNumber);
}

/**
 * What an update depends on that was made out of `current`. Throws CommandFailed where `--cas` names another version
 * of the object: what no flag mentions would be put back to what it was in this one.
 */
export function casOf(
  { cas }: { readonly cas?: number },
  current: { readonly ModifyIndex: number },
): number {
  if (cas === undefined || cas === current.ModifyIndex) return current.ModifyIndex;
  throw new CommandFailed(
    `the object is not as --cas ${cas} expects: what was read has ModifyIndex ${current.ModifyIndex}; nothing was changed\n` +
      'Next: look at it again. An older one is read with --stale, and in a datacenter that is behind.',
  );
}

/** Reads the value of a flag that counts. */
export function wholeNumber(value: string): number {
  if (!/^\d{1,15}$/.test(value)) throw new InvalidArgumentError('Expected a whole number.');
  return Number(value);
}

/** `name:value` or `name=value` split at the first separator. Throws UsageError naming the flag. */
export function pairOf(
  flag: string,
  value: string,
  separator: ':' | '=',
): readonly [name: string, value: string] {
  const place = value.indexOf(separator);
  if (place < 1)
    throw new UsageError(`${flag}: expected name${separator}value, not ${JSON.stringify(value)}`);
  return [value.slice(0, place), value.slice(place + 1)];
}

/**
 * The values as a map: `k=v` each. Undefined when the flag was not given. Throws UsageError where a name stands twice:
 * what the first one says would be left out.
 */
export function mapOf(
  flag: string,
  values: readonly string[] | undefined,
  separator: ':' | '=' = '=',
): Readonly<Record<string, string>> | undefined {
  if (values === undefined) return undefined;
  const map = new Map<string, string>();
  for (const each of values) {
    const [name, value] = pairOf(flag, each, separator);
    if (map.has(name)) throw new UsageError(`${flag}: ${JSON.stringify(name)} is given twice`);
    map.set(name, value);
  }
  return Object.fromEntries(map);
}

/** The one of several ways to name an object that was used. Throws UsageError for none or two. */
export function exactlyOne(
  ways: readonly (readonly [flag: string, value: string | undefined])[],
): string {
  const used = ways.filter(([, value]) => value !== undefined);
  const names = ways.map(([flag]) => flag).join(' or ');
  if (used.length === 0) throw new UsageError(`say which one: ${names}`);
  if (used.length > 1)
    throw new UsageError(`give only one of ${used.map(([flag]) => flag).join(' and ')}`);
  const [flag, value] = used[0]!;
  return notBlank(flag, value)!;
}
