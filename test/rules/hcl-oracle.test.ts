// The HCL parser against the reference implementation of HCL 1, where that package is installed:
// equal meaning for valid text, and no meaning of our own for text that was damaged.

import { deepEqual } from 'node:assert/strict';
import { createRequire } from 'node:module';
import fc from 'fast-check';
import t from 'tap';
import { AclError } from '../../src/acl/error.ts';
import { parseRules } from '../../src/rules/parse-rules.ts';
import type { RuleSet } from '../../src/rules/rule-set.ts';

interface Oracle {
  /** JSON text, or the text of an error. */
  parse(text: string): string;
}

function loadOracle(): Oracle | undefined {
  try {
    return createRequire(import.meta.url)('js-hcl-parser') as Oracle;
  } catch {
    return undefined;
  }
}

const oracle = loadOracle();
const skip = oracle === undefined ? 'js-hcl-parser is not installed' : false;

const FLAT = ['acl', 'keyring', 'operator', 'mesh', 'peering'];
const NAMED = ['agent', 'event', 'key', 'node', 'query', 'service', 'session'].flatMap((name) => [
  name,
  `${name}_prefix`,
]);
const NAMESPACE = ['namespace', 'namespace_prefix'];
const IN_NAMESPACE = ['acl', 'key', 'node', 'service', 'session'].flatMap((name) => [
  name,
  `${name}_prefix`,
]);

/** Every rule as one line. */
function meaningOf(rules: RuleSet): readonly string[] {
  const group = (scope: string, of: Pick<RuleSet, 'flat' | 'named'>) => [
    ...of.flat.map((rule) => JSON.stringify([scope, rule.resource, rule.level])),
    ...of.named.map(({ resource, match, name, level, intentions }) => {
      const keyword = match === 'prefix' ? `${resource}_prefix` : resource;
      return JSON.stringify([scope, keyword, name, level, intentions ?? '']);
    }),
  ];
  const blocks = rules.namespaces.flatMap((block) => {
    const keyword = block.match === 'prefix' ? 'namespace_prefix' : 'namespace';
    const scope = JSON.stringify([keyword, block.name]);
    return [JSON.stringify([scope, 'itself', block.level ?? '']), ...group(scope, block)];
  });
  return lines([...group('', rules), ...blocks]);
}

/** Sorted, and each once: the reference tells a keyword once for each spelling of it. */
function lines(rules: readonly string[]): readonly string[] {
  return [...new Set(rules)].sort((a, b) => (a < b ? -1 : 1));
}

type Tree = unknown;

function entriesOf(tree: Tree): readonly (readonly [string, Tree])[] {
  return typeof tree === 'object' && tree !== null ? Object.entries(tree) : [];
}

function listOf(tree: Tree): readonly Tree[] {
  return Array.isArray(tree) ? tree : [tree];
}

function attribute(tree: Tree, name: string): string {
  const found = entriesOf(tree).find(([key]) => key.toLowerCase() === name);
  return typeof found?.[1] === 'string' ? found[1].toLowerCase() : '';
}

/** The same lines from the tree that the reference gives, which has no types. */
function meaningOfTree(tree: Tree, scope = '', known = [...FLAT, ...NAMED]): string[] {
  return entriesOf(tree).flatMap(([key, value]) => {
    const keyword = key.toLowerCase();
    if (scope === '' && NAMESPACE.includes(keyword)) {
      return blocksIn(value).flatMap(([label, block]) => {
        const inner = JSON.stringify([keyword, label]);
        const itself = JSON.stringify([inner, 'itself', attribute(block, 'policy')]);
        return [itself, ...meaningOfTree(block, inner, IN_NAMESPACE)];
      });
    }
    if (!known.includes(keyword)) return [];
    if (FLAT.includes(keyword)) {
      return value === '' ? [] : [JSON.stringify([scope, keyword, String(value).toLowerCase()])];
    }
    return blocksIn(value).map(([label, block]) => {
      const levels = [attribute(block, 'policy')];
      levels.push(keyword.startsWith('service') ? attribute(block, 'intentions') : '');
      return JSON.stringify([scope, keyword, label, ...levels]);
    });
  });
}

/** `key { policy = "read" }` comes as a literal in the place of a block. */
function blocksIn(value: Tree): readonly (readonly [string, Tree])[] {
  return listOf(value)
    .flatMap(entriesOf)
    .flatMap(([label, blocks]) =>
      listOf(blocks).map(
        (block) => [label, typeof block === 'string' ? { policy: block } : block] as const,
      ),
    );
}

function reference(text: string): readonly string[] | undefined {
  let tree: Tree;
  try {
    tree = JSON.parse(oracle!.parse(text));
  } catch {
    return undefined;
  }
  return lines(meaningOfTree(tree));
}

/** Damage may mix the labelled forms, which the reference can only read into types of its own. */
function isBeyondReference(text: string): boolean {
  return oracle!.parse(text).includes('map must have string keys');
}

function ours(text: string): readonly string[] | undefined {
  try {
    return meaningOf(parseRules(text));
  } catch (error) {
    if (error instanceof AclError) return undefined;
    throw error;
  }
}

