// compatibility.md, sections 3 to 6 and 9, over HTTP against the real node: the exact JSON of every
// object, what is refused and in which words, templates, hashes, clones, filters, indexes. Statuses are
// checked in both dialects. Where decisions.md answers otherwise, the test's name says so.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: that is how binding rules name attributes.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { blake2b } from '@noble/hashes/blake2.js';
import t from 'tap';
import { jwtIssuer } from '../support/jwt-issuer.ts';
import { answers, Client, type Fields, ROOT, runNode } from '../support/running-node.ts';
import {
  DENIED,
  DUPLICATE,
  INVALID,
  MALFORMED,
  type Refusal,
  refuses,
  type Statuses,
  TARGET_MISSING,
} from './both-dialects.ts';

const NO_ID = '7b2c0b4e-5f0a-4d7f-9d3b-1c2d3e4f5a6b';
const ANONYMOUS = '00000000-0000-0000-0000-000000000002';
const GLOBAL_MANAGEMENT = '00000000-0000-0000-0000-000000000001';
const GLOBAL_READ_ONLY = '00000000-0000-0000-0000-000000000002';
const ZERO_TIME = '0001-01-01T00:00:00Z';
const LOWERCASE = "Only lowercase alphanumeric characters, '-' and '_' are allowed";
const LETTERS = "Only alphanumeric characters, '-' and '_' are allowed";

const node = await runNode(t);
const consul = new Client(node, 'X-Consul-');
const ISSUER = await jwtIssuer();

let serial = 0;
const fresh = (what: string): string => `${what}-${serial++}`;
const newPolicy = (body: Fields = {}): Promise<Fields> =>
  consul.made('PUT', '/acl/policy', { Name: fresh('policy'), ...body });
const newRole = (body: Fields = {}): Promise<Fields> =>
  consul.made('PUT', '/acl/role', { Name: fresh('role'), ...body });
const newToken = (body: Fields = {}): Promise<Fields> => consul.made('PUT', '/acl/token', body);
const newMethod = (body: Fields = {}): Promise<Fields> =>
  consul.made('PUT', '/acl/auth-method', {
    Name: fresh('method'),
    Type: 'jwt',
    Config: ISSUER.config,
    ...body,
  });
const newRule = (body: Fields): Promise<Fields> =>
  consul.made('PUT', '/acl/binding-rule', { BindType: 'service', BindName: 'web', ...body });
const linkTo = ({ ID, Name }: Fields): Fields => ({ ID, Name });

const sorted = (texts: readonly string[]): readonly string[] =>
  [...texts].sort((left, right) => (left < right ? -1 : 1));

/** Rows of one request with different bodies, all with the same statuses. */
function rows(
  ask: string,
  statuses: Statuses,
  cases: readonly (readonly [body: Fields, text: string | RegExp])[],
): readonly Refusal[] {
  return cases.map(([body, text]) => ({ ask, body, statuses, text }));
}

