// The rule language: what it accepts, what it refuses and with which words and places, and that
// rendering and parsing are each other's inverse.

import fc from 'fast-check';
import t from 'tap';
import { GLOBAL_MANAGEMENT_RULES, GLOBAL_READ_ONLY_RULES } from '../../src/rules/built-in-rules.ts';
import { checkForNamespace } from '../../src/rules/namespace-check.ts';
import { parseRules } from '../../src/rules/parse-rules.ts';
import {
  renderFlatRule,
  renderInNamespace,
  renderNamedRule,
} from '../../src/rules/render-rules.ts';
import {
  FLAT_RESOURCES,
  NAMED_RESOURCES,
  type RuleSet,
  WARNINGS_MAX,
} from '../../src/rules/rule-set.ts';
import { ruleSets } from './random-rule-sets.ts';
import { refusalOf } from './refusal-of.ts';

/** The rules of a text, one in a line, without places. */
function meaningOf(rules: RuleSet): string {
  const group = (of: Pick<RuleSet, 'flat' | 'named'>) =>
    [...of.flat.map(renderFlatRule), ...of.named.map(renderNamedRule)].join('; ');
  const blocks = rules.namespaces.map(
    (block) => `${block.match} ${block.name} ${block.level ?? 'none'} (${group(block)})`,
  );
  return [group(rules), ...blocks].filter((part) => part !== '').join('; ');
}

const FOO_READ = 'key "foo" { policy = "read" }';
const BAR_DENY = 'key "bar" { policy = "deny" }';

