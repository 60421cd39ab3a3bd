// compatibility.md, section 3, over HTTP against the real node: the exact JSON of every object, and what
// is refused in which words, with the statuses of both dialects. Where decisions.md answers otherwise,
// the test's name says so.

import t from 'tap';
import { jwtIssuer } from '../support/running/jwt-issuer.ts';
import { Client, type Fields, runNode } from '../support/running/running-node.ts';
import {
  DENIED,
  DUPLICATE,
  INVALID,
  type Refusal,
  refuses,
  rows,
  type Statuses,
  TARGET_MISSING,
} from './both-dialects.ts';
import { fresh, linkTo, makersOn } from './makers.ts';

const NO_ID = '7b2c0b4e-5f0a-4d7f-9d3b-1c2d3e4f5a6b';
const ANONYMOUS = '00000000-0000-0000-0000-000000000002';
const GLOBAL_MANAGEMENT = '00000000-0000-0000-0000-000000000001';
const GLOBAL_READ_ONLY = '00000000-0000-0000-0000-000000000002';
const LOWERCASE = "Only lowercase alphanumeric characters, '-' and '_' are allowed";
const LETTERS = "Only alphanumeric characters, '-' and '_' are allowed";

const node = await runNode(t);
const consul = new Client(node, 'X-Consul-');
const ISSUER = await jwtIssuer();
const { newPolicy, newRole, newToken, newMethod } = makersOn(consul, ISSUER.config);

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
      { ExpirationTTL: null, ExpirationTime: inMs(-1_000) },
      'ExpirationTime cannot be before CreateTime',
    ],
    [
      { ExpirationTTL: null, ExpirationTime: inMs(25 * 3_600_000) },
      /^ExpirationTime cannot be more than 24h0m0s in the future \(was 2\dh\d+m[\d.]+s\)$/,
    ],
    [
      { ExpirationTTL: null, ExpirationTime: inMs(50_000) },
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