t.test('3.1: fields in order, empty ones left out; Namespace where they are on', async (t) => {
  const off = await runNode(t, { 'namespaces-enabled': 'false' });
  for (const [server, tail] of [
    [node, ['Namespace']],
    [off, []],
  ] as const) {
    const client = new Client(server, 'X-Service-');
    const make = (path: string, body: Fields) => client.made('PUT', `/acl/${path}`, body);
    const has = (found: Fields, names: string): void => {
      t.same(Object.keys(found), [...names.split(' '), ...tail], names);
    };
    const stamps = 'CreateIndex ModifyIndex';

    has(await make('policy', { Name: 'bare' }), `ID Name Description Rules Hash ${stamps}`);
    const Datacenters = ['dc2', 'dc1'];
    const policy = await make('policy', { Name: 'full', Datacenters });
    has(policy, `ID Name Description Rules Datacenters Hash ${stamps}`);
    t.same(policy.Datacenters, Datacenters);
    for (const entry of (await client.get('/acl/policies')).list) {
      has(entry, `ID Name Description Datacenters Hash ${stamps}`);
      t.same(entry.Datacenters, entry.Name === 'full' ? Datacenters : null);
    }

    const links = {
      Policies: [linkTo(policy)],
      ServiceIdentities: [{ ServiceName: 'web', Datacenters: ['dc1'] }, { ServiceName: 'x' }],
      NodeIdentities: [{ NodeName: 'n', Datacenter: 'dc1' }],
      TemplatedPolicies: [
        {
          TemplateID: '00000000-0000-0000-0000-000000000003',
          TemplateName: 'builtin/service',
          TemplateVariables: { name: 'api' },
          Datacenters: ['dc1'],
        },
        { TemplateID: '00000000-0000-0000-0000-000000000005', TemplateName: 'builtin/dns' },
      ],
    };
    const linkNames = 'Policies ServiceIdentities NodeIdentities TemplatedPolicies';
    has(await make('role', { Name: 'bare' }), `ID Name Description Hash ${stamps}`);
    const role = await make('role', { Name: 'full', ...links });
    has(role, `ID Name Description ${linkNames} Hash ${stamps}`);
    const { list: roles } = await client.get('/acl/roles');
    t.equal(
      JSON.stringify(roles.find(({ Name }) => Name === 'full')),
      JSON.stringify(role),
      'the list has the same object',
    );

    const bare = await make('token', {});
    has(bare, `AccessorID SecretID Description Local CreateTime Hash ${stamps}`);
    t.match(bare, { CreateTime: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$/, Hash: /^.{43}=$/ });
    const body = { ...links, Roles: [linkTo(role)], ExpirationTTL: '1h' };
    const token = await make('token', body);
    const tokenLinks = linkNames.replace('Policies ', 'Policies Roles ');
    const times = 'ExpirationTime CreateTime';
    const full = `AccessorID SecretID Description ${tokenLinks} Local ${times} Hash ${stamps}`;
    has(token, full);
    const { ExpirationTTL: _ttl, ...kept } = body;
    for (const [name, value] of Object.entries(kept)) {
      t.equal(JSON.stringify(token[name]), JSON.stringify(value), name);
    }
    for (const entry of (await client.get('/acl/tokens')).list) {
      if (entry.AccessorID === token.AccessorID) has(entry, full);
      if (entry.AccessorID === bare.AccessorID) t.equal(entry.Policies, null, 'decisions 3');
    }

    const expanded = await client.get(`/acl/token/${bare.AccessorID}?expanded=true`);
    t.same(Object.entries(expanded.json).slice(Object.keys(bare).length), [
      ['ExpandedPolicies', null],
      ['ExpandedRoles', null],
      ['NamespaceDefaultPolicyIDs', null],
      ['NamespaceDefaultRoleIDs', null],
      ['NamespaceDefaultPolicies', null],
      ['NamespaceDefaultRoles', null],
      ['AgentACLDefaultPolicy', 'deny'],
      ['AgentACLDownPolicy', 'extend-cache'],
      ['ResolvedByAgent', 'node-1'],
    ]);

    const jwt = { Type: 'jwt', Config: ISSUER.config };
    has(await make('auth-method', { ...jwt, Name: 'bare' }), `Name Type Config ${stamps}`);
    const shown = { DisplayName: 'D', Description: 'd', TokenLocality: 'local' };
    const method = await make('auth-method', {
      ...jwt,
      ...shown,
      Name: 'full',
      MaxTokenTTL: '5m',
      ...(tail.length === 0 ? {} : { NamespaceRules: [{ Selector: '', BindNamespace: 'x' }] }),
    });
    const names = 'MaxTokenTTL Name Type DisplayName Description TokenLocality';
    const rules = tail.length === 0 ? '' : ' NamespaceRules';
    has(method, `${names} Config${rules} ${stamps}`);
    for (const entry of (await client.get('/acl/auth-methods')).list) {
      // The document: lists always show the description.
      has(entry, `${entry.Name === 'full' ? names : 'Name Type Description'} ${stamps}`);
    }

    const bound = { AuthMethod: 'full', BindType: 'service', BindName: 'web' };
    const head = 'ID Description AuthMethod Selector BindType BindName';
    has(await make('binding-rule', bound), `${head} ${stamps}`);
    const templated = {
      ...bound,
      BindType: 'templated-policy',
      BindName: 'builtin/service',
      BindVars: { Name: 'x' },
    };
    const rule = await make('binding-rule', templated);
    has(rule, `${head} BindVars ${stamps}`);
    t.same(rule.BindVars, { name: 'x' });
  }
});

t.test('3.2: names', async (t) => {
  const policy = (problem: string): string => `Invalid Policy: invalid Name. ${problem}`;
  const identity = (ServiceName: string): Fields => ({ ServiceIdentities: [{ ServiceName }] });
  const method = { Type: 'jwt', Config: ISSUER.config };
  await refuses(t, node, [
    ...rows('PUT /acl/policy', INVALID, [
      [{ Name: '' }, 'Invalid Policy: no Name is set'],
      [{ Name: 'x'.repeat(129) }, policy('Length must be greater than 0 and less than 128')],
      [{ Name: '/x' }, policy("Names cannot be prefixed with '/' or 'builtin/'")],
      [{ Name: 'builtin/x' }, policy("Names cannot be prefixed with '/' or 'builtin/'")],
      ...['a b', 'a/b', 'a.b', 'ä', 'a\n'].map((Name) => [{ Name }, policy(LETTERS)] as const),
    ]),
    ...rows('PUT /acl/role', INVALID, [
      [{}, 'Invalid Role: no Name is set'],
      [{ Name: 'x'.repeat(257) }, `Invalid Role: invalid Name. ${LETTERS}`],
      [{ Name: 'a b' }, `Invalid Role: invalid Name. ${LETTERS}`],
    ]),
    ...rows('PUT /acl/auth-method', INVALID, [
      [method, 'Invalid Auth Method: no Name is set'],
      [{ ...method, Name: 'x'.repeat(129) }, `Invalid Auth Method: invalid Name. ${LETTERS}`],
      [{ ...method, Name: 'a/b' }, `Invalid Auth Method: invalid Name. ${LETTERS}`],
    ]),
    ...rows(
      'PUT /acl/token',
      INVALID,
      ['Web', '-web', 'web-', '_web', 'w b', 'x'.repeat(257)].map((name) => [
        identity(name),
        `Service identity "${name}" has an invalid name. ${LOWERCASE}`,
      ]),
    ),
  ]);
  t.equal((await consul.put('/acl/role', { Name: 'x'.repeat(256) })).status, 200);
  for (const name of ['0', 'a-b_c', 'x'.repeat(256)]) {
    t.equal((await consul.put('/acl/token', identity(name))).status, 200);
  }
});