t.test('parseRules: accepts', async (t) => {
  const cases: readonly (readonly [text: string, meaning: string])[] = [
    ['', ''],
    ['  \n\t ', ''],
    ['# c', ''],
    ['// c\n/* d\n*/', ''],
    ['/**/ acl = "read"', 'acl = "read"'],
    ['/*/ acl = "write" /* */ mesh = "read"', 'mesh = "read"'],
    ['{}', ''],
    [' \n{ }\n', ''],
    ['acl = "read"', 'acl = "read"'],
    ['ACL = "READ"', 'acl = "read"'],
    ['"acl" = "read"', 'acl = "read"'],
    ['acl = ""', ''],
    ['me\u017fh = "deny"', 'mesh = "deny"'],
    [
      '\u017fervice "x" { policy = "write" intention\u017f = "deny" }',
      'service "x" { policy = "write" intentions = "deny" }',
    ],
    ['\u212aEY "foo" { policy = "read" }', FOO_READ],
    ['{"\\u017fession":{"s":{"policy":"deny"}}}', 'session "s" { policy = "deny" }'],
    ['key = []', ''],
    ['acl = <<E\nE\n', ''],
    ['acl="read" operator="deny", mesh="write"', 'acl = "read"; operator = "deny"; mesh = "write"'],
    ['acl = # why\r\n "read"\r\n', 'acl = "read"'],
    [
      'key "foo" { policy = "read" } key "foo" { policy = "deny" }',
      `${FOO_READ}; key "foo" { policy = "deny" }`,
    ],
    ['key "foo" { policy = "list" }', 'key "foo" { policy = "list" }'],
    ['key { policy = "read" }', 'key "policy" { policy = "read" }'],
    ['key foo { policy = "read" }', FOO_READ],
    ['key foo-bar.baz { Policy = "Read" }', 'key "foo-bar.baz" { policy = "read" }'],
    ['"key" "foo" { "policy" = "read" }', FOO_READ],
    ['key { foo { policy = "read" } bar { policy = "deny" } }', `${FOO_READ}; ${BAR_DENY}`],
    ['key = { foo = { policy = "read" } }', FOO_READ],
    ['key_prefix "" { policy = "write", }', 'key_prefix "" { policy = "write" }'],
    [
      'key "a\\"\\\\\\n\\u00e9\\U0001F600\\x41\\101\\xc3\\xa9" { policy = "read" }',
      'key "a\\"\\\\\\u000aé😀AAé" { policy = "read" }',
    ],
    [
      'key "a$\x7bb "\n" {}}c" { policy = "read" }',
      'key "a\\u0024{b \\"\\u000a\\" {}}c" { policy = "read" }',
    ],
    ['key "a$\x7b\\\\}b" { policy = "read" }', 'key "a\\u0024{\\\\\\\\}b" { policy = "read" }'],
    ['key "\\U0010FFFF" { policy = "read" }', 'key "\u{10ffff}" { policy = "read" }'],
    [
      'service "x" { policy = "write" intentions = "deny" }',
      'service "x" { policy = "write" intentions = "deny" }',
    ],
    ['service "x" { policy = "write" intentions = "" }', 'service "x" { policy = "write" }'],
    ['servce "x" { policy = "bogus" }', ''],
    ['acl_prefix "" { policy = "write" }', ''],
    ['identity "x" { policy = "bogus" }', ''],
    ['partition "x" { mesh = "write" }', ''],
    [
      'a = 0x1F b = -1.5e3 c = [1, "x", [true], {d = <<-E\n  text\n  E\n}] acl = "read"',
      'acl = "read"',
    ],
    ['{"key":{"foo":{"policy":"read"}}}', FOO_READ],
    ['{"key":[{"foo":{"policy":"read"}},{"bar":{"policy":"deny"}}]}', `${FOO_READ}; ${BAR_DENY}`],
    [
      '{"key":{"foo":[{"policy":"read"},{"policy":"deny"}]}}',
      `${FOO_READ}; key "foo" { policy = "deny" }`,
    ],
    [
      '{ "acl" : "read" ,\n "key" : { "foo" : [ { "policy" : "read" } , { "policy" : "deny" } ] } }\n',
      `acl = "read"; ${FOO_READ}; key "foo" { policy = "deny" }`,
    ],
    ['{"key":{"a\\"b\\\\":{"policy":"read"}}}', 'key "a\\"b\\\\" { policy = "read" }'],
    ['{"x":[true,false,null,-1.5e3,0,"y"],"acl":"read"}', 'acl = "read"'],
    ['{"key":{}}', ''],
    ['{"key":[]}', ''],
    ['{"acl":null}', ''],
    ['{"acl":"read","acl":"write"}', 'acl = "write"'],
    ['{"acl":"write","acl":""}', ''],
    ['{"acl":"write","ACL":null,"mesh":"","mesh":"read"}', 'mesh = "read"'],
    ['key "$\x7ba\r\nb}" { policy = "read" }', 'key "\\u0024{a\\u000ab}" { policy = "read" }'],
    ['{"KEY":{"f\\u006fo":{"Policy":"READ"}}}', FOO_READ],
    [
      'namespace "a" { policy = "write" acl = "read" key_prefix "" { policy = "list" } }',
      'exact a write (acl = "read"; key_prefix "" { policy = "list" })',
    ],
    [
      'namespace_prefix "" { node "n" { policy = "read" } } namespace b {}',
      'prefix  none (node "n" { policy = "read" }); exact b none ()',
    ],
    [
      '{"namespace":{"a":{"policy":"deny","session":{"s":{"policy":"read"}}}}}',
      'exact a deny (session "s" { policy = "read" })',
    ],
  ];
  for (const [text, meaning] of cases) t.equal(meaningOf(parseRules(text)), meaning, text);
});

