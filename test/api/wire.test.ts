// The wire form of bodies and answers: what is decoded and what is refused with its place, how objects are
// rendered, and that the description of the interface is whole.

import { createRequire } from 'node:module';
import fc from 'fast-check';
import t from 'tap';
import type { TSchema } from 'typebox';
import { LEVELS_MAX, MARKS_MAX, NAMES_MAX } from '../../cluster/base/json-bounds.ts';
import { AclError } from '../../src/acl/error.ts';
import * as answers from '../../src/api/bodies/answers.ts';
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
import type { Endpoint } from '../../src/api/endpoints/endpoint.ts';
import { ENDPOINTS } from '../../src/api/endpoints/endpoints.ts';
import { NODE_ENDPOINTS } from '../../src/api/endpoints/endpoints-node.ts';
import {
  OPERATOR_ENDPOINTS,
  SNAPSHOT_ENDPOINTS,
} from '../../src/api/endpoints/endpoints-operator.ts';
import { openApiDocument } from '../../src/api/endpoints/openapi.ts';
import { quote, quoteValue } from '../../src/api/render/quote.ts';
import {
  renderAuthMethod,
  renderAuthMethodListEntry,
  renderBindingRule,
} from '../../src/api/render/render-auth-method.ts';
import { renderReplication } from '../../src/api/render/render-federation.ts';
import { renderLoginExplanation } from '../../src/api/render/render-login.ts';
import {
  renderAuthorizations,
  renderNamespace,
  renderTemplates,
} from '../../src/api/render/render-others.ts';
import { renderPolicy, renderPolicyListEntry } from '../../src/api/render/render-policy.ts';
import { renderRole } from '../../src/api/render/render-role.ts';
import {
  renderBootstrapToken,
  renderToken,
  renderTokenListEntry,
} from '../../src/api/render/render-token.ts';
import type {
  ShownAuthMethod,
  ShownBindingRule,
  ShownLoginExplanation,
  ShownNamespace,
} from '../../src/api/render/shown.ts';
import type { RoleView } from '../../src/service/views.ts';
import { policyView, tokenView } from '../http/support.ts';

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

const NS = { namespaces: true };
const NO_NS = { namespaces: false };
const LINK = { id: '1', name: 'p' };
const FULL_TOKEN = tokenView(
  {
    serviceIdentities: [{ serviceName: 'w', datacenters: ['dc1'] }],
    nodeIdentities: [{ nodeName: 'n', datacenter: 'dc1' }],
    templatedPolicies: [
      {
        templateId: 't',
        templateName: 'builtin/service',
        variables: { name: 'w' },
        datacenters: [],
      },
    ],
    local: true,
    authMethod: { name: 'm', namespace: 'x', createIndex: 1 },
    expirationTime: '2026-11-21T08:00:00Z',
  } as never,
  { policies: [LINK], roles: [LINK] },
);
const ROLE = {
  kind: 'role',
  role: {
    id: 'r',
    name: 'n',
    namespace: 'default',
    description: '',
    policies: [],
    serviceIdentities: [],
    nodeIdentities: [],
    templatedPolicies: [],
    hash: 'h',
    createIndex: 1,
    modifyIndex: 2,
  },
  policies: [],
} as unknown as RoleView;
const METHOD = {
  method: {
    name: 'm',
    namespace: 'default',
    type: 'jwt',
    displayName: '',
    description: '',
    maxTokenTtlNs: 90_000_000_000n,
    tokenLocality: '',
    config: { a: '<' },
    namespaceRules: [{ selector: 's', bindNamespace: 'b' }],
    createIndex: 1,
    modifyIndex: 2,
  },
} as unknown as ShownAuthMethod;
const RULE = {
  rule: {
    id: 'i',
    namespace: 'default',
    description: '',
    authMethod: 'm',
    selector: '',
    bindType: 'service',
    bindName: 'x',
    bindVars: { name: 'v' },
    createIndex: 1,
    modifyIndex: 2,
  },
} as unknown as ShownBindingRule;
const NAMESPACE = {
  namespace: { name: 'x', description: '', meta: { k: 'v' }, createIndex: 1, modifyIndex: 2 },
  policyDefaults: [LINK],
  roleDefaults: [],
} as unknown as ShownNamespace;
const EXPANDED = {
  policies: [policyView({ hash: '' }).policy],
  roles: [ROLE],
  namespaceDefaultPolicies: [LINK],
  namespaceDefaultRoles: undefined,
  defaultPolicy: 'deny' as const,
  downPolicy: 'extend-cache',
  resolvedByNode: 'n1',
};