t.test('3.2: ids that cannot be looked up', async (t) => {
  const kinds = { policy: 'policy', role: 'role', token: 'token', 'binding-rule': 'binding rule' };
  const refusals = Object.entries(kinds).flatMap(([path, kind]) => {
    const text = `failed acl ${kind} lookup: index error: UUID must be 36 characters`;
    return ['x', `${NO_ID}0`, 'z'.repeat(36)].map((id) => ({
      ask: `GET /acl/${path}/${id}`,
      statuses: INVALID,
      text,
    }));
  });
  await refuses(t, node, [
    ...refusals,
    ...['policy', 'role', 'binding rule'].map((kind) => ({
      ask: `DELETE /acl/${kind.replace(' ', '-')}/x`,
      statuses: INVALID,
      text: `failed acl ${kind} lookup: index error: UUID must be 36 characters`,
    })),
  ]);
});

t.test('3.2: names are unique and found in any letter case, and keep their own', async (t) => {
  const policy = await newPolicy({ Name: 'MixedCase' });
  const role = await newRole({ Name: 'MixedCase' });
  const method = await newMethod({ Name: 'MixedCase' });
  await refuses(t, node, [
    ...rows('PUT /acl/policy', DUPLICATE, [
      [{ Name: 'mixedCASE' }, 'Invalid Policy: A Policy with Name "mixedCASE" already exists'],
    ]),
    ...rows('PUT /acl/role', DUPLICATE, [
      [{ Name: 'mixedCASE' }, 'Invalid Role: A Role with Name "mixedCASE" already exists'],
    ]),
  ]);
  t.same((await consul.get('/acl/policy/name/mIXEDcASE')).json, policy);
  t.same((await consul.get('/acl/role/name/mIXEDcASE')).json, role);
  t.same((await consul.get('/acl/auth-method/mIXEDcASE')).json, method);
  const link = { Policies: [{ Name: 'mixedcase' }], Roles: [{ Name: 'mixedcase' }] };
  t.match(await newToken(link), { Policies: [linkTo(policy)], Roles: [linkTo(role)] });
  // Decisions 3: a policy may be renamed by letter case alone.
  const renamed = await consul.made('PUT', `/acl/policy/${policy.ID}`, { Name: 'mixedCASE' });
  t.equal(renamed.Name, 'mixedCASE');
});

t.test('3.3: policies', async (t) => {
  const one = await newPolicy();
  const two = await newPolicy();
  await refuses(t, node, [
    ...rows(`PUT /acl/policy/${two.ID}`, DUPLICATE, [
      [{ Name: one.Name }, `Invalid Policy: A policy with name "${one.Name}" already exists`],
    ]),
    ...rows('PUT /acl/policy/x', INVALID, [[{ Name: 'x' }, 'Policy ID invalid UUID']]),
    ...rows(`PUT /acl/policy/${NO_ID}`, TARGET_MISSING, [
      [{ Name: 'x' }, `cannot find policy ${NO_ID}`],
    ]),
    ...rows('PUT /acl/policy', INVALID, [
      [{ Name: 'x', Rules: 'acl = "bogus"' }, /^Invalid acl policy: "bogus"/],
      [{ Name: 'x', Rules: 'key "foo" { policy = "bogus" }' }, /^Invalid key policy: /],
      [{ Name: 'x', Rules: 'acl = ["read"]' }, /^Failed to parse ACL rules: /],
      [{ Name: 'x', Rules: 'acl = "read"\nacl = "read"' }, /^Failed to parse ACL rules: /],
      [{ Name: 'x', Rules: 'not rules' }, /^Failed to parse ACL rules: /],
    ]),
  ]);
  const same = { Name: two.Name };
  const first = await consul.made('PUT', `/acl/policy/${two.ID}`, same);
  const second = await consul.made('PUT', `/acl/policy/${two.ID}`, same);
  t.equal(first.Hash, second.Hash);
  t.ok(Number(second.ModifyIndex) > Number(first.ModifyIndex), 'though nothing changed');
  t.equal(second.CreateIndex, two.CreateIndex);
  const names = (await consul.get('/acl/policies')).list.map(({ Name }) => String(Name));
  const byLowerCase = (a: string, b: string) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1);
  t.same(names, [...names].sort(byLowerCase));
});

