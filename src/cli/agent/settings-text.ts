// The text of a configuration file as a value. Parsers like to repeat the text around a fault, and in
// these files that may be a secret: what is told of a fault is its kind and its place, never its text.

import { endOfFirstValue, JsonTextError } from '../../api/bodies/json-text.ts';

/** The text cannot be read; the message says why without repeating it. */
export class SettingsTextError extends Error {
  override readonly name = 'SettingsTextError';
}

/** Strict JSON, each key of an object once. Throws SettingsTextError. */
export function parseJsonSettings(text: string): unknown {
  let settings: unknown;
  try {
    settings = JSON.parse(text);
  } catch {
    throw new SettingsTextError(jsonFaultOf(text));
  }
  requireKeysOnce(text);
  return settings;
}

/** JSON lets the last one count: what stands under the others would be lost in silence. */
function requireKeysOnce(text: string): void {
  const known = new Set<string>();
  endOfFirstValue(text, ({ start, end, objectStart }) => {
    const key = `${objectStart} ${String(JSON.parse(text.slice(start, end)))}`;
    if (known.has(key)) throw new SettingsTextError(`duplicate key ${whereIn(text, start)}`);
    known.add(key);
  });
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
