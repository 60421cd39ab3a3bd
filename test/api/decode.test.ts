// What is decoded of a body, and what is refused, with its place.

import fc from 'fast-check';
import t from 'tap';
import type { TSchema } from 'typebox';
import { LEVELS_MAX, MARKS_MAX, NAMES_MAX } from '../../cluster/base/json-bounds.ts';
import { AclError } from '../../src/acl/error.ts';
import {
  AuthMethodBody,
  AuthorizeBody,
  LoginBody,
  PolicyBody,
  TokenBody,
} from '../../src/api/bodies/bodies.ts';
import { decodeBody, FREE_DEPTH_MAX } from '../../src/api/bodies/decode.ts';
import { authMethodDraftOf, tokenDraftOf } from '../../src/api/bodies/draft-of.ts';
import { endOfFirstValue, parseFirstValue } from '../../src/api/bodies/json-text.ts';

const decode = <Schema extends TSchema>(
  schema: Schema,
  text: string | Uint8Array,
  namespaces = true,
) =>
  decodeBody(schema, typeof text === 'string' ? Buffer.from(text) : text, {
    label: 'L',
    namespaces,
  });

t.test('decode: a long body is refused where to read it would take long', async (t) => {
  const list = (count: number, item: (place: number) => string) =>
    `[${Array.from({ length: count }, (_, place) => item(place)).join()}]`;
  const named = (count: number) =>
    `{"Meta":{${Array.from({ length: count }, (_, place) => `"k${place}":"${'v'.repeat(20)}"`).join()}}}`;
  const deep = (levels: number) =>
    `{"Hash":"${'h'.repeat(20_000)}","CreateIndex":${'['.repeat(levels)}${']'.repeat(levels)}}`;
  const refused: [TSchema, string, string][] = [
    [LoginBody, named(NAMES_MAX), `more than ${NAMES_MAX} different names of fields`],
    [LoginBody, list(3_000, (place) => `{"k${place}":1}`), `more than ${NAMES_MAX} different`],
    [AuthorizeBody, list(MARKS_MAX / 2 + 1, () => '{}'), `more than ${MARKS_MAX} commas, colons`],
    [PolicyBody, `{"Datacenters":${list(MARKS_MAX, () => '""')}}`, `more than ${MARKS_MAX} commas`],
    [PolicyBody, '['.repeat(20_000), `more than ${LEVELS_MAX} levels`],
    [PolicyBody, '{"a":'.repeat(20_000), `more than ${LEVELS_MAX} levels`],
    [PolicyBody, deep(LEVELS_MAX), `more than ${LEVELS_MAX} levels`],
  ];
  for (const [schema, text, why] of refused) {
    t.throws(() => decode(schema, text), {
      code: 'malformed',
      message: new RegExp(`^L: json: ${why}`),
    });
  }
  const id = '01234567-0123-0123-0123-0123456789ab';
  const links = list(16_384, () => `{"ID":"${id}","Name":"n"}`);
  const fine: [TSchema, string, number][] = [
    [TokenBody, `{"Policies":${links}}`, 16_384],
    [PolicyBody, JSON.stringify({ Rules: '{"a":[1,2]}\\"'.repeat(60_000) }), 1],
    [LoginBody, named(NAMES_MAX - 1), 1],
    [PolicyBody, deep(LEVELS_MAX - 1), 0],
  ];
  for (const [schema, text, count] of fine) {
    const [value] = Object.values(decode(schema, text) as object);
    t.equal(Array.isArray(value) ? value.length : Number(value !== undefined), count);
  }
});