t.test('3.3: the built-in policies', async (t) => {
  const features = 'access to all Consul features';
  const builtIns = [
    [
      GLOBAL_MANAGEMENT,
      'global-management',
      `A built-in policy that grants read and write ${features}`,
    ],
    [
      GLOBAL_READ_ONLY,
      'builtin/global-read-only',
      `A built-in policy that grants read-only ${features}`,
    ],
  ] as const;
  for (const [ID, Name, Description] of builtIns) {
    const path = `/acl/policy/${ID}`;
    const { json } = await consul.get(path);
    t.match(json, { ID, Name, Description });
    await refuses(t, node, [
      ...rows(`PUT ${path}`, INVALID, [
        [
          { Name, Rules: 'acl = "read"' },
          `Changing the Rules for the builtin ${Name} policy is not permitted`,
        ],
        [
          { Name, Rules: json.Rules, Datacenters: ['dc1'] },
          `Changing the Datacenters of the ${Name} policy is not permitted`,
        ],
        [
          { Name, Rules: json.Rules, Datacenters: [] },
          `Changing the Datacenters of the ${Name} policy is not permitted`,
        ],
      ]),
      {
        ask: `DELETE ${path}`,
        statuses: INVALID,
        text: `Delete operation not permitted on the builtin ${Name} policy`,
      },
    ]);
    // Decisions 3: the read-only one can be updated under its own name too.
    const updated = await consul.made('PUT', path, { Name, Description: 'ours' });
    t.match(updated, { Name, Description: 'ours', Rules: json.Rules });
    await consul.made('PUT', path, { Name, Description });
  }
});

t.test(
  '3.3: a deleted policy vanishes from what links to it, and does not come back',
  async (t) => {
    const kept = await newPolicy();
    const gone = await newPolicy();
    const Policies = [linkTo(gone), linkTo(kept)];
    const role = await newRole({ Policies });
    const token = await newToken({ Policies });
    await consul.delete(`/acl/policy/${gone.ID}`);
    await newPolicy({ Name: gone.Name });
    for (const [path, before] of [
      [`/acl/role/${role.ID}`, role],
      [`/acl/token/${token.AccessorID}`, token],
    ] as const) {
      t.same((await consul.get(path)).json, { ...before, Policies: [linkTo(kept)] }, path);
    }
  },
);

t.test('3.4: what a token create may not say, in order', async (t) => {
  const used = await newToken();
  const prefix = '00000000-0000-0000-0000-0000000000';
  const inMs = (ms: number): string => new Date(Date.now() + ms).toISOString();
  const reserved = (field: string): string =>
    `Invalid Token: ${field} - UUIDs with the prefix "${prefix}" are reserved`;
  /** Each stands before those below it. */
  const offences: readonly (readonly [Fields, string | RegExp, Statuses?])[] = [
    [{ AccessorID: `${prefix}aa` }, reserved('AccessorID')],
    [{ AccessorID: 'x' }, 'Invalid Token: AccessorID - not a valid UUID'],
    [{ AccessorID: used.AccessorID }, 'Invalid Token: AccessorID is already in use', DUPLICATE],
    [{ AccessorID: NO_ID, SecretID: `${prefix}aa` }, reserved('SecretID')],
    [{ AccessorID: NO_ID, SecretID: 'x' }, 'Invalid Token: SecretID - not a valid UUID'],
    [
      { AccessorID: NO_ID, SecretID: used.SecretID },
      'Invalid Token: SecretID is already in use',
      DUPLICATE,
    ],
    [{ SecretID: '', ExpirationTTL: '-1s' }, "Token Expiration TTL '-1s' should be > 0"],
    [
      { SecretID: '', ExpirationTTL: '1h' },
      'Token Expiration TTL and Expiration Time cannot both be set',
    ],
    [
      { ExpirationTTL: '', ExpirationTime: inMs(-1_000) },
      'ExpirationTime cannot be before CreateTime',
    ],
    [
      { ExpirationTTL: '', ExpirationTime: inMs(25 * 3_600_000) },
      /^ExpirationTime cannot be more than 24h0m0s in the future \(was 2\dh\d+m[\d.]+s\)$/,
    ],
    [
      { ExpirationTTL: '', ExpirationTime: inMs(50_000) },
      /^ExpirationTime cannot be less than 1m0s in the future \(was 4\d[\d.]*s\)$/,
    ],
    [{ ExpirationTime: '', AuthMethod: 'm' }, 'AuthMethod field is disallowed outside of login'],
    [{ AuthMethod: '', Roles: [{ Name: 'none' }] }, 'No such ACL role with name "none"'],
    [{ Roles: [{ ID: NO_ID }] }, `No such ACL role with ID "${NO_ID}"`],
    [{ Roles: [], Policies: [{ Name: 'none' }] }, 'No such ACL policy with name "none"'],
    [{ Policies: [{ ID: NO_ID }] }, `No such ACL policy with ID "${NO_ID}"`],
    [
      { Policies: [], ServiceIdentities: [{}] },
      'Service identity is missing the service name field on this token',
    ],
    [
      { ServiceIdentities: [], NodeIdentities: [{ Datacenter: 'dc1' }] },
      'Node identity is missing the node name field on this token',
    ],
    [
      { NodeIdentities: [], TemplatedPolicies: [{}] },
      'templated policy is missing the template name field on this token',
    ],
  ];
  await refuses(
    t,
    node,
    offences.map(([, text, statuses = INVALID], place) => ({
      ask: 'PUT /acl/token',
      body: Object.assign(
        {},
        ...offences
          .slice(place)
          .map(([body]) => body)
          .reverse(),
      ),
      statuses,
      text,
    })),
  );
  const service = (Datacenters: readonly string[]): Fields => ({
    ServiceIdentities: [{ ServiceName: 'web', Datacenters }],
  });
  const local = { ...service(['dc1']), Local: true };
  const text = 'Service identity "web" cannot specify a list of datacenters on a local token';
  const template = (TemplateName: string, name?: string): Fields => ({
    TemplatedPolicies: [
      { TemplateName, ...(name === undefined ? {} : { TemplateVariables: { name } }) },
    ],
  });
  const invalidTemplate = 'validation error for templated policy';
  await refuses(
    t,
    node,
    rows('PUT /acl/token', INVALID, [
      [local, text],
      [
        { NodeIdentities: [{ NodeName: 'n' }] },
        'Node identity is missing the datacenter field on this token',
      ],
      [
        { NodeIdentities: [{ NodeName: 'N', Datacenter: 'dc1' }] },
        `Node identity has an invalid name. ${LOWERCASE}`,
      ],
      [template('none'), 'no such ACL templated policy with Name "none"'],
      [
        template('builtin/service', 'A'),
        `${invalidTemplate} "builtin/service": service identity "A" has an invalid name. ${LOWERCASE}`,
      ],
      [
        template('builtin/node', ''),
        `${invalidTemplate} "builtin/node": node identity ""  has an invalid name. ${LOWERCASE}`,
      ],
      [template('builtin/service'), /Expected: object, given: null/],
    ]),
  );
  t.equal((await consul.put('/acl/token', { ...service([]), Local: true })).status, 200);
});

