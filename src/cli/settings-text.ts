// The text of a configuration file as a value. Parsers like to repeat the text around a fault, and in
// these files that may be a secret: what is told of a fault is its kind and its place, never its text.

import { endOfFirstValue, JsonTextError } from '../api/json-text.ts';

/** The text cannot be read; the message says why without repeating it. */
export class SettingsTextError extends Error {
  override readonly name = 'SettingsTextError';
}

/** Strict JSON. Throws SettingsTextError. */
export function parseJsonSettings(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new SettingsTextError(jsonFaultOf(text));
  }
}

function jsonFaultOf(text: string): string {
  try {
    const end = endOfFirstValue(text);
    const next = end + text.slice(end).search(/[^ \t\r\n]/);
    return `something follows the end of the JSON ${whereIn(text, next)}`;
  } catch (error) {
    if (error instanceof JsonTextError) return `${error.message} ${whereIn(text, error.place)}`;
    throw error;
  }
}

/** As editors count. */
function whereIn(text: string, place: number): string {
  const lines = text.slice(0, place).split('\n');
  return `in line ${lines.length}, column ${lines.at(-1)!.length + 1}`;
}