t.test('decode: a body that is fine gives exactly the fields that were sent', async (t) => {
  const cases: [TSchema, string, unknown][] = [
    [PolicyBody, '{"Name":"a","Rules":"x"}', { Name: 'a', Rules: 'x' }],
    [PolicyBody, '{"name":"a","RULES":"x"}', { Name: 'a', Rules: 'x' }],
    [PolicyBody, 'null', {}],
    [PolicyBody, '{"Name":null,"Datacenters":null}', {}],
    [PolicyBody, '{"Datacenters":["a",null]}', { Datacenters: ['a', ''] }],
    [PolicyBody, ' {"Name":"a"} trailing }', { Name: 'a' }],
    [PolicyBody, '{"Name":"a"}{"Name":"b"}', { Name: 'a' }],
    [PolicyBody, '{"Name":"a","Name":"b"}', { Name: 'b' }],
    [PolicyBody, '{"Name":"a","name":"b"}', { Name: 'b' }],
    [PolicyBody, '{"Hash":null,"CreateIndex":1,"ModifyIndex":"x","Name":"a"}', { Name: 'a' }],
    [PolicyBody, '{"Name":"\\ud800x"}', { Name: '\ufffdx' }],
    [TokenBody, '{"CreateTime":"0001-01-01T00:00:00Z","Local":true}', { Local: true }],
    [TokenBody, '{"ExpirationTTL":"1h30m"}', { ExpirationTTL: 5_400_000_000_000n }],
    [TokenBody, '{"ExpirationTTL":60000000000}', { ExpirationTTL: 60_000_000_000n }],
    [TokenBody, '{"ExpirationTTL":true}', {}],
    [TokenBody, '{"ExpirationTTL":{}}', {}],
    [TokenBody, '{"ExpirationTime":""}', {}],
    [TokenBody, '{"ExpirationTime":"0001-01-01T00:00:00Z"}', {}],
    [TokenBody, '{"policies":[{"id":"1"},null]}', { Policies: [{ ID: '1' }, {}] }],
    [
      TokenBody,
      '{"TemplatedPolicies":[{"TemplateVariables":{"Name":"w"}}]}',
      { TemplatedPolicies: [{ TemplateVariables: { name: 'w' } }] },
    ],
    [TokenBody, '{"ExpandedPolicies":[{"x":1}],"ResolvedByAgent":"n"}', {}],
    [LoginBody, '{"Meta":{"a":"b","c":null}}', { Meta: { a: 'b', c: '' } }],
    [AuthMethodBody, '{"Config":{"a":[1,{"b":null}]}}', { Config: { a: [1, { b: null }] } }],
    [AuthorizeBody, '[{"resource":"key"}]', [{ Resource: 'key' }]],
    [AuthorizeBody, 'null', []],
  ];
  for (const [schema, text, expected] of cases) t.same(decode(schema, text), expected, text);
});

t.test('decode: a body that is wrong is refused with the place named', async (t) => {
  const deep = `{"Config":{"a":${'['.repeat(FREE_DEPTH_MAX)}${']'.repeat(FREE_DEPTH_MAX)}}}`;
  const cases: [TSchema, string | Uint8Array, string][] = [
    [PolicyBody, '', 'EOF'],
    [PolicyBody, '  \n', 'EOF'],
    [PolicyBody, '{', 'unexpected EOF'],
    [PolicyBody, '{"Name', 'unexpected EOF'],
    [PolicyBody, '{"Name":', 'unexpected EOF'],
    [PolicyBody, '{"Name":tr', 'unexpected EOF'],
    [PolicyBody, '{"Name":"a\\', 'unexpected EOF'],
    [PolicyBody, 'a', "invalid character 'a' looking for beginning of value"],
    [PolicyBody, '\ufeff{}', "invalid character '\ufeff' looking for beginning of value"],
    [PolicyBody, '{a}', "invalid character 'a' looking for beginning of object key string"],
    [PolicyBody, '{"a",', "invalid character ',' after object key"],
    [PolicyBody, '{"a":1 2}', "invalid character '2' after object key:value pair"],
    [PolicyBody, '[1 2]', "invalid character '2' after array element"],
    [PolicyBody, '{"a":nul1}', "invalid character '1' in literal null (expecting 'l')"],
    [PolicyBody, '{"a":"\n"}', "invalid character '\\n' in string literal"],
    [PolicyBody, '{"a":"\\x"}', "invalid character 'x' in string escape code"],
    [PolicyBody, '{"a":"\\u12g4"}', "invalid character 'g' in \\u hexadecimal character escape"],
    [PolicyBody, '{"a":-}', "invalid character '}' in numeric literal"],
    [PolicyBody, '{"a":1.}', "invalid character '}' after decimal point in numeric literal"],
    [PolicyBody, '{"a":1e}', "invalid character '}' in exponent of numeric literal"],
    [PolicyBody, '{"a":1,}', "invalid character '}' looking for beginning of object key string"],
    [PolicyBody, '[1,]', "invalid character ']' looking for beginning of value"],
    [PolicyBody, '{"Foo":1}', 'json: unknown field "Foo"'],
    [PolicyBody, '{"__proto__":1}', 'json: unknown field "__proto__"'],
    [PolicyBody, '{"constructor":1}', 'json: unknown field "constructor"'],
    [TokenBody, '{"Rules":"x"}', 'json: unknown field "Rules"'],
    [TokenBody, '{"Policies":[{"Foo":1}]}', 'json: unknown field "Foo" at Policies[0]'],
    [
      TokenBody,
      '{"TemplatedPolicies":[{"TemplateVariables":{"x":"y"}}]}',
      'json: unknown field "x" at TemplatedPolicies[0].TemplateVariables',
    ],
    [PolicyBody, '[]', 'json: cannot unmarshal array into the body of type object'],
    [PolicyBody, '{"Name":1}', 'json: cannot unmarshal number into field Name of type string'],
    [TokenBody, '{"Local":"x"}', 'json: cannot unmarshal string into field Local of type bool'],
    [
      TokenBody,
      '{"policies":[{"name":{}}]}',
      'json: cannot unmarshal object into field Policies[0].Name of type string',
    ],
    [
      LoginBody,
      '{"Meta":{"a":1}}',
      'json: cannot unmarshal number into field Meta["a"] of type string',
    ],
    [TokenBody, '{"ExpirationTTL":"1d"}', 'time: invalid duration "1d" at ExpirationTTL'],
    [TokenBody, '{"ExpirationTTL":""}', 'time: invalid duration "" at ExpirationTTL'],
    [AuthMethodBody, '{"MaxTokenTTL":""}', 'time: invalid duration "" at MaxTokenTTL'],
    [
      TokenBody,
      '{"ExpirationTime":"soon"}',
      'parsing time "soon" at ExpirationTime: not an RFC 3339 time',
    ],
    [
      AuthMethodBody,
      deep,
      `json: more than ${FREE_DEPTH_MAX} levels at Config.a${'[0]'.repeat(13)}`,
    ],
    [PolicyBody, Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]), 'invalid UTF-8 in the body'],
    [AuthorizeBody, '{}', 'json: cannot unmarshal object into the body of type array'],
  ];
  for (const [schema, body, text] of cases) {
    try {
      decode(schema, body);
      t.fail(`accepted: ${body.toString()}`);
    } catch (error) {
      if (!(error instanceof AclError)) throw error;
      t.equal(error.code, 'malformed');
      const isLong = text.startsWith('json: more');
      t.equal(
        isLong ? error.message.slice(0, 40) : error.message,
        `L: ${text}`.slice(0, isLong ? 40 : undefined),
      );
    }
  }
});