t.test('3.4: what a token update may not say', async (t) => {
  const token = await newToken({ ExpirationTTL: '1h' });
  const { AccessorID, SecretID, ExpirationTime } = token;
  const update = `PUT /acl/token/${AccessorID}`;
  const time = `Cannot change expiration time of ${AccessorID}`;
  const { AccessorID: unlimited } = await newToken();
  await refuses(t, node, [
    ...rows('PUT /acl/token/x', INVALID, [[{}, 'AccessorID is not a valid UUID']]),
    ...rows(`PUT /acl/token/${NO_ID}`, TARGET_MISSING, [[{}, `Cannot find token "${NO_ID}"`]]),
    ...rows(update, DENIED, [
      [{ SecretID: 'allow' }, 'Permission denied: Cannot modify root ACL'],
      [{ SecretID: 'manage' }, 'Permission denied: Cannot modify root ACL'],
    ]),
    ...rows(update, INVALID, [
      [{ SecretID: NO_ID, Local: true }, "Changing a token's SecretID is not permitted"],
      [{ Local: true, AuthMethod: 'm' }, `Cannot toggle local mode of ${AccessorID}`],
      [{ AuthMethod: 'm', ExpirationTTL: '1h' }, `Cannot change AuthMethod of ${AccessorID}`],
      [{ ExpirationTTL: '1h' }, time],
      [{ ExpirationTime: new Date(Date.now() + 7_200_000).toISOString() }, time],
    ]),
    ...rows(`PUT /acl/token/${unlimited}`, INVALID, [
      [{ ExpirationTime }, `Cannot change expiration time of ${unlimited}`],
    ]),
  ]);
  const { AccessorID: local } = await newToken({ Local: true });
  await refuses(
    t,
    node,
    rows(`PUT /acl/token/${local}`, INVALID, [
      [{ Description: 'Local is absent' }, `Cannot toggle local mode of ${local}`],
    ]),
  );
  const body = { SecretID, ExpirationTime, Local: false, AuthMethod: '', Description: 'same' };
  t.match(await consul.made('PUT', `/acl/token/${AccessorID}`, body), { Description: 'same' });
  const offset = String(ExpirationTime).replace('Z', '+00:00');
  t.equal((await consul.put(`/acl/token/${AccessorID}`, { ExpirationTime: offset })).status, 200);
});

t.test('3.4: deletes that are refused; the anonymous token', async (t) => {
  const self = await newToken({ Policies: [{ ID: GLOBAL_MANAGEMENT }] });
  const refusal = (id: unknown, text: string): Refusal => ({
    ask: `DELETE /acl/token/${id}`,
    statuses: INVALID,
    text,
  });
  const own = "Deletion of the request's authorization token is not permitted";
  await refuses(
    t,
    node,
    [
      refusal('x', 'Accessor ID is missing or an invalid UUID'),
      refusal(ANONYMOUS, 'Delete operation not permitted on the anonymous token'),
      refusal(self.AccessorID, own),
      refusal(String(self.AccessorID).toUpperCase(), own),
    ],
    String(self.SecretID),
  );
  const updated = await consul.made('PUT', `/acl/token/${ANONYMOUS}`, { Description: 'Anyone' });
  t.match(updated, { SecretID: 'anonymous', Description: 'Anyone' });
});

