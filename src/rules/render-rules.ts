// Prints single rules as HCL text. What it prints parses back to the same rules, whatever the labels hold;
// only places differ.

import type { FlatRule, NamedRule, NamespaceBlock } from './rule-set.ts';

/** `acl = "read"`. */
export function renderFlatRule(rule: FlatRule): string {
  return `${rule.resource} = "${rule.level}"`;
}

/** `key_prefix "foo" { policy = "read" }`, in one line. */
export function renderNamedRule(rule: NamedRule): string {
  const attributes = [`policy = "${rule.level}"`];
  if (rule.intentions !== undefined) attributes.push(`intentions = "${rule.intentions}"`);
  return `${keywordOf(rule.resource, rule)} { ${attributes.join(' ')} }`;
}

/** The block's own policy and nothing of what it holds. */
export function renderNamespacePolicy(block: NamespaceBlock): string {
  return renderInNamespace(block, block.level === undefined ? '' : `policy = "${block.level}"`);
}

/** A rule as it stands inside a namespace block. */
export function renderInNamespace(block: NamespaceBlock, rule: string): string {
  return `${keywordOf('namespace', block)} { ${rule} }`;
}

function keywordOf(
  keyword: string,
  selector: { readonly match: 'exact' | 'prefix'; readonly name: string },
): string {
  return `${keyword}${selector.match === 'prefix' ? '_prefix' : ''} ${literal(selector.name)}`;
}

/** Escaped are a dollar sign, which before a brace would open an interpolation, and what no text of rules may hold. */
function literal(text: string): string {
  const escaped = text.replaceAll(/["\\$\u0000-\u001f\u007f\ue123]/g, (char) => {
    if (char === '"' || char === '\\') return `\\${char}`;
    return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
  return `"${escaped}"`;
}
