// What of a text of rules says nothing: servers take it without a word, as deployed clients expect, and a
// slip of the pen would be found out when something is allowed that was meant to be denied.

import { AclError } from '../../acl/error.ts';
import { parseRules } from '../../rules/parse-rules.ts';
import type { RuleWarning } from '../../rules/rule-set.ts';
import type { Printer } from '../printer.ts';

/** Warns of it. For rules that a server has taken; undefined: none were sent. */
export async function warnOfIgnored(
  printer: Pick<Printer, 'warn'>,
  rules: string | undefined,
): Promise<void> {
  for (const { message, line, column } of ignoredIn(rules ?? '')) {
    await printer.warn(`line ${line}, column ${column} of the rules: ${message}`);
  }
}

/** A server of another release may read what this one does not. */
function ignoredIn(rules: string): readonly RuleWarning[] {
  try {
    return parseRules(rules).warnings;
  } catch (error) {
    if (error instanceof AclError) return [];
    throw error;
  }
}