t.test('3.4: links and identities in their normal form', async (t) => {
  const [one, two] = [await newPolicy(), await newPolicy()];
  const token = await newToken({
    Policies: [{ ID: two.ID, Name: 'ignored' }, { Name: one.Name }, { ID: two.ID }],
    ServiceIdentities: [
      { ServiceName: 'web', Datacenters: ['dc2'] },
      { ServiceName: 'api', Datacenters: ['dc1'] },
      { ServiceName: 'web', Datacenters: ['dc1'] },
      { ServiceName: 'api' },
    ],
    NodeIdentities: [
      { NodeName: 'n', Datacenter: 'dc2' },
      { NodeName: 'n', Datacenter: 'dc1' },
      { NodeName: 'n', Datacenter: 'dc2' },
    ],
    TemplatedPolicies: ['b', 'a', 'b'].map((name) => ({
      TemplateName: 'builtin/service',
      TemplateVariables: { name },
    })),
  });
  t.same(token.Policies, [linkTo(two), linkTo(one)]);
  // Decisions 3: sorted by name, and the identity without datacenters wins.
  t.same(token.ServiceIdentities, [
    { ServiceName: 'api' },
    { ServiceName: 'web', Datacenters: ['dc1', 'dc2'] },
  ]);
  t.same(token.NodeIdentities, [
    { NodeName: 'n', Datacenter: 'dc2' },
    { NodeName: 'n', Datacenter: 'dc1' },
  ]);
  const templated = token.TemplatedPolicies as readonly { TemplateVariables: Fields }[];
  t.same(
    templated.map(({ TemplateVariables }) => TemplateVariables.name),
    ['b', 'a'],
  );
});

t.test('3.5: auth methods', async (t) => {
  const body = { Name: fresh('method'), Type: 'jwt', Config: ISSUER.config };
  const created = await consul.made('PUT', `/acl/auth-method/${body.Name}`, body);
  const types = '[aws-iam jwt kubernetes oidc]';
  const ask = 'PUT /acl/auth-method';
  await refuses(t, node, [
    ...rows(ask, INVALID, [
      [{ ...body, Type: 'kubernetes' }, 'the Type field of an Auth Method is immutable'],
      [{ ...body, Name: 'n', Type: '' }, `Invalid Auth Method: Type should be one of: ${types}`],
      [{ ...body, MaxTokenTTL: '25h' }, 'MaxTokenTTL 25h0m0s cannot be more than 24h0m0s'],
      [{ ...body, MaxTokenTTL: 1 }, 'MaxTokenTTL 1ns cannot be less than 1m0s'],
      [
        { ...body, TokenLocality: 'x' },
        "Invalid Auth Method: TokenLocality should be one of 'local' or 'global'",
      ],
      [
        { ...body, Config: { ...ISSUER.config, OIDCClientID: 'x' } },
        `Invalid Auth Method: 'OIDCClientID' must not be set for type "jwt"`,
      ],
      [
        { ...body, Config: {} },
        `Invalid Auth Method: exactly one of 'JWTValidationPubKeys', 'JWKSURL', or 'OIDCDiscoveryURL' must be set for type "jwt"`,
      ],
      [{ ...body, Config: { Bogus: 1 } }, /^Invalid Auth Method: error decoding config: /],
    ]),
  ]);
  for (const [given, shown] of [
    ['30m80s', '31m20s'],
    ['120s', '2m0s'],
    ['24h', '24h0m0s'],
    [500_000_000_000, '8m20s'],
  ]) {
    const updated = await consul.made('PUT', '/acl/auth-method', { ...body, MaxTokenTTL: given });
    t.match(updated, { MaxTokenTTL: shown, CreateIndex: created.CreateIndex });
  }
  // Full replacement, with the type filled in.
  const { Name, Config } = body;
  const replaced = await consul.made('PUT', `/acl/auth-method/${Name}`, { Config });
  t.same(Object.keys(replaced).slice(0, 3), ['Name', 'Type', 'Config']);
});

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
  answers(t, await consul.as('').get('/acl/replication'), 200, JSON.stringify(zero));
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
    preview('none', {}, /^templated policy "none" does not exist$/),
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
      statuses: MALFORMED,
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

t.test('6.1: hashes', async (t) => {
  const hashOf = (...parts: unknown[]): string =>
    Buffer.from(blake2b(Buffer.from(parts.join('')), { dkLen: 32 })).toString('base64');
  const root = new Client(
    await runNode(t, { 'acl-tokens-initial-management': '' }),
    'X-Consul-',
    '',
  );
  const bootstrap = await root.made('PUT', '/acl/bootstrap', {});
  t.equal(bootstrap.Hash, 'X2AgaFhnQGRhSSF/h0m6qpX1wj/HJWbyXcxkEM/5GrY=');

  const rules = 'acl = "read"';
  const draft = { Name: 'hashed', Description: 'déjà vu', Rules: rules, Datacenters: ['b', 'a'] };
  const policy = await newPolicy(draft);
  t.equal(policy.Hash, hashOf('hashed', 'déjà vu', rules, 'b', 'a'));
  const links = {
    Policies: [linkTo(policy)],
    ServiceIdentities: [{ ServiceName: 'web', Datacenters: ['a'] }],
    NodeIdentities: [{ NodeName: 'n', Datacenter: 'dc1' }],
    TemplatedPolicies: [{ TemplateName: 'builtin/service', TemplateVariables: { name: 'x' } }],
  };
  const identities = ['web', 'a', 'n', 'dc1', '00000000-0000-0000-0000-000000000003'];
  const tail = [...identities, 'builtin/service', 'x'];
  const role = await newRole({ Name: 'hashed', Description: 'd', ...links });
  t.equal(role.Hash, hashOf('hashed', 'd', policy.ID, ...tail));
  const Roles = [linkTo(role)];
  const token = await newToken({ Description: 'd', ...links, Roles });
  t.equal(token.Hash, hashOf('d', 'global', policy.ID, role.ID, ...tail));
  const local = await newToken({ Description: 'd', Local: true, ExpirationTTL: '1h' });
  t.equal(local.Hash, hashOf('d', 'local'), 'neither secret nor expiry counts');
});

