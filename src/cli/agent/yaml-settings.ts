// The text of a YAML file with settings as a value. A file of its own, because few servers have one, and what
// reads it is half as large as all other commands together.

import { parseDocument, type YAMLError } from 'yaml';
import { SettingsTextError } from './settings-text.ts';

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
