// compatibility.md, sections 4 and 5.7, over HTTP against the real node: the rest of the endpoints, and templates, with
// the statuses of both dialects.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: that is how binding rules name attributes.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { jwtIssuer } from '../support/running/jwt-issuer.ts';
import { answers, Client, type Fields, runNode } from '../support/running/running-node.ts';
import {
  DENIED,
  DUPLICATE,
  INVALID,
  MALFORMED,
  type Refusal,
  refuses,
  rows,
  TARGET_MISSING,
  TEMPLATE_MISSING,
} from './both-dialects.ts';
import { linkTo, makersOn, sorted } from './makers.ts';

const NO_ID = '7b2c0b4e-5f0a-4d7f-9d3b-1c2d3e4f5a6b';
const LOWERCASE = "Only lowercase alphanumeric characters, '-' and '_' are allowed";
const ZERO_TIME = '0001-01-01T00:00:00Z';

const node = await runNode(t);
const consul = new Client(node, 'X-Consul-');
const ISSUER = await jwtIssuer();
const { newPolicy, newRole, newToken, newMethod, newRule } = makersOn(consul, ISSUER.config);

t.test('4.1: bootstrap', async (t) => {
  const bare = () => runNode(t, { 'acl-tokens-initial-management': '' });
  const server = await bare();
  const client = new Client(server, 'X-Consul-', '');
  const bad = (BootstrapSecret: string, text: string): Refusal => ({
    ask: 'PUT /acl/bootstrap',
    body: { BootstrapSecret },
    statuses: INVALID,
    text,
  });
  await refuses(
    t,
    server,
    [bad('x', 'uuid string is wrong length'), bad('x'.repeat(36), 'uuid is improperly formatted')],
    '',
  );
  const first = await client.made('PUT', '/acl/bootstrap', { BootstrapSecret: NO_ID });
  t.same(Object.keys(first).slice(0, 3), ['ID', 'AccessorID', 'SecretID']);
  const no = await client.put('/acl/bootstrap');
  const index = /\(reset index: (\d+)\)$/.exec(no.text)?.[1];
  t.equal(Number(index), first.CreateIndex);
  const text = `Permission denied: ACL bootstrap no longer allowed (reset index: ${index})`;
  await refuses(t, server, [{ ask: 'PUT /acl/bootstrap', statuses: DENIED, text }], '');

  const resetFile = join(server.dataFolder, 'acl-bootstrap-reset');
  writeFileSync(resetFile, '12345');
  const wrong = `Invalid bootstrap reset index (specified 12345, reset index: ${index})`;
  answers(t, await client.put('/acl/bootstrap'), 500, wrong);
  answers(t, await client.put('/acl/bootstrap'), 403, text);
  writeFileSync(resetFile, `${index}\n`);
  const inUse = 'Provided token cannot be used because a token with that secret already exists.';
  answers(t, await client.put('/acl/bootstrap', { BootstrapSecret: first.AccessorID }), 500, inUse);
  writeFileSync(resetFile, `${index}\n`);
  const second = await client.made('PUT', '/acl/bootstrap', {});
  t.not(second.SecretID, first.SecretID);
  t.equal((await client.as(first.SecretID).get('/acl/tokens')).status, 200, 'it stays valid');

  const own = '5c9c9a52-7b1e-4d46-8d2e-2f0b5f1f9f10';
  writeFileSync(resetFile, `${second.CreateIndex} ${own}\n`);
  t.equal((await client.put('/acl/bootstrap')).status, 403, 'it is for one secret alone');
  t.equal((await client.made('PUT', '/acl/bootstrap', { BootstrapSecret: own })).SecretID, own);

  const configured = new Client(
    await runNode(t, { 'acl-tokens-initial-management': 'root' }),
    'X-Consul-',
    '',
  );
  t.equal((await configured.put('/acl/bootstrap')).status, 403, 'it counts as the bootstrap');
});