t.test('6.3: a clone copies everything but ids, times and description', async (t) => {
  const role = await newRole();
  const source = await newToken({
    Description: 'source',
    Policies: [linkTo(await newPolicy())],
    Roles: [linkTo(role)],
    ServiceIdentities: [{ ServiceName: 'web' }],
    NodeIdentities: [{ NodeName: 'n', Datacenter: 'dc1' }],
    TemplatedPolicies: [{ TemplateName: 'builtin/dns' }],
    Local: true,
    ExpirationTTL: '1h',
  });
  const path = `/acl/token/${source.AccessorID}/clone`;
  const ownFields = ['AccessorID', 'SecretID', 'CreateTime', 'CreateIndex', 'ModifyIndex'];
  const shared = (token: Fields): Fields =>
    Object.fromEntries(Object.entries(token).filter(([name]) => !ownFields.includes(name)));
  // Decisions 3: no body at all is fine.
  for (const body of [undefined, {}, { Description: '', Local: false, Policies: [] }]) {
    const clone = await consul.made('PUT', path, body);
    t.same(shared(clone), shared(source));
    for (const name of ['AccessorID', 'SecretID', 'ModifyIndex']) t.not(clone[name], source[name]);
  }
  t.equal((await consul.made('PUT', path, { description: 'other' })).Description, 'other');
});

t.test('6.4: secrets are hidden from those who may only read', async (t) => {
  const reader = await newToken({ Policies: [{ ID: GLOBAL_READ_ONLY }] });
  const client = consul.as(reader.SecretID);
  const token = await newToken();
  const path = `/acl/token/${token.AccessorID}`;
  t.equal((await client.get(path)).json.SecretID, '<hidden>');
  t.equal((await client.get(`${path}?expanded`)).json.SecretID, '<hidden>');
  const { list } = await client.get('/acl/tokens');
  t.ok(list.length > 2);
  t.ok(list.every(({ SecretID }) => SecretID === '<hidden>'));
  t.equal((await client.get('/acl/token/self')).json.SecretID, reader.SecretID);
  t.equal((await consul.get(path)).json.SecretID, token.SecretID);
});

t.test('6.5: filters of the list of tokens', async (t) => {
  const policy = await newPolicy();
  const role = await newRole({ ServiceIdentities: [{ ServiceName: 'through-role' }] });
  const { Name: AuthMethod } = await newMethod({ Name: 'Filtered' });
  await newRule({ AuthMethod });
  const login = { AuthMethod, BearerToken: await ISSUER.sign() };
  const ids = {
    policy: (await newToken({ Policies: [linkTo(policy)] })).AccessorID,
    role: (await newToken({ Roles: [linkTo(role)] })).AccessorID,
    identity: (await newToken({ ServiceIdentities: [{ ServiceName: 'filtered' }] })).AccessorID,
    template: (
      await newToken({
        TemplatedPolicies: [
          { TemplateName: 'builtin/service', TemplateVariables: { name: 'filtered' } },
        ],
      })
    ).AccessorID,
    login: (await consul.made('POST', '/acl/login', login)).AccessorID,
  };
  const cases: readonly [string, unknown[]][] = [
    [`policy=${policy.ID}`, [ids.policy]],
    [`policy=${String(policy.ID).toUpperCase()}`, [ids.policy]],
    [`role=${role.ID}`, [ids.role]],
    ['servicename=filtered', [ids.identity, ids.template]],
    ['servicename=FILTERED', [ids.identity, ids.template]],
    ['servicename=through-role', []],
    ['authmethod=filtered', [ids.login]],
    ['authmethod=filtered&authmethod-ns=default', [ids.login]],
    [`policy=${NO_ID}`, []],
    ['authmethod=none', []],
  ];
  for (const [query, wanted] of cases) {
    const { list } = await consul.get(`/acl/tokens?${query}`);
    t.same(
      list.map(({ AccessorID }) => AccessorID),
      sorted(wanted.map(String)),
      query,
    );
  }
  const { list } = await consul.get('/acl/tokens');
  const all = list.map(({ AccessorID }) => String(AccessorID));
  t.same(all, sorted(all), 'decisions 3: ordered by AccessorID');
  const one = 'can only filter by one of policy, role, serviceName, or methodName at a time';
  const lookup = 'failed acl token lookup: index error: UUID must be 36 characters';
  await refuses(t, node, [
    { ask: `GET /acl/tokens?policy=${NO_ID}&role=${NO_ID}`, statuses: INVALID, text: one },
    { ask: 'GET /acl/tokens?policy=x', statuses: INVALID, text: lookup },
    { ask: 'GET /acl/tokens?role=x', statuses: INVALID, text: lookup },
  ]);
});