t.test('decode: a namespace is refused where namespaces are off, unless it is empty', async (t) => {
  const text = 'L: json: unknown field "Namespace" - Namespaces are not enabled';
  t.throws(() => decode(PolicyBody, '{"namespace":"x"}', false), { message: text });
  t.same(decode(PolicyBody, '{"Namespace":"","Name":"a"}', false), { Name: 'a', Namespace: '' });
  t.same(decode(PolicyBody, '{"Namespace":"x"}'), { Namespace: 'x' });
});

t.test('decode: keys that name parts of objects stay keys', async (t) => {
  const draft = authMethodDraftOf(
    decode(AuthMethodBody, '{"Config":{"__proto__":{"x":1},"constructor":2}}'),
  );
  t.same(Object.keys(draft.config ?? {}), ['__proto__', 'constructor']);
  t.equal(({} as { x?: number }).x, undefined);
});

t.test('decode: any bytes give a value or a refusal', async (t) => {
  const bodies = fc.oneof(
    fc.uint8Array({ maxLength: 60 }),
    fc.json().map((text) => Buffer.from(text)),
    fc.string().map((text) => Buffer.from(`{"Policies":[{"ID":${text}`)),
  );
  fc.assert(
    fc.property(bodies, (bytes) => {
      try {
        decode(TokenBody, bytes);
      } catch (error) {
        return (
          error instanceof AclError && error.code === 'malformed' && error.message.startsWith('L: ')
        );
      }
      return true;
    }),
    { numRuns: 400 },
  );
  t.pass();
});

t.test('json text: the scanner and the native parser agree on where a value ends', async (t) => {
  fc.assert(
    fc.property(fc.json(), fc.constantFrom('', ' ', '}', ' x', '\n[1]', '"'), (json, tail) => {
      const text = json + (/^-?\d/.test(json.at(-1) ?? '') && tail === '' ? ' ' : tail);
      return JSON.stringify(parseFirstValue(text)) === JSON.stringify(JSON.parse(json));
    }),
    { numRuns: 300 },
  );
  t.equal(endOfFirstValue(' {"a":[1,2]} x'), 12);
  t.doesNotThrow(() => parseFirstValue(`${'['.repeat(200_000)}${']'.repeat(200_000)} x`));
});

