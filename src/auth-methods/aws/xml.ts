// Reads the small XML answers of AWS: elements and text, nothing else that XML can do. A document
// type, a processing instruction or anything but white space outside the root is refused, so that no
// answer in another form can be taken for XML.

export interface XmlElement {
  /** Without prefix. */
  readonly name: string;
  readonly children: readonly XmlElement[];
  /** The text directly inside, all of it: what a tag says may begin or end with a space. */
  readonly text: string;
}

const XML_DEPTH_MAX = 16;
const XML_ELEMENTS_MAX = 10_000;

interface OpenElement {
  readonly name: string;
  readonly children: XmlElement[];
  text: string;
}

const DECLARATION = /^\s*<\?xml [^?<>]*\?>/;
const PIECE =
  /<(\/?)([A-Za-z_][\w.:-]*)((?:\s+[\w.:-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(\/?)>|([^<]+)/y;
const ENTITIES: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
};

/** The root element; throws Error when the text is not XML of this kind. */
export function parseXml(text: string): XmlElement {
  const body = text.replace(DECLARATION, '').trim();
  const document: OpenElement = { name: '', children: [], text: '' };
  const open: OpenElement[] = [document];
  let elements = 0;
  for (const [, closing, name = '', , selfClosing, characters] of piecesOf(body)) {
    const current = open.at(-1) ?? document;
    if (characters !== undefined) {
      current.text += unescaped(characters);
    } else if (closing === '/') {
      close(open, localName(name));
    } else {
      elements += 1;
      if (elements > XML_ELEMENTS_MAX || open.length > XML_DEPTH_MAX) throw malformed('too large');
      open.push({ name: localName(name), children: [], text: '' });
      if (selfClosing === '/') close(open, localName(name));
    }
  }
  const [root, ...others] = document.children;
  if (open.length !== 1 || root === undefined || others.length > 0 || document.text !== '') {
    throw malformed('not one whole element');
  }
  return root;
}

/** The text of the element that `path` leads to, each step the only child of that name. */
export function textAt(element: XmlElement, ...path: readonly string[]): string | undefined {
  return elementAt(element, ...path)?.text;
}

export function elementAt(element: XmlElement, ...path: readonly string[]): XmlElement | undefined {
  let current = element;
  for (const name of path) {
    const [only, ...others] = current.children.filter((child) => child.name === name);
    if (only === undefined || others.length > 0) return undefined;
    current = only;
  }
  return current;
}

function* piecesOf(body: string): Generator<RegExpExecArray> {
  let offset = 0;
  while (offset < body.length) {
    PIECE.lastIndex = offset;
    const match = PIECE.exec(body);
    if (match === null) throw malformed('unexpected markup');
    offset += match[0].length;
    yield match;
  }
}

function close(open: OpenElement[], name: string): void {
  const element = open.pop();
  const parent = open.at(-1);
  if (element === undefined || parent === undefined || element.name !== name) {
    throw malformed('elements do not nest');
  }
  parent.children.push(element);
}

function localName(name: string): string {
  return name.slice(name.indexOf(':') + 1);
}

function unescaped(text: string): string {
  return text.replace(/&([^;&]{0,10});?/g, (whole, name: string) => {
    const character = Object.hasOwn(ENTITIES, name) ? ENTITIES[name] : codeOf(name);
    if (character === undefined || !whole.endsWith(';')) throw malformed('unknown entity');
    return character;
  });
}

function codeOf(name: string): string | undefined {
  const match = /^#(?:x([0-9a-fA-F]{1,6})|([0-9]{1,7}))$/.exec(name);
  if (match === null) return undefined;
  const code = match[1] === undefined ? Number(match[2]) : Number.parseInt(match[1], 16);
  return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : undefined;
}

function malformed(why: string): Error {
  return new Error(`the answer is not the expected XML: ${why}`);
}