t.test('6.6: which calls look at dc', async (t) => {
  const { AccessorID } = await newToken();
  const { ID } = await newPolicy();
  const ignored: readonly [string, string, unknown][] = [
    ['PUT', '/acl/token', {}],
    ['PUT', `/acl/token/${AccessorID}`, {}],
    ['PUT', `/acl/token/${AccessorID}/clone`, {}],
    ['DELETE', `/acl/token/${AccessorID}`, undefined],
    ['PUT', '/acl/policy', { Name: fresh('dc') }],
    ['PUT', `/acl/policy/${ID}`, { Name: fresh('dc') }],
    ['DELETE', `/acl/policy/${ID}`, undefined],
    ['PUT', '/acl/role', { Name: fresh('dc') }],
  ];
  for (const [method, path, body] of ignored) {
    const { status } = await consul.send(method, `${path}?dc=none`, { body });
    t.equal(status, 200, `${method} ${path}`);
  }
  const method = { Name: fresh('dc'), Type: 'jwt', Config: ISSUER.config };
  const honoured: readonly [string, unknown?][] = [
    ...READS.map((path): [string] => [`GET ${path}`]),
    ['PUT /acl/auth-method', method],
    ['DELETE /acl/auth-method/none'],
    ['GET /acl/binding-rules'],
    ['POST /acl/login', { AuthMethod: 'none' }],
    ['POST /acl/logout'],
    ['GET /acl/replication'],
  ];
  await refuses(
    t,
    node,
    honoured.map(([ask, body]) => ({
      ask: `${ask}?dc=none`,
      body,
      statuses: [500, 400],
      text: 'No path to datacenter',
    })),
  );
});

const READS = [
  '/acl/tokens',
  '/acl/token/self',
  `/acl/token/${NO_ID}`,
  '/acl/policies',
  `/acl/policy/${NO_ID}`,
  '/acl/roles',
  `/acl/role/${NO_ID}`,
  '/acl/auth-methods',
];

t.test('6.7: a token of a login can be updated, and keeps its method', async (t) => {
  const { Name: AuthMethod } = await newMethod();
  await newRule({ AuthMethod });
  const login = { AuthMethod, BearerToken: await ISSUER.sign() };
  const token = await consul.made('POST', '/acl/login', login);
  const path = `/acl/token/${token.AccessorID}`;
  const body = { Description: 'changed', Local: true, AuthMethod };
  t.match(await consul.made('PUT', path, body), { Description: 'changed', AuthMethod });
});

t.test('7.6: deleting a method takes its rules and tokens along, under one index', async (t) => {
  const methods = [await newMethod(), await newMethod({ TokenLocality: 'global' })];
  for (const { Name: AuthMethod } of methods) {
    const rule = await newRule({ AuthMethod });
    const login = { AuthMethod, BearerToken: await ISSUER.sign() };
    const token = await consul.made('POST', '/acl/login', login);
    t.equal((await consul.delete(`/acl/auth-method/${AuthMethod}`)).text, 'true');
    answers(t, await consul.as(token.SecretID).get('/acl/policies'), 403, 'ACL not found');
    const paths = [
      [`/acl/token/${token.AccessorID}`, 403],
      [`/acl/binding-rule/${rule.ID}`, 404],
    ] as const;
    for (const [path, status] of paths) t.equal((await consul.get(path)).status, status, path);
    const indexes = [];
    for (const list of ['auth-methods', 'binding-rules', 'tokens']) {
      indexes.push((await consul.get(`/acl/${list}`)).headers['x-consul-index']);
    }
    t.equal(new Set(indexes).size, 1, indexes.join());
  }
});

t.test('9: indexes', async (t) => {
  const other = new Client(await runNode(t), 'X-Consul-', ROOT);
  const indexOf = async (path: string): Promise<number> =>
    Number((await other.get(path)).headers['x-consul-index']);
  t.equal(await indexOf('/acl/binding-rules'), 1, 'a table that was never written');
  let last = 0;
  for (const Description of ['a', 'a', 'b']) {
    const { ModifyIndex } = await other.made('PUT', `/acl/token/${ANONYMOUS}`, { Description });
    t.equal(await indexOf('/acl/tokens'), ModifyIndex);
    t.equal(await indexOf('/acl/token/self'), ModifyIndex, 'a single read tells the table');
    t.ok(Number(ModifyIndex) > last, 'an identical write counts');
    last = Number(ModifyIndex);
  }
  const role = await other.made('PUT', '/acl/role', { Name: 'r' });
  t.equal(role.CreateIndex, role.ModifyIndex);
  t.equal(await indexOf('/acl/roles'), role.ModifyIndex);
  t.equal(await indexOf('/acl/tokens'), last, 'another table');
  await other.delete(`/acl/role/${role.ID}`);
  t.ok((await indexOf('/acl/roles')) > Number(role.ModifyIndex), 'a delete counts');
  const before = await indexOf('/acl/roles');
  await other.delete(`/acl/role/${role.ID}`);
  t.equal(await indexOf('/acl/roles'), before, 'a delete of nothing does not');
});
