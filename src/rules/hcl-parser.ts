// Recursive descent over HCL 1 tokens. It promises a tree or an AclError with line and column, in
// time linear in the text; what the keys mean is read from the tree elsewhere.

import { invalid } from '../acl/error.ts';
import { HclLexer, type Token } from './hcl-lexer.ts';
import { folded } from './keywords.ts';
import { excerpt, placeOf, requireDepth, type SourceText, syntaxError } from './source-text.ts';
import type {
  ItemNode,
  KeyNode,
  ListNode,
  LiteralNode,
  ObjectNode,
  Standing,
  ValueNode,
} from './syntax-tree.ts';

/** Parses a whole text; its items are those of one object without braces. */
export function parseHcl(source: SourceText, standing: Standing): ObjectNode {
  const illegalOffset = standing === 'given' ? source.text.search(ILLEGAL) : -1;
  if (illegalOffset >= 0) throw syntaxError(source.positionAt(illegalOffset), 'illegal char');
  return new HclParser(source, standing).parse();
}

/** What the reference takes nowhere, in comments neither. */
const ILLEGAL = /[\0\ue123]/;

class HclParser {
  readonly #lexer: HclLexer;
  readonly #standing: Standing;
  /** The token that is looked at and not yet taken. */
  #token: Token;

  constructor(source: SourceText, standing: Standing) {
    this.#lexer = new HclLexer(source);
    this.#standing = standing;
    this.#token = this.#lexer.next();
  }

  parse(): ObjectNode {
    return { kind: 'object', items: this.#items('EOF', 0), position: { line: 1, column: 1 } };
  }

  /** Items up to, and not including, the token `end`. */
  #items(end: 'EOF' | 'RBRACE', depth: number): ItemNode[] {
    const items: ItemNode[] = [];
    const assigned = new Set<string>();
    while (this.#token.type !== end) {
      if (this.#token.type === 'EOF') {
        throw syntaxError(this.#token.position, 'object expected closing RBRACE got: EOF');
      }
      items.push(this.#item(assigned, depth));
      if (this.#token.type === 'COMMA') this.#take();
    }
    return items;
  }

  #item(assigned: Set<string>, depth: number): ItemNode {
    const keyTexts: string[] = [];
    const keys: KeyNode[] = [];
    while (this.#token.type === 'IDENT' || this.#token.type === 'STRING') {
      const key = this.#take();
      keyTexts.push(key.text);
      keys.push({ text: key.value, position: key.position });
    }
    const [first, ...labels] = keys;
    if (first === undefined) throw this.#keyExpected();
    switch (this.#token.type) {
      case 'LBRACE':
        return { keys: [first, ...labels], value: this.#object(depth + 1) };
      case 'ASSIGN':
        if (labels.length > 0) {
          throw syntaxError(this.#token.position, 'nested object expected: LBRACE got: ASSIGN');
        }
        this.#noteArgument(assigned, first);
        this.#take();
        return { keys: [first], value: this.#value(depth + 1) };
      case 'EOF':
      case 'RBRACE':
        throw syntaxError(
          this.#token.position,
          `key '${excerpt(keyTexts.join(' '))}' expected start of object ('{') or assignment ('=')`,
        );
      default:
        throw this.#keyExpected();
    }
  }

  #keyExpected(): Error {
    const { type, position } = this.#token;
    if (type === 'ASSIGN') return syntaxError(position, 'no object keys found!');
    if (type === 'LBRACE') return syntaxError(position, 'expected: IDENT | STRING got: LBRACE');
    return syntaxError(position, `expected: IDENT | STRING | ASSIGN | LBRACE got: ${type}`);
  }

  /** Keys differ only if they do so whatever their case, because that is how they are read later. */
  #noteArgument(assigned: Set<string>, key: KeyNode): void {
    const name = folded(key.text);
    if (assigned.has(name) && this.#standing === 'given') {
      const argument = `The argument "${excerpt(key.text)}" at ${placeOf(key.position)}`;
      throw invalid(
        `Failed to parse ACL rules: ${argument} was already set. Each argument can only be defined once`,
      );
    }
    assigned.add(name);
  }

  #value(depth: number): ValueNode {
    switch (this.#token.type) {
      case 'STRING':
      case 'HEREDOC':
        return this.#literal('string');
      case 'NUMBER':
        return this.#literal('number');
      case 'FLOAT':
        return this.#literal('float');
      case 'BOOL':
        return this.#literal('bool');
      case 'LBRACE':
        return this.#object(depth);
      case 'LBRACK':
        return this.#list(depth);
      default: {
        const { type, text, position } = this.#token;
        const token = `${placeOf(position)} ${type} ${excerpt(text)}`;
        throw syntaxError(position, `Unknown token: ${token}`);
      }
    }
  }

  #literal(kind: LiteralNode['kind']): LiteralNode {
    const { value, position } = this.#take();
    return { kind, text: value, position };
  }

  #object(depth: number): ObjectNode {
    const { position } = this.#take();
    requireDepth(depth, position);
    const items = this.#items('RBRACE', depth);
    this.#take();
    return { kind: 'object', items, position };
  }

  /** Commas part the elements and may also stand where no element is. */
  #list(depth: number): ListNode {
    const { position } = this.#take();
    requireDepth(depth, position);
    const elements: ValueNode[] = [];
    for (let needsComma = false; this.#token.type !== 'RBRACK'; ) {
      if (this.#token.type === 'COMMA') {
        this.#take();
        needsComma = false;
      } else if (needsComma) {
        throw syntaxError(
          this.#token.position,
          `error parsing list, expected comma or list end, got: ${this.#token.type}`,
        );
      } else {
        elements.push(this.#value(depth + 1));
        needsComma = true;
      }
    }
    this.#take();
    return { kind: 'list', elements, mayBeBlocks: this.#standing === 'stored', position };
  }

  #take(): Token {
    const token = this.#token;
    this.#token = this.#lexer.next();
    return token;
  }
}