t.test('parseRules: refuses, in these words, and names the place', async (t) => {
  const failed = 'Failed to parse ACL rules: ';
  const extension = 'EnterpriseRule:acl.EnterpriseRule{}';
  const cases: readonly (readonly [text: string, message: string])[] = [
    ['acl = "list"', 'Invalid acl policy: "list" at 1:7'],
    ['acl = "bogus"', 'Invalid acl policy: "bogus" at 1:7'],
    ['\n\n  acl =\n "bogus"', 'Invalid acl policy: "bogus" at 4:2'],
    ['acl = 5', 'Invalid acl policy: "5" at 1:7'],
    ['acl = <<E\nread\nE\n', 'Invalid acl policy: "read\\n" at 1:7'],
    ['acl = true', `${failed}At 1:7: root.acl: unknown type for string *ast.LiteralType`],
    ['acl = 1.5', `${failed}At 1:7: root.acl: unknown type for string *ast.LiteralType`],
    ['acl = ["read"]', `${failed}At 1:7: root.acl: unknown type for string *ast.ListType`],
    [
      'acl "x" { policy = "read" }',
      `${failed}At 1:5: root.acl: unknown type for string *ast.ObjectList`,
    ],
    [
      'acl { policy = "read" }',
      `${failed}At 1:5: root.acl: unknown type for string *ast.ObjectList`,
    ],
    [
      'acl = "read"\nacl = "read"',
      `${failed}The argument "acl" at 2:1 was already set. Each argument can only be defined once`,
    ],
    [
      'acl = "read"\n"ACL" = "write"',
      `${failed}The argument "ACL" at 2:1 was already set. Each argument can only be defined once`,
    ],
    [
      'key "foo" {\n policy = "read"\n policy = "deny"\n}',
      `${failed}The argument "policy" at 3:2 was already set. Each argument can only be defined once`,
    ],
    [
      'key "foo" { policy = "bogus" }',
      `Invalid key policy: &acl.KeyRule{Prefix:"foo", Policy:"bogus", ${extension}} at 1:22`,
    ],
    [
      'key "foo" {}',
      `Invalid key policy: &acl.KeyRule{Prefix:"foo", Policy:"", ${extension}} at 1:1`,
    ],
    [
      'node "n" { policy = "bad" }',
      `Invalid node policy: &acl.NodeRule{Name:"n", Policy:"bad", ${extension}} at 1:21`,
    ],
    [
      'service "x" { policy = "list" }',
      `Invalid service policy: &acl.ServiceRule{Name:"x", Policy:"list", Intentions:"", ${extension}} at 1:24`,
    ],
    [
      'service "x" { policy = "read" intentions = "bogus" }',
      `Invalid service intentions policy: &acl.ServiceRule{Name:"x", Policy:"read", Intentions:"bogus", ${extension}} at 1:44`,
    ],
    [
      'service { policy = "read" intentions = "read" }',
      `Invalid service policy: &acl.ServiceRule{Name:"intentions", Policy:"", Intentions:"", ${extension}} at 1:27`,
    ],
    [
      'agent "n" { policy = "bad" }',
      'Invalid agent policy: &acl.AgentRule{Node:"n", Policy:"bad"} at 1:22',
    ],
    [
      'agent_prefix "n" { policy = "list" }',
      'Invalid agent_prefix policy: &acl.AgentRule{Node:"n", Policy:"list"} at 1:29',
    ],
    [
      'session "n" { policy = "bad" }',
      'Invalid session policy: &acl.SessionRule{Node:"n", Policy:"bad"} at 1:24',
    ],
    [
      'event "e" { policy = "bad" }',
      'Invalid event policy: &acl.EventRule{Event:"e", Policy:"bad"} at 1:22',
    ],
    [
      'query "q" { policy = "bad" }',
      'Invalid query policy: &acl.PreparedQueryRule{Prefix:"q", Policy:"bad"} at 1:22',
    ],
    ['operator = "bad"', 'Invalid operator policy: "bad" at 1:12'],
    ['keyring = "bad"', 'Invalid keyring policy: "bad" at 1:11'],
    ['mesh = "bad"', 'Invalid mesh policy: "bad" at 1:8'],
    ['peering = "list"', 'Invalid peering policy: "list" at 1:11'],
    ['key = "read"', `${failed}At 1:7: unknown slice type: *ast.LiteralType`],
    [
      'key "foo" = { policy = "read" }',
      `${failed}At 1:11: nested object expected: LBRACE got: ASSIGN`,
    ],
    [
      'key "a" "b" { policy = "read" }',
      `Invalid key policy: &acl.KeyRule{Prefix:"a", Policy:"", ${extension}} at 1:5`,
    ],
    [
      'key "a" "b" "c" { policy = "read" }',
      `Invalid key policy: &acl.KeyRule{Prefix:"a", Policy:"", ${extension}} at 1:5`,
    ],
    [
      'key { a "b" { policy = "write" } }',
      `Invalid key policy: &acl.KeyRule{Prefix:"a", Policy:"", ${extension}} at 1:7`,
    ],
    ['key \'foo\' { policy = "read" }', `${failed}At 1:5: illegal char`],
    ['acl: "read"', `${failed}At 1:4: illegal char`],
    ['acl = "read";', `${failed}At 1:13: illegal char`],
    ['acl=read', `${failed}At 1:5: Unknown token: 1:5 IDENT read`],
    ['acl =', `${failed}At 1:7: Unknown token: 1:7 EOF `],
    ['acl = "read', `${failed}At 1:7: literal not terminated`],
    ['acl = "re\nad"', `${failed}At 1:7: literal not terminated`],
    ['key "$\x7ba" { policy = "read" }\n', `${failed}At 1:6: literal not terminated`],
    ['acl = "\\q"', `${failed}At 1:8: illegal char escape`],
    ['key "\\xff" { policy = "read" }', `${failed}At 1:5: literal is not valid UTF-8`],
    ['key "\\ud800" { policy = "read" }', `${failed}At 1:6: illegal char escape`],
    ['key "\\udfff" { policy = "read" }', `${failed}At 1:6: illegal char escape`],
    ['key "\\U00110000" { policy = "read" }', `${failed}At 1:6: illegal char escape`],
    ['key "\\501" { policy = "read" }', `${failed}At 1:6: illegal char escape`],
    ['key "$\x7b\\q}" { policy = "read" }', `${failed}At 1:8: illegal char escape`],
    ['key "\ud800" { policy = "read" }', `${failed}At 1:6: illegal char`],
    ['key "f" {', `${failed}At 1:11: object expected closing RBRACE got: EOF`],
    [
      'key "f" { policy = "read" } }',
      `${failed}At 1:29: expected: IDENT | STRING | ASSIGN | LBRACE got: RBRACE`,
    ],
    ['/* a', `${failed}At 1:1: comment not terminated`],
    ['/ a', `${failed}At 1:1: expected '/' for comment`],
    ['acl = <<E\nread\n', `${failed}At 1:7: heredoc not terminated`],
    [
      'key = [{ policy = "write" }]',
      `${failed}At 1:7: not an object type for struct (*ast.ListType)`,
    ],
    [
      'key { a = [{ policy = "write" }] }',
      `${failed}At 1:11: not an object type for struct (*ast.ListType)`,
    ],
    [
      'namespace = [{ a = { acl = "write" } }]',
      `${failed}At 1:13: not an object type for struct (*ast.ListType)`,
    ],
    ['# a\0b\nacl = "write"', `${failed}At 1:4: illegal char`],
    ['acl = "write" # \ue123', `${failed}At 1:17: illegal char`],
    [
      'mesh = "deny" me\u017fh = "write"',
      `${failed}The argument "me\u017fh" at 1:15 was already set. Each argument can only be defined once`,
    ],
    ['x = [1 2]', `${failed}At 1:8: error parsing list, expected comma or list end, got: NUMBER`],
    ['x = 0x', `${failed}At 1:5: illegal hexadecimal number`],
    ['x = 018', `${failed}At 1:5: illegal octal number`],
    ['x = 1e', `${failed}At 1:5: illegal exponent`],
    [
      'this is not valid',
      `${failed}At 1:19: key 'this is not valid' expected start of object ('{') or assignment ('=')`,
    ],
    ['[]', `${failed}At 1:1: expected: IDENT | STRING | ASSIGN | LBRACE got: LBRACK`],
    ['null', `${failed}At 1:6: key 'null' expected start of object ('{') or assignment ('=')`],
    ['"str"', `${failed}At 1:7: key '"str"' expected start of object ('{') or assignment ('=')`],
    ['\ufeffacl = "read"', `${failed}At 1:1: illegal char`],
    ['\ufeff{}', `${failed}At 1:1: illegal char`],
    ['/* 😀 */ acl = "bogus"', 'Invalid acl policy: "bogus" at 1:15'],
    ['{"key":null}', `${failed}At 1:8: unknown slice type: *ast.LiteralType`],
    [
      '{"key":{"foo":"read"}}',
      `Invalid key policy: &acl.KeyRule{Prefix:"foo", Policy:"", ${extension}} at 1:9`,
    ],
    [
      '{"key":{"foo":null}}',
      `Invalid key policy: &acl.KeyRule{Prefix:"foo", Policy:"", ${extension}} at 1:9`,
    ],
    [
      '{"key":{"foo":[]}}',
      `Invalid key policy: &acl.KeyRule{Prefix:"foo", Policy:"", ${extension}} at 1:9`,
    ],
    [
      '{"key":{"foo":{"policy":null}}}',
      `Invalid key policy: &acl.KeyRule{Prefix:"foo", Policy:"", ${extension}} at 1:25`,
    ],
    [
      '{"acl":{"policy":"read"}}',
      `${failed}At 1:8: root.acl: unknown type for string *ast.ObjectList`,
    ],
    ['{"acl":"read",}', `${failed}At 1:15: expected a string got: "}"`],
    ['{\'acl\':"read"}', `${failed}At 1:2: expected a string got: "'"`],
    ['{"acl":"read"', `${failed}At 1:15: expected ',' or '}' got: EOF`],
    ['{"acl":"read"} x', `${failed}At 1:16: expected the end of the text got: "x"`],
    ['{"acl":"read', `${failed}At 1:8: literal not terminated`],
    ['{"acl":5}', 'Invalid acl policy: "5" at 1:8'],
    ['{"acl":1.5}', `${failed}At 1:8: root.acl: unknown type for string *ast.LiteralType`],
    ['{"acl":true}', `${failed}At 1:8: root.acl: unknown type for string *ast.LiteralType`],
    ['{"acl":read}', `${failed}At 1:8: expected a value got: "r"`],
    ['{"acl" "read"}', `${failed}At 1:8: expected ':' got: "\\""`],
    ['{"acl":"\\ud800"}', `${failed}At 1:8: illegal char or escape in literal`],
    ['{"acl":"a\nb"}', `${failed}At 1:8: illegal char or escape in literal`],
    ['{"acl":01}', `${failed}At 1:9: expected ',' or '}' got: "1"`],
    ['{// c\n}', `${failed}At 1:2: expected a string got: "/"`],
    ['namespace "a" { policy = "list" }', 'Invalid namespace policy: "list" at 1:26'],
    [
      'namespace { policy = "write" }',
      'Invalid namespace policy: "policy" is not followed by a block at 1:13',
    ],
    [
      'namespace "a" { key "k" {} }',
      `Invalid key policy: &acl.KeyRule{Prefix:"k", Policy:"", ${extension}} at 1:17`,
    ],
    [
      'namespace "a" "b" { acl = "read" }',
      `Invalid namespace policy: "a" is not followed by a block at 1:11`,
    ],
  ];
  for (const [text, message] of cases)
    t.equal(
      refusalOf(() => parseRules(text)),
      message,
      text,
    );
});

