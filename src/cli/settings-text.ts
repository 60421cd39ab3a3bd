// The text of a configuration file as a value. Parsers like to repeat the text around a fault, and in
// these files that may be a secret: what is told of a fault is its kind and its place, never its text.

import { messageOf } from '../../cluster/base/message-of.ts';
import { parseFirstValue } from '../api/json-text.ts';

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
    parseFirstValue(text);
    return 'something follows the end of the JSON';
  } catch (error) {
    return messageOf(error);
  }
}