t.test('4.2: roles', async (t) => {
  const one = await newRole();
  const two = await newRole();
  const identity = { NodeIdentities: [{ NodeName: 'n', Datacenter: '' }] };
  await refuses(t, node, [
    ...rows(`PUT /acl/role/${two.ID}`, DUPLICATE, [
      [{ Name: one.Name }, `Invalid Role: A role with name "${one.Name}" already exists`],
    ]),
    ...rows('PUT /acl/role/x', INVALID, [[{ Name: 'x' }, 'Role ID invalid UUID']]),
    ...rows(`PUT /acl/role/${NO_ID}`, TARGET_MISSING, [
      [{ Name: 'x' }, `cannot find role ${NO_ID}`],
    ]),
    ...rows('PUT /acl/role', INVALID, [
      [{ Name: 'x', Policies: [{ Name: 'none' }] }, 'No such ACL policy with name "none"'],
      [
        { Name: 'x', Policies: [{ ID: NO_ID }] },
        `Failed to apply role upsert request: No such policy with ID: ${NO_ID}`,
      ],
      [
        { Name: 'x', ServiceIdentities: [{}] },
        'Service identity is missing the service name field on this role',
      ],
      [{ Name: 'x', ...identity }, 'Node identity is missing the datacenter field on this role'],
      [
        { Name: 'x', TemplatedPolicies: [{}] },
        'templated policy is missing the template name field on this role',
      ],
      [
        { Name: 'x', TemplatedPolicies: [{ TemplateName: 'none' }] },
        'templated policy with an invalid templated name: none for this role',
      ],
      [
        {
          Name: 'x',
          TemplatedPolicies: [
            { TemplateName: 'builtin/service', TemplateVariables: { name: 'A' } },
          ],
        },
        `encountered role with invalid templated policy: service identity "A" has an invalid name. ${LOWERCASE}`,
      ],
    ]),
    {
      ask: 'GET /acl/roles?policy=x',
      statuses: INVALID,
      text: 'failed acl role lookup: index error: UUID must be 36 characters',
    },
  ]);
  const policy = await newPolicy();
  const linked = [];
  for (const Name of ['zzz', 'aaa'])
    linked.push(await newRole({ Name, Policies: [linkTo(policy)] }));
  const { list } = await consul.get(`/acl/roles?policy=${policy.ID}`);
  t.same(
    list.map(({ ID }) => ID),
    sorted(linked.map(({ ID }) => String(ID))),
  );
  answers(t, await consul.get(`/acl/roles?policy=${NO_ID}`), 200, '[]');
  const names = (await consul.get('/acl/roles')).list.map(({ Name }) => String(Name).toLowerCase());
  t.same(names, sorted(names));
});

t.test('4.3: binding rules', async (t) => {
  const { Name: AuthMethod } = await newMethod();
  const { Name: other } = await newMethod();
  const rule = await newRule({ AuthMethod });
  const good = { AuthMethod, BindType: 'service', BindName: 'web' };
  const failed = 'Invalid Binding Rule: invalid BindName or BindVars: ';
  await refuses(t, node, [
    ...rows('PUT /acl/binding-rule/x', INVALID, [[good, 'Binding Rule ID invalid UUID']]),
    ...rows(`PUT /acl/binding-rule/${NO_ID}`, TARGET_MISSING, [
      [good, `cannot find binding rule ${NO_ID}`],
    ]),
    ...rows(`PUT /acl/binding-rule/${rule.ID}`, INVALID, [
      [{ ...good, AuthMethod: other }, 'the AuthMethod field of an Binding Rule is immutable'],
    ]),
    ...rows('PUT /acl/binding-rule', INVALID, [
      [{ ...good, AuthMethod: '' }, 'Invalid Binding Rule: no AuthMethod is set'],
      [{ ...good, AuthMethod: 'none' }, 'cannot find auth method with name "none"'],
      [{ ...good, Selector: 'x ==' }, /^invalid Binding Rule: Selector is invalid: /],
      [{ ...good, Selector: 'unknown.x == y' }, /^invalid Binding Rule: Selector is invalid: /],
      [{ ...good, BindType: '' }, 'Invalid Binding Rule: no BindType is set'],
      [{ ...good, BindName: '' }, 'Invalid Binding Rule: no BindName is set'],
      [
        { ...good, BindVars: { name: 'x' } },
        'invalid Binding Rule: BindVars cannot be set when bind type is not templated-policy.',
      ],
      [{ ...good, BindType: 'x' }, `${failed}invalid Binding Rule: unknown BindType "x"`],
      [
        { ...good, BindName: 'A' },
        `${failed}failed to validate bindType "service": invalid bind name: "A"`,
      ],
      [
        { ...good, BindName: 'x-${unknown}' },
        /^Invalid Binding Rule: invalid BindName or BindVars: /,
      ],
    ]),
  ]);
  const updated = await consul.made('PUT', `/acl/binding-rule/${rule.ID}`, {
    BindType: 'node',
    BindName: '${value.name}',
  });
  t.match(updated, { ID: rule.ID, AuthMethod, BindType: 'node' });
  for (let count = 0; count < 3; count += 1) await newRule({ AuthMethod });
  const { list } = await consul.get(`/acl/binding-rules?authmethod=${AuthMethod}`);
  const ids = list.map(({ ID }) => String(ID));
  t.equal(ids.length, 4);
  t.same(ids, sorted(ids));
});

