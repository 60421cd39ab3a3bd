// The syntax of selectors: text to tree, by hand, with line and column in every error. Knows no
// attribute names; selector.ts gives the tree its meaning. Limits: text, nesting, comparisons.

import { type AclError, invalid } from '../../acl/error.ts';

const SELECTOR_LENGTH_MAX = 8192;
const SELECTOR_DEPTH_MAX = 32;
const SELECTOR_COMPARISONS_MAX = 256;

export type Operator = 'equal' | 'in' | 'matches' | 'empty';

export interface Field {
  /** `value["team"]` and `value.team` are the same two segments. */
  readonly segments: readonly string[];
  readonly offset: number;
}

export interface Comparison {
  readonly kind: 'comparison';
  readonly field: Field;
  readonly operator: Operator;
  readonly negated: boolean;
  /** Empty for `is empty`. */
  readonly value: string;
  readonly valueOffset: number;
}

export type Expression =
  | Comparison
  | { readonly kind: 'not'; readonly term: Expression }
  | { readonly kind: 'and' | 'or'; readonly terms: readonly Expression[] };

type Token =
  | { readonly kind: 'word'; readonly segments: readonly string[]; readonly offset: number }
  | { readonly kind: 'literal'; readonly value: string; readonly offset: number }
  | { readonly kind: '(' | ')' | '==' | '!=' | 'end'; readonly offset: number };

/** An error about the text at `offset`: `1:7: message`. */
export function syntaxError(text: string, offset: number, message: string): AclError {
  const before = text.slice(0, offset).split('\n');
  return invalid(`${before.length}:${(before.at(-1) ?? '').length + 1}: ${message}`);
}

/** Parses a whole selector; throws AclError('invalid') with a position. Blank text is an error. */
export function parseSelector(text: string): Expression {
  if (text.length > SELECTOR_LENGTH_MAX) {
    throw invalid(`a selector may have at most ${SELECTOR_LENGTH_MAX} characters`);
  }
  return new Parser(text, tokensOf(text)).parse();
}

const SPACE = /[ \t\r\n]+/y;
const IDENTIFIER = /[a-zA-Z][a-zA-Z0-9_]*/y;
const NUMBER = /-?[0-9]+(?:\.[0-9]+)?(?![a-zA-Z0-9_.])/y;
const SYMBOL = /==|!=|\(|\)/y;

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  let offset = skipSpace(text, 0);
  while (offset < text.length) {
    const [token, next] = tokenAt(text, offset);
    tokens.push(token);
    offset = skipSpace(text, next);
  }
  return tokens;
}

function skipSpace(text: string, offset: number): number {
  return offset + (matchAt(SPACE, text, offset)?.length ?? 0);
}

function matchAt(pattern: RegExp, text: string, offset: number): string | undefined {
  pattern.lastIndex = offset;
  return pattern.exec(text)?.[0];
}

function tokenAt(text: string, offset: number): [Token, number] {
  const symbol = matchAt(SYMBOL, text, offset);
  if (symbol !== undefined) {
    return [{ kind: symbol as '(' | ')' | '==' | '!=', offset }, offset + symbol.length];
  }
  const first = text[offset];
  if (first === '"' || first === '`') {
    const [value, next] = stringAt(text, offset);
    return [{ kind: 'literal', value, offset }, next];
  }
  const number = matchAt(NUMBER, text, offset);
  if (number !== undefined) {
    return [{ kind: 'literal', value: number, offset }, offset + number.length];
  }
  const word = matchAt(IDENTIFIER, text, offset);
  if (word !== undefined) return wordAt(text, offset, word);
  throw syntaxError(text, offset, `unexpected character ${JSON.stringify(first)}`);
}

function wordAt(text: string, offset: number, first: string): [Token, number] {
  const segments = [first];
  let next = offset + first.length;
  for (;;) {
    if (text[next] === '.') {
      const segment = matchAt(IDENTIFIER, text, next + 1);
      if (segment === undefined) throw syntaxError(text, next + 1, 'expected a name after "."');
      segments.push(segment);
      next += 1 + segment.length;
    } else if (text[next] === '[') {
      const inside = skipSpace(text, next + 1);
      const [segment, after] = stringAt(text, inside);
      next = skipSpace(text, after);
      if (text[next] !== ']') throw syntaxError(text, next, 'expected "]"');
      segments.push(segment);
      next += 1;
    } else {
      return [{ kind: 'word', segments, offset }, next];
    }
  }
}

function stringAt(text: string, offset: number): [string, number] {
  const quote = text[offset];
  if (quote === '`') {
    const end = text.indexOf('`', offset + 1);
    if (end < 0) throw syntaxError(text, offset, 'string is not closed');
    return [text.slice(offset + 1, end), end + 1];
  }
  if (quote !== '"') throw syntaxError(text, offset, 'expected a quoted string');
  let value = '';
  let next = offset + 1;
  for (;;) {
    const character = text[next];
    if (character === undefined || character === '\n') {
      throw syntaxError(text, offset, 'string is not closed');
    }
    if (character === '"') return [value, next + 1];
    if (character !== '\\') {
      value += character;
      next += 1;
      continue;
    }
    const [unescaped, length] = escapeAt(text, next);
    value += unescaped;
    next += length;
  }
}

const ESCAPES: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
  '"': '"',
};
const CODE_ESCAPE = /\\(?:x([0-7][0-9a-fA-F])|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))/y;

