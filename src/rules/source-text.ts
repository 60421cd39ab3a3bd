// The text that is being parsed: its bounds, its places, and the one form that a syntax error has.
// Lexers walk it by offset; this file turns offsets into lines and columns in linear time overall.

import { type AclError, invalid } from '../acl/error.ts';
import type { Position } from './rule-set.ts';

/** Longest rule text, in UTF-8 bytes. */
const RULES_SIZE_BYTES_MAX = 1024 * 1024;
/** Deepest nesting of objects and lists; keeps recursive descent off the end of the stack. */
const RULES_DEPTH_MAX = 64;
/** Longest piece of the caller's text that an error quotes, in UTF-16 code units. */
const QUOTE_LENGTH_MAX = 200;

const LONE_SURROGATE = /\p{Surrogate}/u;

/** Text with LF line ends, together with a cursor that remembers the last place it was asked for. */
export class SourceText {
  readonly text: string;
  #offset = 0;
  #line = 1;
  #column = 1;

  /** Throws AclError for a text that is too long or that no sequence of bytes could have been. */
  constructor(text: string) {
    this.text = text.replaceAll('\r\n', '\n');
    // A code unit takes one byte or more, so the cheap count may spare the exact one.
    if (text.length > RULES_SIZE_BYTES_MAX || Buffer.byteLength(text) > RULES_SIZE_BYTES_MAX) {
      throw syntaxError({ line: 1, column: 1 }, `longer than ${RULES_SIZE_BYTES_MAX} bytes`);
    }
    const illFormedOffset = this.text.search(LONE_SURROGATE);
    if (illFormedOffset >= 0) throw syntaxError(this.positionAt(illFormedOffset), 'illegal char');
  }

  /** Cheap for offsets that only grow, which is how lexers ask. */
  positionAt(offset: number): Position {
    if (offset < this.#offset) {
      this.#offset = 0;
      this.#line = 1;
      this.#column = 1;
    }
    for (; this.#offset < offset; this.#offset++) {
      const unit = this.text.charCodeAt(this.#offset);
      if (unit === 0x0a) {
        this.#line++;
        this.#column = 1;
      } else if (unit < 0xdc00 || unit > 0xdfff) {
        this.#column++;
      }
    }
    return { line: this.#line, column: this.#column };
  }

  /** Deployed servers place the end of the text one column behind the place after its last char. */
  endPosition(): Position {
    const { line, column } = this.positionAt(this.text.length);
    return { line, column: column + 1 };
  }
}

/** Refuses nesting beyond RULES_DEPTH_MAX. */
export function requireDepth(depth: number, position: Position): void {
  if (depth > RULES_DEPTH_MAX) {
    throw syntaxError(position, `nested more than ${RULES_DEPTH_MAX} levels deep`);
  }
}

/** The refusal of a text that cannot be read, with the prefix that callers match on. */
export function syntaxError(position: Position, message: string): AclError {
  return invalid(`Failed to parse ACL rules: At ${placeOf(position)}: ${message}`);
}

/** `line:column`. */
export function placeOf(position: Position): string {
  return `${position.line}:${position.column}`;
}

/** True for text with half of a surrogate pair, which has no form in bytes. */
export function isIllFormed(text: string): boolean {
  return LONE_SURROGATE.test(text);
}

/** Shortens what the caller wrote to a length that is fit for an error. */
export function excerpt(text: string): string {
  // A cut between the halves of a character leaves what some clients cannot read.
  return text.length <= QUOTE_LENGTH_MAX
    ? text
    : `${text.slice(0, QUOTE_LENGTH_MAX).toWellFormed()}…`;
}

/** The excerpt in double quotes, with escapes. */
export function quoted(text: string): string {
  return JSON.stringify(excerpt(text));
}
