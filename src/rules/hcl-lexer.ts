// Splits HCL 1 text into tokens with their places. It skips white space and comments, and throws the
// syntax errors of single tokens; how tokens may follow each other is the parser's business.

import { withoutTrailing } from '../../cluster/base/without-trailing.ts';
import { scanString } from './hcl-string.ts';
import type { Position } from './rule-set.ts';
import { type SourceText, syntaxError } from './source-text.ts';

/** The names are part of error texts. */
export type TokenType =
  | 'EOF'
  | 'IDENT'
  | 'STRING'
  | 'HEREDOC'
  | 'NUMBER'
  | 'FLOAT'
  | 'BOOL'
  | 'ASSIGN'
  | 'COMMA'
  | 'LBRACE'
  | 'RBRACE'
  | 'LBRACK'
  | 'RBRACK'
  | 'PERIOD'
  | 'ADD'
  | 'SUB';

export interface Token {
  readonly type: TokenType;
  /** As written. */
  readonly text: string;
  /** Decoded text of a STRING or HEREDOC, otherwise `text`. */
  readonly value: string;
  readonly position: Position;
}

const PUNCTUATION: ReadonlyMap<string, TokenType> = new Map([
  ['=', 'ASSIGN'],
  [',', 'COMMA'],
  ['{', 'LBRACE'],
  ['}', 'RBRACE'],
  ['[', 'LBRACK'],
  [']', 'RBRACK'],
  ['.', 'PERIOD'],
  ['+', 'ADD'],
  ['-', 'SUB'],
]);

const BLANKS = /[ \t\r\n]+/y;
const LINE_COMMENT = /(?:#|\/\/)[^\n]*/y;
const IDENTIFIER = /[\p{L}_][\p{L}\p{Nd}_.-]*/uy;
const NUMBER = /-?0[xX][0-9a-fA-F]*|(?:-?[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]*)?/y;
const HEREDOC_ANCHOR = /<<(-?)([\p{L}\p{Nd}_]+)\n/uy;

export class HclLexer {
  readonly #source: SourceText;
  #offset = 0;

  constructor(source: SourceText) {
    this.#source = source;
  }

  /** The next token; EOF again and again at the end. */
  next(): Token {
    this.#skipBlanksAndComments();
    const { text } = this.#source;
    if (this.#offset >= text.length) {
      return { type: 'EOF', text: '', value: '', position: this.#source.endPosition() };
    }
    const char = text[this.#offset]!;
    if (char === '"') return this.#string();
    if (char === '<') return this.#heredoc();
    const identifier = this.#match(IDENTIFIER);
    if (identifier !== undefined) return this.#identifier(identifier);
    const number = this.#match(NUMBER);
    if (number !== undefined) return this.#number(number);
    const punctuation = PUNCTUATION.get(char);
    if (punctuation !== undefined) return this.#token(punctuation, char);
    throw this.#error(this.#offset, 'illegal char');
  }

  #skipBlanksAndComments(): void {
    const { text } = this.#source;
    for (;;) {
      const skipped = this.#match(BLANKS) ?? this.#match(LINE_COMMENT);
      if (skipped !== undefined) {
        this.#offset += skipped.length;
      } else if (text[this.#offset] !== '/') {
        return;
      } else if (text[this.#offset + 1] !== '*') {
        throw this.#error(this.#offset, "expected '/' for comment");
      } else {
        const close = text.indexOf('*/', this.#offset + 2);
        if (close < 0) throw this.#error(this.#offset, 'comment not terminated');
        this.#offset = close + 2;
      }
    }
  }

  #identifier(text: string): Token {
    return this.#token(text === 'true' || text === 'false' ? 'BOOL' : 'IDENT', text);
  }

  #number(text: string): Token {
    if (/^-?0[xX]$/.test(text)) throw this.#error(this.#offset, 'illegal hexadecimal number');
    if (/^-?0[0-9]+$/.test(text) && /[89]/.test(text)) {
      throw this.#error(this.#offset, 'illegal octal number');
    }
    if (/^\.[0-9]+[eE]|^[^xX]*[eE][+-]?$/.test(text)) {
      throw this.#error(this.#offset, 'illegal exponent');
    }
    return this.#token(text.includes('.') ? 'FLOAT' : 'NUMBER', text);
  }

  #string(): Token {
    const { text } = this.#source;
    const scan = scanString(text, this.#offset);
    if (!scan.ok) throw this.#error(scan.fault.offset, scan.fault.message);
    return this.#token('STRING', text.slice(this.#offset, scan.endOffset), scan.value);
  }

  /** Ends at the first line that holds the anchor alone. No value of a rule has a line end, so indentation stays. */
  #heredoc(): Token {
    const { text } = this.#source;
    HEREDOC_ANCHOR.lastIndex = this.#offset;
    const match = HEREDOC_ANCHOR.exec(text);
    if (match === null) throw this.#error(this.#offset, 'invalid heredoc anchor');
    const [opening, dash, anchor = ''] = match;
    const lines: string[] = [];
    for (let lineStart = this.#offset + opening.length; ; ) {
      const lineEnd = text.indexOf('\n', lineStart);
      if (lineEnd < 0) throw this.#error(this.#offset, 'heredoc not terminated');
      const line = text.slice(lineStart, lineEnd);
      if (isHeredocEnd(line, { anchor, isIndented: dash === '-' })) {
        const value = lines.map((each) => `${each}\n`).join('');
        return this.#token('HEREDOC', text.slice(this.#offset, lineEnd + 1), value);
      }
      lines.push(line);
      lineStart = lineEnd + 1;
    }
  }

  #token(type: TokenType, text: string, value: string = text): Token {
    const position = this.#source.positionAt(this.#offset);
    this.#offset += text.length;
    return { type, text, value, position };
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#offset;
    return pattern.exec(this.#source.text)?.[0];
  }

  #error(offset: number, message: string): Error {
    return syntaxError(this.#source.positionAt(offset), message);
  }
}

/** The end of an indented heredoc needs some white space itself: so deployed servers have it. */
function isHeredocEnd(
  line: string,
  heredoc: { readonly anchor: string; readonly isIndented: boolean },
): boolean {
  if (heredoc.isIndented && line.length === heredoc.anchor.length) return false;
  return withoutTrailing(line.replace(/^[ \t\v\f\r]+/, ''), '\r') === heredoc.anchor;
}