t.test('render: each object has its fields in the order of the interface', async (t) => {
  const token =
    '"AccessorID":"33333333-3333-3333-3333-333333333333","SecretID":"44444444-4444-4444-4444-444444444444",' +
    '"Description":"a \\u003cb\\u003e \\u0026 \\"c\\""';
  const end =
    '"CreateTime":"2026-11-21T06:00:00.5Z","Hash":"aGFzaA==","CreateIndex":3,"ModifyIndex":4';
  const policy =
    '{"ID":"22222222-2222-2222-2222-222222222222","Name":"reader","Description":"","Rules":"acl = \\"read\\""';
  const cases: [string, string][] = [
    [renderToken(tokenView(), NO_NS), `{${token},"Local":false,${end}}`],
    [renderToken(tokenView(), NS), `{${token},"Local":false,${end},"Namespace":"default"}`],
    [renderTokenListEntry(tokenView(), NO_NS), `{${token},"Policies":null,"Local":false,${end}}`],
    [
      renderTokenListEntry(tokenView({}, { policies: [LINK] }), NO_NS),
      `{${token},"Policies":[{"ID":"1","Name":"p"}],"Local":false,${end}}`,
    ],
    [
      renderBootstrapToken(tokenView(), NO_NS),
      `{"ID":"44444444-4444-4444-4444-444444444444",${token},"Local":false,${end}}`,
    ],
    [
      renderToken(FULL_TOKEN, NO_NS),
      `{${token},"Policies":[{"ID":"1","Name":"p"}],"Roles":[{"ID":"1","Name":"p"}],` +
        '"ServiceIdentities":[{"ServiceName":"w","Datacenters":["dc1"]}],' +
        '"NodeIdentities":[{"NodeName":"n","Datacenter":"dc1"}],' +
        '"TemplatedPolicies":[{"TemplateID":"t","TemplateName":"builtin/service","TemplateVariables":{"name":"w"}}],' +
        `"Local":true,"AuthMethod":"m","ExpirationTime":"2026-11-21T08:00:00Z",${end}}`,
    ],
    [
      renderToken(tokenView({}, { expanded: EXPANDED }), NO_NS),
      `{${token},"Local":false,${end},"ExpandedPolicies":[${policy},"Datacenters":null,"Hash":null,"CreateIndex":5,"ModifyIndex":6}],` +
        '"ExpandedRoles":[{"ID":"r","Name":"n","Description":"","Hash":"h","CreateIndex":1,"ModifyIndex":2}],' +
        '"NamespaceDefaultPolicyIDs":["1"],"NamespaceDefaultRoleIDs":null,' +
        '"NamespaceDefaultPolicies":[{"ID":"1","Name":"p"}],"NamespaceDefaultRoles":null,' +
        '"AgentACLDefaultPolicy":"deny","AgentACLDownPolicy":"extend-cache","ResolvedByAgent":"n1"}',
    ],
    [
      renderPolicy(policyView(), NO_NS),
      `${policy},"Hash":"aGFzaA==","CreateIndex":5,"ModifyIndex":6}`,
    ],
    [
      renderPolicyListEntry(policyView(), NO_NS),
      '{"ID":"22222222-2222-2222-2222-222222222222","Name":"reader","Description":"","Datacenters":null,"Hash":"aGFzaA==","CreateIndex":5,"ModifyIndex":6}',
    ],
    [
      renderAuthMethod(METHOD, NO_NS),
      '{"MaxTokenTTL":"1m30s","Name":"m","Type":"jwt","Config":{"a":"\\u003c"},"NamespaceRules":[{"Selector":"s","BindNamespace":"b"}],"CreateIndex":1,"ModifyIndex":2}',
    ],
    [
      renderAuthMethodListEntry(METHOD, NO_NS),
      '{"MaxTokenTTL":"1m30s","Name":"m","Type":"jwt","Description":"","CreateIndex":1,"ModifyIndex":2}',
    ],
    [
      renderBindingRule(RULE, NO_NS),
      '{"ID":"i","Description":"","AuthMethod":"m","Selector":"","BindType":"service","BindName":"x","BindVars":{"name":"v"},"CreateIndex":1,"ModifyIndex":2}',
    ],
    [
      renderNamespace(NAMESPACE),
      '{"Name":"x","Description":"","ACLs":{"PolicyDefaults":[{"ID":"1","Name":"p"}]},"Meta":{"k":"v"},"CreateIndex":1,"ModifyIndex":2}',
    ],
    [
      renderNamespace({ ...NAMESPACE, policyDefaults: [] }),
      '{"Name":"x","Description":"","ACLs":{},"Meta":{"k":"v"},"CreateIndex":1,"ModifyIndex":2}',
    ],
    [renderTemplates([]), '{}'],
  ];
  for (const [written, expected] of cases) t.equal(written, expected);
});