t.test('4.4: logins that are refused', async (t) => {
  const { Name: AuthMethod } = await newMethod();
  await newRule({ AuthMethod, BindName: 'x${value.name}' });
  const login = (body: Fields): Refusal => ({
    ask: 'POST /acl/login',
    body: { AuthMethod, ...body },
    statuses: [500, 403],
    text: /./,
  });
  const capital = await ISSUER.sign({ first_name: 'A B' });
  await refuses(
    t,
    node,
    [
      {
        ...login({ AuthMethod: 'none' }),
        statuses: DENIED,
        text: 'ACL not found: auth method "none" not found',
      },
      login({ BearerToken: 'x' }),
      { ...login({ BearerToken: capital }), text: 'invalid bind name: "xa b"' },
    ],
    '',
  );
  const logout = { ask: 'POST /acl/logout', statuses: DENIED };
  const text = "Permission denied: token wasn't created via login";
  await refuses(t, node, [{ ...logout, text }]);
  await refuses(t, node, [{ ...logout, text: 'ACL not found' }], NO_ID);
});

t.test('4.5: the state of replication in the primary', async (t) => {
  const zero = {
    Enabled: false,
    Running: false,
    SourceDatacenter: '',
    ReplicationType: '',
    ReplicatedIndex: 0,
    ReplicatedRoleIndex: 0,
    ReplicatedTokenIndex: 0,
    LastSuccess: ZERO_TIME,
    LastError: ZERO_TIME,
    LastErrorMessage: '',
  };
  const found = await consul.as('').get('/acl/replication');
  t.equal(found.status, 200);
  const shown = Object.keys(zero).map((name) => [name, found.json[name]]);
  t.same(Object.fromEntries(shown), zero, 'what deployed clients read');
  t.match(found.json, { PrimaryDatacenter: 'dc1', Datacenters: [{ State: 'primary' }] });
});

const everything = (keyword: string, level: string): string =>
  `${keyword}_prefix "" { policy = "${level}" }`;
const TEMPLATES: readonly [name: string, digit: number, needsName: boolean, rules: string[]][] = [
  [
    'builtin/service',
    3,
    true,
    [
      'service "web" { policy = "write" }',
      'service "web-sidecar-proxy" { policy = "write" }',
      everything('service', 'read'),
      everything('node', 'read'),
    ],
  ],
  ['builtin/node', 4, true, ['node "web" { policy = "write" }', everything('service', 'read')]],
  ['builtin/dns', 5, false, ['node', 'service', 'query'].map((word) => everything(word, 'read'))],
  [
    'builtin/nomad-server',
    6,
    false,
    [
      'acl = "write"',
      everything('agent', 'read'),
      everything('node', 'read'),
      everything('service', 'write'),
    ],
  ],
  [
    'builtin/api-gateway',
    8,
    true,
    [
      'mesh = "read"',
      everything('node', 'read'),
      everything('service', 'read'),
      'service "web" { policy = "write" }',
    ],
  ],
  [
    'builtin/nomad-client',
    9,
    false,
    [
      ...['agent', 'node', 'key'].map((word) => everything(word, 'read')),
      everything('service', 'write'),
    ],
  ],
];

/** One rule of a text whose blanks are single spaces. */
const RULE = /\w+ (?:= "\w+"|"[^"]*" \{ policy = "\w+" \})/g;

