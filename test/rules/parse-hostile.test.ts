// The rule language on texts that nobody means: bounds on nesting, size and time, and what a refusal quotes of them.

import fc from 'fast-check';
import t from 'tap';
import { parseRules } from '../../src/rules/parse-rules.ts';
import { refusalOf } from './refusal-of.ts';

t.test('parseRules: nesting and size have bounds', async (t) => {
  const nested = (depth: number) => `x ${'{ x '.repeat(depth)}= 1${'}'.repeat(depth)}`;
  t.same(parseRules(nested(63)).flat, []);
  // The object of a notation that has braces around it counts as none.
  const inBraces = (depth: number) => `${'{"x":'.repeat(depth)}1${'}'.repeat(depth)}`;
  for (const text of [nested(64), inBraces(65)]) t.same(parseRules(text).flat, [], text);
  t.match(
    refusalOf(() => parseRules(inBraces(66))),
    'nested more than 64 levels deep',
  );
  t.match(
    refusalOf(() => parseRules(nested(65))),
    'nested more than 64 levels deep',
  );
  t.match(
    refusalOf(() => parseRules('x {'.repeat(300_000))),
    'nested more than 64 levels deep',
  );
  t.match(
    refusalOf(() => parseRules(`x = ${'['.repeat(500_000)}`)),
    'nested more than',
  );
  t.match(
    refusalOf(() => parseRules('x = {'.repeat(200_000))),
    'nested more than',
  );
  t.match(
    refusalOf(() => parseRules('{"x":'.repeat(200_000))),
    'nested more than',
  );
  t.match(
    refusalOf(() => parseRules(`{"x":${'['.repeat(500_000)}`)),
    'nested more than',
  );
  const largest = ' '.repeat(1024 * 1024);
  t.same(parseRules(largest).flat, []);
  t.match(
    refusalOf(() => parseRules(`${largest} `)),
    'longer than 1048576 bytes',
  );
  t.equal(
    refusalOf(() => parseRules('é'.repeat(600_000))),
    'Failed to parse ACL rules: At 1:1: longer than 1048576 bytes',
  );
});

t.test(
  'parseRules: hostile texts of the largest size take time linear in their size',
  async (t) => {
    const size = 1_000_000;
    const hostile = [
      '"',
      '#',
      '/*',
      'a',
      'a ',
      ' ',
      '{',
      '{"',
      '"${',
      '\\',
      '<<A\n',
      '<<A\nB\n',
      '-',
      '9',
      '\n',
      '\r',
      '💥',
      '{"a":1,',
      'key "a" {',
      'key "a" { policy = "read" }',
      'x = "',
      '{"x":"',
      '"\\x41',
      'x=<<-A\n B\n',
    ];
    // Whoever reads a million characters over and over does not end before the runner's limit.
    for (const piece of hostile) {
      const text = piece.repeat(size / Buffer.byteLength(piece));
      refusalOf(() => parseRules(text));
      refusalOf(() => parseRules(`acl = "${text}`));
      refusalOf(() => parseRules(`{"acl": "${text}"}`));
      // A run that something else follows: what looks for it at the end tries it from each place.
      refusalOf(() => parseRules(`x = 0${text}.`));
      refusalOf(() => parseRules(`x = <<A\na${text}b\nA\n`));
      t.pass(`${JSON.stringify(piece)} without end was read to its end`);
    }
  },
);

t.test('parseRules: an error quotes only so much of the text', async (t) => {
  t.ok(refusalOf(() => parseRules(`acl = "${'x'.repeat(100_000)}"`)).length < 300);
  t.ok(refusalOf(() => parseRules('x '.repeat(100_000))).length < 400);
});

t.test(
  'parseRules: random text gives rules or an AclError with a place, never anything else',
  async () => {
    const pieces = fc.constantFrom(
      'acl',
      'key',
      'policy',
      ' ',
      '"',
      '{',
      '}',
      '=',
      '[',
      ']',
      ',',
      '\n',
      '"read"',
      '"a"',
      '<<E\n',
      'E\n',
      '${',
      '\\',
      '\\u00',
      '#',
      '/*',
      '*/',
      '-',
      '0x',
      '1.',
      ':',
      'null',
      'namespace',
      '\ud800',
      '\0',
    );
    const text = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 60 }),
      fc
        .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 40 })
        .map((units) => String.fromCharCode(...units)),
      fc.array(pieces, { maxLength: 30 }).map((parts) => parts.join('')),
      fc.array(pieces, { maxLength: 30 }).map((parts) => `{${parts.join('')}`),
      fc.json().map((json) => `{"key":${json}}`),
    );
    fc.assert(
      fc.property(text, (text) => {
        const message = refusalOf(() => parseRules(text));
        return (
          message === 'no refusal' ||
          /(Failed to parse ACL rules|Invalid [a-z_ ]+ policy): .*\d+:\d+/s.test(message)
        );
      }),
      { numRuns: 6000 },
    );
  },
);
