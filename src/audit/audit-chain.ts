// The links between the records of an audit log: each holds the SHA-256 of the one before it and of its own
// text. Whoever changes, removes or adds a record has to make all links behind it anew, and then the last one
// differs from what somebody else has noted. What is cut off at the end is not seen without such a note.

import { sha256 } from '../../cluster/platform/sha256.ts';

/** What stands before the first record of all. */
export const FIRST_LINK = '0'.repeat(64);

/** Of any text: what ends a line for some stood in records as it was. */
const LINK = /^(\{.*),"link":"([0-9a-f]{64})"\}$/s;
/** JSON leaves these as they are, and for many readers they end a line, or a terminal obeys them. */
const LOOSE = /[\u007f-\u009f\u2028\u2029]/g;

/** The line of a record, without its end, and its link. `fields` have at least one entry. */
export function linked(
  previous: string,
  fields: Readonly<Record<string, unknown>>,
): { readonly line: string; readonly link: string } {
  const body = JSON.stringify(fields).slice(0, -1).replaceAll(LOOSE, escaped);
  const link = linkOf(previous, body);
  return { line: `${body},"link":"${link}"}`, link };
}

function escaped(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

const RECORD_START = '{"v":1,';

/** Whether a record begins so: what a server leaves that ends while it writes one. */
export function isBeginning(text: string): boolean {
  return text.startsWith(RECORD_START) || RECORD_START.startsWith(text);
}

/** The link that a line says it has; undefined for what is no whole record. */
export function linkIn(line: string): string | undefined {
  return LINK.exec(line)?.[2];
}

/** Whether the line is what it was when it was written behind the one with the link `previous`. */
export function fits(previous: string, line: string): boolean {
  const [, body = '', link] = LINK.exec(line) ?? [];
  return link !== undefined && linkOf(previous, body) === link;
}

function linkOf(previous: string, body: string): string {
  return Buffer.from(sha256(Buffer.from(`${previous}\n${body}`))).toString('hex');
}
