// The entrance to the rule language: text in, rule set out. It chooses the notation; parsing and
// reading are done by the files it calls.

import { parseHcl } from './hcl-parser.ts';
import { looksLikeJson, parseJson } from './json-parser.ts';
import { readRules } from './rule-reader.ts';
import type { RuleSet } from './rule-set.ts';
import { SourceText } from './source-text.ts';
import type { Standing } from './syntax-tree.ts';

/**
 * Parses rules in HCL 1, or in JSON if the first char that is no space is `{`
 * (compatibility.md 5.1). Of an HCL argument that stands twice in one block of stored rules the last one
 * counts; what is given is refused then. Throws AclError `invalid`, always naming line and column, and
 * nothing else, whatever the text is.
 */
export function parseRules(
  text: string,
  { standing }: { readonly standing: Standing } = { standing: 'given' },
): RuleSet {
  const source = new SourceText(text);
  const root = looksLikeJson(source.text) ? parseJson(source) : parseHcl(source, standing);
  return readRules(root);
}