const space = fc.constantFrom(
  ' ',
  '  ',
  '\n',
  '\t',
  '\r\n',
  ' # c\n',
  ' // "{\n',
  '/* } */',
  ' /**/ ',
);
const gap = fc.oneof({ weight: 3, arbitrary: fc.constant(' ') }, { weight: 1, arbitrary: space });
const anyCase = (word: string) => fc.constantFrom(word, word.toUpperCase(), `"${word}"`);
const piece = fc.constantFrom(
  'a',
  'B',
  '/',
  'é',
  '😀',
  ' ',
  '$-',
  '{',
  '}',
  '\\"',
  '\\\\',
  '\\n',
  '\\t',
  '\\u00e9',
  '\\U0001F600',
  '\\x41',
  '\\101',
  '\\xc3\\xa9',
  '$\x7bx "y" {}}',
  "'",
  '#',
);
const quotedLabel = fc.array(piece, { maxLength: 4 }).map((parts) => `"${parts.join('')}"`);
const label = fc.oneof(quotedLabel, fc.constantFrom('foo', 'foo-bar.baz', '_x9', 'é'));
const level = fc.constantFrom('"read"', '"write"', '"DENY"', '"re\\x61d"');
const unknown = fc.constantFrom(
  'x1 = 0x1F',
  'x2 = 1.5e3',
  'x3 = [1, "x", [true], {d = 1},]',
  'x4 = <<-E\n  acl = "write"\n  E\n',
  'x5 = <<EOT\nkey "a" {\nEOT\n',
  'x6 { y z { w = "v" } }',
  'x7 = -3',
  'x10 = <<-E\nE\nacl = "write"\n E\n',
  'x8 = true',
  'x9 = ""',
);

const attributes = (keyword: string): fc.Arbitrary<string> =>
  fc
    .tuple(
      fc
        .tuple(anyCase('policy'), gap, gap, level)
        .map(([key, a, b, value]) => `${key}${a}=${b}${value}`),
      fc.option(
        level.map((value) => `intentions = ${value}`),
        { nil: '' },
      ),
      fc.option(unknown, { nil: '' }),
      fc.constantFrom(' ', '\n', ', '),
    )
    .map(([policy, intentions, extra, separator]) =>
      [extra, policy, keyword.startsWith('service') ? intentions : '']
        .filter((part) => part !== '')
        .join(separator),
    );

/** The reference, reading into a tree without types, cannot mix the forms in one text. */
const named = (keywords: readonly string[], form: number): fc.Arbitrary<string> =>
  fc.constantFrom(...keywords).chain((keyword) =>
    fc
      .tuple(anyCase(keyword), gap, label, gap, attributes(keyword))
      .map(([key, a, name, b, body]) => {
        if (form === 0) return `${key}${a}{ ${name} {${b}${body} } }`;
        if (form === 1) return `${key}${a}= { ${name}${a}=${b}{ ${body} } }`;
        return `${key}${a}${name}${b}{ ${body} }`;
      }),
  );

const flats = (keywords: readonly string[]): fc.Arbitrary<readonly string[]> =>
  fc
    .subarray([...keywords])
    .chain((chosen) =>
      fc.tuple(
        ...chosen.map((word) =>
          fc
            .tuple(anyCase(word), gap, gap, level)
            .map(([key, a, b, value]) => `${key}${a}=${b}${value}`),
        ),
      ),
    );

const namespaceBlock = (form: number): fc.Arbitrary<string> =>
  fc
    .tuple(
      fc.constantFrom(...NAMESPACE),
      label,
      fc.option(level, { nil: undefined }),
      flats(['acl']),
      fc.array(
        named(
          IN_NAMESPACE.filter((word) => NAMED.includes(word)),
          form,
        ),
        { maxLength: 2 },
      ),
    )
    .map(([key, name, policy, flat, rules]) => {
      const own = policy === undefined ? [] : [`policy = ${policy}`];
      return `${key} ${name} {\n${[...own, ...flat, ...rules].join('\n')}\n}`;
    });

const validText = fc.nat(2).chain((form) =>
  fc
    .tuple(
      flats(FLAT),
      fc.array(named(NAMED, form), { maxLength: 4 }),
      fc.array(namespaceBlock(form), { maxLength: 2 }),
      fc.option(unknown, { nil: '' }),
      fc.constantFrom('\n', ' ', ', ', '\r\n'),
    )
    .filter(([flat, rules, blocks]) => flat.length + rules.length + blocks.length > 0)
    .map(([flat, rules, blocks, extra, separator]) =>
      [...flat, extra, ...rules, ...blocks].filter((part) => part !== '').join(separator),
    ),
);

t.test('HCL: valid text means what it means to the reference', { skip }, async () => {
  fc.assert(
    fc.property(validText, (text) => {
      const expected = reference(text);
      // Each key can be assigned once here, and a label `=` form assigns one.
      if (ours(text) === undefined) return refusesRepeats(text);
      deepEqual(ours(text), expected);
      return true;
    }),
    { numRuns: 600 },
  );
});

/** The one thing that we refuse and the reference takes: an argument twice in one block. */
function refusesRepeats(text: string): boolean {
  try {
    parseRules(text);
  } catch (error) {
    return error instanceof AclError && error.message.includes('was already set');
  }
  return false;
}

t.test(
  'HCL: damaged text is refused or means what it means to the reference',
  { skip },
  async (t) => {
    const damaged = fc
      .tuple(
        validText,
        fc.nat(),
        fc.nat(3),
        fc.constantFrom(
          '',
          '"',
          '{',
          '}',
          '=',
          '\n',
          '#',
          '\\',
          ',',
          'x',
          '/*',
          '$\x7b',
          '[',
          '<<E\n',
        ),
      )
      .map(([text, at, cut, insert]) => {
        const offset = at % (text.length + 1);
        return text.slice(0, offset) + insert + text.slice(offset + cut);
      });
    let accepted = 0;
    fc.assert(
      fc.property(damaged, (text) => {
        const meaning = /^\s*\{/.test(text) ? undefined : ours(text);
        if (meaning === undefined || isBeyondReference(text)) return true;
        accepted++;
        deepEqual(meaning, reference(text));
        return true;
      }),
      { numRuns: 1800 },
    );
    t.ok(accepted > 50, `${accepted} were accepted`);
  },
);
