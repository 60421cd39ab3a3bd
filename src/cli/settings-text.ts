// The text of a configuration file as a value. Parsers like to repeat the text around a fault, and in
// these files that may be a secret: what is told of a fault is its kind and its place, never its text.

import { parseDocument, type YAMLError } from 'yaml';
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
    return error instanceof Error ? error.message : String(error);
  }
}

/** YAML 1.2, without tags of its own. Throws SettingsTextError. */
export function parseYamlSettings(text: string): unknown {
  const document = parseDocument(text);
  // A warning means that a value was not taken as it was written.
  const [fault] = [...document.errors, ...document.warnings];
  if (fault !== undefined) throw new SettingsTextError(yamlFaultOf(fault));
  try {
    return document.toJS() as unknown;
  } catch {
    throw new SettingsTextError('an alias names no anchor; put values that begin with * in quotes');
  }
}

function yamlFaultOf({ code, linePos }: YAMLError): string {
  const kind = code.toLowerCase().replaceAll('_', ' ');
  const [start] = linePos ?? [];
  if (start === undefined) return kind;
  return `${kind} in line ${start.line}, column ${start.col}`;
}
