// Values that may be given in place, from a file (`@file`) or on standard input (`-`): rules,
// configurations and secrets, which do not belong into the history of a shell.

import { messageOf } from '../../../cluster/base/message-of.ts';
import type { Surroundings } from '../surroundings.ts';
import { UsageError } from '../usage-error.ts';

/** The text that `value` stands for. Throws UsageError naming `flag` when a file cannot be read. */
export function textInput(surroundings: Surroundings, flag: string, value: string): string {
  if (value === '-') return standardInput(surroundings, flag);
  if (value.startsWith('@')) return fileInput(surroundings, flag, value.slice(1));
  return value;
}

/** The text of a file; `-` is standard input. Throws UsageError naming `flag`. */
export function fileInput(surroundings: Surroundings, flag: string, path: string): string {
  if (path === '-') return standardInput(surroundings, flag);
  return readFrom(flag, `the file ${path}`, () => surroundings.readTextFile(path));
}

function readFrom(flag: string, what: string, read: () => string): string {
  try {
    return read();
  } catch (error) {
    throw new UsageError(`${flag}: cannot read ${what}: ${messageOf(error)}`);
  }
}

/** It is there once: who asks for it again, or gets nothing, must not take that for an empty text. */
function standardInput(surroundings: Surroundings, flag: string): string {
  const text = readFrom(flag, 'standard input', () => surroundings.readStandardInput());
  if (text !== '') return text;
  throw new UsageError(`${flag}: standard input is empty, or another option has read it already`);
}

/** A secret: as `textInput`, without the line end that editors put behind it; never empty. */
export function secretInput(surroundings: Surroundings, flag: string, value: string): string {
  const secret = textInput(surroundings, flag, value).trim();
  if (secret === '') throw new UsageError(`${flag}: the secret is empty`);
  return secret;
}

/** A JSON object. Throws UsageError naming `flag` and what the parser found. */
export function objectInput(
  surroundings: Surroundings,
  flag: string,
  value: string,
): Readonly<Record<string, unknown>> {
  const text = textInput(surroundings, flag, value);
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw new UsageError(`${flag}: not valid JSON: ${withoutSnippet((error as Error).message)}`);
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed))
    throw new UsageError(`${flag}: expected a JSON object, such as '{"Key": "value"}'`);
  return parsed as Readonly<Record<string, unknown>>;
}

/** The parser quotes what it read, and a configuration may hold secrets. */
function withoutSnippet(message: string): string {
  return message.replace(/, (?:\.\.\.)?".*"(?:\.\.\.)? is not valid JSON$/s, '');
}