t.test('parseRules: what was taken once is read, whatever is refused since', async (t) => {
  const text = 'acl = "write" acl = "read" key "a" { policy = "write" policy = "deny" }';
  const rules = parseRules(text, { standing: 'stored' });
  t.equal(meaningOf(rules), 'acl = "read"; key "a" { policy = "deny" }');
  t.equal(rules.warnings.length, 2);
  const lists =
    'key = [{ foo = { policy = "read" } }] key { bar = [{ policy = "deny" }] } # \0\ue123';
  t.equal(meaningOf(parseRules(lists, { standing: 'stored' })), `${FOO_READ}; ${BAR_DENY}`);
});

t.test('parseRules: a rule knows its place', async (t) => {
  const rules = parseRules(
    '\n acl = "read"\nkey "a" {\n policy = "read" }\nnamespace "n" {\n node "x" { policy = "read" } }',
  );
  t.match(rules.flat, [{ line: 2, column: 2 }]);
  t.match(rules.named, [{ line: 3, column: 1 }]);
  t.match(rules.namespaces, [{ line: 5, column: 1, named: [{ line: 6, column: 2 }] }]);
});

t.test('parseRules: what is ignored is told as a warning with its place', async (t) => {
  const text =
    'servce "x" {}\nkey "a" { policy = "read"\n sentinel { code = "" } }\nnamespace "n" { operator = "write"\n namespace "m" {} }';
  t.same(parseRules(text).warnings, [
    { message: '"servce" is not a known keyword and ignored', line: 1, column: 1 },
    { message: '"sentinel" is not an attribute of key and ignored', line: 3, column: 2 },
    { message: '"operator" does not belong to a namespace and is ignored', line: 4, column: 17 },
    { message: 'namespace inside a namespace block is ignored', line: 5, column: 2 },
  ]);
  t.equal(parseRules('x {}\n'.repeat(150_000)).warnings.length, WARNINGS_MAX);
});

