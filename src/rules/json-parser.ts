// Strict JSON into the same tree as HCL, with places; written here because JSON.parse tells neither
// where a value stands nor that a key was given twice.

import type { Position } from './rule-set.ts';
import { isIllFormed, requireDepth, type SourceText, syntaxError } from './source-text.ts';
import type { ItemNode, ListNode, LiteralNode, ObjectNode, ValueNode } from './syntax-tree.ts';

/** True iff the text is to be read as JSON. */
export function looksLikeJson(text: string): boolean {
  return /^[ \t\r\n\v\f]*\{/.test(text);
}

/** Parses a text that is one JSON object. Every item has one key; keys may repeat. */
export function parseJson(source: SourceText): ObjectNode {
  return new JsonParser(source).parse();
}

const BLANKS = /[ \t\r\n]*/y;
const NUMBER = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const WORD = /[a-z]+/y;

class JsonParser {
  readonly #source: SourceText;
  #offset = 0;

  constructor(source: SourceText) {
    this.#source = source;
  }

  parse(): ObjectNode {
    this.#skipBlanks();
    const root = this.#object(0);
    this.#skipBlanks();
    if (this.#offset < this.#source.text.length) throw this.#unexpected('the end of the text');
    return root;
  }

  #value(depth: number): ValueNode {
    const position = this.#position();
    switch (this.#source.text[this.#offset]) {
      case '{':
        return this.#object(depth);
      case '[':
        return this.#list(depth);
      case '"':
        return { kind: 'string', text: this.#string(), position };
      default:
        return this.#numberOrWord(position);
    }
  }

  #object(depth: number): ObjectNode {
    const position = this.#position();
    requireDepth(depth, position);
    const items: ItemNode[] = [];
    this.#sequence({ open: '{', close: '}', what: 'a string' }, () => {
      const key = { position: this.#position(), text: this.#string() };
      this.#skipBlanks();
      this.#expect(':');
      this.#skipBlanks();
      items.push({ keys: [key], value: this.#value(depth + 1) });
    });
    return { kind: 'object', items, position };
  }

  #list(depth: number): ListNode {
    const position = this.#position();
    requireDepth(depth, position);
    const elements: ValueNode[] = [];
    this.#sequence({ open: '[', close: ']', what: 'a value' }, () => {
      elements.push(this.#value(depth + 1));
    });
    return { kind: 'list', elements, mayBeBlocks: true, position };
  }

  /** What stands between two brackets, parted by single commas. */
  #sequence(
    brackets: { readonly open: string; readonly close: string; readonly what: string },
    element: () => void,
  ): void {
    this.#expect(brackets.open);
    this.#skipBlanks();
    if (this.#skipIf(brackets.close)) return;
    for (;;) {
      element();
      this.#skipBlanks();
      if (this.#skipIf(brackets.close)) return;
      if (!this.#skipIf(',')) throw this.#unexpected(`',' or '${brackets.close}'`);
      this.#skipBlanks();
    }
  }

  #string(): string {
    const { text } = this.#source;
    if (text[this.#offset] !== '"') throw this.#unexpected('a string');
    const end = closingQuote(text, this.#offset);
    if (end === undefined) throw this.#error('literal not terminated');
    const value = decodedString(text.slice(this.#offset, end + 1));
    if (value === undefined) throw this.#error('illegal char or escape in literal');
    this.#offset = end + 1;
    return value;
  }

  #numberOrWord(position: Position): LiteralNode {
    const number = this.#match(NUMBER);
    if (number !== undefined) {
      this.#offset += number.length;
      return { kind: number.includes('.') ? 'float' : 'number', text: number, position };
    }
    const word = this.#match(WORD);
    if (word === 'null' || word === 'true' || word === 'false') {
      this.#offset += word.length;
      return { kind: word === 'null' ? 'null' : 'bool', text: word, position };
    }
    throw this.#unexpected('a value');
  }

  #skipBlanks(): void {
    this.#offset += this.#match(BLANKS)?.length ?? 0;
  }

  #skipIf(char: string): boolean {
    if (this.#source.text[this.#offset] !== char) return false;
    this.#offset++;
    return true;
  }

  #expect(char: string): void {
    if (!this.#skipIf(char)) throw this.#unexpected(`'${char}'`);
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#offset;
    return pattern.exec(this.#source.text)?.[0];
  }

  #position(): Position {
    return this.#source.positionAt(this.#offset);
  }

  #unexpected(expected: string): Error {
    const codePoint = this.#source.text.codePointAt(this.#offset);
    if (codePoint === undefined) {
      return syntaxError(this.#source.endPosition(), `expected ${expected} got: EOF`);
    }
    const found = JSON.stringify(String.fromCodePoint(codePoint));
    return this.#error(`expected ${expected} got: ${found}`);
  }

  #error(message: string): Error {
    return syntaxError(this.#position(), message);
  }
}

function closingQuote(text: string, openingOffset: number): number | undefined {
  for (let at = openingOffset + 1; at < text.length; at++) {
    if (text[at] === '"') return at;
    if (text[at] === '\\') at++;
  }
  return undefined;
}

function decodedString(literal: string): string | undefined {
  try {
    const value: unknown = JSON.parse(literal);
    return typeof value === 'string' && !isIllFormed(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