const LOGIN_RULE = {
  ...({ id: '5', bindType: 'role', bindName: '<r>', selector: 'a == "b"' } as const),
  ...({ result: 'refused', name: undefined, why: 'so' } as const),
};
const LOGIN: ShownLoginExplanation = {
  granted: true,
  summary: 'a "b"',
  attributes: [
    { name: 'value.team', value: 'a&b' },
    { name: 'list.groups', value: ['x', 'y'] },
  ],
  namespace: 'eng',
  namespaceSelector: 'a == b',
  rules: [LOGIN_RULE, { ...LOGIN_RULE, result: 'bound', name: 'r' }],
  token: {
    description: 'd',
    policies: [LINK],
    roles: [],
    serviceIdentities: [{ serviceName: 's', datacenters: [] }],
    nodeIdentities: [],
    templatedPolicies: [],
    local: true,
    expirationTtl: '1m0s',
  },
};

t.test('render: why a login is granted or refused', async (t) => {
  const rule = '{"ID":"5","BindType":"role","BindName":"\\u003cr\\u003e","Selector":"a == \\"b\\""';
  const rules = `[${rule},"Result":"refused","Why":"so"},${rule},"Result":"bound","Name":"r","Why":"so"}]`;
  const token =
    '{"Description":"d","Policies":[{"ID":"1","Name":"p"}],"ServiceIdentities":[{"ServiceName":"s"}],"Local":true,"ExpirationTTL":"1m0s"}';
  const head =
    '{"Granted":true,"Summary":"a \\"b\\"","Attributes":[{"Name":"value.team","Value":"a\\u0026b"},{"Name":"list.groups","Value":["x","y"]}]';
  const rest = `,"NamespaceSelector":"a == b","BindingRules":${rules},"Token":${token}}`;
  t.equal(renderLoginExplanation(LOGIN, NS), `${head},"Namespace":"eng"${rest}`);
  t.equal(renderLoginExplanation(LOGIN, NO_NS), `${head}${rest}`);
  const nothing = { namespace: undefined, namespaceSelector: undefined, rules: [] };
  const refused = { granted: false, summary: 's', attributes: undefined, token: undefined };
  t.equal(
    renderLoginExplanation({ ...refused, ...nothing }, NS),
    '{"Granted":false,"Summary":"s","BindingRules":[]}',
  );
});

t.test('render: a hidden secret is never written', async (t) => {
  const hidden = tokenView({}, { secretHidden: true });
  for (const json of [renderToken(hidden, NS), renderTokenListEntry(hidden, NS)]) {
    t.notMatch(json, '44444444');
    t.match(json, '"SecretID":"\\u003chidden\\u003e"');
  }
});

t.test('render: replication times are whole seconds or the zero time', async (t) => {
  const status = {
    enabled: true,
    running: true,
    sourceDatacenter: 'dc1',
    replicationType: 'tokens' as const,
    replicatedIndex: 1,
    replicatedRoleIndex: 2,
    replicatedTokenIndex: 3,
    lastSuccessMs: 1_500,
    lastErrorMs: undefined,
    lastErrorMessage: '',
    federation: {
      primary: { datacenter: 'dc1', epoch: 2 },
      head: { epoch: 2, seq: 9 },
      majority: undefined,
      tableIndexes: undefined,
      datacenters: [
        {
          ...({
            name: 'dc2',
            isSelf: true,
            isWitness: true,
            state: 'live',
            position: { epoch: 2, seq: 8 },
          } as const),
          ...{ lagEntries: 1, lagBytes: undefined, lagMs: 1_234, lastContactMs: undefined },
          ...{ differences: 0, lastSuccessMs: 1_500, lastErrorMs: undefined, lastError: '' },
          rival: undefined,
          ahead: undefined,
        },
      ],
    },
  };
  const shown = JSON.parse(renderReplication(status)) as Record<string, unknown>;
  t.match(shown, {
    PrimaryDatacenter: 'dc1',
    Epoch: 2,
    Position: '2.8',
    HeadPosition: '2.9',
    MajorityPosition: null,
    Datacenters: [
      {
        ...{ Name: 'dc2', State: 'live', Witness: true },
        LagEntries: 1,
        LagBytes: null,
        LagSeconds: 1.234,
      },
    ],
  });
  t.equal(shown.LastSuccess, '1970-01-01T00:00:01Z');
  t.equal(shown.LastError, '0001-01-01T00:00:00Z');
});

t.test('quote: any text comes back as it was', async (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const json = quote(text);
      return JSON.parse(json) === text && !/[<>&\u2028\u2029]/.test(json);
    }),
  );
  t.equal(quoteValue({ a: '&' }), '{"a":"\\u0026"}');
});

const require = createRequire(import.meta.url);
interface Validator {
  addSchema(schema: object, key: string): void;
  validate(schema: object, value: unknown): boolean;
  readonly errors?: unknown;
}
const Ajv = require('ajv') as { default: new (options: object) => Validator };