t.test('5.7: previews of the templates', async (t) => {
  for (const [name, digit, needsName, rules] of TEMPLATES) {
    const path = `/acl/templated-policy/preview/${name}`;
    const { status, json } = await consul.post(path, needsName ? { Name: 'web' } : {});
    t.equal(status, 200, name);
    const text = String(json.Rules);
    const written = text.replace(/\s+/g, ' ').match(RULE);
    t.same(written, rules, name);
    const ID = `${Buffer.from(text).toString('hex')}6c62272e07bb014262b821756295c58d`;
    t.match(json, {
      ID,
      Name: `synthetic-policy-${ID}`,
      Description: `synthetic policy generated from templated policy: ${name}`,
      Hash: /^.{43}=$/,
      CreateIndex: 0,
      ModifyIndex: 0,
    });
    const link = { TemplateName: name, ...(needsName && { TemplateVariables: { name: 'web' } }) };
    const { TemplatedPolicies } = await newToken({ TemplatedPolicies: [link] });
    t.match(TemplatedPolicies, [{ TemplateID: `00000000-0000-0000-0000-00000000000${digit}` }]);
  }
  const preview = (template: string, body: unknown, problem: string | RegExp): Refusal => ({
    ask: `POST /acl/templated-policy/preview/${template}`,
    body,
    statuses: MALFORMED,
    text:
      typeof problem === 'string'
        ? `validation error for templated policy: "${template}": ${problem}`
        : problem,
  });
  const invalidName = `has an invalid name. ${LOWERCASE}`;
  await refuses(t, node, [
    {
      ...preview('none', {}, /^templated policy "none" does not exist$/),
      statuses: TEMPLATE_MISSING,
    },
    preview('builtin/service', {}, `service identity "" ${invalidName}`),
    preview('builtin/service', { Name: 'A' }, `service identity "A" ${invalidName}`),
    preview('builtin/node', {}, `node identity ""  ${invalidName}`),
    preview('builtin/api-gateway', {}, '1 error occurred:\n\t* name is required\n\n'),
    preview('builtin/api-gateway', { Name: '"} acl = "write' }, /has an invalid name/),
    preview('builtin/service', '', /^Failed to decode request body: EOF$/),
    preview('builtin/service', { Other: 'x' }, /^Failed to decode request body: .*"Other"/),
  ]);
});

t.test('4.6: the catalogue of templates', async (t) => {
  const { json } = await consul.get('/acl/templated-policies');
  t.same(sorted(Object.keys(json)), sorted(TEMPLATES.map(([name]) => name)));
  for (const [name, , needsName] of TEMPLATES) {
    const read = (await consul.get(`/acl/templated-policy/name/${name}`)).json;
    t.same(read, json[name]);
    t.same(Object.keys(read), ['TemplateName', 'Schema', 'Template', 'Description']);
    if (!needsName) t.equal(read.Schema, '');
    else {
      const schema = JSON.parse(String(read.Schema)) as Fields;
      const properties = { name: { type: 'string', minLength: 1 } };
      t.match(schema, { type: 'object', properties, required: ['name'] });
    }
  }
  await refuses(t, node, [
    {
      ask: 'GET /acl/templated-policy/name/none',
      statuses: TEMPLATE_MISSING,
      text: 'Invalid templated policy Name: none',
    },
  ]);
  answers(
    t,
    await consul.as('').get('/acl/templated-policies'),
    403,
    /lacks permission 'acl:read'/,
  );
});

t.test('4.7: authorize', async (t) => {
  const ask = 'POST /internal/acl/authorize';
  const good = { Resource: 'key', Access: 'LIST' };
  const bad = (item: Fields, text: string): Refusal => ({
    ask,
    body: [good, item],
    statuses: MALFORMED,
    text,
  });
  await refuses(t, node, [
    bad({ Resource: 'x', Access: 'read' }, 'Invalid ACL resource requested: "x"'),
    bad({ Resource: 'Key', Access: 'read' }, 'Invalid ACL resource requested: "Key"'),
    bad({ Resource: 'node', Access: 'list' }, 'Invalid access level for node resource: list'),
    bad({ Resource: 'key', Access: 'deny' }, 'Invalid access level for key resource: deny'),
  ]);
  const { text } = await consul.post('/internal/acl/authorize', [good]);
  t.equal(
    text,
    '[{"Resource":"key","Access":"LIST","Allow":true}]',
    'an empty segment is left out',
  );
  const anonymous = await consul.as('').post('/internal/acl/authorize', [good]);
  t.match(anonymous.json, [{ Allow: false }]);
});
