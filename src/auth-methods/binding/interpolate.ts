// Templates of binding rules and namespace rules: text with `${attribute}` in it. `$${` stands for a
// literal `${`. Nothing is computed in a template: a name in braces, and that name must be known.

import { AclError, invalid } from '../../acl/error.ts';

const TEMPLATE_LENGTH_MAX = 4096;
/** So long a name may become; none that can be bound comes near it, and an attribute may stand there many times. */
const FILLED_LENGTH_MAX = 4096;

type Part =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'variable'; readonly name: string; readonly offset: number };

/** What stands for every attribute when a template is tried before any login. */
const SAMPLE = 'sample';

/** Throws AclError('invalid') when the template does not parse or names an unknown attribute. */
export function checkTemplate(template: string, allowedNames: readonly string[]): void {
  sampleOf(template, allowedNames);
}

/** The text with one valid name for each attribute; throws as `checkTemplate` does. */
export function sampleOf(template: string, allowedNames: readonly string[]): string {
  return partsOf(template)
    .map((part) => {
      if (part.kind === 'text') return part.text;
      if (allowedNames.includes(part.name)) return SAMPLE;
      throw templateError(part.offset, `unknown variable "${part.name}"`);
    })
    .join('');
}

/**
 * Replaces each `${attribute}` by its value, letters A to Z in lower case. Only those: other
 * alphabets have letters whose lower case is an ASCII letter (U+212A becomes `k`), and two
 * identities must not end up as one name. Throws AclError('login-refused') when an attribute is
 * missing, the template does not parse (compatibility.md 7.4, step 2), or the text gets too long.
 */
export function interpolate(template: string, attributes: ReadonlyMap<string, string>): string {
  let result = '';
  for (const part of partsForLogin(template)) {
    const text = part.kind === 'text' ? part.text : attributeOf(part.name, attributes);
    if (result.length + text.length > FILLED_LENGTH_MAX) {
      throw refused(`it becomes longer than ${FILLED_LENGTH_MAX} characters`);
    }
    result += part.kind === 'text' ? text : lowerCase(text);
  }
  return result;
}

function partsForLogin(template: string): Part[] {
  try {
    return partsOf(template);
  } catch (error) {
    if (!(error instanceof AclError)) throw error;
    throw refused(error.message);
  }
}

function attributeOf(name: string, attributes: ReadonlyMap<string, string>): string {
  const value = attributes.get(name);
  if (value === undefined) throw refused(`unknown variable "${name}"`);
  return value;
}

function refused(message: string): AclError {
  return new AclError('login-refused', `error interpreting template: ${message}`);
}

function lowerCase(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

function partsOf(template: string): Part[] {
  if (template.length > TEMPLATE_LENGTH_MAX) {
    throw invalid(`a template may have at most ${TEMPLATE_LENGTH_MAX} characters`);
  }
  const parts: Part[] = [];
  let from = 0;
  for (;;) {
    const open = template.indexOf('${', from);
    if (open < 0) {
      parts.push({ kind: 'text', text: template.slice(from) });
      return parts;
    }
    if (open > from && template[open - 1] === '$') {
      parts.push({ kind: 'text', text: `${template.slice(from, open - 1)}\${` });
      from = open + 2;
      continue;
    }
    const close = template.indexOf('}', open);
    if (close < 0) throw templateError(open, '"${" is not closed');
    parts.push({ kind: 'text', text: template.slice(from, open) });
    parts.push({ kind: 'variable', name: nameIn(template, open + 2, close), offset: open });
    from = close + 1;
  }
}

function nameIn(template: string, start: number, end: number): string {
  const name = template.slice(start, end).trim();
  if (name === '' || /[${\s"]/.test(name)) {
    throw templateError(start, 'expected the name of an attribute');
  }
  return name;
}

function templateError(offset: number, message: string): AclError {
  return invalid(`${offset + 1}: ${message}`);
}