t.test('openapi: every endpoint is in it, and every schema compiles', async (t) => {
  const document = openApiDocument('1.2.3') as unknown as {
    paths: Record<string, Record<string, { operationId: string }>>;
    components: { schemas: Record<string, object> };
  };
  const all = {
    ...ENDPOINTS,
    ...NODE_ENDPOINTS,
    ...OPERATOR_ENDPOINTS,
    ...SNAPSHOT_ENDPOINTS,
  };
  for (const [name, endpoint] of Object.entries<Endpoint>(all)) {
    const path = endpoint.path.replace(/:(\w+)/g, '{$1}');
    t.equal(document.paths[path]?.[endpoint.method.toLowerCase()]?.operationId, name);
  }
  const ajv = new Ajv.default({ strict: false, validateFormats: false });
  ajv.addSchema(document, 'doc');
  const refs = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(([, ref]) => ref);
  t.ok(refs.length > 50);
  for (const ref of new Set(refs)) {
    t.doesNotThrow(() => ajv.validate({ $ref: `doc${ref}` }, {}), String(ref));
  }
});

t.test('openapi: an endpoint that looks at the namespace of its request says so', async (t) => {
  const { paths } = openApiDocument('1') as unknown as {
    paths: Record<string, Record<string, { parameters: { name: string; in: string }[] }>>;
  };
  for (const [path, method, isLookedAt] of [
    ['/v1/acl/tokens', 'get', true],
    ['/v1/internal/acl/authorize', 'post', true],
    ['/v1/internal/acl/authorize/{accessorId}', 'post', true],
    ['/v1/acl/token/self', 'get', false],
  ] as const) {
    const named = paths[path]?.[method]?.parameters.filter(({ name }) => name === 'ns') ?? [];
    t.equal(named.length, isLookedAt ? 1 : 0, path);
  }
});

t.test('openapi: each type that an endpoint answers with is named', async (t) => {
  const { paths } = openApiDocument('1') as unknown as {
    paths: Record<string, { get: { responses: { '200': { content: object } } } }>;
  };
  for (const [path, types] of [
    ['/v1/agent/metrics', ['application/json', 'text/plain']],
    ['/readyz', ['text/plain']],
    ['/v1/acl/tokens', ['application/json']],
    ['/v1/snapshot', ['application/x-gzip']],
  ] as const) {
    t.same(Object.keys(paths[path]?.get.responses['200'].content ?? {}), types, path);
  }
});

t.test('openapi: what is rendered is what the answer schemas say', async (t) => {
  const ajv = new Ajv.default({ strict: false });
  const explanation = {
    decision: 'deny' as const,
    summary: 's',
    token: { accessorId: 'a', description: '' },
    role: LINK,
    identity: undefined,
    policy: { ...LINK, namespace: 'default' },
    rule: { text: 'x', line: 1, column: 2 },
    decidedBy: 'rule',
    overruled: [{ policy: 'p', rule: 'r', why: 'w' }],
  };
  const authorization = { resource: 'key', access: 'read', segment: '', namespace: undefined };
  const cases: [object, string][] = [
    [answers.Token, renderToken(FULL_TOKEN, NS)],
    [answers.Token, renderTokenListEntry(tokenView(), NS)],
    [answers.BootstrapToken, renderBootstrapToken(FULL_TOKEN, NS)],
    [answers.TokenRead, renderToken(tokenView({}, { expanded: EXPANDED }), NS)],
    [answers.Policy, renderPolicy(policyView(), NS)],
    [answers.PolicyListEntry, renderPolicyListEntry(policyView(), NS)],
    [answers.Role, renderRole(ROLE, NS)],
    [answers.AuthMethod, renderAuthMethod(METHOD, NS)],
    [answers.AuthMethodListEntry, renderAuthMethodListEntry(METHOD, NS)],
    [answers.BindingRule, renderBindingRule(RULE, NS)],
    [answers.Namespace, renderNamespace(NAMESPACE)],
    [answers.LoginExplanation, renderLoginExplanation(LOGIN, NS)],
    [
      answers.Authorization,
      renderAuthorizations([{ ...authorization, allow: true, explanation }]).slice(1, -1),
    ],
  ];
  for (const [schema, json] of cases) {
    const closed = { ...schema, additionalProperties: false };
    t.ok(ajv.validate(closed, JSON.parse(json)), `${json} ${JSON.stringify(ajv.errors)}`);
  }
});

t.test('openapi: no product but this one is named in the texts of the document', async (t) => {
  t.notMatch(JSON.stringify(openApiDocument('1')).replaceAll('X-Consul-', ''), /consul/i);
});