/** As explanations print them, one rule in a line, but for namespaces: each in one piece. */
function textOf(rules: RuleSet): string {
  const group = (of: Pick<RuleSet, 'flat' | 'named'>) => [
    ...of.flat.map(renderFlatRule),
    ...of.named.map(renderNamedRule),
  ];
  const blocks = rules.namespaces.map((block) => {
    const policy = block.level === undefined ? [] : [`policy = "${block.level}"`];
    return renderInNamespace(block, [...policy, ...group(block)].join('\n'));
  });
  return [...group(rules), ...blocks].join('\n');
}

t.test('render: what it prints parses to the same rules', async (t) => {
  const anyText = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 12 }),
    fc
      .array(fc.constantFrom('$', '{', '}', '"', '\\', '\n', '\r', '\0', 'x', '😀'), {
        maxLength: 8,
      })
      .map((parts) => parts.join('')),
  );
  fc.assert(
    fc.property(ruleSets({ names: anyText, namespaceNames: anyText }), (rules) => {
      const again = parseRules(textOf(rules));
      return JSON.stringify(withoutPlaces(again)) === JSON.stringify(withoutPlaces(rules));
    }),
    { numRuns: 400 },
  );
  t.pass();
});

function withoutPlaces(rules: RuleSet): unknown {
  const group = (of: Pick<RuleSet, 'flat' | 'named'>) => ({
    flat: of.flat.map(({ resource, level }) => ({ resource, level })),
    named: of.named.map(({ resource, match, name, level, intentions }) => [
      resource,
      match,
      name,
      level,
      intentions,
    ]),
  });
  return {
    ...group(rules),
    namespaces: rules.namespaces.map((block) => [
      block.match,
      block.name,
      block.level,
      group(block),
    ]),
    warnings: rules.warnings,
  };
}

