// The whole tree of commands, and the one way to run it: arguments in, exit status out. 0: done. 1: the
// server refused, could not be reached, or something broke. 2: the command line itself is wrong.

import { Command, CommanderError } from 'commander';
import { messageOf } from '../../cluster/base/message-of.ts';
import { addAclCommands } from './commands/acl/acl.ts';
import { addAuditCommands } from './commands/audit.ts';
import { addKeygenCommand } from './commands/keygen.ts';
import { addLoginCommands } from './commands/login.ts';
import { addMembersCommands } from './commands/members.ts';
import { addNamespaceCommands } from './commands/namespace.ts';
import { addOperatorCommands } from './commands/operator/operator.ts';
import { addSnapshotCommands } from './commands/snapshot.ts';
import { CommandFailed, isClosedPipe } from './failed.ts';
import { normaliseArguments } from './flags/arguments.ts';
import { manyLines, oneLine } from './show/safe-text.ts';
import type { Surroundings } from './surroundings.ts';
import { UsageError } from './usage-error.ts';

/**
 * Runs one command line, without the names of program and script in front, and resolves with its exit
 * status. `agent` is the command that runs a server; it is handed in because it needs all of one.
 */
export async function runProgram(
  given: readonly string[],
  surroundings: Surroundings,
  agent: Command,
): Promise<number> {
  const written: Promise<void>[] = [];
  const program = assembled(surroundings, agent);
  for (const command of everyCommand(program)) adapt(command, surroundings, written);
  const status = await statusAfter(surroundings, async () => {
    await program.parseAsync(normaliseArguments(program, given), { from: 'user' });
  });
  // What the parser prints by itself: help, and why it refused.
  const printed = await statusAfter(surroundings, async () => {
    await Promise.all(written);
  });
  return status === 0 ? printed : status;
}

async function statusAfter(surroundings: Surroundings, work: () => Promise<void>): Promise<number> {
  try {
    await work();
    return 0;
  } catch (error) {
    return await statusOf(error, surroundings);
  }
}

/** Every command, below the one that is the program itself. */
export function assembled(surroundings: Surroundings, agent: Command): Command {
  const program = new Command('conclave')
    .description('A replicated, multi-datacenter access-control service.')
    .version(`conclave ${surroundings.version}`, '--version', 'print the version')
    .addCommand(agent);
  addAclCommands(program, surroundings);
  addNamespaceCommands(program, surroundings);
  addLoginCommands(program, surroundings);
  addMembersCommands(program, surroundings);
  addOperatorCommands(program, surroundings);
  addSnapshotCommands(program, surroundings);
  addAuditCommands(program, surroundings);
  addKeygenCommand(program, surroundings);
  return program;
}

function* everyCommand(command: Command): Iterable<Command> {
  yield command;
  for (const child of command.commands) yield* everyCommand(child);
}

/** Errors are thrown instead of ending the process, and texts go where the surroundings say. */
function adapt(command: Command, surroundings: Surroundings, written: Promise<void>[]): void {
  const path = fullNameOf(command);
  command
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void written.push(surroundings.out.write(text)),
      writeErr: (text) => void written.push(surroundings.err.write(text)),
      outputError: (text, write) =>
        write(manyLines(withoutValues(text)).replace(/^error:/, 'Error:')),
    })
    .showHelpAfterError(`Usage: ${path} ${command.usage()}\nNext: \`${path} --help\` says more.`);
}

function fullNameOf(command: Command): string {
  return command.parent === null
    ? command.name()
    : `${fullNameOf(command.parent)} ${command.name()}`;
}

/** A mistyped flag may carry a secret: its name is enough to find it. */
function withoutValues(text: string): string {
  return text.replace(/unknown option '(--?[^'=]*)=[^']*'/s, "unknown option '$1'");
}

async function statusOf(error: unknown, surroundings: Surroundings): Promise<number> {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  if (isClosedPipe(error)) return 0;
  const message = messageOf(error);
  const text = error instanceof CommandFailed ? manyLines(message) : oneLine(message);
  const stack = surroundings.environment.CONCLAVE_DEBUG === '1' ? stackOf(error) : '';
  // Where nobody can be told, the status still says it.
  await surroundings.err.write(`Error: ${text}\n${stack}`).catch(() => undefined);
  return error instanceof UsageError ? 2 : 1;
}

function stackOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  const { cause, stack = '' } = error;
  // Of what it was put into words for, the places alone: the words of that are not looked through for secrets.
  const places = cause instanceof Error ? (cause.stack ?? '').match(/^ {4}at .*$/gm) : null;
  return [stack, ...(places ?? [])].map((line) => `${line}\n`).join('');
}