t.test('json text: null takes back nothing that its name was given before or behind', async (t) => {
  const cases = [
    ['{"a":1,"a":null}', { a: 1 }],
    ['{"a":null,"a":1}', { a: 1 }],
    ['{ "a" : null , "a" : 1 , "b" : 2 , "a" : null }', { a: 1, b: 2 }],
    ['{"a":1,"\\u0061":null,"a":null} rest', { a: 1 }],
    ['{"a":null,"b":{"a":null},"a":null}', { a: null, b: { a: null } }],
    [
      '[{"a":"null"},{"a":null},{"a":[null,null],"a":null}]',
      [{ a: 'null' }, { a: null }, { a: [null, null] }],
    ],
    ['{"a":{"b":null,"c":1},"a":null}', { a: { b: null, c: 1 } }],
    ['{"a":1,"a":2}', { a: 2 }],
  ] as const;
  for (const [text, value] of cases) t.strictSame(parseFirstValue(text), value, text);
  for (const [one, other] of [
    ['ExpirationTTL', 'ExpirationTTL'],
    ['ExpirationTTL', 'expirationttl'],
    ['expirationttl', 'ExpirationTTL'],
  ]) {
    const whole = { ExpirationTTL: 3_600_000_000_000n };
    t.strictSame(decode(TokenBody, `{"${one}":"1h","${other}":null}`), whole);
    t.strictSame(decode(TokenBody, `{"${one}":null,"${other}":"1h"}`), whole);
  }
  t.throws(() => parseFirstValue('{"a":null,"a":nul}'), /^invalid character '}' in literal null/);
});

t.test('decode: of several spellings the last one counts, or none', async (t) => {
  const refusal = (text: string): string => {
    try {
      return JSON.stringify(decode(TokenBody, text));
    } catch (error) {
      return (error as Error).message;
    }
  };
  const says = 'is given in two spellings, and a name of the body twice';
  for (const [text, expected] of [
    ['{"Description":"a","description":"b"}', '{"Description":"b"}'],
    ['{"Description":"a","description":"b","DESCRIPTION":"c"}', '{"Description":"c"}'],
    ['{"Description":"a","Description":"b"}', '{"Description":"b"}'],
    ['{"Description":"a","description":"b","Description":"c"}', `"Description" ${says}`],
    ['{"Description":null,"description":"b","Description":"c"}', `"Description" ${says}`],
    ['{"Roles":[{"ID":"1","id":"2","ID":"3"}]}', `"ID" at Roles[0] ${says}`],
  ] as const) {
    t.ok(refusal(text).endsWith(expected), `${text}: ${refusal(text)}`);
  }
});

t.test('drafts: a token body becomes a draft with the same content', async (t) => {
  const body = decode(
    TokenBody,
    JSON.stringify({
      AccessorID: 'a',
      SecretID: 's',
      Description: 'd',
      Policies: [{ ID: 'p' }],
      Roles: [{ Name: 'r' }],
      ServiceIdentities: [{ ServiceName: 'w', Datacenters: ['dc1'] }],
      NodeIdentities: [{ NodeName: 'n', Datacenter: 'dc1' }],
      TemplatedPolicies: [{ TemplateName: 'builtin/service', TemplateVariables: { Name: 'w' } }],
      Local: true,
      AuthMethod: 'm',
      ExpirationTime: '2026-11-21T07:00:00Z',
      ExpirationTTL: '60s',
      Namespace: 'ns',
    }),
  );
  t.same(tokenDraftOf(body), {
    accessorId: 'a',
    secretId: 's',
    description: 'd',
    policies: [{ id: 'p', name: undefined }],
    roles: [{ id: undefined, name: 'r' }],
    serviceIdentities: [{ serviceName: 'w', datacenters: ['dc1'] }],
    nodeIdentities: [{ nodeName: 'n', datacenter: 'dc1' }],
    templatedPolicies: [
      {
        templateId: undefined,
        templateName: 'builtin/service',
        variables: { name: 'w' },
        datacenters: undefined,
      },
    ],
    local: true,
    authMethod: 'm',
    expirationTime: '2026-11-21T07:00:00Z',
    expirationTtlNs: 60_000_000_000n,
    namespace: 'ns',
  });
});