function escapeAt(text: string, offset: number): [string, number] {
  const letter = text[offset + 1] ?? '';
  const simple = Object.hasOwn(ESCAPES, letter) ? ESCAPES[letter] : undefined;
  if (simple !== undefined) return [simple, 2];
  CODE_ESCAPE.lastIndex = offset;
  const match = CODE_ESCAPE.exec(text);
  const code = Number.parseInt(match?.[1] ?? match?.[2] ?? match?.[3] ?? '', 16);
  // A lone surrogate is no character; a selector that holds one could never match.
  const isCharacter = code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
  if (match === null || !isCharacter) throw syntaxError(text, offset, 'unknown escape in string');
  return [String.fromCodePoint(code), match[0].length];
}

class Parser {
  readonly #text: string;
  readonly #tokens: readonly Token[];
  #next = 0;
  #depth = 0;
  #comparisons = 0;

  constructor(text: string, tokens: readonly Token[]) {
    this.#text = text;
    this.#tokens = tokens;
  }

  parse(): Expression {
    const expression = this.#either();
    const rest = this.#peek();
    if (rest.kind !== 'end') throw this.#error(rest, 'expected "and", "or" or the end');
    return expression;
  }

  #either(): Expression {
    return this.#chain('or', () => this.#chain('and', () => this.#term()));
  }

  #chain(word: 'and' | 'or', parseTerm: () => Expression): Expression {
    const first = parseTerm();
    const terms = [first];
    while (this.#takeWord(word)) terms.push(parseTerm());
    return terms.length === 1 ? first : { kind: word, terms };
  }

  #term(): Expression {
    const token = this.#peek();
    if (token.kind === '(') {
      return this.#nested(token, () => {
        const inner = this.#either();
        const closing = this.#take();
        if (closing.kind !== ')') throw this.#error(closing, 'expected ")"');
        return inner;
      });
    }
    if (isWord(token, 'not')) {
      return this.#nested(token, () => ({ kind: 'not', term: this.#term() }));
    }
    return this.#comparison();
  }

  #nested(opening: Token, parseInner: () => Expression): Expression {
    this.#take();
    this.#depth += 1;
    if (this.#depth > SELECTOR_DEPTH_MAX) {
      throw this.#error(opening, `nested deeper than ${SELECTOR_DEPTH_MAX}`);
    }
    const inner = parseInner();
    this.#depth -= 1;
    return inner;
  }

  #comparison(): Comparison {
    const left = this.#take();
    this.#comparisons += 1;
    if (this.#comparisons > SELECTOR_COMPARISONS_MAX) {
      throw this.#error(left, `more than ${SELECTOR_COMPARISONS_MAX} comparisons`);
    }
    const operator = this.#take();
    if (operator.kind === '==') return this.#fieldFirst(left, 'equal', false);
    if (operator.kind === '!=') return this.#fieldFirst(left, 'equal', true);
    if (isWord(operator, 'is')) return this.#emptiness(left);
    const negated = isWord(operator, 'not');
    const word = negated ? this.#take() : operator;
    if (isWord(word, 'in')) return this.#valueFirst(left, negated);
    if (isWord(word, 'contains')) return this.#fieldFirst(left, 'in', negated);
    if (isWord(word, 'matches')) return this.#fieldFirst(left, 'matches', negated);
    throw this.#error(word, 'expected an operator: ==, !=, in, contains, matches, is empty');
  }

  #emptiness(left: Token): Comparison {
    const negated = this.#takeWord('not');
    const word = this.#take();
    if (!isWord(word, 'empty')) throw this.#error(word, 'expected "empty"');
    return this.#made(this.#field(left), 'empty', negated, { value: '', offset: word.offset });
  }

  #fieldFirst(left: Token, operator: Operator, negated: boolean): Comparison {
    const field = this.#field(left);
    return this.#made(field, operator, negated, this.#value(this.#take()));
  }

  #valueFirst(left: Token, negated: boolean): Comparison {
    const value = this.#value(left);
    return this.#made(this.#field(this.#take()), 'in', negated, value);
  }

  #made(
    field: Field,
    operator: Operator,
    negated: boolean,
    { value, offset }: { readonly value: string; readonly offset: number },
  ): Comparison {
    return { kind: 'comparison', field, operator, negated, value, valueOffset: offset };
  }

  #field(token: Token): Field {
    if (token.kind !== 'word') throw this.#error(token, 'expected the name of an attribute');
    return { segments: token.segments, offset: token.offset };
  }

  #value(token: Token): { readonly value: string; readonly offset: number } {
    if (token.kind === 'literal') return token;
    // Unquoted words are values too: `value.team == core`, `serviceaccount.name == a.b`.
    if (token.kind === 'word') return { value: token.segments.join('.'), offset: token.offset };
    throw this.#error(token, 'expected a value');
  }

  /** Behind the last one is the end of the text, however often it is asked for. */
  #peek(): Token {
    return this.#tokens[this.#next] ?? { kind: 'end', offset: this.#text.length };
  }

  #take(): Token {
    const token = this.#peek();
    this.#next += 1;
    return token;
  }

  #takeWord(word: string): boolean {
    if (!isWord(this.#peek(), word)) return false;
    this.#next += 1;
    return true;
  }

  #error(token: Token, message: string): AclError {
    return syntaxError(this.#text, token.offset, message);
  }
}

function isWord(token: Token, word: string): boolean {
  return token.kind === 'word' && token.segments.length === 1 && token.segments[0] === word;
}