t.test('built-in rules: name everything, in every namespace', async (t) => {
  for (const [text, level] of [
    [GLOBAL_MANAGEMENT_RULES, 'write'],
    [GLOBAL_READ_ONLY_RULES, 'read'],
  ] as const) {
    const rules = parseRules(text);
    t.same(rules.warnings, []);
    t.same(
      rules.flat.map((rule) => [rule.resource, rule.level]),
      FLAT_RESOURCES.map((name) => [name, level]),
    );
    t.same(
      rules.named.map(({ resource, match, name, level, intentions }) => [
        resource,
        match,
        name,
        level,
        intentions,
      ]),
      NAMED_RESOURCES.map((name) => [
        name,
        'prefix',
        '',
        level,
        name === 'service' ? level : undefined,
      ]),
    );
    t.match(rules.namespaces, [
      { match: 'prefix', name: '', level, flat: [{ resource: 'acl', level }] },
    ]);
    t.same(
      rules.namespaces[0]?.named.map((rule) => rule.resource),
      ['key', 'node', 'service', 'session'],
    );
  }
});

t.test('checkForNamespace: keeps system-wide rules in the default namespace', async (t) => {
  const cases = [
    [
      'key "a" { policy = "read" }\n operator = "deny"',
      'Invalid operator policy: a policy in namespace "team" cannot hold operator rules at 2:2',
    ],
    [
      'keyring = "read"',
      'Invalid keyring policy: a policy in namespace "team" cannot hold keyring rules at 1:1',
    ],
    [
      'query_prefix "" { policy = "read" }\nevent "e" { policy = "read" }',
      'Invalid query policy: a policy in namespace "team" cannot hold query rules at 1:1',
    ],
    [
      'event "e" { policy = "read" }',
      'Invalid event policy: a policy in namespace "team" cannot hold event rules at 1:1',
    ],
    [
      'namespace "team" {}',
      'Invalid namespace policy: a policy in namespace "team" cannot hold namespace rules at 1:1',
    ],
    ['acl = "write" key "a" { policy = "read" }', 'no refusal'],
  ] as const;
  for (const [text, message] of cases) {
    t.equal(
      refusalOf(() => checkForNamespace(parseRules(text), 'team')),
      message,
      text,
    );
    t.equal(
      refusalOf(() => checkForNamespace(parseRules(text), 'default')),
      'no refusal',
      text,
    );
  }
});
